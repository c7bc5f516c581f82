//! Orders of steps: those of which searches leave out interleavings must not matter.

use crate::scheduled::{Sequence, Step, independent, observed};
use clr_explore::{
    Ending, Exhaustive, Explorer, HistoryDetail, Interleavings, Limits, Search, Setup,
};
use std::collections::BTreeSet;

/// The interleavings of a process with a profiler.
pub(super) struct Histories<'h, 'b, 'p> {
    pub(super) explorer: &'h mut Explorer<'b>,
    pub(super) load: &'h (dyn Fn(&mut Setup<'p>) + 'p),
    pub(super) limits: Limits,
}

impl Histories<'_, '_, '_> {
    fn run(&mut self, search: &mut dyn Search) -> Ending {
        self.explorer.run(self.load, search, self.limits, HistoryDetail::Events)
    }

    /// Lets two neighbouring steps whose accesses do not meet change places. `number` selects them among all of the
    /// interleaving that ended so.
    ///
    /// # Errors
    /// Returns what differs, if a thread observes another interleaving.
    pub(super) fn swap(
        &mut self,
        ending: &Ending,
        steps: &[Step],
        number: u8,
    ) -> Result<(), String> {
        let pairs = independent(steps);
        if pairs.is_empty() || ending.in_turn {
            return Ok(());
        }
        let at = pairs[usize::from(number) % pairs.len()];
        let mut sequence = Sequence::swapped(steps, at);
        let swapped = self.run(&mut sequence);
        if sequence.strayed.is_some() {
            return Err("after independent steps in another order, a thread cannot run".to_owned());
        }
        let (expected, found) = (observed(ending), observed(&swapped));
        let differs = expected.lines().zip(found.lines()).find(|(one, other)| one != other);
        if expected == found {
            return Ok(());
        }
        let pair = &steps[at..][..2];
        Err(format!(
            "threads observe the order of the independent steps {at}, {pair:?}: {differs:?}"
        ))
    }

    /// Explores all interleavings with few turns, with and without those that differ in the order of independent steps alone.
    ///
    /// # Errors
    /// Returns what differs, if an outcome was left out.
    pub(super) fn explore_all(&mut self) -> Result<(), String> {
        const MOST: [usize; 2] = [60, 600];
        let Some(some) = self.outcomes(Exhaustive::new(None).to_each_end(), MOST[0]) else {
            return Ok(());
        };
        let Some(all) = self.outcomes(Interleavings::new(None), MOST[1]) else {
            return Ok(());
        };
        if some == all { Ok(()) } else { Err("a search leaves out an outcome".to_owned()) }
    }

    /// Returns what all interleavings show; `None` if there are more than `most`, or if one exceeds its limits.
    fn outcomes(&mut self, mut search: impl Search, most: usize) -> Option<BTreeSet<String>> {
        let mut outcomes = BTreeSet::new();
        let cut = |search: &dyn Search| search.progress().covered.map(|covered| covered.cut);
        for number in 0..=most as u64 {
            if !search.begin(number) {
                return Some(outcomes);
            }
            let before = cut(&search)?;
            let ending = self.run(&mut search);
            search.end(&ending);
            if ending.in_turn {
                return None;
            }
            // Another interleaving shows what an interleaving that was given up would have shown.
            if cut(&search)? == before {
                outcomes.insert(observed(&ending));
            }
        }
        None
    }
}
