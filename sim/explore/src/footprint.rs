//! Access sets of turns: two adjacent turns of different threads have the same result in either order if neither
//! changes something that the other one accesses.

use super::history::ThreadIndex;
use super::lock::LockName;
use core::fmt;
use core::num::ParseIntError;
use core::ops::{BitOr, BitOrAssign};
use core::str::FromStr;

/// The sets of things that a turn has changed, and that it has read. Some things share a bit, which makes searches
/// slower but not wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Footprint {
    changed: u64,
    read: u64,
}

impl Footprint {
    /// The state that determines if the runtime is suspended: changes of mode read it.
    pub const SUSPENSION: Self = Self::of(1 << 62);
    /// The code manager's tables.
    pub const CODE: Self = Self::of(1 << 61);
    /// The runtime's data about threads and modules: its services change it, profiling methods read
    /// it.
    pub const RUNTIME: Self = Self::of(1 << 60);
    /// Data that the profiler's own code shares between threads without a lock.
    pub const MEMORY: Self = Self::of(1 << 63);
    /// Virtual time: every turn advances it, so reading it reveals the number of turns.
    pub const TIME: Self = Self::ALL;
    /// Everything, for accesses that are not known exactly.
    pub const ALL: Self = Self::of(u64::MAX);

    /// Returns the changes of these things.
    const fn of(changed: u64) -> Self {
        Self { changed, read: 0 }
    }

    /// Returns the access set of a lock.
    #[must_use]
    pub const fn lock(lock: LockName) -> Self {
        Self::of(match lock {
            LockName::Runtime(lock) => 1 << (32 + lock as u32 % 14),
            LockName::Profiler(index) => 1 << (46 + index % 10),
        })
    }

    /// Returns the access set of an event of the profiler.
    #[must_use]
    pub const fn event(index: u32) -> Self {
        Self::of(1 << (56 + index % 4))
    }

    /// Returns the access set of the state of a thread: its stack, its mode, its suspension.
    #[must_use]
    pub const fn thread(thread: ThreadIndex) -> Self {
        Self::of(1 << (thread.0 % 32))
    }

    /// Returns the reads of all that the set has.
    #[must_use]
    pub const fn read(self) -> Self {
        Self { changed: 0, read: self.changed | self.read }
    }

    /// Returns the bits of what was changed, and of what was read alone.
    pub(super) const fn bits(self) -> [u64; 2] {
        [self.changed, self.read & !self.changed]
    }

    /// Returns the set of a word.
    pub(super) const fn from_bits([changed, read]: [u64; 2]) -> Self {
        Self { changed, read }
    }

    /// Returns true if one of two turns has changed something that the other one has accessed.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.changed & (other.changed | other.read) != 0 || self.read & other.changed != 0
    }
}

impl BitOr for Footprint {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { changed: self.changed | other.changed, read: self.read | other.read }
    }
}

impl BitOrAssign for Footprint {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// Writes the bits as `changed.read`.
impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [changed, read] = self.bits();
        write!(f, "{changed:x}.{read:x}")
    }
}

impl FromStr for Footprint {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (changed, read) = text.split_once('.').unwrap_or((text, ""));
        let number = |text| u64::from_str_radix(text, 16);
        Ok(Self::from_bits([number(changed)?, number(read)?]))
    }
}
