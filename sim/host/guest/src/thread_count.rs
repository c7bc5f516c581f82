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

/// Returns the number of this process's threads: the folder of each is a link to theirs, as `.` and the parent's entry are.
#[cfg(target_os = "linux")]
pub(crate) fn count() -> Option<usize> {
    use std::os::linux::fs::MetadataExt as _;
    let links = std::fs::metadata("/proc/self/task").ok()?.st_nlink();
    usize::try_from(links).ok()?.checked_sub(2)
}

#[cfg(not(target_os = "linux"))]
fn count() -> Option<usize> {
    None
}
