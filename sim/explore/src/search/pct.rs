//! Priorities that change at few points.

use super::dice::Dice;
use super::{Choice, Search};
use crate::history::ThreadIndex;

/// No bug is as deep as this.
const DEPTH: u32 = 255;

/// How long histories are taken to be if nobody says.
const FIRST_LENGTH: u64 = 100;

/// The thread with the highest priority goes on; at `depth - 1` turns whoever goes on falls behind all.
#[derive(Clone, Debug)]
pub struct Pct {
    seed: u64,
    depth: u32,
    dice: Dice,
    /// About how many turns histories have: the same for all, so that each depends on its number alone.
    length: u64,
    /// Higher goes first.
    priorities: Vec<u64>,
    /// The turns at which whoever goes on gets another priority, and which: the first one last. They are
    /// lower than all others, and in any order: later need not be lower.
    changes: Vec<(u64, u64)>,
}

impl Pct {
    /// The search with this seed, for bugs of this depth.
    #[must_use]
    pub fn new(seed: u64, depth: u32) -> Self {
        Self {
            seed,
            depth: depth.max(1),
            dice: Dice::new(seed, 0),
            length: FIRST_LENGTH,
            priorities: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The same for histories of about so many turns.
    #[must_use]
    pub const fn over(mut self, turns: u64) -> Self {
        self.length = if turns == 0 { 1 } else { turns };
        self
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
        self.dice = Dice::new(self.seed, number);
        self.priorities.clear();
        self.changes.clear();
        // Around the length that histories have: a wrong guess costs hits, not truth.
        let length = self.length << self.dice.below(3) >> 1;
        for priority in 1..u64::from(self.depth.min(DEPTH)) {
            let turn = 1 + self.dice.below(length.max(1));
            self.changes.push((turn, priority));
        }
        self.changes.sort_unstable();
        self.changes.reverse();
        true
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        while let Some((_, lower)) = self.changes.pop_if(|(turn, _)| *turn <= at.slice) {
            let Some(last) = at.last else { continue };
            // Everybody has a priority before it can get another one.
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
}
