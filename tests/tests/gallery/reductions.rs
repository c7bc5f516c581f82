//! Independent steps: searches leave out histories that differ in the order of two steps alone whose access sets do not
//! meet. Here such steps change places, and each thread has to observe the same.

use super::gallery;
use clr_explore::{Ending, Explorer, HistoryDetail, Limits, Random, Search, Setup};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploring, Scenario};
use clr_tests::scheduled::{Noted, Sequence, independent, observed};

/// Number of drawn histories of a text on a runtime, and maximum number of swaps in each.
const HISTORIES: u64 = 20;
const SWAPS: usize = 20;
/// Maximum number of turns that are compared.
const TURNS: u64 = 2_000;

/// Swaps independent steps of drawn histories. Returns the number of swaps.
fn swap(name: &str, scenario: &Scenario, generation: Generation) -> usize {
    let Ok(exploring) = Exploring::new(scenario, generation) else { return 0 };
    let mut explorer = exploring.explorer().unwrap();
    let mut count = 0;
    for number in 0..HISTORIES {
        let mut drawn = Noted::new(Random::new(7), number);
        let first = run(&exploring, &mut explorer, &mut drawn);
        if first.turns > TURNS {
            continue;
        }
        let expected = observed(&first);
        let pairs = independent(&drawn.steps);
        for at in pairs.iter().step_by(pairs.len().div_ceil(SWAPS).max(1)) {
            let mut swapped = Sequence::swapped(&drawn.steps, *at);
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
    search: &mut dyn Search,
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
