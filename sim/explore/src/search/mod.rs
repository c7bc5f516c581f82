//! Search strategies that choose the next thread.

mod dice;
mod exhaustive;
mod guided;
mod interleavings;
mod known;
mod noted;
mod pct;
mod random;
mod remote;
mod replay;
mod signature;

pub use exhaustive::Exhaustive;
pub use guided::Guided;
pub use interleavings::Interleavings;
pub use noted::{NotedHistory, NotingSearch};
pub use pct::Pct;
pub use random::Random;
pub use remote::{NotALine, RemoteSearch, answer};
pub use replay::ReplaySearch;

use super::content::Contents;
use super::ending::Ending;
use super::footprint::Footprint;
use super::history::ThreadIndex;
use super::kernel::Kernel;
use super::schedule_string::ScheduleString;

/// A switch point, at which a thread is chosen.
#[derive(Debug)]
pub struct Choice<'c, 'b> {
    /// Number of turns so far.
    pub turn: u64,
    /// Threads that can run, ascending; at least one.
    pub runnable: &'c [ThreadIndex],
    /// Thread of the last turn.
    pub last: Option<ThreadIndex>,
    /// The threads that wait, and what decides about that, for a search that [learns](Search::learns).
    pub waits: &'c [(ThreadIndex, Footprint)],
    pub(super) state: State<'c, 'b>,
}

/// The source of the state at a switch point.
#[derive(Debug)]
pub(super) enum State<'c, 'b> {
    /// The history that is being executed.
    Kernel(&'c Kernel<'b>),
    /// A history that was executed elsewhere: the state's hash.
    Known(u64),
}

impl Choice<'_, '_> {
    /// Returns a hash of the state that deadlocks depend on: owners and waits, suspensions and
    /// modes.
    #[must_use]
    pub fn state(&self) -> u64 {
        match self.state {
            State::Kernel(kernel) => kernel.abstract_state(),
            State::Known(state) => state,
        }
    }

    /// Returns the contents of all things but the profiler's data; `None` if the history is executed elsewhere, or has too
    /// many threads.
    #[must_use]
    pub fn contents(&self) -> Option<Contents> {
        match self.state {
            State::Kernel(kernel) => kernel.all_contents(&|| 0),
            State::Known(_) => None,
        }
    }
}

/// Share of the search space that has been explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// The search is complete: each step of a thread was executed after all that can have happened before it, and each end
    /// at which threads wait, up to the order of independent steps.
    pub everything: bool,
    /// Share that has been explored, in millionths, with equal weight for the alternatives of each
    /// choice.
    pub millionths: u32,
    /// Number of histories that were given up because others have shown all that they would show.
    pub cut: u64,
    /// Maximum number of preemptions in a history, if it was bounded.
    pub preemptions: Option<u32>,
}

/// A search strategy. The same search makes the same choices on every system.
pub trait Search {
    /// Starts the history with this number, from 0. Returns false if no history is left.
    fn begin(&mut self, number: u64) -> bool;

    /// Chooses the thread of the next turn, or returns `None` if the rest of the history has been
    /// explored in another one.
    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex>;

    /// Reports the beginning of a history whose contents are all that determines it. `contents` returns them; `None` if there
    /// are too many threads.
    fn starts(&mut self, contents: &dyn Fn() -> Option<Contents>) {
        let _ = contents;
    }

    /// Returns true if the search compares states by their contents.
    fn compares_contents(&self) -> bool {
        false
    }

    /// Reports the turn of a thread and its access set, with the contents of what it has changed, if the search compares
    /// them and they are all that determines what follows.
    fn ran(&mut self, thread: ThreadIndex, footprint: Footprint, left: Option<&Contents>) {
        let _ = (thread, footprint, left);
    }

    /// Returns true if the search does nothing with turns: then they are not [reported](Self::ran).
    fn ignores_turns(&self) -> bool {
        false
    }

    /// Reports that no thread can run any more, with the threads that wait, and what decides about that.
    fn rests(&mut self, waits: &[(ThreadIndex, Footprint)]) {
        let _ = waits;
    }

    /// Reports the end of the history.
    fn end(&mut self, ending: &Ending) {
        let _ = ending;
    }

    /// Returns true if the choices of a history depend on the histories before.
    fn learns(&self) -> bool {
        false
    }

    /// Returns true if the history was another one than the search expected: the code depends on something
    /// else than the schedule, or has changed.
    fn has_strayed(&self) -> bool {
        false
    }

    /// Returns the share that has been explored, if it is known.
    fn covered(&self) -> Option<Coverage> {
        None
    }
}

/// Name of a search strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Random choices, with a varying probability of preemption.
    Random,
    /// Random priorities that change `depth - 1` times in a history: finds a bug that needs `depth`
    /// steps in order with a guaranteed minimum probability (Burckhardt, Kothari, Musuvathi,
    /// Nagarakatte, ASPLOS 2010).
    Pct {
        /// Number of ordered steps that a bug may need.
        depth: u32,
    },
    /// All histories, up to the order of independent steps; with a bound, all histories with at
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

    /// Returns true if each history depends only on its number, so that several machines can share
    /// the search.
    #[must_use]
    pub const fn can_be_shared(self) -> bool {
        matches!(self, Self::Random | Self::Pct { .. })
    }
}
