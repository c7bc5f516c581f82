//! Tests of scenarios: the texts of the gallery, and stacks and situations with known results.

mod field;
mod hazards;
mod reductions;
mod situations;
mod stories;
mod texts;
mod walkers;
mod worked_stacks;

use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult, Policy, ProfilerCallback};
use clr_scenario::{ExpectedEnd, RunOnError, Scenario, SnapshotCall, SnapshotReport};
use clr_walker::mixed::Completeness;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// The files of the gallery with their names, texts and scenarios. All tests share one parse.
static GALLERY: LazyLock<Vec<(&str, &str, Scenario)>> = LazyLock::new(|| {
    let parsed = clr_fixtures::gallery().iter().map(|fixture| {
        let text = core::str::from_utf8(fixture.bytes).unwrap();
        let scenario = Scenario::parse(text).unwrap_or_else(|error| {
            let problems: Vec<_> = error.problems().iter().map(ToString::to_string).collect();
            panic!("{}: {}", fixture.name, problems.join("; "))
        });
        (fixture.name, text, scenario)
    });
    parsed.collect()
});

/// The calls of a text on a runtime.
type Reports = Result<Vec<SnapshotReport>, RunOnError>;

/// The calls of each file on each runtime. All tests share one run.
static CALLS: LazyLock<BTreeMap<(&str, Generation), Reports>> = LazyLock::new(|| {
    let runs = gallery().flat_map(|(name, _, scenario)| {
        Generation::ALL.into_iter().map(move |on| ((name, on), scenario.run_on(on)))
    });
    runs.collect()
});

/// Returns the files with their names, texts and scenarios.
pub(crate) fn gallery() -> impl Iterator<Item = (&'static str, &'static str, &'static Scenario)> {
    GALLERY.iter().map(|(name, text, scenario)| (*name, *text, scenario))
}

/// Returns the calls of a file on a runtime.
pub(crate) fn calls(name: &'static str, on: Generation) -> &'static Reports {
    CALLS.get(&(name, on)).expect("a file of the gallery")
}
