//! Independent steps: searches leave out histories that differ in the order of two steps alone whose access sets do not
//! meet. Here such steps change places, and each thread has to observe the same.

use super::gallery;
use clr_explore::{
    Choice, Ending, Explorer, Footprint, HistoryDetail, Limits, Random, Search, Setup, ThreadIndex,
};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploring, Scenario};
use clr_tests::scheduled::observed;

/// Number of drawn histories of a text on a runtime, and maximum number of swaps in each.
const HISTORIES: u64 = 20;
const SWAPS: usize = 20;
/// Maximum number of turns that are compared.
const TURNS: u64 = 2_000;

/// A search that draws a history, or follows a sequence of threads as far as it goes, and notes the steps.
struct Sequence {
    random: Random,
    follows: Option<Vec<ThreadIndex>>,
    steps: Vec<(ThreadIndex, Footprint)>,
    /// Number of the first step at which the thread of the sequence could not run.
    strayed: Option<usize>,
}

impl Sequence {
    fn new(seed: u64, follows: Option<Vec<ThreadIndex>>) -> Self {
        Self { random: Random::new(seed), follows, steps: Vec::new(), strayed: None }
    }
}

impl Search for Sequence {
    fn begin(&mut self, number: u64) -> bool {
        self.random.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        let number = self.steps.len();
        let Some(follows) = &self.follows else { return self.random.choose(at) };
        let next = follows.get(number).copied();
        let can = next.filter(|next| at.runnable.contains(next));
        if can.is_none() && self.strayed.is_none() {
            self.strayed = Some(number);
        }
        can.or_else(|| at.runnable.first().copied())
    }

    fn ran(&mut self, thread: ThreadIndex, footprint: Footprint) {
        self.steps.push((thread, footprint));
    }
}

/// Swaps independent steps of drawn histories. Returns the number of swaps.
fn swap(name: &str, scenario: &Scenario, generation: Generation) -> usize {
    let Ok(exploring) = Exploring::new(scenario, generation) else { return 0 };
    let mut explorer = exploring.explorer().unwrap();
    let mut count = 0;
    for number in 0..HISTORIES {
        let mut drawn = Sequence::new(7, None);
        drawn.begin(number);
        let first = run(&exploring, &mut explorer, &mut drawn);
        if first.turns > TURNS {
            continue;
        }
        let expected = observed(&first);
        let independent = |at: &usize| {
            let [(one, of_one), (other, of_other)] = [drawn.steps[*at], drawn.steps[*at + 1]];
            one != other && !of_one.meets(of_other)
        };
        let pairs: Vec<usize> =
            (0..drawn.steps.len().saturating_sub(1)).filter(independent).collect();
        for at in pairs.iter().step_by(pairs.len().div_ceil(SWAPS).max(1)) {
            let mut order: Vec<_> = drawn.steps.iter().map(|(thread, _)| *thread).collect();
            order.swap(*at, at + 1);
            let mut swapped = Sequence::new(7, Some(order));
            let ending = run(&exploring, &mut explorer, &mut swapped);
            let steps = [drawn.steps[*at], drawn.steps[*at + 1]];
            let what = format!("{name} on {generation}, history {number}, step {at}: {steps:?}");
            assert_eq!(swapped.strayed, None, "{what}: another thread can run");
            let found = observed(&ending);
            if found != expected {
                let (mut one, mut other) = (expected.lines(), found.lines());
                let differ = std::iter::from_fn(|| Some((one.next()?, other.next()?)));
                let first = differ.into_iter().find(|(one, other)| one != other);
                panic!("{what}: {first:?}");
            }
            count += 1;
        }
    }
    count
}

fn run<'e>(
    exploring: &'e Exploring<'_>,
    explorer: &mut Explorer<'_>,
    search: &mut Sequence,
) -> Ending {
    let load = |setup: &mut Setup<'e>| exploring.load(setup);
    explorer.run(&load, search, Limits::default(), HistoryDetail::Events)
}

#[test]
fn independent_steps_can_change_places() {
    let (mut texts, mut swaps) = (0, 0);
    for (name, _, scenario) in gallery() {
        if scenario.explore.is_empty() || scenario.profiler.is_none() {
            continue;
        }
        texts += 1;
        for generation in [Generation::Net8Windows, Generation::Net8Unix] {
            swaps += swap(name, &scenario, generation);
        }
    }
    println!("{swaps} swaps in {texts} texts");
    assert!(texts > 80 && swaps > 9_000, "{swaps} swaps in {texts} texts");
}
