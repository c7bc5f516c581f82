//! One whole stack, as a walk found it.

use super::SeedRefused;
use crate::profiling::{FunctionId, HResult};
use crate::unwind::{Position, Trust, UnwindError};
use alloc::vec::Vec;
use thiserror::Error;

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

/// Why something is missing, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// The thread could not be stopped, or its registers not be read.
    #[error("the thread could not be stopped")]
    NotStopped,
    /// The kernel is about to send the thread elsewhere: its registers may be old (H-14).
    #[error("the registers may be older than the stack")]
    StaleContext,
    /// The policy lets native code run on: its frames change while one looks.
    #[error("native code runs on while the runtime is suspended")]
    Running,
    /// Native code that was not unwound, because the policy has no unwinder.
    #[error("the native code here was not unwound")]
    NotUnwound,
    /// The policy guesses.
    #[error("frame pointers are not always kept")]
    FramePointers,
    /// The unwinder cannot go on.
    #[error("{0}")]
    Unwind(#[from] UnwindError),
    /// What stands in the return address's place does not follow a call: the runtime has hijacked it
    /// (H-15), the stack has been overwritten, code without unwind data is no leaf, or unwinding went
    /// wrong. The runtime makes a marker of such an address, which is no frame.
    #[error("{address:#x} does not follow a call")]
    NotACall {
        /// The address (VA).
        address: u64,
    },
    /// The caller's stack pointer would lie outside the stack.
    #[error("the caller's stack pointer {sp:#x} is outside the stack")]
    OutsideStack {
        /// The stack pointer (VA).
        sp: u64,
    },
    /// The runtime reports a frame where the unwinder found none.
    #[error("the runtime reports a frame at {sp:#x} that the unwinder passed by")]
    Disagreement {
        /// The reported frame's stack pointer (VA).
        sp: u64,
    },
    /// The runtime cannot say whether code is managed: its tables are being written (C-036, C-116), or it
    /// lets go of the profiler. There is no seed then.
    #[error("GetFunctionFromIP returns {0}")]
    Lookup(HResult),
    /// The first managed frame must not be a seed.
    #[error("no seed: {0}")]
    Seed(#[from] SeedRefused),
    /// `DoStackSnapshot` was refused, or ended early: [`advice`](super::advice()) tells what to do. The
    /// callbacks made before are kept (C-113).
    #[error("DoStackSnapshot returns {0}")]
    Snapshot(HResult),
    /// `SuspendRuntime` was refused.
    #[error("SuspendRuntime returns {0}")]
    Suspend(HResult),
    /// The runtime tells of no further frame, and the stack does not end here.
    #[error("nothing further is reported, but the stack goes on")]
    Unreported,
    /// The buffer is full: the stack is deeper. The runtime's walk was ended by the own callback then,
    /// and its ABORTED says nothing else.
    #[error("the stack has more frames than the buffer")]
    BufferFull,
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
