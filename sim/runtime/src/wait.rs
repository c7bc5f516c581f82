//! The conditions that threads wait for.

use super::lock::Lock;
use super::{OsThreadId, Runtime, Thread};

/// A condition that a thread waits for. `clr_world::World::waited_for`
/// returns the threads that can end the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// The thread waits for a lock to be released.
    Lock(Lock),
    /// The thread waits for the runtime to resume, which the given thread has suspended.
    RuntimeRunning(OsThreadId),
    /// The suspending thread waits for the threads in cooperative mode to reach a safe point, or a
    /// place where a thread can be stopped.
    ThreadsToStop,
    /// The writer of the code manager's tables waits for its readers to leave (H-10).
    CodeManagerReaders,
    /// The thread waits for the server GC's thread to have performed this number of GCs.
    Gc(u32),
    /// The thread waits on its condition variable in a signal handler, which has interrupted it
    /// while it waited there: the one wake-up that comes is for both waits, so this one never ends
    /// (H-31).
    WakeUpOfInterrupted,
    /// The server GC's thread waits for a GC request, or until no other thread is left.
    GcWanted,
    /// The program's first thread has returned, and waits for the end of the other foreground threads.
    ForegroundThreads,
    /// The thread waits for something that another thread of the program does: to be started by it, for its end, or for
    /// finalizers.
    Program,
}

impl<M> Runtime<'_, M> {
    /// Returns the threads that have the code manager's reader lock, except `but`.
    pub fn code_manager_readers(&self, but: OsThreadId) -> Vec<OsThreadId> {
        let threads = self.threads.borrow();
        let reads = |thread: &&Thread| thread.code_manager_reads > 0 && thread.os != but;
        threads.iter().filter(reads).map(|thread| thread.os).collect()
    }

    /// Returns true if a waiting thread can continue, judged by the runtime's own state. Waits that
    /// depend on the actions of threads are known only to their
    /// world (`clr_world::World::has_ended`): here they never end.
    pub fn has_ended(&self, thread: OsThreadId, wait: Wait) -> bool {
        let process = self.process.get();
        match wait {
            Wait::Lock(lock) => process.in_the_way(lock, thread).is_none(),
            Wait::RuntimeRunning(by) => process.suspension.by() != Some(by),
            Wait::CodeManagerReaders => self.code_manager_readers(thread).is_empty(),
            Wait::ThreadsToStop
            | Wait::Gc(_)
            | Wait::GcWanted
            | Wait::ForegroundThreads
            | Wait::Program
            | Wait::WakeUpOfInterrupted => false,
        }
    }
}
