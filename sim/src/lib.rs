//! A deterministic simulator of the .NET runtime for testing stack walks.
//!
//! What stands so far:
//!
//! - [`machine`]: an emulated x64 machine, which runs the code whose stacks are walked.
//! - [`code`]: programs of functions with every shape of frame, as machine code and unwind data.
//! - [`truth`]: who really called whom, with which registers; [`run`]: a program being executed
//!   beside it; [`roles`]: what lies on its stack.
//! - [`generation`]: which runtime is simulated; [`runtime`]: its state as far as a walk can see it;
//!   [`profiling`]: `DoStackSnapshot` over that state.
//! - [`explain`]: why a call came out as it did. [`stage`]: threads set up by hand.
//! - [`clause`]: the rules of the runtimes, by number; [`coverage`]: what exercises them.
//! - [`world`]: programs executed together with a runtime; [`stubs`]: its code; [`model`]: what must be
//!   reported of such threads, from the truth alone.
//! - `recording` (feature `recording`): walks of real CLRs, made again and compared.
//! - [`vectors`]: readers of recorded unwinds of real code, and of artificial ones.
//! - [`replay`]: these unwinds, replayed through the walker and compared with what is known of them.
//! - [`strategy`]: generators of programs and of threads, and what makes them smaller.
//! - `scenario` (feature `scenario`): the text format of programs, stops, and what walks find there.
//! - [`schedule`]: histories of such programs with a profiler in them, searched for deadlocks by [`check`].
//! - `harness` (feature `scenario`): somebody else's walker against such texts.
//! - `book` (feature `scenario`): where a newcomer begins.
//!
//! The library touches no file and prints nothing; the tool `clrsim` (feature `cli`) does that.

#[cfg(feature = "scenario")]
pub mod book;
pub mod clause;
pub mod code;
pub mod coverage;
pub mod explain;
pub mod generation;
#[cfg(feature = "scenario")]
pub mod harness;
pub mod machine;
pub mod model;
pub mod profiling;
#[cfg(feature = "recording")]
pub mod recording;
pub mod replay;
pub mod roles;
pub mod run;
pub mod runtime;
#[cfg(feature = "scenario")]
pub mod scenario;
pub mod schedule;
pub mod stage;
pub mod strategy;
pub mod stubs;
pub mod truth;
pub mod vectors;
pub mod world;

pub use schedule::check;
