//! How histories end.

use super::history::ThreadIndex;
use super::lock::LockName;
use clr_runtime::Outcome;
use core::fmt;

/// Why a thread cannot go on: an edge of the wait-for graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// It waits for a lock that the other owns.
    Lock(LockName),
    /// The other has suspended it.
    Suspended,
    /// It waits for the other to stop: it suspends the runtime.
    ToStop,
    /// The other has suspended the runtime, and it has to become cooperative.
    RuntimeSuspended,
    /// It waits for a collection that the other makes.
    Collection,
    /// It waits for the other to end.
    Join,
    /// It waits for the other to leave its reader section of the code manager.
    CodeManagerReader,
}

/// A thread that cannot go on until another one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Who waits.
    pub waits: ThreadIndex,
    /// Why.
    pub why: Why,
    /// For whom.
    pub for_whom: ThreadIndex,
}

/// Documented rules that a profiler can break without harm in this history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
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
    /// No lock is held over a call that may trigger a GC (H-06).
    LockOverGcTrigger,
    /// A callback takes no lock that the target may own (H-08).
    CallbackTakesTargetsLock,
    /// A walk does not outlive its target's `ThreadDestroyed` (H-04).
    WalkOutlivesThread,
    /// The first call of a thread is made while nobody is suspended (H-03).
    FirstCallWhileSuspended,
    /// Who has been suspended is resumed.
    ResumeForgotten,
    /// Nobody is resumed who is not suspended.
    ResumeDoubled,
}

/// Whether a history went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Threads wait for each other, and nobody else can go on: the edges of the cycle, or all if there
    /// is none.
    Deadlock(Vec<Edge>),
    /// There was no progress within the bound.
    LiveLock,
    /// A thread waits for an event that nobody is left to set.
    LostWakeUp(ThreadIndex),
    /// A thread that was destroyed was used.
    DestroyedThread {
        /// By whom.
        by: ThreadIndex,
    },
    /// Code that was unloaded was used.
    UnloadedCode {
        /// By whom.
        by: ThreadIndex,
    },
    /// The process died in a call, or of a fault.
    ProcessKilled {
        /// On this thread.
        by: ThreadIndex,
        /// How.
        outcome: Outcome,
    },
    /// A watchdog of the profiler has barked.
    Watchdog(ThreadIndex),
    /// A rule was broken.
    Broken {
        /// By whom.
        by: ThreadIndex,
        /// Which.
        rule: Rule,
    },
    /// The profiler's code has panicked, or says that something is wrong.
    Failed {
        /// On this thread.
        by: ThreadIndex,
        /// What it says.
        words: String,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(lock) => write!(f, "waits for {lock}, which is owned by"),
            Self::Suspended => f.write_str("is suspended by"),
            Self::ToStop => f.write_str("suspends the runtime and waits for"),
            Self::RuntimeSuspended => {
                f.write_str("waits to become cooperative; the runtime is suspended by")
            }
            Self::Collection => f.write_str("waits for a collection by"),
            Self::Join => f.write_str("waits for the end of"),
            Self::CodeManagerReader => {
                f.write_str("waits for the code manager's tables, which are read by")
            }
        }
    }
}
