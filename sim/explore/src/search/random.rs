//! Random choices.

use super::dice::Dice;
use super::{Choice, Search};
use crate::history::ThreadIndex;
use crate::replay::by_itself;

/// Chooses at random. In a history of its own, a search keeps to the thread that had the last turn always
/// alike: never, half of the time, mostly, or nearly always.
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    dice: Dice,
    /// Of 64 choices so many are left to what comes by itself.
    keeps: u64,
}

impl Random {
    /// The search with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, dice: Dice::new(seed, 0), keeps: 0 }
    }
}

impl Search for Random {
    fn begin(&mut self, number: u64) -> bool {
        self.dice = Dice::new(self.seed, number);
        self.keeps = self.dice.one(&[0, 32, 56, 62]).unwrap_or_default();
        true
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        if at.runnable.len() == 1 {
            return at.runnable.first().copied();
        }
        if self.dice.below(64) < self.keeps {
            return by_itself(at.runnable, at.last);
        }
        self.dice.one(at.runnable)
    }
}
