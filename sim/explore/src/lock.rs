//! The locks that histories know by name.

use clr_runtime::Lock;
use core::fmt;

/// A lock: of the runtime or the process, or one of the profiler's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockName {
    /// Of the runtime or the process.
    Runtime(Lock),
    /// Of the profiler: its place among those that it has made.
    Profiler(u32),
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(lock) => write!(f, "the {}", lock.name()),
            Self::Profiler(index) => write!(f, "the profiler's lock {index}"),
        }
    }
}
