//! Who is next: the ways to search among histories.

mod dice;
mod exhaustive;
mod guided;
mod pct;
mod random;

pub use exhaustive::Exhaustive;
pub use guided::Guided;
pub use pct::Pct;
pub use random::Random;

use super::footprint::Footprint;
use super::history::ThreadIndex;
use super::kernel::Kernel;
use super::run::Ending;

/// A switch point: somebody is to be chosen.
#[derive(Debug)]
pub struct Choice<'c, 'b> {
    /// How many turns there have been.
    pub slice: u64,
    /// Who can go on, in order: at least one.
    pub runnable: &'c [ThreadIndex],
    /// Whose the last turn was.
    pub last: Option<ThreadIndex>,
    pub(super) kernel: &'c Kernel<'b>,
}

impl Choice<'_, '_> {
    /// A number for who owns and waits for what, who is suspended and in which mode: what a deadlock is
    /// made of.
    #[must_use]
    pub fn state(&self) -> u64 {
        self.kernel.abstract_state()
    }
}

/// How much of all there is to search a search has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// All of it, up to the order of steps that have nothing to do with each other.
    pub everything: bool,
    /// The share that has been seen, in millionths, if every choice counts the same.
    pub millionths: u32,
    /// Histories that were left early, because they only differ from others in such an order.
    pub cut: u64,
    /// The most preemptions in a history, if that was bounded.
    pub preemptions: Option<u32>,
}

/// A way to search. The same search makes the same choices wherever it runs.
pub trait Search {
    /// A history begins, the `number`-th from 0. Whether there is still one to be searched.
    fn begin(&mut self, number: u64) -> bool;

    /// Whose turn it is; `None` if the rest of the history has been seen in another one.
    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex>;

    /// The thread had its turn, and touched this.
    fn ran(&mut self, thread: ThreadIndex, footprint: Footprint) {
        let _ = (thread, footprint);
    }

    /// The history has ended.
    fn end(&mut self, ending: &Ending) {
        let _ = ending;
    }

    /// How much has been seen, if that can be said.
    fn covered(&self) -> Option<Covered> {
        None
    }
}

/// A way to search, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Chooses at random: sometimes often, sometimes rarely.
    Random,
    /// Gives threads priorities at random, and changes them so many times less one in a history:
    /// finds a bug that needs `depth` steps in order with a probability that has a bound (Burckhardt,
    /// Kothari, Musuvathi, Nagarakatte, ASPLOS 2010).
    Pct {
        /// In how many steps a bug may lie.
        depth: u32,
    },
    /// Goes through all histories, up to the order of steps that have nothing to do with each other;
    /// with a bound, through all with so few preemptions.
    Exhaustive {
        /// The most preemptions.
        preemptions: Option<u32>,
    },
    /// Chooses at random, more often behind what has led to states that were new.
    Guided,
}

impl Strategy {
    /// The search.
    #[must_use]
    pub fn search(self, seed: u64) -> Box<dyn Search> {
        match self {
            Self::Random => Box::new(Random::new(seed)),
            Self::Pct { depth } => Box::new(Pct::new(seed, depth)),
            Self::Exhaustive { preemptions } => Box::new(Exhaustive::new(preemptions)),
            Self::Guided => Box::new(Guided::new(seed)),
        }
    }

    /// Whether each history depends on its number alone, so that several machines can share them.
    #[must_use]
    pub const fn can_be_shared(self) -> bool {
        matches!(self, Self::Random | Self::Pct { .. })
    }
}
