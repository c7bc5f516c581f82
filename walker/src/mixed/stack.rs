//! The result of a walk: one whole stack.

use super::reason::Reason;
use crate::profiling::{FunctionId, HResult};
use alloc::vec::Vec;
use clr_unwind::{Position, Trust};

/// The kind of a frame's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A managed method, or a funclet of it.
    Managed(FunctionId),
    /// Generated code that `DoStackSnapshot` hides: with an id, an IL stub or a dynamic method.
    /// Without one it may also be a stub of the runtime: only `GetFunctionFromIP3` would
    /// distinguish them, where the runtime's interface has it and the profiler may call it.
    Hidden(Option<FunctionId>),
    /// Code of an image that is not a method: native code, or code compiled ahead of time without
    /// metadata if `GetFunctionFromIP3` does not report it.
    Native {
        /// Base of the image (VA).
        image: u64,
        /// RVA of the frame's ip in the image.
        rva: u32,
    },
    /// Code that neither the runtime nor the module source knows.
    Unknown,
}

/// The source of a frame's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The registers that the thread was stopped with.
    Context,
    /// The unwinder: the frame's callee was unwound in this way.
    Unwound(Trust),
    /// Only `DoStackSnapshot`, which reported the frame.
    Snapshot,
    /// An InlinedCallFrame of the runtime: the method has called native code, whose frames before it
    /// could not be unwound.
    CallFrame,
}

/// The observers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeenBy {
    /// `DoStackSnapshot`.
    Snapshot,
    /// The unwinder.
    Unwinder,
    /// Both, at the same place.
    Both,
}

/// A frame of a [`MixedStack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedFrame {
    /// The kind of its code.
    pub kind: FrameKind,
    /// The current instruction, or the return address (VA).
    pub ip: u64,
    /// The stack pointer (VA).
    pub sp: u64,
    /// The kind of address in `ip`.
    pub position: Position,
    /// The source of its registers.
    pub source: Source,
    /// True if `DoStackSnapshot` reported the frame: managed code by its FunctionID, native code by
    /// a marker.
    pub reported: bool,
}

impl MixedFrame {
    /// Returns the observers of the frame.
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
    /// Number of frames before the gap, leaf first: 0 is before the first frame.
    pub at: usize,
    /// The reason.
    pub reason: Reason,
}

/// The part of a stack that a walk claims to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Every frame: the caller of each has been computed, from the first frame to the thread's
    /// root.
    Whole,
    /// Every frame that `DoStackSnapshot` may report, and every native frame of the runs that it
    /// reports, from the thread's leaf to its root. Frames that the runtime hides between two
    /// managed frames, or between a managed and a native one, may be missing: IL stubs, dynamic
    /// methods, code that handles exceptions, and frames that an exception has skipped.
    Reportable,
    /// The same without the thread's native leaf: its code runs on while the runtime is suspended,
    /// so its frames are not examined. A stack without frames has nothing but such code, or none
    /// that the runtime knows.
    WithoutLeaf,
    /// Every frame from the first one to the thread's root, if a step was right that is only a guess
    /// ([`Trust::is_guess`]): the least sure one. If it was wrong, so are all frames after it.
    Guessed(Trust),
    /// Fewer frames: the first reason, from the leaf.
    Partial(Reason),
}

/// One stack, leaf first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedStack {
    /// The frames.
    pub frames: Vec<MixedFrame>,
    /// The gaps, leaf first.
    pub gaps: Vec<Gap>,
    /// The result of `DoStackSnapshot`, if it was called.
    pub snapshot: Option<HResult>,
    /// True if the thread, or the runtime, could not be resumed: it is still stopped, and so is the
    /// process, sooner or later.
    pub is_stuck: bool,
    /// True if some frame's caller was not computed, but is the frame that the runtime reports
    /// next.
    pub(super) relies_on_order: bool,
    /// True if native code at the leaf ran on during the walk.
    pub(super) leaf_runs: bool,
}

impl MixedStack {
    /// Returns the least sure step that is a guess. A frame that the runtime reports, too, is none.
    fn guess(&self) -> Option<Trust> {
        let guesses = self.frames.iter().filter_map(|frame| match frame.source {
            Source::Unwound(trust) if trust.is_guess() && !frame.reported => Some(trust),
            _ => None,
        });
        guesses.max()
    }

    /// Returns the part of the stack that the walk claims to have.
    pub fn completeness(&self) -> Completeness {
        match self.gaps.first() {
            Some(gap) => Completeness::Partial(gap.reason),
            None if let Some(guess) = self.guess() => Completeness::Guessed(guess),
            None if self.leaf_runs => Completeness::WithoutLeaf,
            None if self.relies_on_order => Completeness::Reportable,
            None => Completeness::Whole,
        }
    }
}
