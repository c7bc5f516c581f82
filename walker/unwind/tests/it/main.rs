//! Tests of the unwinder through its public interface, in one program: linking costs more than the tests.

#[cfg(feature = "macho")]
mod compact;
mod dwarf;
#[cfg(feature = "macho")]
mod stack_need;
mod win64;
