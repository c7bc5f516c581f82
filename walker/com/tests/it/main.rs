//! Tests of the profiling interfaces as COM objects.
#![cfg(target_pointer_width = "64")]

mod guid;
mod layout;
