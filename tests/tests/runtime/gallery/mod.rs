//! Tests of scenarios: the texts of the gallery, and stacks and situations with known results.

mod field;
mod hazards;
mod reductions;

mod situations;
mod stories;
mod texts;
mod walkers;
mod worked_stacks;

use clr_scenario::Scenario;
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

/// Returns the files with their names, texts and scenarios.
fn gallery() -> impl Iterator<Item = (&'static str, &'static str, Scenario)> {
    GALLERY.iter().cloned()
}
