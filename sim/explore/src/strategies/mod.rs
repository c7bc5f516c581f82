//! Search strategies. The engine knows none of them: a [`Search`] is what it asks.

mod exhaustive;
mod faults;
mod guided;
mod interleavings;
mod known;
mod node;
mod pct;
mod prefixes;
mod random;
mod rng;
mod signature;

pub use exhaustive::Exhaustive;
pub use faults::Faults;
pub use guided::Guided;
pub use interleavings::Interleavings;
pub use pct::Pct;
pub(crate) use prefixes::Prefixes;
pub use random::Random;

use crate::replay::ReplaySearch;
use crate::schedule_string::ScheduleString;
use crate::search::Search;

/// Name of a search strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Random choices, with a varying probability of preemption.
    Random,
    /// Random priorities that change `depth - 1` times in an interleaving: finds a bug that needs `depth`
    /// steps in order with a guaranteed minimum probability (Burckhardt, Kothari, Musuvathi,
    /// Nagarakatte, ASPLOS 2010).
    Pct {
        /// Number of ordered steps that a bug may need.
        depth: u32,
    },
    /// All interleavings, up to the order of independent steps; with a bound, all interleavings with at
    /// most that number of preemptions. Those that consist of steps of others are not executed.
    Exhaustive {
        /// Maximum number of preemptions.
        preemptions: Option<u32>,
    },
    /// Random choices, more often after choices that have led to new states.
    Guided,
}

impl Strategy {
    /// Creates the search.
    #[must_use]
    pub fn search(self, seed: u64) -> Box<dyn Search> {
        match self {
            Self::Random => Box::new(Random::new(seed)),
            Self::Pct { depth } => Box::new(Pct::new(seed, depth)),
            Self::Exhaustive { preemptions } => Box::new(Exhaustive::new(preemptions)),
            Self::Guided => Box::new(Guided::new(seed)),
        }
    }

    /// Creates the search. A search by priorities needs the approximate length of histories: regardless of their
    /// numbers, all machines of a campaign measure the same one, which takes only default choices. `turns` executes
    /// it and returns its number of turns.
    #[must_use]
    pub fn prepare(
        self,
        seed: u64,
        turns: impl FnOnce(&mut ReplaySearch) -> u64,
    ) -> Box<dyn Search> {
        let Self::Pct { depth } = self else { return self.search(seed) };
        let mut usual = ReplaySearch::new(ScheduleString::default());
        usual.begin(0);
        Box::new(Pct::new(seed, depth).over(turns(&mut usual)))
    }

    /// Returns true if each interleaving depends only on its number, so that several machines can share
    /// the search.
    #[must_use]
    pub const fn can_be_shared(self) -> bool {
        matches!(self, Self::Random | Self::Pct { .. })
    }
}
