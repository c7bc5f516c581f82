//! What a profiler must not do while a thread is suspended, or while it is not, and whether it has.
//!
//! The suspended thread may own any lock: the heap's, the loader's, the logger's, the runtime's
//! (H-03, H-08, H-11 to H-13). The simulated runtime notices its own methods; a profiler's allocator,
//! logger and locks say [`Runtime::did`].

use crate::{OsThreadId, Runtime, TargetMemory};
use thiserror::Error;

/// Something that may wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Memory is allocated or freed.
    Allocation,
    /// A lock of the profiler is taken.
    Lock,
    /// Something is logged.
    Log,
    /// A module is loaded, or symbols are looked up.
    Loading,
    /// The first profiling call of a thread, for which the runtime makes what it needs (C-151).
    FirstCall,
    /// This method is called, which takes locks of the runtime, or may trigger a GC.
    Call(&'static str),
}

/// What a profiler must not have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Breach {
    /// A deed while a thread was suspended.
    #[error("{deed:?} while thread {} is suspended, which may own the lock that it needs", thread.0)]
    WhileSuspended {
        /// What was done.
        deed: Deed,
        /// The suspended thread.
        thread: OsThreadId,
    },
    /// The registers of a thread were read that nobody has suspended: it runs on, and they are old at once
    /// (H-14).
    #[error("the registers of thread {} are read while it runs", thread.0)]
    ContextOfRunning {
        /// The thread.
        thread: OsThreadId,
    },
}

impl<M: TargetMemory> Runtime<'_, M> {
    /// A profiler does something: it is remembered if a thread is suspended. Nothing is allocated.
    pub fn did(&self, deed: Deed) {
        // While threads are being changed nobody is asked.
        let Ok(threads) = self.threads.try_borrow() else { return };
        if let Some(thread) = threads.iter().find(|thread| thread.suspended > 0) {
            self.broke(Breach::WhileSuspended { deed, thread: thread.os });
        }
    }

    /// A profiler has done what it must not. The first time counts.
    pub(super) fn broke(&self, breach: Breach) {
        self.breach.set(self.breach.get().or(Some(breach)));
    }

    /// The first thing that a profiler has done and must not.
    pub const fn breach(&self) -> Option<Breach> {
        self.breach.get()
    }
}
