//! Tests of the emulated machine, and of the code that `clr_codegen` makes for it.

mod codegen;
mod host_cpu;
mod images;
