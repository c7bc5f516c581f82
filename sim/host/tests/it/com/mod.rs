//! Tests of the profiling interfaces as COM objects.

mod guid;
mod layout;
