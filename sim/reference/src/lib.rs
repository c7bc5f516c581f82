//! A reference model of `DoStackSnapshot` and of the methods that look code up: a second opinion on each
//! callback and each result, for tests.
//!
//! The reference model applies the rules of contract §2.2 and §3 with knowledge of the real calls.
//! It looks up no code, unwinds nothing, and uses no walking code of
//! [`profiling`](clr_runtime::profiling).
//!
//! [`ThreadFacts`] is a stopped thread, [`CallFacts`] a call about it, and [`expected`] returns the result
//! that the call must have. For a thread of a [`World`](clr_world::World), the activations on the stack and their
//! registers come from the [shadow stack](clr_codegen::shadow_stack). Only state is read from memory: the mode,
//! the Frames that exist, and the progress of exceptions. For a [synthetic](clr_world::synthetic) thread, tests take
//! all from the table that describes it. [`lookups`] does the same for single methods.

mod activations;
mod entry;
mod exceptions;
mod frames;
pub mod lookups;
mod report;
pub mod runtimes;

pub use activations::{ActivationCode, ProgramFacts, ReferenceActivation, ThreadFacts};
pub use exceptions::{Exceptions, Handler};
pub use frames::{FrameRegisters, FrameTarget, ReferenceFrame};
pub use report::{ExpectedCall, ExpectedReport, expected};

use clr_walker::profiling::SnapshotFlags;

/// The parameters of a `DoStackSnapshot` call that its result depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// The calling thread.
    pub caller: CallerKind,
    /// `thread` is 0.
    pub unnamed: bool,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed: the index of the activation whose registers it has, and its ContextFlags. An index beyond the activations
    /// stands for any other registers, which the reference model does not cover.
    pub seed: Option<(usize, u32)>,
    /// SuspendRuntime is in force.
    pub suspended_by_profiler: bool,
    /// Index of the callback that stops the walk, counted from 0.
    pub stop_at: Option<u32>,
}

/// The calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallerKind {
    /// The target itself, in a callback or anywhere else: both are alike here (C-021).
    Target,
    /// A thread that the runtime does not know.
    Native,
    /// Another thread of the runtime.
    Managed,
}
