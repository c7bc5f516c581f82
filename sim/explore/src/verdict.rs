//! Verdicts on interleavings.

use super::ids::{LockName, ThreadIndex};
use clr_runtime::Outcome;
use core::fmt;

/// Reason why a thread cannot run: the label of an edge in the wait-for graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockReason {
    /// The thread waits for a lock that the other owns.
    Lock(LockName),
    /// The other has suspended the thread.
    Suspended,
    /// The thread suspends the runtime and waits for the other to stop.
    ToStop,
    /// The other has suspended the runtime, and the thread has to become cooperative.
    RuntimeSuspended,
    /// The thread waits for a GC that the other performs.
    Collection,
    /// The thread waits on its condition variable in a signal handler that has interrupted a wait
    /// on it: the other is the thread itself.
    InterruptedWait,
    /// The thread waits for the other to end.
    Join,
    /// The thread waits for an event or a notification, and the other, which waits for the thread, is one that could give it.
    WakeUp,
    /// The thread waits for the other to leave its reader section of the code manager.
    CodeManagerReader,
}

/// An edge of the wait-for graph: a thread that cannot run before another one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Thread that waits.
    pub waits: ThreadIndex,
    /// Reason.
    pub why: BlockReason,
    /// Thread that is waited for.
    pub for_whom: ThreadIndex,
}

/// Documented rules that a profiler can violate without harm in an interleaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProfilerRule {
    /// Only a thread that has never run managed code suspends others (H-02).
    SuspenderRanManagedCode,
    /// No memory is allocated while a thread is suspended (H-13).
    AllocationWhileSuspended,
    /// No lock is taken while a thread is suspended (H-08).
    LockWhileSuspended,
    /// Nothing is logged while a thread is suspended (H-08).
    LogWhileSuspended,
    /// No module is loaded and no symbol looked up while a thread is suspended (H-11, H-12).
    LoadingWhileSuspended,
    /// A signal handler allocates no memory (H-28).
    AllocationInHandler,
    /// A signal handler takes no lock (H-28).
    LockInHandler,
    /// A signal handler logs nothing (H-28).
    LogInHandler,
    /// A signal handler loads no module, and asks the loader nothing (H-28).
    LoadingInHandler,
    /// No lock is held over a call that may trigger a GC (H-06).
    LockOverGcTrigger,
    /// A callback takes no lock that the target may own (H-08).
    CallbackTakesTargetsLock,
    /// A walk does not outlive its target's `ThreadDestroyed` (H-04).
    WalkOutlivesThread,
    /// The first call of a thread is made while no thread is suspended (H-03).
    FirstCallWhileSuspended,
    /// A suspended thread is resumed.
    ResumeForgotten,
    /// Only a suspended thread is resumed.
    ResumeDoubled,
}

/// Reason why an interleaving failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Threads wait for each other and no other thread can run: the edges of the cycle, or all
    /// edges if there is none.
    Deadlock(Vec<Edge>),
    /// There was no progress within the limits.
    LiveLock,
    /// A thread waits for an event that no remaining thread can set.
    LostWakeUp(ThreadIndex),
    /// A thread that was destroyed was used.
    DestroyedThread {
        /// Thread that used the destroyed thread.
        by: ThreadIndex,
    },
    /// Code that was unloaded was used.
    UnloadedCode {
        /// Thread that used the code.
        by: ThreadIndex,
    },
    /// The process died in a call, or because of a fault.
    ProcessKilled {
        /// Thread on which the process died.
        by: ThreadIndex,
        /// Outcome of the call.
        outcome: Outcome,
    },
    /// A watchdog of the profiler ended the interleaving on this thread.
    Watchdog(ThreadIndex),
    /// A rule was violated.
    Broken {
        /// Thread that violated the rule.
        by: ThreadIndex,
        /// The rule.
        rule: ProfilerRule,
    },
    /// The profiler's code panicked or reported an error.
    Failed {
        /// Thread on which it failed.
        by: ThreadIndex,
        /// Message of the panic or error.
        words: String,
    },
}

impl ProfilerRule {
    /// Returns the rule for signal handlers that corresponds to one for the time while a thread is suspended.
    pub(super) const fn in_handler(self) -> Option<Self> {
        match self {
            Self::AllocationWhileSuspended => Some(Self::AllocationInHandler),
            Self::LogWhileSuspended => Some(Self::LogInHandler),
            Self::LoadingWhileSuspended => Some(Self::LoadingInHandler),
            _ => None,
        }
    }
}

impl fmt::Display for BlockReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(lock) => write!(f, "waits for {lock}, which is owned by"),
            Self::Suspended => f.write_str("is suspended by"),
            Self::ToStop => f.write_str("suspends the runtime and waits for"),
            Self::RuntimeSuspended => {
                f.write_str("waits to become cooperative; the runtime is suspended by")
            }
            Self::Collection => f.write_str("waits for a GC by"),
            Self::InterruptedWait => f.write_str(
                "waits on its condition variable in a handler that has interrupted the wait there of",
            ),
            Self::Join => f.write_str("waits for the end of"),
            Self::WakeUp => f.write_str("waits for a wake-up, which could come from"),
            Self::CodeManagerReader => {
                f.write_str("waits for the code manager's tables, which are read by")
            }
        }
    }
}

impl fmt::Display for ProfilerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SuspenderRanManagedCode => {
                "only a thread that has never run managed code may suspend others"
            }
            Self::AllocationWhileSuspended => {
                "no memory may be allocated while a thread is suspended"
            }
            Self::LockWhileSuspended => "no lock may be taken while a thread is suspended",
            Self::LogWhileSuspended => "nothing may be logged while a thread is suspended",
            Self::LoadingWhileSuspended => {
                "no module may be loaded and no symbol looked up while a thread is suspended"
            }
            Self::AllocationInHandler => {
                "a signal handler must not allocate: malloc and free are not async-signal-safe"
            }
            Self::LockInHandler => {
                "a signal handler must take no lock: pthread_mutex_lock is not async-signal-safe"
            }
            Self::LogInHandler => "a signal handler must not log: stdio is not async-signal-safe",
            Self::LoadingInHandler => {
                "a signal handler must not call the loader: dlopen and dl_iterate_phdr are not \
                 async-signal-safe"
            }
            Self::LockOverGcTrigger => "no lock may be held over a call that may trigger a GC",
            Self::CallbackTakesTargetsLock => {
                "the callback of a walk must not take a lock that the target may own"
            }
            Self::WalkOutlivesThread => "a walk must not outlive its target's ThreadDestroyed",
            Self::FirstCallWhileSuspended => {
                "the first call of a thread must be made while no thread is suspended"
            }
            Self::ResumeForgotten => "a suspended thread must be resumed",
            Self::ResumeDoubled => "only a suspended thread may be resumed",
        })
    }
}
