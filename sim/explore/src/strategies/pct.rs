//! Random search by priorities that change at few points (PCT).

use super::rng::Rng;
use crate::ending::Ending;
use crate::ids::ThreadIndex;
use crate::search::{Choice, Search};

/// Limit on the depth of a bug.
const DEPTH: u32 = 255;

/// Assumed length of interleavings if it was not measured.
const FIRST_LENGTH: u64 = 100;

/// Runs the thread with the highest priority; at `depth - 1` turns the current thread drops below
/// all others.
#[derive(Clone, Debug)]
pub struct Pct {
    seed: u64,
    depth: u32,
    rng: Rng,
    /// Approximate number of turns in an interleaving: the same for all interleavings, so that each depends
    /// only on its number.
    length: u64,
    /// Priorities of the threads; the highest one runs.
    priorities: Vec<u64>,
    /// Turns at which the current thread gets another priority, with that priority; the first turn
    /// is last. The priorities are lower than all others and in any order: later ones need not be
    /// lower.
    changes: Vec<(u64, u64)>,
}

impl Pct {
    /// Creates the search with this seed, for bugs of this depth.
    #[must_use]
    pub fn new(seed: u64, depth: u32) -> Self {
        Self {
            seed,
            depth: depth.max(1),
            rng: Rng::new(seed, 0),
            length: FIRST_LENGTH,
            priorities: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Sets the approximate number of turns in an interleaving.
    #[must_use]
    pub const fn over(mut self, turns: u64) -> Self {
        self.length = if turns == 0 { 1 } else { turns };
        self
    }

    fn priority(&mut self, thread: ThreadIndex) -> u64 {
        while self.priorities.len() <= thread.index() {
            // The upper half: changed priorities are below.
            let priority = self.rng.next() | 1 << 63;
            self.priorities.push(priority);
        }
        self.priorities.get(thread.index()).copied().unwrap_or_default()
    }
}

impl Search for Pct {
    fn begin(&mut self, number: u64) -> bool {
        self.rng = Rng::new(self.seed, number);
        self.priorities.clear();
        self.changes.clear();
        // The length is varied around the measured one: a wrong guess costs hits, not correctness.
        let length = self.length << self.rng.below(3) >> 1;
        for priority in 1..u64::from(self.depth.min(DEPTH)) {
            let turn = 1 + self.rng.below(length.max(1));
            self.changes.push((turn, priority));
        }
        self.changes.sort_unstable();
        self.changes.reverse();
        true
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        while let Some((_, lower)) = self.changes.pop_if(|(turn, _)| *turn <= at.turn) {
            let Some(last) = at.last else { continue };
            // The last thread gets an initial priority before it is changed.
            self.priority(last);
            if let Some(priority) = self.priorities.get_mut(last.index()) {
                *priority = lower;
            }
        }
        let mut best = None;
        for thread in at.runnable {
            let priority = self.priority(*thread);
            if best.is_none_or(|(highest, _)| priority > highest) {
                best = Some((priority, *thread));
            }
        }
        best.map(|(_, thread)| thread)
    }
    fn end(&mut self, _: &Ending) {}
}
