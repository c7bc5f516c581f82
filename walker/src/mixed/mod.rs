//! The profiler's side: one stack of a live thread, managed and native, through `DoStackSnapshot` and an
//! unwinder of its own.
//!
//! ```text
//!  suspend ─► context ─► unwind to the first managed frame ─► seed ─► DoStackSnapshot
//!                                                                          │ callbacks copy
//!  stitch ◄─ resume ◄─ unwind on: runs of native code, frames that it hides ◄┘
//! ```
//!
//! Between *suspend* and *resume* nothing is allocated, locked or logged: what is found goes into a
//! [`WalkBuffer`] made before. Afterwards [`Walker::stitch`] gives the frames their names.
//!
//! The unwinder goes rootward from the thread's registers for as long as it has unwind data, and meets
//! the frames that the runtime reports: both then vouch for them. Where it has none, as for jitted code
//! on Unix, it goes on from the next frame that the runtime reports. Whatever was not joined to what
//! stands beside it is a [`Gap`] with a reason, and no frame is ever guessed, but by the one policy that
//! says so ([`Policy::FramePointers`]).
//!
//! What goes wrong is a gap or the end, and each has a fixture in the project's `gallery/walks`:
//!
//! | What | What becomes of the walk |
//! | --- | --- |
//! | a leaf in a stub that only jumps | its instructions are read: the word on top of the stack is its caller |
//! | a leaf in code that nobody has told of | its registers are tried as a seed: the runtime may know it |
//! | a helper that pushes without unwind data | known by its code, or [`Reason::NotACall`] |
//! | an epilogue | the rest of it is executed |
//! | a hijacked return address | put back by `DoStackSnapshot`, else [`Reason::NotACall`] |
//! | an overwritten return address | [`Reason::NotACall`]; the runtime may find the stack again by a Frame |
//! | a stack pointer outside of the stack | [`SeedRefused::OutsideStack`], [`Reason::OutsideStack`] |
//! | a wrong one on it, at a method with unwind data | [`SeedRefused::NoCaller`]; of other code nothing shows it |
//! | a system call | the registers are right; `DoStackSnapshot` may refuse (C-032) |
//! | old registers (H-14) | [`Reason::StaleContext`], and nothing is read |
//! | more frames than the buffer | [`Reason::BufferFull`] behind those that had room |
//! | a refusal of the runtime | [`Reason::Lookup`], [`Reason::Suspend`] or [`Reason::Snapshot`]; the unwinder's frames stay |
//! | a failure behind some callbacks | they stay, and so do the unwinder's frames behind them |
//! | success without callbacks | [`Reason::Unreported`], unless the unwinder has come to the root |
//!
//! A [`Seed`] is made from a frame of a thread that stands still, and lives no longer than that: a
//! stale one cannot be written down.
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
mod call_site;
mod cursor;
mod fill;
mod reason;
mod seed;
mod stack;
mod stitch;
mod stopped;
mod stub;
mod walker;

pub use advice::{Advice, advice};
pub use buffer::WalkBuffer;
pub use reason::{Reason, SeedRefused};
pub use seed::Seed;
pub use stack::{Completeness, FrameKind, Gap, MixedFrame, MixedStack, SeenBy, Source};
pub use stopped::{RuntimeSuspension, Stopped};
pub use walker::Walker;

/// How a walk goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// `DoStackSnapshot` without a seed, and nothing else. Whatever native code is on the stack stays
    /// a hole; another thread in cooperative mode that is not in managed code is refused (C-044), and a
    /// leaf in native code is never told of.
    Unseeded,
    /// The documentation's asynchronous walk, for another thread on Windows: suspended, unwound to its
    /// first managed frame, seeded. Costs the target a suspension; needs a walker that has never run
    /// managed code (H-02).
    Seeded,
    /// `SuspendRuntime`, then `DoStackSnapshot` without a seed, as OpenTelemetry's profiler does it: the
    /// only way to another thread on Unix (C-019). The whole process stands still but for native code,
    /// so that a thread's native leaf frames, which may run, are not looked at.
    RuntimeSuspended,
    /// The calling thread in a signal handler, seeded with what the signal interrupted (H-28). Not
    /// supported officially; works where the handler has stack enough and interrupted neither the
    /// native unwinder, nor exception dispatch, nor a look-up of code, for whose lock it would wait. Only
    /// [`Walker::take`] may be called in the handler: names come later. Native code and stubs at the leaf are unwound first: they
    /// are no seeds (C-039).
    Signal,
    /// The calling thread in a callback of the runtime, without a seed: its Frames say where managed
    /// code was left (C-129). The surest one, but only as often as there are callbacks.
    Synchronous,
    /// rbp alone, without the runtime's help: cheap, needs nobody, loses each function without frame
    /// pointer, and whatever stands on such a one. Nothing tells whether it was right.
    FramePointers,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Unseeded,
        Self::Seeded,
        Self::RuntimeSuspended,
        Self::Signal,
        Self::Synchronous,
        Self::FramePointers,
    ];

    /// Its name in texts and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unseeded => "unseeded",
            Self::Seeded => "seeded",
            Self::RuntimeSuspended => "runtime-suspended",
            Self::Signal => "signal",
            Self::Synchronous => "synchronous",
            Self::FramePointers => "frame-pointers",
        }
    }

    /// Whether it is for the calling thread alone.
    #[must_use]
    pub const fn is_for_itself(self) -> bool {
        matches!(self, Self::Signal | Self::Synchronous)
    }
}
