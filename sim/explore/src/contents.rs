//! Contents of the things that access sets name: a search recognises states by them.
//!
//! They are known if the profiler's code has no data between its calls but what [`Setup::keeps`](super::Setup::keeps) names,
//! and no turn depends on time: then what follows is determined by the contents, and by what the code that is on a
//! coroutine has found so far.

use super::footprint::{Footprint, Things};

/// Contents after a turn: those of what it has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The things by the numbers of their bits, ascending, with a hash of the content of each.
    pub(super) things: Vec<(u32, u64)>,
    /// The thread of the turn is in the middle of code on a coroutine.
    pub(super) goes_on: bool,
    pub(super) position: Option<(u64, Footprint)>,
    /// The threads that were started in the turn: the first one, and the next one after the last.
    pub(super) started: (u32, u32),
}

impl Contents {
    /// Returns the access set of the things whose contents are others than before.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Footprint {
        let pairs = self.things.iter().zip(&before.things);
        let bits = pairs.filter(|(now, before)| now != before).map(|((place, _), _)| 1 << place);
        Footprint::from_bits([bits.fold(0, |all: Things, bit: Things| all | bit), 0])
    }

    /// Creates contents of these things.
    #[cfg(test)]
    pub(super) fn of_things(things: &[(u32, u64)]) -> Self {
        Self { things: things.to_vec(), ..Self::default() }
    }

    /// Makes these the contents in the middle of code, at a position if it is known.
    #[cfg(test)]
    pub(super) fn in_code(mut self, position: Option<(u64, Footprint)>) -> Self {
        (self.goes_on, self.position) = (true, position);
        self
    }

    /// Makes these the contents after the start of threads with these numbers.
    #[cfg(test)]
    pub(super) fn starting(mut self, threads: core::ops::Range<u32>) -> Self {
        self.started = (threads.start, threads.end);
        self
    }

    /// Returns the numbers of things with their contents.
    pub(super) fn things(&self) -> &[(u32, u64)] {
        &self.things
    }

    /// Returns true if the thread of the turn is in the middle of code on a coroutine.
    pub(super) const fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Returns true if the thread with this number was started in the turn.
    pub(super) const fn has_started(&self, thread: u32) -> bool {
        let (first, end) = self.started;
        first <= thread && thread < end
    }

    /// Returns the position that determines what that code does next, together with what was accessed since it was
    /// there, if there is one.
    pub(super) const fn position(&self) -> Option<(u64, Footprint)> {
        self.position
    }
}
