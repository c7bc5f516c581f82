//! Access sets of turns: two adjacent turns of different threads with disjoint access sets have the
//! same result in either order.

use super::history::ThreadIndex;
use super::lock::LockName;
use core::ops::{BitOr, BitOrAssign};

/// The set of things that a turn has read or changed. Some things share a bit, which makes searches
/// slower but not wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Footprint(u64);

impl Footprint {
    /// The state that determines if the runtime is suspended: changes of mode read it.
    pub const SUSPENSION: Self = Self(1 << 62);
    /// The code manager's tables.
    pub const CODE: Self = Self(1 << 61);
    /// The runtime's data about threads and modules: its services change it, profiling methods read
    /// it.
    pub const RUNTIME: Self = Self(1 << 60);
    /// Data that the profiler's own code shares between threads without a lock.
    pub const MEMORY: Self = Self(1 << 63);
    /// Virtual time: every turn advances it, so reading it reveals the number of turns.
    pub const TIME: Self = Self::ALL;
    /// Everything, for accesses that are not known exactly.
    pub const ALL: Self = Self(u64::MAX);

    /// Returns the access set of a lock.
    #[must_use]
    pub const fn lock(lock: LockName) -> Self {
        match lock {
            LockName::Runtime(lock) => Self(1 << (32 + lock as u32 % 14)),
            LockName::Profiler(index) => Self(1 << (46 + index % 10)),
        }
    }

    /// Returns the access set of an event of the profiler.
    #[must_use]
    pub const fn event(index: u32) -> Self {
        Self(1 << (56 + index % 4))
    }

    /// Returns the access set of the state of a thread: its stack, its mode, its suspension.
    #[must_use]
    pub const fn thread(thread: ThreadIndex) -> Self {
        Self(1 << (thread.0 % 32))
    }

    /// Returns the set as a word.
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the set of a word.
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns true if both sets have something in common.
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
