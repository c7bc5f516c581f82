//! Searches that leave out histories, held against all interleavings: over the texts of the gallery each thread has to
//! observe the same, in some history.

use super::gallery;
use clr_explore::{
    Exhaustive, HistoryDetail, Limits, Search as _, Setup, ThreadIndex, TurnEvent, Verdict,
};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploring, Scenario};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of interleavings of a text that is searched.
const MOST: u64 = 1_500;
/// Bounds on preemptions.
const BOUNDS: [u32; 2] = [0, 1];

/// The observations of a history: its verdict, the rules that were broken, and the events of each thread.
type Observed = String;

/// Returns what the histories of a search observe, and their number. `None` if they are too many.
fn observed<'e>(
    exploring: &'e Exploring<'_>,
    mut search: Exhaustive,
) -> Option<(BTreeSet<Observed>, u64)> {
    let mut explorer = exploring.explorer().unwrap();
    let (mut all, mut number) = (BTreeSet::new(), 0);
    let limits = Limits::default();
    let load = |setup: &mut Setup<'e>| exploring.load(setup);
    while search.begin(number) {
        let before = search.covered().map_or(0, |covered| covered.cut);
        let ending = explorer.run(&load, &mut search, limits, HistoryDetail::Events);
        search.end(&ending);
        number += 1;
        if number > MOST {
            return None;
        }
        if search.covered().map_or(0, |covered| covered.cut) > before {
            continue;
        }
        let mut events: BTreeMap<ThreadIndex, Vec<String>> = BTreeMap::new();
        for turn in &ending.history.as_ref().unwrap().turns {
            // The begin of a wait is observed by nobody.
            let seen = turn.events.iter().filter(|event| **event != TurnEvent::Waits);
            events.entry(turn.thread).or_default().extend(seen.map(|event| format!("{event:?}")));
        }
        let verdict = ending.verdict.as_ref().map(Verdict::fingerprint);
        let mut broken = ending.broken.clone();
        broken.sort_unstable();
        all.insert(format!("{verdict:?} {broken:?} {events:#?}"));
    }
    Some((all, number))
}

/// Compares the searches of a text. Returns the numbers of histories with and without a reduction.
fn compare(
    name: &str,
    scenario: &Scenario,
    generation: Generation,
    bound: u32,
) -> Option<[u64; 2]> {
    let exploring = Exploring::new(scenario, generation).ok()?;
    let (all, orders) = observed(&exploring, Exhaustive::of_all_orders(Some(bound)))?;
    let (some, histories) = observed(&exploring, Exhaustive::new(Some(bound))).unwrap();
    let lost: Vec<_> = all.difference(&some).collect();
    assert!(lost.is_empty(), "{name} on {generation}, bound {bound}: lost {:#}", lost[0]);
    assert!(some.is_subset(&all), "{name} on {generation}, bound {bound}");
    Some([histories, orders])
}

#[test]
fn reductions_leave_out_nothing_that_a_thread_observes() {
    let (mut compared, mut sums) = (0, [0; 2]);
    for (name, _, scenario) in gallery() {
        if scenario.explore.is_empty() || scenario.profiler.is_none() {
            continue;
        }
        for generation in [Generation::Net8Windows, Generation::Net8Unix] {
            for bound in BOUNDS {
                if let Some(counts) = compare(name, &scenario, generation, bound) {
                    compared += 1;
                    sums = [sums[0] + counts[0], sums[1] + counts[1]];
                }
            }
        }
    }
    println!("{compared} searches: {} histories of {} interleavings", sums[0], sums[1]);
    assert!(compared > 200, "{compared}");
    assert!(sums[0] < sums[1], "{sums:?}");
}
