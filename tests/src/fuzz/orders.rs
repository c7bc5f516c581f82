//! Orders of steps: those of which searches leave out histories must not matter.

use crate::scheduled::observed;
use clr_explore::{
    Choice, Ending, Exhaustive, Explorer, Footprint, HistoryDetail, Limits, Search, Setup,
    ThreadIndex,
};
use std::collections::BTreeSet;

/// The histories of a process with a profiler.
pub(super) struct Histories<'h, 'b, 'p> {
    pub(super) explorer: &'h mut Explorer<'b>,
    pub(super) load: &'h (dyn Fn(&mut Setup<'p>) + 'p),
    pub(super) limits: Limits,
}

/// A thread's turn, and its accesses.
type Step = (ThreadIndex, Footprint);

/// A search that notes the steps.
pub(super) struct Noted<S> {
    pub(super) search: S,
    pub(super) steps: Vec<Step>,
}

impl<S: Search> Search for Noted<S> {
    fn begin(&mut self, number: u64) -> bool {
        self.search.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        self.search.choose(at)
    }

    fn ran(&mut self, thread: ThreadIndex, footprint: Footprint) {
        self.steps.push((thread, footprint));
        self.search.ran(thread, footprint);
    }
}

/// A search that gives each turn to the next thread of a sequence.
struct Sequence {
    threads: std::vec::IntoIter<ThreadIndex>,
    /// True if a thread could not run.
    strayed: bool,
}

impl Search for Sequence {
    fn begin(&mut self, number: u64) -> bool {
        number == 0
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        let next = self.threads.next().filter(|next| at.runnable.contains(next));
        self.strayed |= next.is_none();
        next
    }
}

impl Histories<'_, '_, '_> {
    fn run(&mut self, search: &mut dyn Search) -> Ending {
        self.explorer.run(self.load, search, self.limits, HistoryDetail::Events)
    }

    /// Lets two neighbouring steps whose accesses do not meet change places. `number` selects them among all of the
    /// history that ended so.
    ///
    /// # Errors
    /// Returns what differs, if a thread observes another history.
    pub(super) fn swap(
        &mut self,
        ending: &Ending,
        steps: &[Step],
        number: u8,
    ) -> Result<(), String> {
        let independent = |pair: &[Step]| match pair {
            [(one, of_one), (other, of_other)] => one != other && !of_one.meets(*of_other),
            _ => false,
        };
        let pairs = steps.windows(2).enumerate().filter(|(_, pair)| independent(pair));
        let pairs: Vec<_> = pairs.map(|(at, _)| at).collect();
        if pairs.is_empty() || ending.in_turn {
            return Ok(());
        }
        let at = pairs[usize::from(number) % pairs.len()];
        let mut threads: Vec<_> = steps.iter().map(|(thread, _)| *thread).collect();
        threads.swap(at, at + 1);
        let mut sequence = Sequence { threads: threads.into_iter(), strayed: false };
        let swapped = self.run(&mut sequence);
        if sequence.strayed {
            return Err("after independent steps in another order, a thread cannot run".to_owned());
        }
        if observed(&swapped) != observed(ending) {
            return Err("threads observe the order of independent steps".to_owned());
        }
        Ok(())
    }

    /// Explores all histories with few turns, with and without those that differ in the order of independent steps alone.
    ///
    /// # Errors
    /// Returns what differs, if an outcome was left out.
    pub(super) fn explore_all(&mut self) -> Result<(), String> {
        const MOST: [usize; 2] = [60, 600];
        let Some(some) = self.outcomes(Exhaustive::new(None), MOST[0]) else { return Ok(()) };
        let Some(all) = self.outcomes(Exhaustive::of_all_orders(None), MOST[1]) else {
            return Ok(());
        };
        if some == all { Ok(()) } else { Err("a search leaves out an outcome".to_owned()) }
    }

    /// Returns what all histories show; `None` if there are more than `most`, or if one exceeds its limits.
    fn outcomes(&mut self, mut search: Exhaustive, most: usize) -> Option<BTreeSet<String>> {
        let mut outcomes = BTreeSet::new();
        let cut = |search: &Exhaustive| search.covered().map(|covered| covered.cut);
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
            // Another history shows what a history that was given up would have shown.
            if cut(&search)? == before {
                outcomes.insert(observed(&ending));
            }
        }
        None
    }
}
