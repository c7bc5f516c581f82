//! Searches of the histories of texts in a run, and what is wrong with them.

use crate::clauses::in_words;
use crate::console::{BAD, DIM, HEAD};
use crate::expectation::{Basis, Place};
use crate::histories::{flags_of, name, told_to_replay, usual, write_row};
use crate::program::ProgramFixture;
use crate::report::{Explained, FileReport};
use crate::runtimes::{OnRuntimes, Runtimes, keep};
use clr_explore::story::story;
use clr_explore::timeline::TimelineRow;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{ExpectedHistory, Explored};
use serde::Serialize;
use std::io::{self, Write};

/// A search that comes to something else than is expected, on runtimes where it comes to the same.
#[derive(Debug, Serialize)]
pub(crate) struct FailedSearch {
    /// Its place among the searches of the text.
    search: usize,
    /// Where the expectation stands in the file.
    #[serde(flatten)]
    place: Place,
    runtimes: Runtimes,
    #[serde(flatten)]
    basis: Basis,
    /// What is not as expected.
    differences: Vec<String>,
    /// The string of the history that failed, on the first of the runtimes.
    replay: Option<String>,
    /// What `clrsim replay` has to be told beside it.
    replay_flags: Vec<&'static str>,
    #[serde(skip)]
    story: Vec<TimelineRow>,
    /// Why it could not be made.
    error: Option<String>,
}

/// Makes the searches of a text, and reports on them: the first failures in full.
pub(crate) fn run(
    fixture: &ProgramFixture,
    on: Generations,
    max_failures: usize,
    report: &mut FileReport,
) -> Generations {
    let mut failures: Vec<FailedSearch> = Vec::new();
    let mut runtimes = Generations::NONE;
    let explore = &fixture.scenario.explore;
    for generation in on.iter() {
        let wanted = explore.iter().filter(|it| it.expected_on(generation).is_some()).count();
        if wanted == 0 {
            continue;
        }
        runtimes = runtimes.with(Generations::of(&[generation]));
        report.counts.cases += wanted;
        let failed: Vec<_> = match fixture.scenario.explore_on(generation) {
            Ok(explored) => {
                let wrong = explored.iter().filter(|explored| !explored.is_right());
                wrong.filter_map(|explored| different(fixture, &report.file, explored)).collect()
            }
            Err(error) => {
                let all = explore.iter().enumerate();
                let wanted = all.filter_map(|(search, it)| {
                    let (place, expect) = it.expected_on(generation)?;
                    let outline = outline(fixture, (search, place), generation, expect);
                    Some(FailedSearch { error: Some(error.to_string()), ..outline })
                });
                wanted.collect()
            }
        };
        report.counts.failed += failed.len();
        report.counts.passed += wanted - failed.len();
        for failed in failed {
            keep(failed, &mut failures, FailedSearch::is_like);
        }
    }
    failures.sort_by_key(|failed| failed.search);
    let wanted = max_failures.saturating_sub(report.failures.len());
    report.failures.extend(failures.into_iter().take(wanted).map(Explained::Search));
    runtimes
}

fn outline(
    fixture: &ProgramFixture,
    (search, place): (usize, usize),
    generation: Generation,
    expect: &ExpectedHistory,
) -> FailedSearch {
    let place = fixture.explore_place(search, place).into();
    FailedSearch {
        search,
        place,
        runtimes: Runtimes::one(generation),
        basis: Basis::new(expect.from, &expect.clauses),
        differences: Vec::new(),
        replay: None,
        replay_flags: Vec::new(),
        story: Vec::new(),
        error: None,
    }
}

fn different(fixture: &ProgramFixture, file: &str, explored: &Explored) -> Option<FailedSearch> {
    let Explored { explore, expected, generation, found, differences, .. } = explored;
    let settings = fixture.scenario.explore.get(*explore)?;
    let expect = settings.expect.get(*expected)?;
    let failure = found.failure.as_ref();
    Some(FailedSearch {
        differences: differences.iter().map(ToString::to_string).collect(),
        replay: failure.map(|failure| name(file, *generation, &failure.trail)),
        replay_flags: failure
            .map(|it| flags_of(&usual(&fixture.scenario), settings, &it.verdict))
            .unwrap_or_default(),
        story: failure.map(|it| story(&it.verdict, &it.history)).unwrap_or_default(),
        ..outline(fixture, (*explore, *expected), *generation, expect)
    })
}

impl OnRuntimes for FailedSearch {
    fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }
}

impl FailedSearch {
    /// How many cases it stands for.
    pub(crate) fn cases(&self) -> usize {
        self.runtimes.count()
    }

    /// Whether it tells the same of another runtime.
    fn is_like(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.search, it.place, it.error.clone());
        of(self) == of(other) && self.differences == other.differences
    }

    /// Writes the explanation.
    pub(crate) fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let Self { search, place, .. } = self;
        writeln!(out, "\n{BAD}failed{BAD:#} {HEAD}{file}{place}{HEAD:#} search {search}")?;
        writeln!(out, "  on {}", in_words(self.runtimes.0))?;
        if let Some(error) = &self.error {
            return writeln!(out, "  {BAD}cannot be made:{BAD:#} {error}");
        }
        for difference in &self.differences {
            writeln!(out, "  {BAD}*{BAD:#} {difference}")?;
        }
        self.basis.write(out)?;
        if !self.story.is_empty() {
            writeln!(out)?;
        }
        for row in &self.story {
            write_row(row, 2, out)?;
        }
        if let Some(replay) = &self.replay {
            let replay = told_to_replay(&self.replay_flags, replay);
            writeln!(out, "  {DIM}again: clrsim replay {replay}{DIM:#}")?;
        }
        Ok(())
    }
}
