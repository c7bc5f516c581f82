//! Random search that continues from new states.

use super::random::Random;
use crate::ending::Ending;
use crate::ids::ThreadIndex;
use crate::replay::ReplaySearch;
use crate::schedule_string::ScheduleString;
use crate::search::{Choice, Observer, Search};

/// Number of bits by which states are distinguished.
const STATE_BITS: u32 = 18;
/// Maximum number of interleavings kept as starting points.
const KEPT: usize = 512;

/// Keeps the choices that have led to new states of locks, modes and suspensions, and continues
/// from random points in them.
#[derive(Clone, Debug)]
pub struct Guided {
    random: Random,
    seen: Vec<u64>,
    kept: Vec<ScheduleString>,
    /// Beginning of a kept interleaving.
    begin: ReplaySearch,
    /// First turn after this beginning.
    until: u64,
    is_new: bool,
}

impl Guided {
    /// Creates the search with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            seen: vec![0; 1 << (STATE_BITS - 6)],
            kept: Vec::new(),
            begin: ReplaySearch::new(ScheduleString::default()),
            until: 0,
            is_new: false,
        }
    }

    /// Records a state. Returns true if it is new.
    fn note(&mut self, state: u64) -> bool {
        let state = (state ^ state >> 32) & ((1 << STATE_BITS) - 1);
        let Some(word) = self.seen.get_mut((state >> 6) as usize) else { return false };
        let bit = 1 << (state & 63);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Turns say nothing that choices have not said.
impl Observer for Guided {}

impl Search for Guided {
    fn begin(&mut self, number: u64) -> bool {
        self.random.begin(number);
        self.is_new = false;
        self.until = 0;
        let from = self.random.rng.below(self.kept.len() as u64) as usize;
        if let Some(schedule) = self.kept.get(from).filter(|_| self.random.rng.below(4) > 0) {
            let cut = self.random.rng.below(schedule.len() as u64 + 1) as usize;
            let begin = schedule.first(cut);
            self.until = begin.turns.last().map_or(0, |(turn, _)| turn + 1);
            self.begin = ReplaySearch::new(begin);
        }
        true
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        let state = at.process.abstract_state();
        self.is_new |= self.note(state);
        if at.turn < self.until {
            return self.begin.choose(at);
        }
        self.random.draw(at)
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn end(&mut self, ending: &Ending) {
        if !self.is_new {
            return;
        }
        if self.kept.len() < KEPT {
            self.kept.push(ending.schedule.clone());
        } else {
            let place = self.random.rng.below(KEPT as u64) as usize;
            if let Some(kept) = self.kept.get_mut(place) {
                kept.clone_from(&ending.schedule);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Guided, KEPT};
    use crate::schedule_string::ScheduleString;
    use crate::search::Search as _;
    use crate::{Ending, ThreadIndex};

    /// Returns the end of an interleaving with this number of choices.
    fn ending(choices: u64) -> Ending {
        let turns = (0..choices).map(|turn| (turn, ThreadIndex(1))).collect();
        let schedule = ScheduleString { turns, faults: Vec::new() };
        Ending { turns: choices, schedule, ..Ending::default() }
    }

    #[test]
    fn a_state_is_new_once() {
        let mut guided = Guided::new(0);
        for state in [0, 1, 63, 64, 65, 0x3_FFFF] {
            assert!(guided.note(state), "{state}");
            assert!(!guided.note(state), "{state}");
        }
        // Both halves count, and the bits above are not distinguished.
        assert!(guided.note(2 << 32));
        assert!(!guided.note(2) && !guided.note(3 << 32 | 1));
        assert!(!guided.note(1 << 18) && !guided.note(1 << 30));
    }

    #[test]
    fn histories_with_new_states_are_kept() {
        let mut guided = Guided::new(7);
        assert!(guided.begin(0));
        guided.end(&ending(3));
        assert!(guided.kept.is_empty());
        for number in 0..KEPT as u64 + 40 {
            guided.begin(number);
            guided.is_new = true;
            guided.end(&ending(number % 5 + 1));
        }
        assert_eq!(guided.kept.len(), KEPT);
        guided.begin(0);
        assert!(!guided.is_new, "each interleaving begins anew");
    }

    #[test]
    fn three_of_four_histories_continue_a_kept_one() {
        let mut guided = Guided::new(7);
        guided.kept = vec![ending(4).schedule];
        let (mut continued, mut ends) = (0, std::collections::BTreeSet::new());
        for number in 0..2_000 {
            guided.begin(number);
            // The beginning ends behind one of the choices: that of turn 3 is the last.
            assert!(guided.until <= 4);
            continued += u32::from(guided.until > 0);
            ends.insert(guided.until);
        }
        // One of the five beginnings has no choice.
        assert!((1_100..1_300).contains(&continued), "{continued}");
        assert_eq!(ends, [0, 1, 2, 3, 4].into());
    }
}
