//! Benchmark of exhaustive searches: those of the gallery's texts, on all runtimes that the texts name. States are compared
//! by their contents, and beside that by the steps that have led to them.
//!
//! ```console
//! $ cargo bench -p clr-tests --bench interleavings
//! ```

use clr_explore::{Budget, Exhaustive, HistoryDetail, Search as _, Setup, Strategy};
use clr_runtime::generation::Generation;
use clr_scenario::{Exploring, Scenario};
use std::time::{Duration, Instant};

/// Number of searches that are named, those with the most interleavings.
const NAMED: usize = 5;

/// The searches of the gallery, or one of them.
#[derive(Clone, Copy, Default)]
struct Cost {
    histories: u64,
    given_up: u64,
    took: Duration,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.histories += other.histories;
        self.given_up += other.given_up;
        self.took += other.took;
    }
}

fn main() {
    // Without measuring, a test build runs one runtime.
    let runtimes =
        if std::env::args().any(|it| it == "--bench") { Generation::ALL.len() } else { 1 };
    let (mut by_content, mut by_steps) = (Cost::default(), Cost::default());
    let (mut searches, mut largest) = (0, Vec::new());
    for fixture in clr_fixtures::gallery() {
        let text = core::str::from_utf8(fixture.bytes).expect("texts are UTF-8");
        let scenario = Scenario::parse(text).expect("the gallery is read by tests");
        for generation in Generation::ALL.into_iter().take(runtimes) {
            for explore in &scenario.explore {
                let budget = explore.budget();
                let Strategy::Exhaustive { preemptions } = budget.strategy else { continue };
                if explore.expected_on(generation).is_none() {
                    continue;
                }
                let exploring = Exploring::new(&scenario, generation).expect("tests build it");
                let cost = search(&exploring, Exhaustive::new(preemptions), &budget);
                by_content.add(cost);
                by_steps.add(search(&exploring, Exhaustive::new(preemptions).by_steps(), &budget));
                largest.push((cost.histories, fixture.name, generation));
                searches += 1;
            }
        }
    }
    println!("| states are compared by | interleavings | of these given up | s |");
    println!("| --- | --: | --: | --: |");
    for (by, cost) in [("contents", by_content), ("the steps before", by_steps)] {
        let Cost { histories, given_up, took } = cost;
        println!("| {by} | {histories} | {given_up} | {:.1} |", took.as_secs_f64());
    }
    largest.sort_by_key(|(histories, ..)| core::cmp::Reverse(*histories));
    let named = largest
        .iter()
        .take(NAMED)
        .map(|(histories, name, generation)| format!("{histories} (`{name}` on {generation})"));
    println!(
        "{searches} searches. The largest by contents: {}.",
        named.collect::<Vec<_>>().join(", ")
    );
}

/// Searches until an interleaving fails, or all is known.
fn search<'e>(exploring: &'e Exploring<'_>, mut search: Exhaustive, budget: &Budget) -> Cost {
    let mut explorer = exploring.explorer().expect("tests build it");
    let begin = Instant::now();
    let mut histories = 0;
    while histories < budget.schedules && search.begin(histories) {
        let load = |setup: &mut Setup<'e>| exploring.load(setup);
        let ending = explorer.run(&load, &mut search, budget.limits, HistoryDetail::Nothing);
        search.end(&ending);
        histories += 1;
        if ending.verdict.is_some() || budget.rules && !ending.broken.is_empty() {
            break;
        }
    }
    let given_up = search.progress().covered.map_or(0, |covered| covered.cut);
    Cost { histories, given_up, took: begin.elapsed() }
}
