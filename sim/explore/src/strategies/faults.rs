//! Failures of calls as choices of a search, beside its choices of threads.

use super::exhaustive::Exhaustive;
use super::rng::Rng;
use crate::ending::Ending;
use crate::ids::ThreadIndex;
use crate::search::{Choice, Coverage, FallibleCall, Injector, Observer, Progress, Search};
use clr_runtime::profiling::{CallFault, CallFaults};
use std::collections::BTreeSet;

/// Distinguishes the random numbers for failures from those for threads.
const FAILURES: u64 = 0xFA11;

/// The failures of calls that a search injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The failures.
    pub which: CallFaults,
    /// Maximum number of failures in an interleaving.
    pub most: u32,
}

impl Default for Faults {
    /// None; of those that are added, one in each interleaving.
    fn default() -> Self {
        Self { which: CallFaults::default(), most: 1 }
    }
}

impl Faults {
    /// Returns true if nothing is injected.
    #[must_use]
    pub const fn are_none(self) -> bool {
        self.which.is_empty() || self.most == 0
    }

    /// Adds failures, at random, to the interleavings of a search. They depend on the seed and the number of the
    /// interleaving alone.
    #[must_use]
    pub fn around(self, seed: u64, search: Box<dyn Search>) -> Box<dyn Search> {
        if self.are_none() {
            return search;
        }
        let draws = Draws { rng: Rng::new(seed, 0), only: None, left: 0, odds: 1 };
        Box::new(Randomly { faults: self, seed, search, draws })
    }

    /// Makes an exhaustive search explore all interleavings with each failure, and with each set of them up to the most.
    #[must_use]
    pub fn in_all(self, search: Exhaustive) -> Box<dyn Search> {
        if self.are_none() {
            return Box::new(search);
        }
        let (fresh, plan) = (search.clone(), Plan::new());
        Box::new(InAll {
            faults: self,
            fresh,
            known: [plan.clone()].into(),
            plans: vec![(plan, search)],
            current: 0,
            cut: 0,
            is_partial: false,
            strayed: false,
        })
    }
}

/// The failures of an interleaving, as they are drawn.
#[derive(Debug)]
struct Draws {
    rng: Rng,
    /// The only failure; `None` for any.
    only: Option<CallFault>,
    /// Number of failures that may still come.
    left: u32,
    /// A call that may fail does so in one of this number of cases.
    odds: u64,
}

/// A search with failures at random.
struct Randomly {
    faults: Faults,
    seed: u64,
    search: Box<dyn Search>,
    draws: Draws,
}

impl Search for Randomly {
    fn begin(&mut self, number: u64) -> bool {
        let mut rng = Rng::new(self.seed ^ FAILURES, number);
        // Calls are frequent or rare, early or late: one of four interleavings has no failure.
        let left = if rng.below(4) == 0 { 0 } else { self.faults.most };
        let all: Vec<_> = self.faults.which.iter().collect();
        let only = if rng.below(2) == 0 { rng.item(&all) } else { None };
        let odds = rng.item(&[1, 2, 4, 16, 64]).unwrap_or(1);
        self.draws = Draws { rng, only, left, odds };
        self.search.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        self.search.choose(at)
    }

    fn end(&mut self, ending: &Ending) {
        self.search.end(ending);
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        self.search.observer()
    }

    fn injector(&mut self) -> Option<&mut dyn Injector> {
        Some(self)
    }

    fn progress(&self) -> Progress {
        self.search.progress()
    }
}

impl Injector for Randomly {
    fn fails(&mut self, call: FallibleCall) -> Option<CallFault> {
        let Draws { rng, only, left, odds } = &mut self.draws;
        let possible = call.possible.both(self.faults.which);
        let possible = possible.iter().filter(|fault| only.is_none_or(|only| only == *fault));
        let possible: Vec<_> = possible.collect();
        if *left == 0 || possible.is_empty() || rng.below(*odds) != 0 {
            return None;
        }
        *left -= 1;
        rng.item(&possible)
    }
}

/// The failures of an interleaving: threads, the numbers of their calls, and how these fail. They are ascending.
type Plan = Vec<(ThreadIndex, u32, CallFault)>;

/// An exhaustive search for each plan, in turns, so that each failure is tried early. The calls that may fail are those that
/// searches with fewer failures come to.
struct InAll {
    faults: Faults,
    fresh: Exhaustive,
    /// The plans that are being searched, and the place of the current one.
    plans: Vec<(Plan, Exhaustive)>,
    current: usize,
    /// All plans so far.
    known: BTreeSet<Plan>,
    /// The sum of what was cut in plans that were searched to their end.
    cut: u64,
    /// One of these was not searched completely.
    is_partial: bool,
    strayed: bool,
}

impl InAll {
    fn search(&mut self) -> Option<&mut Exhaustive> {
        self.plans.get_mut(self.current).map(|(_, search)| search)
    }

    /// Ends the search of the current plan.
    fn end_plan(&mut self) {
        let (_, search) = self.plans.remove(self.current);
        let progress = search.progress();
        self.strayed |= progress.strayed;
        self.is_partial |= progress.covered.is_none_or(|covered| !covered.everything);
        self.cut += progress.covered.map_or(0, |covered| covered.cut);
    }
}

impl Search for InAll {
    fn begin(&mut self, number: u64) -> bool {
        self.current += 1;
        loop {
            if self.current >= self.plans.len() {
                self.current = 0;
            }
            let Some(search) = self.search() else { return false };
            if search.begin(number) {
                return true;
            }
            self.end_plan();
        }
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        self.search()?.choose(at)
    }

    fn end(&mut self, ending: &Ending) {
        if let Some(search) = self.search() {
            search.end(ending);
        }
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        self.search()?.observer()
    }

    fn injector(&mut self) -> Option<&mut dyn Injector> {
        Some(self)
    }

    fn progress(&self) -> Progress {
        let all = self.plans.iter().map(|(_, search)| search.progress());
        let (mut strayed, mut cut) = (self.strayed, self.cut);
        let mut millionths = (self.known.len() - self.plans.len()) as u64 * 1_000_000;
        for now in all {
            strayed |= now.strayed;
            cut += now.covered.map_or(0, |covered| covered.cut);
            millionths += now.covered.map_or(0, |covered| covered.millionths.into());
        }
        let covered = Coverage {
            everything: self.plans.is_empty() && !self.is_partial,
            millionths: (millionths / self.known.len().max(1) as u64) as u32,
            cut,
            preemptions: self.fresh.bound(),
            limits: None,
        };
        Progress { strayed, covered: (!strayed).then_some(covered) }
    }
}

impl Injector for InAll {
    fn fails(&mut self, call: FallibleCall) -> Option<CallFault> {
        let FallibleCall { thread, number, possible } = call;
        let (plan, _) = self.plans.get(self.current)?;
        let planned = plan.iter().find(|(of, at, _)| (*of, *at) == (thread, number));
        if let Some((.., fault)) = planned {
            return possible.find(fault.result, fault.frames);
        }
        if plan.len() < self.faults.most as usize {
            let before = plan.clone();
            for fault in possible.both(self.faults.which).iter() {
                let mut plan = before.clone();
                plan.push((thread, number, fault));
                plan.sort_unstable();
                if self.known.insert(plan.clone()) {
                    self.plans.push((plan, self.fresh.clone()));
                }
            }
        }
        None
    }
}
