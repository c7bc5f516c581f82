//! What `DoStackSnapshot` must report of a thread of a [`World`](crate::World): a second
//! opinion.
//!
//! The rules of contract §2.2 and §3, as one would apply them who knows what really called what. No
//! code is looked up, nothing is unwound, and nothing of [`profiling`](clr_runtime::profiling) that walks is
//! asked. What is on the stack, and with which registers, comes from the
//! [truth](clr_codegen::shadow_stack); what is read from memory is state: the mode, which Frames there are, and how
//! far exceptions are.
//!
//! [`Seen`] is a thread that stands still, [`Question`] a call about it, and [`expected`] what must
//! come of it.

mod entry;
mod exceptions;
mod frames;
mod report;
mod rows;

pub use exceptions::Exceptions;
pub use frames::{Frame, Lead, Sets};
pub use report::{Callback, Expected, expected};
pub use rows::{Code, Facts, Row, Seen};

use clr_walker::profiling::SnapshotFlags;

/// A call of `DoStackSnapshot`, as far as its result depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Who calls.
    pub caller: Asker,
    /// `thread` is 0.
    pub unnamed: bool,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed has the registers of the row with this index, and these ContextFlags.
    pub seed: Option<(usize, u32)>,
    /// SuspendRuntime is in force.
    pub suspended_by_profiler: bool,
    /// The callback, counted from 0, that wants no more.
    pub stop_at: Option<u32>,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asker {
    /// The target, in a callback or anywhere else: it does not matter which (C-021).
    Target,
    /// A thread that the runtime does not know.
    Native,
    /// Another thread of the runtime.
    Managed,
}
