//! Priorities that change at few points.

use super::dice::Dice;
use super::{Choice, Search};
use crate::schedule::history::ThreadIndex;
use crate::schedule::run::Ending;

/// How long histories are taken to be before one has been seen.
const FIRST_LENGTH: u64 = 100;

/// The thread with the highest priority goes on; at `depth - 1` turns whoever goes on falls behind all.
#[derive(Clone, Debug)]
pub struct Pct {
    seed: u64,
    depth: u32,
    dice: Dice,
    number: u64,
    /// How many turns the first history had: the same for all, so that each depends on its number alone.
    length: u64,
    /// Higher goes first.
    priorities: Vec<u64>,
    /// The turns at which priorities change, in order.
    changes: Vec<u64>,
    fallen: u64,
}

impl Pct {
    /// The search with this seed, for bugs of this depth.
    #[must_use]
    pub fn new(seed: u64, depth: u32) -> Self {
        Self {
            seed,
            depth: depth.max(1),
            dice: Dice::new(seed, 0),
            number: 0,
            length: FIRST_LENGTH,
            priorities: Vec::new(),
            changes: Vec::new(),
            fallen: 0,
        }
    }

    fn priority(&mut self, thread: ThreadIndex) -> u64 {
        while self.priorities.len() <= thread.index() {
            // The upper half: whoever falls is below.
            let priority = self.dice.next() | 1 << 63;
            self.priorities.push(priority);
        }
        self.priorities.get(thread.index()).copied().unwrap_or_default()
    }
}

impl Search for Pct {
    fn begin(&mut self, number: u64) -> bool {
        self.number = number;
        self.dice = Dice::new(self.seed, number);
        self.priorities.clear();
        self.fallen = 1 << 62;
        self.changes.clear();
        // Around the length that histories have: a wrong guess costs hits, not truth.
        let length = self.length << self.dice.below(3) >> 1;
        for _ in 1..self.depth {
            let change = self.dice.below(length.max(1));
            self.changes.push(change);
        }
        self.changes.sort_unstable();
        self.changes.reverse();
        true
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        while self.changes.last().is_some_and(|change| *change <= at.slice) {
            self.changes.pop();
            let last = at.last.map(|last| (self.priority(last), last));
            if let Some((_, last)) = last {
                self.fallen -= 1;
                if let Some(priority) = self.priorities.get_mut(last.index()) {
                    *priority = self.fallen;
                }
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

    fn end(&mut self, ending: &Ending) {
        if self.number == 0 {
            self.length = ending.slices.max(1);
        }
    }
}
