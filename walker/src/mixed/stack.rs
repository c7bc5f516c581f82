//! One whole stack, as a walk found it.

use super::reason::Reason;
use crate::profiling::{FunctionId, HResult};
use crate::unwind::{Position, Trust};
use alloc::vec::Vec;

/// What a frame's code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A managed method, or a funclet of it.
    Managed(FunctionId),
    /// Generated code that `DoStackSnapshot` hides: with an id, an IL stub or a dynamic method. Without
    /// one it may be a stub of the runtime as well: only `GetFunctionFromIP3` would tell, where the
    /// runtime's interface has it and it may be called.
    Hidden(Option<FunctionId>),
    /// Code of an image that is no method: native code, or what was compiled ahead of time without
    /// metadata where `GetFunctionFromIP3` does not tell of it.
    Native {
        /// The image's base (VA).
        image: u64,
        /// Where the frame's ip is in it (RVA).
        rva: u32,
    },
    /// Code that neither the runtime nor the module source knows.
    Unknown,
}

/// Where a frame's registers are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// They are those that the thread was stopped with.
    Context,
    /// The frame that it called was unwound in this way.
    Unwound(Trust),
    /// `DoStackSnapshot` told of it, and nobody else.
    Snapshot,
}

/// Who saw a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeenBy {
    /// `DoStackSnapshot`.
    Snapshot,
    /// The unwinder.
    Unwinder,
    /// Both, in the same place.
    Both,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedFrame {
    /// What its code is.
    pub kind: FrameKind,
    /// The instruction that it is at, or its return address (VA).
    pub ip: u64,
    /// Its stack pointer (VA).
    pub sp: u64,
    /// Which of the two `ip` is.
    pub position: Position,
    /// Where its registers are from.
    pub source: Source,
    /// `DoStackSnapshot` told of it: of managed code by its FunctionID, of native code by a marker.
    pub reported: bool,
}

impl MixedFrame {
    /// Who saw it.
    #[must_use]
    pub const fn seen_by(&self) -> SeenBy {
        match (self.source, self.reported) {
            (Source::Snapshot, _) => SeenBy::Snapshot,
            (_, true) => SeenBy::Both,
            (_, false) => SeenBy::Unwinder,
        }
    }
}

/// A place where something is missing, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// How many frames stand before it, leaf first: 0 is before the first one.
    pub at: usize,
    /// Why.
    pub reason: Reason,
}

/// How much of a stack a walk claims to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Every frame: each one's caller has been computed, from the first to the thread's root.
    Whole,
    /// Every frame that `DoStackSnapshot` may report, and every native frame of the runs that it tells of,
    /// from the thread's leaf to its root. What the runtime hides between two managed frames, or between
    /// a managed frame and a native one, may be missing: IL stubs, dynamic methods, code that handles
    /// exceptions and what an exception has skipped.
    Reportable,
    /// Less than that: the first reason, from the leaf.
    Partial(Reason),
}

/// One stack, leaf first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedStack {
    /// The frames.
    pub frames: Vec<MixedFrame>,
    /// Where something is missing, leaf first.
    pub gaps: Vec<Gap>,
    /// What `DoStackSnapshot` returned, if it was called.
    pub snapshot: Option<HResult>,
    /// The thread, or the runtime, could not be resumed: it still stands still, and the process with it,
    /// sooner or later.
    pub is_stuck: bool,
    /// Some frame's caller is not computed but what the runtime reports next.
    pub(super) relies_on_order: bool,
}

impl MixedStack {
    /// How much of the stack it is.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        match self.gaps.first() {
            Some(gap) => Completeness::Partial(gap.reason),
            None if self.relies_on_order => Completeness::Reportable,
            None => Completeness::Whole,
        }
    }
}
