//! A deterministic simulator of the .NET runtime for testing stack walks.
//!
//! A walker under test is given threads of texts, on every simulated runtime, and its answers are
//! compared with the frames that really are on the stack:
//!
//! ```
//! use clr_sim::harness::{Sampler, judge};
//!
//! let text = r#"
//! function "App.Main" kind="jit" { body { p-invoke "Lib.Sleep" } }
//! function "Lib.Sleep" { body { work 3 } }
//! stop at="Lib.Sleep"
//! "#;
//! // The sampler of this crate. A test of a profiler implements `StackWalker` for its own walker.
//! let verdicts = judge(&Sampler, text)?;
//! assert!(verdicts.iter().all(|verdict| verdict.is_true()));
//! # Ok::<(), clr_sim::harness::JudgeError>(())
//! ```
//!
//! # Entry points
//!
//! - [`harness`]: a walker against texts, on every runtime.
//! - [`Scenario`]: one text: programs, stacks, snapshots, and the answers that each runtime must give.
//! - [`check`]: a profiler, written as closures that block, in many interleavings with a program.
//! - [`book`]: chapters for newcomers.
//!
//! # Crates
//!
//! This crate is a facade. Each module below is a crate of its own, and depends only on modules
//! above it:
//!
//! - [`lint`]: the unwind data of an image, held against its code.
//! - [`machine`]: an emulated x64 machine: memory, interpreter, save points.
//! - [`codegen`]: functions of every frame shape as machine code, unwind data and images; their
//!   execution, with a shadow stack.
//! - [`runtime`]: generations of the CLR and their clauses; threads and Frames; `DoStackSnapshot` and
//!   its explanation.
//! - [`world`]: programs executed together with a runtime; synthetic threads.
//! - `recording` (feature `recording`): unwinds and walks recorded from real processes, replayed.
//! - [`generate`]: generators of programs and threads (features `arbitrary` and `proptest`).
//! - [`explore`]: histories of a profiler beside a program: search, verdicts, replay, timeline.
//! - [`scenario`]: the text format.
//!
//! `clr_walker` is the walker under test, and the crate that a profiler ships. Feature `fixtures` adds
//! the gallery as data. The library touches no file and prints nothing; the tool `clrsim` does that.

pub mod book;
pub mod harness;

#[cfg(feature = "fixtures")]
pub use clr_fixtures as fixtures;
#[cfg(feature = "recording")]
pub use clr_recording as recording;
pub use {
    clr_codegen as codegen, clr_explore as explore, clr_generate as generate, clr_lint as lint,
    clr_machine as machine, clr_runtime as runtime, clr_scenario as scenario, clr_world as world,
};

pub use clr_explore::check;
pub use clr_scenario::Scenario;
