//! Tests of the walker through its public interface, in one program: linking costs more than the tests.

mod jitted;
mod mixed;
