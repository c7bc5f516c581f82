//! What a slice has touched: two slices of different threads that touch nothing in common come to the
//! same in either order.

use super::history::ThreadIndex;
use super::lock::LockName;
use core::ops::{BitOr, BitOrAssign};

/// A set of things that a slice has read or changed. Some share a bit: that costs searches, and makes
/// nothing wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Footprint(u64);

impl Footprint {
    /// What decides whether the runtime is suspended: changes of mode look at it.
    pub const SUSPENSION: Self = Self(1 << 62);
    /// The code manager's tables.
    pub const CODE: Self = Self(1 << 61);
    /// What the runtime keeps of threads and modules: its services change it, profiling methods look at it.
    pub const RUNTIME: Self = Self(1 << 60);
    /// What code of the profiler keeps itself and shares among threads without a lock.
    pub const MEMORY: Self = Self(1 << 63);
    /// Virtual time: as every turn takes some of it, whoever reads it sees how many there were.
    pub const TIME: Self = Self::ALL;
    /// Everything: whoever does not know better.
    pub const ALL: Self = Self(u64::MAX);

    /// A lock.
    #[must_use]
    pub const fn lock(lock: LockName) -> Self {
        match lock {
            LockName::Runtime(lock) => Self(1 << (32 + lock as u32 % 14)),
            LockName::Profiler(index) => Self(1 << (46 + index % 10)),
        }
    }

    /// An event of the profiler.
    #[must_use]
    pub const fn event(index: u32) -> Self {
        Self(1 << (56 + index % 4))
    }

    /// The state of a thread: its stack, its mode, whether it is suspended.
    #[must_use]
    pub const fn thread(thread: ThreadIndex) -> Self {
        Self(1 << (thread.0 % 32))
    }

    /// Whether they have something in common.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Footprint {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Footprint {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
