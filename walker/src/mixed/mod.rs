//! The profiler's side: the managed and native stack of a live thread, walked by `DoStackSnapshot`
//! and this crate's unwinder.
//!
//! ```text
//!  suspend ─► context ─► unwind to the first managed frame ─► seed ─► DoStackSnapshot
//!                                                                          │ callbacks copy
//!  stitch ◄─ resume ◄─ unwind on: runs of native code, frames that it hides ◄┘
//! ```
//!
//! Between *suspend* and *resume* nothing is allocated, locked or logged: the results go into a
//! [`WalkBuffer`] made before. Afterwards [`Walker::stitch`] names the frames.
//!
//! The unwinder goes rootward from the thread's registers for as long as it has unwind data, and
//! meets the frames that the runtime reports, which are then confirmed by both. Where it has no
//! unwind data, as for jitted code on Unix, it continues from the next frame that the runtime
//! reports. Wherever two neighbouring frames could not be joined there is a [`Gap`] with a reason.
//! No frame is guessed, except by the one policy that does nothing else
//! ([`Policy::FramePointers`]).
//!
//! In a signal handler the runtime must not be asked anything: it would wait for locks that the
//! interrupted thread holds. [`Policy::Signal`] walks by unwind data alone, the jitted methods' among
//! them, and needs no more than the registers, the stack and the code map.
//!
//! Every problem is a gap or the end of the walk, and each has a fixture in the project's
//! `gallery/walks`:
//!
//! | Problem | Result |
//! | --- | --- |
//! | a leaf in a stub that only jumps | its instructions are read: the word on top of the stack is its caller |
//! | a leaf in code without unwind data | without the runtime: its instructions are followed to `ret`; else the word on top of the stack, if it follows a call in a method that can lead to the leaf, and the stack is aligned as at a function's start ([`Trust::StackTop`](clr_unwind::Trust::StackTop), a guess: [`Completeness::Guessed`]); else the InlinedCallFrame of the thread leads on, after a gap; else its registers are tried as a seed; if the runtime refuses them, its caller's, and if it refuses those as native code, the first managed frame after it |
//! | a leaf in a stub that has pushed registers | without the runtime: its instructions are read: the word above what it pops is its caller |
//! | a stop behind a hijacked return | the word that the runtime's function returns to, as its code shows ([`Trust::ReturnInstruction`](clr_unwind::Trust::ReturnInstruction)) |
//! | a stop behind an epilogue whose row of call frame information goes on | the row before the epilogue, if what it names follows a call in known code |
//! | a fault in a method | the instruction that faulted is the caller of the runtime's handler |
//! | a return address in code without unwind data | the same seed: the runtime may know the code |
//! | a helper that pushes without unwind data | recognised by its code, or [`Reason::NotACall`] |
//! | an epilogue | the rest of it is executed |
//! | a hijacked return address | the true one is read from the Thread object, else `DoStackSnapshot` restores it, else [`Reason::NotACall`] |
//! | an overwritten return address | [`Reason::NotACall`]; the runtime may find the stack again by a Frame |
//! | a stack pointer outside the stack | [`SeedRefused::OutsideStack`], [`Reason::OutsideStack`] |
//! | a wrong stack pointer on the stack | [`SeedRefused::NoCaller`] for a method with unwind data; undetectable in other code |
//! | a system call | the registers are right; `DoStackSnapshot` may refuse (C-032) |
//! | old registers (H-14) | [`Reason::StaleContext`], and nothing is read |
//! | more frames than the buffer | [`Reason::BufferFull`] after those that had room |
//! | a refusal of the runtime | [`Reason::Lookup`], [`Reason::Suspend`] or [`Reason::Snapshot`]; the unwinder's frames are kept |
//! | a failure after some callbacks | the frames so far are kept, and so are the unwinder's frames after them |
//! | success without callbacks | [`Reason::Unreported`], unless the unwinder has reached the root |
//!
//! A [`Seed`] is made from a frame of a stopped thread, and lives no longer than the stop: a
//! program that uses a stale seed does not compile.
//!
//! ```compile_fail,E0505
//! use clr_walker::mixed::{Seed, Stopped};
//! # fn walk<T: clr_walker::profiling::TargetThread>(target: &T) -> Option<()> {
//! let stopped = Stopped::suspend(target).ok()?;
//! let seed = Seed::at_context(&stopped).ok()?;
//! stopped.resume().ok()?; // the thread runs on: error, `seed` still borrows `stopped`
//! seed.registers();
//! # Some(()) }
//! ```

mod advice;
mod buffer;
mod call_frame;
mod called;
mod cursor;
mod fill;
mod frame_pointers;
mod hijacked;
mod leaf;
mod questions;
mod reason;
mod redirected;
mod runtime_suspended;
mod seed;
mod seeded;
mod signal;
mod stack;
mod stitch;
mod stopped;
mod stub;
mod synchronous;
mod unseeded;
mod walker;

pub use advice::{Advice, advice};
pub use buffer::WalkBuffer;
use clr_unwind::named;
pub use hijacked::true_return_address;
pub use reason::{Reason, SeedRefused};
pub use seed::Seed;
pub use stack::{Completeness, FrameKind, Gap, MixedFrame, MixedStack, SeenBy, Source};
pub use stopped::{RuntimeSuspension, Stopped};
pub use walker::{Preparation, Walker};

named! {
    /// The method of a walk.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Policy {
        /// `DoStackSnapshot` without a seed, and nothing else. Native code on the stack stays a gap; a
        /// snapshot of another thread in cooperative mode that is not in managed code is refused
        /// (C-044), and native leaf frames are never reported.
        Unseeded = "unseeded",
        /// The documentation's asynchronous walk, for another thread on Windows: suspended, unwound to
        /// its first managed frame, seeded. Costs the target a suspension; needs a walker that has
        /// never run managed code (H-02).
        Seeded = "seeded",
        /// `SuspendRuntime`, then `DoStackSnapshot` without a seed, as OpenTelemetry's profiler does
        /// it: the only way to another thread on Unix (C-019). The whole process is stopped except for
        /// native code, so a thread's native leaf frames, which may be running, are not examined.
        RuntimeSuspended = "runtime-suspended",
        /// The calling thread in a signal handler, by its registers, its stack and the code map: the
        /// runtime is asked nothing, so no lock of the interrupted thread can be waited for (H-28). In
        /// the handler only [`Walker::take`] may be called; names come later. The map needs the methods
        /// that were compiled at run time, because on Unix no unwinder of the system knows them.
        Signal = "signal",
        /// The calling thread in a callback of the runtime, without a seed: its Frames record where
        /// managed code was left (C-129). The safest policy, but limited to the times of callbacks.
        Synchronous = "synchronous",
        /// Only rbp, without the runtime's help: cheap, with no requirements, but functions without a
        /// frame pointer are lost, and so is every frame that depends on one of them. Nothing shows
        /// whether the result is right.
        FramePointers = "frame-pointers",
    }
}

impl Policy {
    /// Returns true if the policy is for the calling thread only.
    pub const fn is_for_itself(self) -> bool {
        matches!(self, Self::Signal | Self::Synchronous)
    }
}
