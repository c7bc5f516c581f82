//! Tests of machine code: of the emulated machine, of generated code, and of the unwinders.

mod generate;
mod machine;
mod unwinders;
