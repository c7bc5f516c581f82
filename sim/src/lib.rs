//! A deterministic simulator of the .NET runtime for testing stack walks.
//!
//! What stands so far:
//!
//! - [`machine`]: an emulated x64 machine, which runs the code whose stacks are walked.
//! - [`vectors`]: readers of recorded unwinds of real code, and of artificial ones.
//! - [`replay`]: these unwinds, replayed through the walker and compared with what is known of them.
//!
//! The library touches no file and prints nothing; the tool `clrsim` (feature `cli`) does that.

pub mod machine;
pub mod replay;
pub mod vectors;
