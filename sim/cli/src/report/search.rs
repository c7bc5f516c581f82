//! Searches of the interleavings of texts in a run.

use crate::input::program::ProgramFixture;
use crate::render::console::{BAD, DIM};
use crate::report::FileReport;
use crate::report::expectation::Basis;
use crate::report::history::{flags_of, name, replay_arguments, usual, write_row};
use crate::report::mismatch::{Mismatch, Mismatches, Subject};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{ExpectedHistory, Explored};
use clr_story::story;
use clr_story::timeline::TimelineRow;
use serde::Serialize;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// A search of a text.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Search {
    /// The index among the searches of the text.
    search: usize,
}

/// The result of a search that is not as expected.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Found {
    differences: Vec<String>,
    /// The string of the interleaving that failed, on the first of the runtimes.
    replay: Option<String>,
    /// The flags that `clrsim replay` needs beside the string.
    replay_flags: Vec<&'static str>,
    #[serde(skip)]
    story: Vec<TimelineRow>,
}

/// Interleavings have strings of their own on each runtime.
impl PartialEq for Found {
    fn eq(&self, other: &Self) -> bool {
        self.differences == other.differences
    }
}

/// Returns true as long as a search may go on, which gives its index each time.
pub(crate) fn within(limit: Duration) -> impl FnMut(usize) -> bool {
    let mut search = (usize::MAX, Instant::now());
    move |index| {
        if search.0 != index {
            search = (index, Instant::now());
        }
        search.1.elapsed() < limit
    }
}

/// Makes the searches of a text, each for `limit` at most, and adds them to the report, which explains at most `max_failures`.
/// Returns the runtimes of the searches.
pub(crate) fn run(
    fixture: &ProgramFixture,
    on: Generations,
    (max_failures, limit): (usize, Duration),
    report: &mut FileReport,
) -> Generations {
    let mut failures = Mismatches::new();
    let mut runtimes = Generations::NONE;
    let explore = &fixture.scenario.explore;
    for generation in on.iter() {
        let wanted = explore.iter().filter(|it| it.expected_on(generation).is_some()).count();
        if wanted == 0 {
            continue;
        }
        runtimes = runtimes.with(Generations::of(&[generation]));
        report.counts.cases += wanted;
        let failed: Vec<_> = match fixture.scenario.explore_on_while(generation, within(limit)) {
            Ok(explored) => {
                let wrong = explored.iter().filter(|explored| !explored.is_right());
                wrong.filter_map(|explored| different(fixture, &report.file, explored)).collect()
            }
            Err(error) => {
                let all = explore.iter().enumerate();
                let wanted = all.filter_map(|(search, it)| {
                    let (place, expect) = it.expected_on(generation)?;
                    let outline = outline(fixture, (search, place), generation, expect);
                    Some(outline.with_error(&error))
                });
                wanted.collect()
            }
        };
        report.counts.failed += failed.len();
        report.counts.passed += wanted - failed.len();
        for failed in failed {
            failures.add(failed);
        }
    }
    failures.report(report, max_failures);
    runtimes
}

fn outline(
    fixture: &ProgramFixture,
    (search, place): (usize, usize),
    generation: Generation,
    expect: &ExpectedHistory,
) -> Mismatch<Search> {
    let place = fixture.explore_place(search, place).into();
    let basis = Basis::new(expect.from, &expect.clauses);
    Mismatch::new(Search { search }, place, generation, basis)
}

fn different(
    fixture: &ProgramFixture,
    file: &str,
    explored: &Explored,
) -> Option<Mismatch<Search>> {
    let Explored { explore, expected, generation, found, differences, .. } = explored;
    let settings = fixture.scenario.explore.get(*explore)?;
    let expect = settings.expect.get(*expected)?;
    let failure = found.failure.as_ref();
    let found = Found {
        differences: differences.iter().map(ToString::to_string).collect(),
        replay: failure
            .map(|failure| name(file, &fixture.scenario, *generation, &failure.schedule)),
        replay_flags: failure
            .map(|it| flags_of(&usual(&fixture.scenario), settings, &it.verdict))
            .unwrap_or_default(),
        story: failure.map(|it| story(&it.verdict, &it.history)).unwrap_or_default(),
    };
    Some(outline(fixture, (*explore, *expected), *generation, expect).with_found(found))
}

impl Subject for Search {
    type Found = Found;

    fn order(&self) -> (Option<usize>, usize) {
        (None, self.search)
    }

    fn name(&self) -> String {
        format!("search {}", self.search)
    }

    fn are_alike(error: &str, other: &str) -> bool {
        error == other
    }

    fn write_found(found: &Found, out: &mut dyn Write) -> io::Result<()> {
        for difference in &found.differences {
            writeln!(out, "  {BAD}*{BAD:#} {difference}")?;
        }
        Ok(())
    }

    fn write_rest(found: &Found, out: &mut dyn Write) -> io::Result<()> {
        if !found.story.is_empty() {
            writeln!(out)?;
        }
        for row in &found.story {
            write_row(row, 2, out)?;
        }
        if let Some(replay) = &found.replay {
            let replay = replay_arguments(&found.replay_flags, replay);
            writeln!(out, "  {DIM}again: clrsim replay {replay}{DIM:#}")?;
        }
        Ok(())
    }
}
