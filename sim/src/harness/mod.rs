//! A harness that runs an external stack walker on the threads of texts, for the tests of profilers
//! and unwinders.
//!
//! A [`StackWalker`] gets a stopped thread as a profiler sees it: the registers, the memory of the
//! process, native unwind data and the profiling methods. Each thread of each text is walked on
//! each generation, and the frames found are compared with the shadow stack.
//!
//! ```
//! use clr_sim::harness::{Found, StackWalker, StoppedThread, judge};
//! use clr_walker::profiling::{HResult, ProfilerInfo, SnapshotRequest, SnapshotFlags};
//!
//! /// Calls DoStackSnapshot without a seed.
//! struct Unseeded;
//!
//! impl StackWalker for Unseeded {
//!     fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
//!         let mut callback = |frame: &mut clr_walker::profiling::SnapshotFrame<'_>| {
//!             let ip = frame.ip;
//!             found.extend(frame.function.map(|function| Found { function, ip }));
//!             HResult::OK
//!         };
//!         let flags = SnapshotFlags::DEFAULT;
//!         target
//!             .info()
//!             .do_stack_snapshot(&SnapshotRequest::of(target.thread, flags), Some(&mut callback))
//!             .map_err(|error| error.to_string())
//!     }
//! }
//!
//! let text = r#"
//! function "App.Main" kind="jit" { body { p-invoke "Lib.Sleep"; write-barrier } }
//! function "Lib.Sleep" { body { work 3 } }
//! stop at="Lib.Sleep" { snapshot by="native-walker" }
//! stop at="JIT_WriteBarrier" { snapshot by="native-walker" }
//! "#;
//! let verdicts = judge(&Unseeded, text)?;
//! // The walk of the thread in the P/Invoke is complete on Windows. All others are refused.
//! // No walk is wrong.
//! assert!(verdicts.iter().all(|verdict| verdict.is_true()));
//! assert_eq!(verdicts.iter().filter(|verdict| verdict.is_complete()).count(), 7);
//! # Ok::<(), clr_sim::harness::JudgeError>(())
//! ```
//!
//! [`score`] sums up what a walker finds in many texts: frames found, missing and wrong, and claims that are false.
//! A test crate creates one test per text with `main` (feature `harness`), or checks all texts in a single test with
//! [`assert_all`]; a [`Demand`] says what passes.
//!
//! Walkers to compare with: [`Sampler`] follows the documentation of the CLR, [`FramePointers`] follows rbp, and
//! [`MixedWalker`] is `clr-walker`'s, by any of its policies.

mod demand;
mod frame_pointers;
mod judge;
mod mixed_walker;
mod sampler;
mod score;
mod target;
mod verdict;

pub use demand::{Demand, assert_all, score};
pub use frame_pointers::FramePointers;
pub use judge::{JudgeError, judge};
pub use mixed_walker::MixedWalker;
pub use sampler::Sampler;
pub use score::{Score, Scores};
pub use target::{ProcessMemory, StoppedThread};
pub use verdict::{SideBySide, StackFrame, WalkerResult, WalkerVerdict};

use clr_walker::profiling::FunctionId;

/// A managed frame that a walker found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// FunctionID of the method.
    pub function: FunctionId,
    /// Instruction pointer or return address (VA).
    pub ip: u64,
}

/// A stack walker under test.
pub trait StackWalker {
    /// Walks the stack of a stopped thread and appends its managed frames, leaf first.
    ///
    /// # Errors
    /// Returns a description if the stack cannot be walked, or not to its end.
    fn walk(&self, target: &StoppedThread<'_, '_>, found: &mut Vec<Found>) -> Result<(), String>;
}

/// Runs as the `main` of a test target with `harness = false`: one named test for each text, which passes if all of its
/// walks meet the demand. Tests of texts without a thread that can be walked, or in which neither the walker nor the one
/// that it is compared with finds a frame, are ignored. At the end the scores are
/// printed, of the tests that ran.
///
/// The usual arguments of test programs are accepted, so `cargo test NAME` and nextest work.
#[cfg(feature = "harness")]
pub fn main<W: StackWalker + Sync>(
    walker: &'static W,
    demand: Demand<'static>,
    texts: impl IntoIterator<Item = (String, &'static str)>,
) -> std::process::ExitCode {
    use demand::Walked;
    use libtest_mimic::{Arguments, Completion, Trial};
    use std::sync::{Arc, Mutex, PoisonError};
    let scores = Arc::new(Mutex::new(Scores::default()));
    let trial = |(name, text): (String, &'static str)| {
        let scores = Arc::clone(&scores);
        Trial::ignorable_test(name.clone(), move || {
            let made = demand::walk_text(walker, demand, &name, text);
            let Walked { verdicts, failures, is_void } =
                made.map_err(|error| format!("{name}: {error}"))?;
            scores.lock().unwrap_or_else(PoisonError::into_inner).add(&name, &verdicts);
            match failures {
                Some(failures) => Err(failures.into()),
                None if verdicts.is_empty() => Ok(Completion::ignored_with("no thread to walk")),
                None if is_void => Ok(Completion::ignored_with("no walker finds a frame")),
                None => Ok(Completion::Completed),
            }
        })
    };
    let trials = texts.into_iter().map(trial).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    let scores = scores.lock().unwrap_or_else(PoisonError::into_inner);
    if scores.total().walks > 0 {
        println!("{scores}");
    }
    conclusion.exit_code()
}
