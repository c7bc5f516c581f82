//! The runtime's suspensions, during which a GC may move objects.

use clr_sampler::os;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The suspensions of the runtime, in which a GC may move objects that saved registers point to.
#[derive(Debug, Default)]
pub(super) struct Suspensions {
    /// Number of beginnings and ends.
    changes: AtomicU32,
    /// The thread that suspends the others, by the operating system's id; 0 for none.
    by: AtomicI32,
}

impl Suspensions {
    /// Notes that the calling thread begins to suspend the others.
    pub(super) fn begin(&self) {
        self.by.store(os::own_tid(), Ordering::SeqCst);
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that the calling thread lets the others go on.
    pub(super) fn end(&self) {
        let order = Ordering::SeqCst;
        // Another thread may have begun the next one.
        let _ = self.by.compare_exchange(os::own_tid(), 0, order, order);
        self.changes.fetch_add(1, order);
    }

    /// Returns the number of changes, unless a thread other than the calling one suspends.
    pub(super) fn quiet(&self) -> Option<u32> {
        let by = self.by.load(Ordering::SeqCst);
        (by == 0 || by == os::own_tid()).then(|| self.changes.load(Ordering::SeqCst))
    }
}
