//! Locks and events of the profiler, and names of locks in histories.

use clr_runtime::Lock;
use core::fmt;

/// A lock of the profiler. It is not reentrant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilerLock(pub(super) u32);

/// An event of the profiler: it stays set until it is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventObject(pub(super) u32);

/// A lock of the runtime or the process, or one of the profiler's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockName {
    /// A lock of the runtime or the process.
    Runtime(Lock),
    /// A lock of the profiler: its index among the locks that the profiler has created.
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
