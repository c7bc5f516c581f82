//! Tests of the walker through its public interface, in one program: linking costs more than the tests.

mod compact;
mod dwarf;
mod jitted;
mod mixed;
mod stack_need;
mod win64;
