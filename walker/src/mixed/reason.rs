//! Reasons for gaps in a stack, and for refused seeds.

use crate::profiling::HResult;
use clr_unwind::{Gpr, UnwindError};
use thiserror::Error;

/// The reason why something is missing, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// The thread could not be stopped, or its registers could not be read.
    #[error("the thread could not be stopped")]
    NotStopped,
    /// The kernel is about to send the thread elsewhere: its registers may be old (H-14).
    #[error("the registers may be older than the stack")]
    StaleContext,
    /// Native code was not unwound, because the policy has no unwinder.
    #[error("the native code here was not unwound")]
    NotUnwound,
    /// The policy guesses by frame pointers.
    #[error("frame pointers are not always kept")]
    FramePointers,
    /// The unwinder cannot continue.
    #[error("{0}")]
    Unwind(#[from] UnwindError),
    /// The word in the return address's place does not follow a call: the runtime has hijacked it
    /// (H-15), the stack has been overwritten, code without unwind data is no leaf, or unwinding
    /// went wrong. The runtime reports such an address as a marker, which is no frame.
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
    #[error("the runtime reports a frame at {sp:#x} that the unwinder missed")]
    Disagreement {
        /// The reported frame's stack pointer (VA).
        sp: u64,
    },
    /// The runtime cannot say whether code is managed: its tables are being written (C-036, C-116),
    /// or it is detaching the profiler. Then there is no seed.
    #[error("GetFunctionFromIP returns {0}")]
    Lookup(HResult),
    /// The first managed frame must not be a seed.
    #[error("no seed: {0}")]
    Seed(#[from] SeedRefused),
    /// `DoStackSnapshot` was refused or ended early: see [`advice`](super::advice()). The callbacks
    /// made before are kept (C-113).
    #[error("DoStackSnapshot returns {0}")]
    Snapshot(HResult),
    /// `SuspendRuntime` was refused.
    #[error("SuspendRuntime returns {0}")]
    Suspend(HResult),
    /// The runtime reports no further frame, and the stack does not end here.
    #[error("the runtime reports no further frame, but the stack goes on")]
    Unreported,
    /// The buffer is full: the stack is deeper. The walker's own callback then ended the runtime's
    /// walk, so its ABORTED means nothing else.
    #[error("the stack has more frames than the buffer")]
    BufferFull,
}

/// The reason why a frame must not be a seed: `DoStackSnapshot` would believe it, and report frames
/// that are not there or end the process (H-17, H-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SeedRefused {
    /// The thread's registers cannot be read.
    #[error("the thread's registers cannot be read")]
    NoContext,
    /// The stack pointer is not on the thread's stack.
    #[error("the stack pointer {sp:#x} is outside the stack")]
    OutsideStack {
        /// The stack pointer (VA).
        sp: u64,
    },
    /// The stack pointer is not aligned, which no frame's is.
    #[error("the stack pointer {sp:#x} is not aligned")]
    Unaligned {
        /// The stack pointer (VA).
        sp: u64,
    },
    /// The frame's value of a register that its callers rely on is not known: a function on the way
    /// has not preserved it.
    #[error("the frame's {} is lost", register.name())]
    LostRegister {
        /// The register.
        register: Gpr,
    },
    /// By its unwind data the frame has no caller on the stack: the stack pointer is wrong, or the
    /// stack was overwritten there, and perhaps the stack cookie with it (H-25).
    #[error("from the stack pointer {sp:#x} the frame has no caller")]
    NoCaller {
        /// The stack pointer (VA).
        sp: u64,
    },
}
