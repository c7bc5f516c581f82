//! Somebody else's walker against texts: for the tests of profilers and unwinders.
//!
//! A [`StackWalker`] is shown a thread as a profiler sees it that has stopped it: its registers, the
//! process's memory, native unwind data and the profiling methods. Each thread of each text is such a
//! thread, on each generation. What it finds is held against who really called whom.
//!
//! ```
//! use clr_sim::harness::{Found, StackWalker, Target, judge};
//! use clr_walker::profiling::{HResult, ProfilerInfo, SnapshotFlags};
//!
//! /// Asks without a seed.
//! struct Unseeded;
//!
//! impl StackWalker for Unseeded {
//!     fn walk(&self, target: &Target<'_, '_>, found: &mut Vec<Found>) -> Result<(), String> {
//!         let mut callback = |frame: &mut clr_walker::profiling::SnapshotFrame<'_>| {
//!             let ip = frame.ip;
//!             found.extend(frame.function.map(|function| Found { function, ip }));
//!             HResult::OK
//!         };
//!         let flags = SnapshotFlags::DEFAULT;
//!         target
//!             .info()
//!             .do_stack_snapshot(target.thread, Some(&mut callback), flags, 0, None, 0)
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
//! // It finds all of the thread in the P/Invoke on Windows, and is refused elsewhere. It is never wrong.
//! assert!(verdicts.iter().all(|verdict| verdict.is_right()));
//! assert_eq!(verdicts.iter().filter(|verdict| verdict.is_complete()).count(), 4);
//! # Ok::<(), clr_sim::harness::JudgeError>(())
//! ```
//!
//! [`Sampler`] is a walker as the documentation of the CLR wants it.
//! A test crate gives each text a test of its own by `main` (feature `harness`), or all of
//! them one by [`assert_all`].

mod sampler;
mod target;
mod verdict;

pub use sampler::Sampler;
pub use target::{ProcessMemory, Target};
pub use verdict::{JudgeError, Outcome, Verdict, assert_all, judge};

use clr_walker::profiling::FunctionId;

/// A managed frame that a walker has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its method.
    pub function: FunctionId,
    /// Where control is, or comes back to (VA).
    pub ip: u64,
}

/// A walker under test.
pub trait StackWalker {
    /// Walks the stack of a thread that is stopped, and adds its managed frames, leaf first.
    ///
    /// # Errors
    /// Why it cannot walk the stack, or not to its end, in words.
    fn walk(&self, target: &Target<'_, '_>, found: &mut Vec<Found>) -> Result<(), String>;
}

/// The `main` of a test target without harness: a test for each text, by name.
///
/// It takes the arguments that test programs take, so that `cargo test NAME` and nextest work.
#[cfg(feature = "harness")]
pub fn main<W: StackWalker + Sync>(
    walker: &'static W,
    texts: impl IntoIterator<Item = (String, &'static str)>,
) -> std::process::ExitCode {
    use libtest_mimic::{Arguments, Trial};
    let trial = |(name, text): (String, &'static str)| {
        Trial::test(name.clone(), move || {
            assert_all(walker, [(name.as_str(), text)]).map_err(Into::into)
        })
    };
    let trials = texts.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

#[cfg(test)]
mod tests;
