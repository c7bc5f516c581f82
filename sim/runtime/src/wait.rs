//! What threads wait for.

use super::lock::Lock;
use super::{OsThreadId, Runtime, Thread};

/// What a thread waits for. [`World::waited_for`](clr_world::World::others) tells for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// That a lock is given back.
    Lock(Lock),
    /// That the runtime goes on, which this thread has suspended.
    RuntimeRunning(OsThreadId),
    /// Who suspends the runtime: that the threads in cooperative mode come to a safe point, or to
    /// where one can be stopped.
    ThreadsToStop,
    /// Who writes to the code manager's tables: that nobody reads them (H-10).
    CodeManagerReaders,
    /// That the server GC's thread has made so many collections.
    Gc(u32),
    /// The server GC's thread: that a collection is wanted, or that no other thread is left.
    GcWanted,
}

impl<M> Runtime<'_, M> {
    /// The threads that have the code manager's reader lock, but for one.
    #[must_use]
    pub fn code_manager_readers(&self, but: OsThreadId) -> Vec<OsThreadId> {
        let threads = self.threads.borrow();
        let reads = |thread: &&Thread| thread.code_manager_reads > 0 && thread.os != but;
        threads.iter().filter(reads).map(|thread| thread.os).collect()
    }

    /// Whether a thread that waits for something can go on, as far as the runtime's own state tells. What
    /// threads do otherwise, only their [world](clr_world::World::has_ended) knows: here that never
    /// ends.
    #[must_use]
    pub fn has_ended(&self, thread: OsThreadId, wait: Wait) -> bool {
        let process = self.process.get();
        match wait {
            Wait::Lock(lock) => process.in_the_way(lock, thread).is_none(),
            Wait::RuntimeRunning(by) => process.suspension.by() != Some(by),
            Wait::CodeManagerReaders => self.code_manager_readers(thread).is_empty(),
            Wait::ThreadsToStop | Wait::Gc(_) | Wait::GcWanted => false,
        }
    }
}
