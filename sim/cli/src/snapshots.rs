//! Texts in a run: their snapshots on each runtime, and what is wrong with them.

use crate::aligned::aligned;
use crate::clauses::{WIDTH, in_words};
use crate::console::{BAD, DIM, HEAD};
use crate::expectation::{Basis, Place};
use crate::mixed;
use crate::program::ProgramFixture;
use crate::report::{Explained, FileReport};
use crate::runtimes::{OnRuntimes, Runtimes, keep};
use crate::searched;
use crate::shots::{self, Shot};
use crate::walked::write_within;
use anstyle::Style;
use clr_runtime::explain::deciding;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{RunOnError, SnapshotAt, SnapshotDifference, SnapshotReport};
use serde::Serialize;
use std::io::{self, Write};

/// What a text is about, and how much of it was run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// The folder that it lies in.
    pub(crate) chapter: String,
    /// What it shows, in a sentence.
    pub(crate) shows: Option<String>,
    /// How many snapshots it has.
    pub(crate) snapshots: usize,
    /// How many walks of whole stacks it has.
    pub(crate) mixed_walks: usize,
    /// How many searches of histories it has.
    pub(crate) searches: usize,
    /// The runtimes that they were made on.
    pub(crate) runtimes: Runtimes,
}

/// A snapshot that gives something else than is expected, on runtimes where it gives the same.
#[derive(Debug, Serialize)]
pub(crate) struct FailedSnapshot {
    /// The stop, from 0; none in a stack placed by hand.
    stop: Option<usize>,
    /// Its place among the snapshots there.
    snapshot: usize,
    title: Option<String>,
    /// Where the expectation stands in the file, or else the snapshot.
    #[serde(flatten)]
    place: Place,
    /// The call in words.
    call: String,
    runtimes: Runtimes,
    #[serde(flatten)]
    basis: Basis,
    callbacks: Vec<Row>,
    result: Option<Ends>,
    /// What else is not as expected: of registers, contexts and nested calls.
    differences: Vec<String>,
    /// What decided the call.
    why: Option<Why>,
    /// Why it could not be made.
    error: Option<String>,
}

/// A callback as expected and as made.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    expected: Option<Shot>,
    found: Option<Shot>,
    is_wrong: bool,
}

/// How a call should have ended, and did.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Ends {
    expected: String,
    found: String,
    is_wrong: bool,
}

/// A sentence of a call's story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Why {
    pub(crate) text: String,
    pub(crate) clauses: Vec<String>,
}

impl From<&clr_runtime::explain::StoryLine> for Why {
    fn from(line: &clr_runtime::explain::StoryLine) -> Self {
        let clauses = line.clauses.iter().map(ToString::to_string).collect();
        Self { text: line.text.clone(), clauses }
    }
}

impl Why {
    /// Writes it in lines of that width, all but the first indented.
    pub(crate) fn write(&self, indent: usize, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let brackets = match self.clauses.as_slice() {
            [] => String::new(),
            clauses => format!("[{}]", clauses.join(", ")),
        };
        write_within(out, width, indent, Style::new(), &self.text, &brackets)
    }
}

/// Makes the snapshots of a text and its walks of whole stacks, and reports on them: the first failures
/// in full.
pub(crate) fn run(
    fixture: &ProgramFixture,
    on: Generations,
    max_failures: usize,
    report: &mut FileReport,
) {
    let scenario = &fixture.scenario;
    let total = scenario.snapshots().count();
    let mixed_walks = scenario.mixed_walks().count();
    let searches = scenario.explore.len();
    if total + mixed_walks + searches == 0 {
        return;
    }
    let mut failures: Vec<FailedSnapshot> = Vec::new();
    let mut runtimes = Generations::NONE;
    for generation in on.iter() {
        let each = scenario.each_on(generation, false);
        let mut told = None;
        for (n, (at, made)) in each.into_iter().enumerate() {
            runtimes = runtimes.with(Generations::of(&[generation]));
            report.counts.cases += 1;
            let words = Words { fixture, at, generation };
            match made {
                Ok(made) if made.report.expected.is_none() => report.counts.skipped += 1,
                Ok(made) if made.report.is_right() => report.counts.passed += 1,
                Ok(made) => {
                    report.counts.failed += 1;
                    let told = told.get_or_insert_with(|| scenario.each_on(generation, true));
                    let story = told.get(n).and_then(|(_, told)| told.as_ref().ok());
                    let why = story.and_then(|told| deciding(&told.story)).map(Why::from);
                    let failed = FailedSnapshot { why, ..words.different(&made.report) };
                    keep(failed, &mut failures, FailedSnapshot::is_like);
                }
                Err(error) => {
                    report.counts.failed += 1;
                    keep(words.impossible(&error), &mut failures, FailedSnapshot::is_like);
                }
            }
        }
    }
    failures.sort_by_key(|failed| (failed.stop, failed.snapshot));
    let wanted = max_failures.saturating_sub(report.failures.len());
    report.failures.extend(failures.into_iter().take(wanted).map(Explained::Snapshot));
    if mixed_walks > 0 {
        runtimes = runtimes.with(mixed::run(fixture, on, max_failures, report));
    }
    if searches > 0 {
        runtimes = runtimes.with(searched::run(fixture, on, max_failures, report));
    }
    report.scenario = Some(Summary {
        chapter: chapter(&report.file).to_owned(),
        shows: scenario.about.shows.clone(),
        snapshots: total,
        mixed_walks,
        searches,
        runtimes: Runtimes(runtimes),
    });
}

/// The chapter of a text: the folder that it lies in.
pub(crate) fn chapter(name: &str) -> &str {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.rsplit_once('/').map_or(folder, |(_, chapter)| chapter)
}

/// Puts a failure into words.
struct Words<'w> {
    fixture: &'w ProgramFixture,
    at: SnapshotAt<'w>,
    generation: Generation,
}

impl Words<'_> {
    fn outline(&self, expected: Option<usize>) -> FailedSnapshot {
        let place = self.fixture.snapshot_place(self.at, expected).into();
        let expect = expected.and_then(|index| self.at.call.expect.get(index));
        FailedSnapshot {
            stop: self.at.stop,
            snapshot: self.at.snapshot,
            title: self.at.call.title.clone(),
            place,
            call: shots::call(&self.fixture.scenario, self.at),
            runtimes: Runtimes::one(self.generation),
            basis: expect.map_or_else(Basis::none, |it| Basis::new(it.from, &it.clauses)),
            callbacks: Vec::new(),
            result: None,
            differences: Vec::new(),
            why: None,
            error: None,
        }
    }

    fn impossible(&self, error: &RunOnError) -> FailedSnapshot {
        let expected = self.at.call.expected_on(self.generation).map(|(index, _)| index);
        FailedSnapshot { error: Some(error.to_string()), ..self.outline(expected) }
    }

    fn different(&self, report: &SnapshotReport) -> FailedSnapshot {
        let outline = self.outline(report.expected);
        let expect = report.expected.and_then(|index| self.at.call.expect.get(index));
        let Some(expect) = expect else { return outline };
        let (frames, made) = (&expect.frames, &report.found.shots);
        // By their places alone, all behind one that is missing would be wrong.
        let others = report.differences.iter().filter(|difference| !is_in_rows(difference));
        let wrong_shots: Vec<_> =
            others.clone().filter_map(|difference| difference.shot()).collect();
        let same = |frame: usize, shot: usize| match (frames.get(frame), made.get(shot)) {
            (Some(frame), Some(shot)) => shot.is_at(frame),
            _ => false,
        };
        let row = |(frame, shot): (Option<usize>, Option<usize>)| {
            let expected = frame.and_then(|frame| frames.get(frame));
            let found = shot.and_then(|shot| made.get(shot));
            let paired = frame.zip(shot).is_some_and(|(frame, shot)| same(frame, shot));
            let alone = expected.is_some() || !expect.others;
            Row {
                expected: expected.map(Shot::expected),
                found: found.map(|shot| Shot::found(shot, expected)),
                is_wrong: !paired && alone || shot.is_some_and(|shot| wrong_shots.contains(&shot)),
            }
        };
        let rows = aligned(frames.len(), made.len(), same);
        FailedSnapshot {
            callbacks: rows.into_iter().map(row).collect(),
            result: Some(Ends {
                expected: expect.result.to_string(),
                found: report.found.outcome.to_string(),
                is_wrong: !expect.result.is(report.found.outcome),
            }),
            differences: others.map(ToString::to_string).collect(),
            ..outline
        }
    }
}

/// Whether the rows show it.
const fn is_in_rows(difference: &SnapshotDifference) -> bool {
    matches!(
        difference,
        SnapshotDifference::Missing { .. }
            | SnapshotDifference::Surplus { .. }
            | SnapshotDifference::Place { .. }
            | SnapshotDifference::Outcome { .. }
    )
}

impl OnRuntimes for FailedSnapshot {
    fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }
}

impl FailedSnapshot {
    /// How many cases it stands for.
    pub(crate) fn cases(&self) -> usize {
        self.runtimes.count()
    }

    /// Whether it tells the same of another runtime.
    fn is_like(&self, other: &Self) -> bool {
        let of = |failed: &Self| (failed.stop, failed.snapshot, failed.place);
        of(self) == of(other)
            && self.callbacks == other.callbacks
            && self.result == other.result
            && self.differences == other.differences
            && self.why == other.why
            && self.error.is_some() == other.error.is_some()
    }

    /// Writes the explanation.
    pub(crate) fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let title = self.title.as_ref().map(|title| format!(" {title:?}")).unwrap_or_default();
        writeln!(out, "\n{BAD}failed{BAD:#} {HEAD}{file}{}{HEAD:#} snapshot{title}", self.place)?;
        writeln!(out, "  on {}", in_words(self.runtimes.0))?;
        writeln!(out, "  called {}", self.call)?;
        if let Some(error) = &self.error {
            return writeln!(out, "  {BAD}cannot be made:{BAD:#} {error}");
        }
        self.write_rows(out)?;
        for difference in &self.differences {
            writeln!(out, "  {BAD}*{BAD:#} {difference}")?;
        }
        if let Some(why) = &self.why {
            write!(out, "  {DIM}why:{DIM:#}      ")?;
            why.write(13, WIDTH, out)?;
        }
        self.basis.write(out)
    }

    /// Expected and made callbacks side by side, and the results.
    fn write_rows(&self, out: &mut dyn Write) -> io::Result<()> {
        let text = |shot: &Option<Shot>| shot.as_ref().map_or_else(|| "-".to_owned(), Shot::text);
        let expected: Vec<_> = self.callbacks.iter().map(|row| text(&row.expected)).collect();
        let result = self.result.as_ref().map(|ends| &ends.expected);
        let widths = expected.iter().chain(result).map(|text| text.chars().count());
        let width = widths.max().unwrap_or(0).max("expected".len());
        writeln!(out, "  {DIM}   #  {:width$}  found{DIM:#}", "expected")?;
        let mut number = 0;
        for (row, expected) in self.callbacks.iter().zip(&expected) {
            let found = text(&row.found);
            let n = if row.found.is_some() { number.to_string() } else { String::new() };
            number += usize::from(row.found.is_some());
            write_pair(row.is_wrong, &n, expected, width, &found, out)?;
        }
        match &self.result {
            Some(ends) => write_pair(ends.is_wrong, "", &ends.expected, width, &ends.found, out),
            None => Ok(()),
        }
    }
}

pub(crate) fn write_pair(
    is_wrong: bool,
    n: &str,
    expected: &str,
    width: usize,
    found: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (mark, style) = if is_wrong { ('*', BAD) } else { (' ', Style::new()) };
    writeln!(out, "  {mark} {n:>2}  {expected:width$}  {style}{found}{style:#}")
}
