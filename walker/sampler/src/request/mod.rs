//! One sample at a time: asked for by the sampler, taken by the thread itself in a signal handler, or
//! by the sampler while the thread is suspended.

use crate::os;
use clr_unwind::Registers;
use clr_walker::mixed::{Policy, WalkBuffer};
#[cfg(feature = "snapshots")]
use clr_walker::profiling::HResult;
use clr_walker::profiling::{StackBounds, StackRoot, ThreadId};

#[cfg(feature = "snapshots")]
mod snapshot;
#[cfg(feature = "snapshots")]
pub use snapshot::Report;

mod runtime_suspended;
pub use runtime_suspended::RuntimeSuspended;

#[cfg(target_os = "linux")]
mod signal;
#[cfg(target_os = "linux")]
mod slot;
#[cfg(target_os = "linux")]
pub use signal::Request;
#[cfg(target_os = "linux")]
pub use slot::Slot;

#[cfg(windows)]
mod suspension;
#[cfg(windows)]
pub use suspension::Request;

/// Maximum number of frames of a sample.
const MOST_FRAMES: usize = 1024;
/// Maximum number of bytes of a stack that are copied for second opinions.
const MOST_BYTES: usize = 512 << 10;
/// The same for walks that end at code which the map may lack.
#[cfg(target_os = "linux")]
const MOST_BYTES_OF_LATE: usize = 64 << 10;

/// The walks that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walks {
    /// Their policy, one of [`os::POLICIES`].
    pub policy: Policy,
    /// True if each stack is copied, too, for a second opinion on its walk.
    pub copies: bool,
    /// True if DoStackSnapshot is asked, too, for tests of walks: in a signal handler, of a thread that is in a method
    /// while no suspension is under way. Whether it takes no lock there is known of the versions that were tried alone,
    /// so this is no way to sample, and a feature of its own.
    #[cfg(feature = "snapshots")]
    pub snapshots: bool,
    /// True if each walk is made a second time at once, to compare durations with cold and with warm caches (Linux).
    pub twice: bool,
}

impl Walks {
    /// Walks by a policy, and nothing else.
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            copies: false,
            #[cfg(feature = "snapshots")]
            snapshots: false,
            twice: false,
        }
    }
}

/// A walk, and what its second opinion needs.
#[derive(Debug)]
pub struct Sample {
    /// The runtime's id of the thread.
    pub thread: ThreadId,
    /// The bounds of its stack.
    pub stack: StackBounds,
    /// True if the thread has thrown an exception, for walks with the runtime suspended.
    pub has_thrown: bool,
    /// The interrupted registers.
    pub registers: Registers,
    /// The thread's own segment base, where its variables are (VA), if it took the sample itself; else 0.
    pub thread_pointer: u64,
    /// The walk.
    pub buffer: WalkBuffer,
    /// The time when it began ([`os::now`]): methods are named as at this time.
    pub taken_at: u64,
    /// Duration of the walk.
    pub nanoseconds: u64,
    /// Duration of the same walk made again at once, if that is wanted.
    pub nanoseconds_again: Option<u64>,
    /// The stack from `copy_from` (VA) to its base, if a copy is wanted and it is not too large.
    pub copy: Vec<u8>,
    /// Address (VA) of the first byte of the copy.
    pub copy_from: u64,
    /// Result of DoStackSnapshot on the same stack, if it was asked.
    #[cfg(feature = "snapshots")]
    pub snapshot: Option<HResult>,
    /// The managed frames that it has reported.
    #[cfg(feature = "snapshots")]
    pub reports: Vec<Report>,
    /// True if the walk was made again over the copy, when the map had more code.
    pub is_late: bool,
}

/// An answer to a request.
#[derive(Debug)]
pub enum Answer<'r> {
    /// The sample was taken.
    Taken(&'r mut Sample),
    /// It was not.
    Missed(Missed),
}

/// The reason why there is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missed {
    /// The thread did not run for 100 ms, blocks the signal, or has ended.
    NoAnswer,
    /// The thread's stack has no room for a walk, or the thread is on another stack (Linux).
    NoRoom,
    /// The code of a frame was freed before the frame had its name.
    CodeGone,
    /// The runtime refused a suspension: another one is under way.
    NotSuspended,
}

impl Missed {
    /// Returns the reason in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAnswer => "no answer",
            Self::NoRoom => "no room",
            Self::CodeGone => "code gone",
            Self::NotSuspended => "not suspended",
        }
    }
}

impl Sample {
    /// Makes the room for a sample, and for the copy of a stack of `room` bytes.
    pub fn new(room: usize) -> Self {
        Self {
            thread: ThreadId(0),
            stack: StackBounds { limit: 0, base: 0, root: StackRoot::Undefined },
            has_thrown: false,
            registers: Registers::default(),
            thread_pointer: 0,
            buffer: WalkBuffer::new(MOST_FRAMES),
            taken_at: 0,
            nanoseconds: 0,
            nanoseconds_again: None,
            copy: Vec::with_capacity(room),
            copy_from: 0,
            #[cfg(feature = "snapshots")]
            snapshot: None,
            #[cfg(feature = "snapshots")]
            reports: Vec::with_capacity(if room > 0 { MOST_FRAMES } else { 0 }),
            is_late: false,
        }
    }

    /// Copies the stack from `low` (VA) on, if there is room: the vector has its capacity, so nothing
    /// is allocated.
    ///
    /// # Safety
    /// `low` is the lowest byte in use, or the base, of the calling thread's stack or of a suspended
    /// one's.
    unsafe fn copy_stack(&mut self, low: u64, stack: StackBounds) {
        self.copy.clear();
        self.copy_from = low;
        let len = usize::try_from(stack.base - low).unwrap_or(usize::MAX);
        if len <= self.copy.capacity() {
            self.copy.resize(len, 0);
            // SAFETY: from the lowest byte in use to the base.
            unsafe { os::copy_stack(low, &mut self.copy) };
        }
    }
}
