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
//! # What is supported
//!
//! The items of this page and of [`harness`], with their methods:
//!
//! | for | items |
//! |---|---|
//! | a walker against texts, on every runtime | [`harness`] |
//! | one text: its programs, stacks and calls, and the answers that each runtime must give | [`Scenario`], [`ScenarioError`] |
//! | runtimes | [`Generation`], [`Generations`] |
//! | a profiler as closures that block, in many interleavings with a program | [`check`], [`Setup`], [`CurrentThread`], [`Budget`], [`Report`], [`Failure`], [`failure_story`] |
//! | one interleaving again | [`Explorer`], [`ScheduleString`], [`HistoryDetail`] |
//! | a thread laid out by hand, as a profiler sees it | [`SyntheticThread`], [`SimulatedThread`] |
//! | chapters for newcomers | [`book`] |
//!
//! `clr_walker` and `clr_unwind` are the walker under test, and the crates that a profiler ships: they have a promise of
//! their own. All crates that this one is made of are in `unstable`, which is hidden: what is there may change in any
//! version. [`book::stability`] says what is promised.
//!
//! Feature `fixtures` adds the gallery as data, and `recording` walks recorded in real CLRs. The library touches no file
//! and prints nothing; the tool `clrsim` does that.

pub mod book;
pub mod harness;

#[cfg(feature = "fixtures")]
pub use clr_fixtures as fixtures;

#[doc(inline)]
pub use clr_explore::{
    Budget, ConditionVariable, Coverage, CurrentThread, EventObject, ExaminedThread, Explorer,
    Failure, Guard, HistoryDetail, Info, Limits, ProfilerLock, Report, ScheduleString,
    ScheduleStringError, Setup, Strategy, TestedProcess, ThreadIndex, Verdict, check,
};
#[doc(inline)]
pub use clr_runtime::generation::{Generation, Generations};
#[doc(inline)]
pub use clr_runtime::profiling::{CallbackKind, SimulatedThread};
#[doc(inline)]
pub use clr_runtime::{ProfilerAction, RuleViolation};
#[doc(inline)]
pub use clr_scenario::{Scenario, ScenarioError};
#[doc(inline)]
pub use clr_story::{Hazard, failure_story};
#[doc(inline)]
pub use clr_world::synthetic::{
    NATIVE_WALKER, SELF, SyntheticError, SyntheticProcess, SyntheticThread,
};

/// The crates that this one is made of. Nothing here is promised: an item may change in any version.
#[doc(hidden)]
pub mod unstable {
    #[cfg(feature = "recording")]
    pub use clr_recording as recording;
    pub use {
        clr_codegen as codegen, clr_explore as explore, clr_generate as generate, clr_lint as lint,
        clr_machine as machine, clr_runtime as runtime, clr_scenario as scenario,
        clr_story as story, clr_world as world,
    };
}
