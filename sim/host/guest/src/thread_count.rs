//! Threads that a profiler has started.

use clrsim::Finding;
use clrsim::hosting::Shared;
use std::cell::Cell;

/// A count of the process's threads. Where the system has no file of them, it notices none: calls from
/// other threads are refused all the same.
pub(crate) struct ThreadCount {
    count: Cell<Option<usize>>,
    found: Cell<bool>,
}

impl ThreadCount {
    pub(crate) fn new() -> Self {
        Self { count: Cell::new(count()), found: Cell::new(false) }
    }

    /// Notes threads that are new since the last look.
    pub(crate) fn look(&self, shared: &Shared, during: &'static str) {
        let (Some(before), Some(now)) = (self.count.get(), count()) else { return };
        if now > before {
            shared.find(Finding::StartedThreads { during });
            self.found.set(true);
        }
        self.count.set(Some(now));
    }

    /// Returns true if threads were found: they may be in the profiler's code.
    pub(crate) const fn were_found(&self) -> bool {
        self.found.get()
    }
}

#[cfg(target_os = "linux")]
fn count() -> Option<usize> {
    std::fs::read_dir("/proc/self/task").ok().map(Iterator::count)
}

#[cfg(not(target_os = "linux"))]
fn count() -> Option<usize> {
    None
}
