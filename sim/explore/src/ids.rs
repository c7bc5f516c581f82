//! Names of threads and locks in interleavings.

use clr_runtime::Lock;
use core::fmt;

/// Index of a thread in an interleaving; threads of the program come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIndex(pub u32);

impl ThreadIndex {
    /// Returns the thread number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

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
