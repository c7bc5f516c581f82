//! Independent steps: searches leave out interleavings that differ in the order of two steps alone whose access sets do not
//! meet. Here such steps change places, and each thread has to observe the same.

use super::*;
use clr_explore::{
    Choice, Contents, Ending, Exhaustive, Explorer, Footprint, HistoryDetail, Limits, Observer,
    Random, Search, Setup, Step, ThreadIndex,
};
use clr_scenario::Exploring;
use clr_tests::one_in;
use clr_tests::scheduled::{Noted, Sequence, independent, observed};

/// Number of drawn interleavings of a text on a runtime, and maximum number of swaps in each.
const HISTORIES: u64 = 20;
const SWAPS: usize = 20;
/// Maximum number of interleavings of a search whose ends are compared.
const MOST: u64 = 600;
/// Maximum number of turns that are compared.
const TURNS: u64 = 2_000;

/// Returns the texts whose interleavings are searched, with their names: in a quick run, one in [`one_in`].
fn searched() -> impl Iterator<Item = (&'static str, &'static Scenario)> {
    let is_searched =
        |scenario: &Scenario| !scenario.explore.is_empty() && scenario.profiler.is_some();
    let texts = gallery().map(|(name, _, scenario)| (name, scenario));
    texts.filter(move |(_, scenario)| is_searched(scenario)).step_by(one_in())
}

/// Returns the number of things that a run has to have at least, of those in a full one.
fn least(full: usize) -> usize {
    if one_in() == 1 { full } else { full / one_in() / 2 }
}

/// Swaps independent steps of drawn interleavings. Returns the number of swaps.
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
            let what =
                format!("{name} on {generation}, interleaving {number}, step {at}: {steps:?}");
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
    for (name, scenario) in searched() {
        texts += 1;
        for generation in [Generation::Net8Windows, Generation::Net8Unix] {
            swaps += swap(name, scenario, generation);
        }
    }
    println!("{swaps} swaps in {texts} texts");
    assert!(texts > least(80) && swaps > least(9_000), "{swaps} swaps in {texts} texts");
}

/// A search that compares what each turn has changed with its access set.
struct Comparing {
    random: Random,
    before: Option<Contents>,
    /// The last turn and its access set.
    turn: Option<(ThreadIndex, Footprint)>,
    turns: usize,
    what: String,
}

impl Search for Comparing {
    fn begin(&mut self, number: u64) -> bool {
        (self.before, self.turn) = (None, None);
        self.random.begin(number)
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        let now = at.process.contents().expect("the texts have few threads");
        if let (Some(before), Some((thread, set))) = (&self.before, self.turn) {
            let beyond = now.changes_since(before).without(set.changed());
            let turn = at.turn;
            assert!(
                beyond == Footprint::default(),
                "{}, {thread:?} before turn {turn}: {beyond}",
                self.what
            );
            self.turns += 1;
        }
        self.before = Some(now);
        self.random.choose(at)
    }

    fn end(&mut self, _: &Ending) {}

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl Observer for Comparing {
    fn stepped(&mut self, step: &Step<'_>) {
        self.turn = Some((step.thread, step.footprint));
    }
}

#[test]
fn a_turn_changes_nothing_but_what_its_access_set_has() {
    let (mut texts, mut turns) = (0, 0);
    for (name, scenario) in searched() {
        texts += 1;
        for generation in
            [Generation::Net8Windows, Generation::Net8Unix, Generation::CoreClr31Windows]
        {
            let Ok(exploring) = Exploring::new(scenario, generation) else { continue };
            let mut explorer = exploring.explorer().unwrap();
            let what = format!("{name} on {generation}");
            let (random, before, turn) = (Random::new(7), None, None);
            let mut comparing = Comparing { random, before, turn, turns: 0, what };
            for number in 0..HISTORIES / 4 {
                comparing.begin(number);
                run(&exploring, &mut explorer, &mut comparing);
            }
            turns += comparing.turns;
        }
    }
    assert!(texts > least(80) && turns > least(20_000), "{turns} turns of {texts} texts");
}

/// Returns the ends of all interleavings of a text, with the rules that they break; `None` if there are too many.
fn ends(exploring: &Exploring<'_>, mut search: Exhaustive) -> Option<(BTreeSet<String>, u64)> {
    let mut explorer = exploring.explorer().unwrap();
    let mut found = BTreeSet::new();
    for number in 0..MOST {
        if !search.begin(number) {
            let everything = search.progress().covered.is_some_and(|covered| covered.everything);
            return everything.then_some((found, number));
        }
        let ending = run(exploring, &mut explorer, &mut search);
        search.end(&ending);
        found.extend(ending.verdict.map(|verdict| verdict.fingerprint()));
        found.extend(ending.broken.iter().map(|(by, rule)| format!("{by:?} {rule:?}")));
    }
    None
}

#[test]
fn searches_by_content_find_what_searches_by_steps_find() {
    let (mut compared, mut by_content, mut by_steps) = (0, 0, 0);
    for (name, scenario) in searched() {
        for generation in [Generation::Net8Windows, Generation::CoreClr31Unix] {
            let Ok(exploring) = Exploring::new(scenario, generation) else { continue };
            let bound = Some(1);
            let Some((expected, histories)) = ends(&exploring, Exhaustive::new(bound).by_steps())
            else {
                continue;
            };
            let what = format!("{name} on {generation}");
            let (found, fewer) = ends(&exploring, Exhaustive::new(bound)).expect(&what);
            assert_eq!(found, expected, "{what}");
            compared += 1;
            by_content += fewer;
            by_steps += histories;
        }
    }
    println!("{by_content} interleavings instead of {by_steps} in {compared} searches");
    assert!(compared > least(150) && by_content < by_steps, "{compared}: {by_content}, {by_steps}");
}
