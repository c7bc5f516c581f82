//! Random search.

use super::rng::Rng;
use crate::ending::Ending;
use crate::ids::ThreadIndex;
use crate::schedule_string::by_itself;
use crate::search::{Choice, Search};

/// Chooses at random. Each interleaving draws one probability of keeping the current thread: 0, 1/2, 7/8
/// or 31/32. Every other one of those that may switch after each instruction does so only where it would without them.
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    pub(super) rng: Rng,
    /// Number of choices out of 64 for which the default (non-preemptive) choice is taken.
    keep_odds: u64,
    /// Threads switch only after what others observe. Among the many ordinary instructions that is rare.
    is_coarse: bool,
}

impl Random {
    /// Creates the search with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, rng: Rng::new(seed, 0), keep_odds: 0, is_coarse: false }
    }

    /// Chooses a thread by random numbers, also where one alone can run.
    pub(super) fn draw(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        if at.within && self.is_coarse || self.rng.below(64) < self.keep_odds {
            return by_itself(at.runnable, at.last);
        }
        self.rng.item(at.runnable)
    }
}

impl Search for Random {
    fn begin(&mut self, number: u64) -> bool {
        self.rng = Rng::new(self.seed, number);
        self.is_coarse = number % 2 == 1;
        self.keep_odds = self.rng.item(&[0, 32, 56, 62]).unwrap_or_default();
        true
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        if at.runnable.len() == 1 {
            return at.runnable.first().copied();
        }
        self.draw(at)
    }

    fn end(&mut self, _: &Ending) {}
}
