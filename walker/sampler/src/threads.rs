//! The threads that can be sampled.

use crate::os;
use clr_walker::profiling::{StackBounds, ThreadId};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// Maximum number of threads; those beyond are not sampled.
pub const MOST: usize = 1024;
/// The index of the watchdog's own thread in signals.
pub(crate) const WATCHDOG: usize = u32::MAX as usize;

/// A thread, or a free place. A handler reads it without a lock.
#[derive(Debug, Default)]
pub struct Thread {
    /// The operating system's id; 0 in a free place.
    tid: AtomicI32,
    id: AtomicU64,
    limit: AtomicU64,
    base: AtomicU64,
    /// True if it has thrown an exception.
    has_thrown: AtomicBool,
}

impl Thread {
    /// Returns the operating system's id, or 0 if there is no thread.
    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Acquire)
    }

    /// Returns the runtime's id.
    pub fn id(&self) -> ThreadId {
        ThreadId(self.id.load(Ordering::Relaxed))
    }

    /// Makes this a thread that the runtime may not know.
    pub fn set(&self, tid: i32, stack: StackBounds) {
        self.fill(tid, ThreadId(u64::MAX), stack);
    }

    /// Fills the place in; the thread's id of the operating system comes last.
    fn fill(&self, tid: i32, id: ThreadId, stack: StackBounds) {
        self.id.store(id.0, Ordering::Relaxed);
        self.limit.store(stack.limit, Ordering::Relaxed);
        self.base.store(stack.base, Ordering::Relaxed);
        self.has_thrown.store(false, Ordering::Relaxed);
        self.tid.store(tid, Ordering::Release);
    }

    /// Records that it has thrown an exception.
    pub fn set_thrown(&self) {
        self.has_thrown.store(true, Ordering::Relaxed);
    }

    /// Returns true if it has thrown an exception, where exceptions are monitored.
    pub fn has_thrown(&self) -> bool {
        self.has_thrown.load(Ordering::Relaxed)
    }

    /// Returns the bounds of the stack.
    pub fn stack(&self) -> StackBounds {
        StackBounds {
            limit: self.limit.load(Ordering::Relaxed),
            base: self.base.load(Ordering::Relaxed),
            root: os::ROOT,
        }
    }
}

/// All threads of the runtime.
#[derive(Debug)]
pub struct Threads {
    threads: Box<[Thread]>,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self { threads: (0..MOST).map(|_| Thread::default()).collect() }
    }

    /// Adds the calling thread, in its callback ThreadAssignedToOSThread. The bounds of a stack can
    /// only be asked for here: in a handler that would allocate.
    pub fn add_this(&self, id: ThreadId) {
        let Some(stack) = os::own_stack() else { return };
        #[cfg(target_os = "linux")]
        os::enlarge_alternate_stack();
        self.remove(id);
        let tid = os::own_tid();
        // The negative id keeps others from taking the place before it is filled in.
        let free = self.threads.iter().find(|thread| {
            let taken = (Ordering::Acquire, Ordering::Relaxed);
            thread.tid.compare_exchange(0, -tid, taken.0, taken.1).is_ok()
        });
        if let Some(thread) = free {
            thread.fill(tid, id, stack);
        }
    }

    /// Removes a thread.
    pub fn remove(&self, id: ThreadId) {
        for thread in &self.threads {
            if thread.tid() > 0 && thread.id() == id {
                thread.tid.store(0, Ordering::Release);
            }
        }
    }

    /// Returns the thread at an index.
    pub fn get(&self, index: usize) -> Option<&Thread> {
        self.threads.get(index).filter(|thread| thread.tid() > 0)
    }

    /// Returns the thread with this id of the operating system.
    pub fn with_tid(&self, tid: i32) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.tid() == tid)
    }

    /// Returns the index of the first thread after `last`, in a circle.
    pub fn after(&self, last: usize) -> Option<usize> {
        (1..=MOST).map(|step| (last + step) % MOST).find(|at| self.get(*at).is_some())
    }
}
