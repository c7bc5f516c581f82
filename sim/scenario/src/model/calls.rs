//! The calls of a scenario, in its order, with their places, and the runtimes on which they are checked.

use super::coverage::Demand;
use super::mixed_walk::MixedWalk;
use super::scenario::Scenario;
use super::snapshot::SnapshotCall;
use clr_runtime::generation::{Generation, Generations};

/// A call of a text, with its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotAt<'s> {
    /// Index of the stop in [`Scenario::stops`]; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Index of the call among the snapshots there.
    pub snapshot: usize,
    /// The call as the text describes it.
    pub call: &'s SnapshotCall,
}

impl Scenario {
    /// Returns the calls of the text, in its order.
    pub fn snapshots(&self) -> impl Iterator<Item = SnapshotAt<'_>> {
        fn at(stop: Option<usize>, calls: &[SnapshotCall]) -> impl Iterator<Item = SnapshotAt<'_>> {
            let calls = calls.iter().enumerate();
            calls.map(move |(snapshot, call)| SnapshotAt { stop, snapshot, call })
        }
        let stops = self.stops.iter().enumerate();
        let stops = stops.flat_map(move |(index, stop)| at(Some(index), &stop.snapshots));
        let stack = self.stack.iter().flat_map(move |stack| at(None, &stack.snapshots));
        stops.chain(stack)
    }

    /// Returns the index of a call among [`snapshots`](Self::snapshots).
    #[must_use]
    pub fn snapshot_index(&self, at: &SnapshotAt<'_>) -> usize {
        let before = self.stops.iter().take(at.stop.unwrap_or(self.stops.len()));
        before.map(|stop| stop.snapshots.len()).sum::<usize>() + at.snapshot
    }
}

/// A mixed walk of a text, with its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedAt<'s> {
    /// Index of the stop in [`Scenario::stops`]; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Index of the walk among those there.
    pub walk: usize,
    /// The walk as the text describes it.
    pub says: &'s MixedWalk,
}

fn each_of(stop: Option<usize>, walks: &[MixedWalk]) -> impl Iterator<Item = MixedAt<'_>> {
    walks.iter().enumerate().map(move |(walk, says)| MixedAt { stop, walk, says })
}

impl Scenario {
    /// Returns the mixed walks of the text, in its order.
    pub fn mixed_walks(&self) -> impl Iterator<Item = MixedAt<'_>> {
        let stops = self.stops.iter().enumerate();
        let stops = stops.flat_map(|(index, stop)| each_of(Some(index), &stop.mixed_walks));
        stops.chain(self.stack.iter().flat_map(|stack| each_of(None, &stack.mixed_walks)))
    }

    /// Returns the runtimes for which the text expects a result with a runtime: of a call, of a walk, or of a search.
    #[must_use]
    pub fn checked(&self) -> Generations {
        let calls = self.snapshots().flat_map(|at| &at.call.expect).map(|expect| expect.on);
        let walks = self.mixed_walks().flat_map(|at| &at.says.expect).map(|expect| expect.on);
        let searches = self.explore.iter().flat_map(|explore| &explore.expect);
        let searches = searches.map(|expect| expect.on);
        calls.chain(walks).chain(searches).fold(Generations::NONE, Generations::with)
    }

    /// Returns true if the text expects something of searches on a runtime.
    #[must_use]
    pub fn expects_of_searches(&self, on: Generation) -> bool {
        let mut expected = self.explore.iter().flat_map(|explore| &explore.expect);
        expected.any(|expect| expect.on.contains(on))
    }

    /// Returns the runtimes for which the text demands coverage, and on which it checks nothing: the demands are never
    /// judged there. Demands alone are for searches of a library, whose command names the runtimes.
    #[must_use]
    pub fn unchecked(&self) -> Generations {
        let demands = self.coverage.iter().filter(|_| !self.explore.is_empty());
        let named = demands.map(Demand::on).filter(|on| *on != Generations::ALL);
        named.fold(Generations::NONE, Generations::with).without(self.checked())
    }

    /// Returns the calls of the text, in the order of [`snapshots`](Self::snapshots).
    pub fn calls_mut(&mut self) -> impl Iterator<Item = &mut SnapshotCall> {
        let stops = self.stops.iter_mut().flat_map(|stop| &mut stop.snapshots);
        stops.chain(self.stack.iter_mut().flat_map(|stack| &mut stack.snapshots))
    }
}
