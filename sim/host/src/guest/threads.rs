//! Threads that a profiler has started.

use crate::report::Finding;
use crate::session::Shared;
use std::cell::Cell;

/// A count of the process's threads. Where the system has no file of them, it notices none: calls from
/// other threads are refused all the same.
pub(super) struct ThreadCount(Cell<Option<usize>>);

impl ThreadCount {
    pub(super) fn new() -> Self {
        Self(Cell::new(count()))
    }

    /// Notes threads that are new since the last look.
    pub(super) fn look(&self, shared: &Shared, during: &'static str) {
        let (Some(before), Some(now)) = (self.0.get(), count()) else { return };
        if now > before {
            shared.find(Finding::StartedThreads { during });
        }
        self.0.set(Some(now));
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
