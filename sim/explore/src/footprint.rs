//! Access sets of turns: two adjacent turns of different threads have the same result in either order if neither
//! changes something that the other one accesses.

use super::ids::{LockName, ThreadIndex};
use core::fmt;
use core::num::ParseIntError;
use core::ops::{BitOr, BitOrAssign};
use core::str::FromStr;

/// A set of things: one bit for each.
pub(super) type Things = u128;

/// The first bits of threads, locks, events and condition variables: each kind has as many bits as the next one is away.
pub(super) const RUNTIME_LOCKS: u32 = 48;
pub(super) const PROFILER_LOCKS: u32 = 64;
pub(super) const EVENTS: u32 = 96;
pub(super) const CONDITIONS: u32 = 112;
pub(super) const SINGLE: u32 = 120;

/// The sets of things that a turn has changed, and that it has read. Some things share a bit, which makes searches
/// slower but not wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Footprint {
    changed: Things,
    read: Things,
}

impl Footprint {
    /// The state that determines if the runtime is suspended: turns of the program read it.
    pub const SUSPENSION: Self = Self::of(1 << SINGLE);
    /// The code manager's tables, and their writer.
    pub const CODE: Self = Self::of(1 << (SINGLE + 1));
    /// The readers of the code manager's tables, for which a writer waits.
    pub const READERS: Self = Self::of(1 << (SINGLE + 2));
    /// The runtime's data about the process: its services and profiling methods read it.
    pub const RUNTIME: Self = Self::of(1 << (SINGLE + 3));
    /// The list of threads: profiling methods read it.
    pub const THREADS: Self = Self::of(1 << (SINGLE + 4));
    /// The objects and handles of the program: the arguments of callbacks number them.
    pub const OBJECTS: Self = Self::of(1 << (SINGLE + 5));
    /// Data that the profiler's own code shares between threads without a lock.
    pub const MEMORY: Self = Self::of(1 << (SINGLE + 6));
    /// Which locks and condition variables were made in the history: a guest's are found by their addresses.
    pub const MADE: Self = Self::of(1 << (SINGLE + 7));
    /// Virtual time: every turn advances it, so reading it reveals the number of turns.
    pub const TIME: Self = Self::ALL;
    /// All that belongs to the runtime and the process.
    pub(super) const OF_RUNTIME: Self = Self::SUSPENSION
        .and(Self::CODE)
        .and(Self::READERS)
        .and(Self::RUNTIME)
        .and(Self::THREADS)
        .and(Self::OBJECTS)
        .and(Self::of((1 << PROFILER_LOCKS) - (1 << RUNTIME_LOCKS)));
    /// Number of threads with a bit of their own: others share one.
    pub(super) const THREADS_WITH_BITS: u32 = RUNTIME_LOCKS;
    /// Everything, for accesses that are not known exactly.
    pub const ALL: Self = Self::of(Things::MAX);

    /// Returns what both sets have.
    pub(super) const fn and(self, other: Self) -> Self {
        let changed = self.changed | other.changed;
        Self { changed, read: (self.read | other.read) & !changed }
    }

    /// Returns the changes of these things.
    const fn of(changed: Things) -> Self {
        Self { changed, read: 0 }
    }

    /// Returns the access set of a lock.
    #[must_use]
    pub const fn lock(lock: LockName) -> Self {
        Self::of(match lock {
            LockName::Runtime(lock) => {
                1 << (RUNTIME_LOCKS + lock as u32 % (PROFILER_LOCKS - RUNTIME_LOCKS))
            }
            LockName::Profiler(index) => 1 << (PROFILER_LOCKS + index % (EVENTS - PROFILER_LOCKS)),
        })
    }

    /// Returns the access set of an event of the profiler.
    #[must_use]
    pub const fn event(index: u32) -> Self {
        Self::of(1 << (EVENTS + index % (CONDITIONS - EVENTS)))
    }

    /// Returns the access set of a condition variable of the profiler.
    #[must_use]
    pub const fn condition(index: u32) -> Self {
        Self::of(1 << (CONDITIONS + index % (SINGLE - CONDITIONS)))
    }

    /// Returns the access set of the state of a thread: its stack, its mode, its suspension.
    #[must_use]
    pub const fn thread(thread: ThreadIndex) -> Self {
        Self::of(1 << (thread.0 % RUNTIME_LOCKS))
    }

    /// Returns the access set of the state of the first threads.
    pub(super) const fn threads(count: u32) -> Self {
        let count = if count < RUNTIME_LOCKS { count } else { RUNTIME_LOCKS };
        Self::of((1 << count) - 1)
    }

    /// Returns the reads of all that the set has.
    #[must_use]
    pub const fn read(self) -> Self {
        Self { changed: 0, read: self.changed | self.read }
    }

    /// Returns what was changed.
    #[must_use]
    pub const fn changed(self) -> Self {
        Self::of(self.changed)
    }

    /// Returns what the set has beyond another one.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        let others = other.changed | other.read;
        Self { changed: self.changed & !others, read: self.read & !others }
    }

    /// Returns the bits of what was changed, and of what was read alone.
    pub(super) const fn bits(self) -> [Things; 2] {
        [self.changed, self.read & !self.changed]
    }

    /// Returns the set of a word.
    pub(super) const fn from_bits([changed, read]: [Things; 2]) -> Self {
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
        self.and(other)
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
        let number = |text| Things::from_str_radix(text, 16);
        Ok(Self::from_bits([number(changed)?, number(read)?]))
    }
}
