//! Rules for profilers about suspended and running threads, and the detection of violations.
//!
//! A suspended thread may own any lock: of the heap, the loader, the logger, the runtime (H-03,
//! H-08, H-11 to H-13). The simulated runtime notices calls of its own methods; the profiler's
//! allocator, logger and locks report actions with [`Runtime::did`].

use crate::{OsThreadId, Runtime, TargetMemory};
use thiserror::Error;

/// A profiler action that may wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProfilerAction {
    /// The profiler allocates or frees memory.
    Allocation,
    /// The profiler takes a lock of its own.
    Lock,
    /// The profiler logs something.
    Log,
    /// The profiler loads a module or looks up symbols.
    Loading,
    /// The first profiling call of a thread, for which the runtime creates per-thread state
    /// (C-151).
    FirstCall,
    /// The profiler calls this method, which takes locks of the runtime or may trigger a GC.
    Call(&'static str),
}

/// A violation of a profiler rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleViolation {
    /// An action while a thread was suspended.
    #[error("{action:?} while thread {} is suspended, which may own the lock that it needs", thread.0)]
    WhileSuspended {
        /// The action.
        action: ProfilerAction,
        /// The suspended thread.
        thread: OsThreadId,
    },
    /// The registers of a thread were read while it was not suspended: it keeps running, so they
    /// are outdated at once (H-14).
    #[error("the registers of thread {} are read while it runs", thread.0)]
    ContextOfRunning {
        /// The thread.
        thread: OsThreadId,
    },
}

impl<M: TargetMemory> Runtime<'_, M> {
    /// Records an action of a profiler as a violation if a thread is suspended. Does not allocate.
    pub fn did(&self, action: ProfilerAction) {
        // While the threads are being changed the check is skipped.
        let Ok(threads) = self.threads.try_borrow() else { return };
        if let Some(thread) = threads.iter().find(|thread| thread.suspended > 0) {
            self.broke(RuleViolation::WhileSuspended { action, thread: thread.os });
        }
    }

    /// Records a rule violation. The first one counts.
    pub(super) fn broke(&self, violation: RuleViolation) {
        self.violation.set(self.violation.get().or(Some(violation)));
    }

    /// Returns the first rule violation of a profiler.
    pub const fn rule_violation(&self) -> Option<RuleViolation> {
        self.violation.get()
    }
}
