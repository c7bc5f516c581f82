//! Texts in a run: their snapshots on each runtime.

use crate::input::program::ProgramFixture;
use crate::render::alignment::aligned;
use crate::render::console::{BAD, DIM};
use crate::render::differences::{Pair, write_pairs};
use crate::render::style::Style;
use crate::render::words::brackets;
use crate::render::wrap::{width, write_within, write_wrapped};
use crate::report::callback::{self, Callback};
use crate::report::expectation::Basis;
use crate::report::mismatch::{Mismatch, Mismatches, Subject};
use crate::report::runtimes::Runtimes;
use crate::report::{FileReport, mixed, search};
use clr_runtime::explain::deciding;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{RunOnError, Scenario, SnapshotAt, SnapshotDifference, SnapshotReport};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::AddAssign;
use std::time::Duration;

/// The description of a text and the numbers of its cases.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Summary {
    /// The folder of the text.
    pub(crate) chapter: String,
    /// Description of the text in one sentence.
    pub(crate) shows: Option<String>,
    #[serde(flatten)]
    pub(crate) made: Made,
    /// The runtimes of snapshots, mixed walks and searches.
    pub(crate) runtimes: Runtimes,
    /// The runtimes on which the text expects a result.
    #[serde(skip)]
    pub(crate) checked: Generations,
    /// Number of clauses of searches that no search can judge.
    #[serde(skip)]
    pub(crate) unjudged: usize,
}

/// The numbers of cases that are made on runtimes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Made {
    pub(crate) snapshots: usize,
    pub(crate) mixed_walks: usize,
    /// Searches of interleavings.
    pub(crate) searches: usize,
}

impl Made {
    /// Returns true if nothing is made.
    pub(crate) const fn is_empty(self) -> bool {
        self.snapshots + self.mixed_walks + self.searches == 0
    }
}

impl AddAssign for Made {
    fn add_assign(&mut self, other: Self) {
        self.snapshots += other.snapshots;
        self.mixed_walks += other.mixed_walks;
        self.searches += other.searches;
    }
}

/// A snapshot of a text.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON schema")]
pub(crate) struct Snapshot {
    /// The index of the stop; `None` in a stack placed by hand.
    stop: Option<usize>,
    /// The index among the snapshots of the stop.
    snapshot: usize,
    title: Option<String>,
    /// The call, in words.
    call: String,
}

/// The result of a snapshot that is not as expected.
#[derive(Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Found {
    callbacks: Vec<Row>,
    result: Option<Ends>,
    /// Other differences: of registers, contexts and nested calls.
    differences: Vec<String>,
    /// Additions to the expectation, for differences that it does not mention.
    hints: Vec<String>,
    /// The sentence of the call's story that decided it.
    why: Option<Why>,
}

/// An expected and an actual callback.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Row {
    expected: Option<Callback>,
    found: Option<Callback>,
    is_wrong: bool,
}

/// The expected and the actual result of a call.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Ends {
    expected: String,
    found: String,
    is_wrong: bool,
}

/// A sentence of a call's story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
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

/// Returns what two words have in common, if their digits alone differ.
fn without_number(one: &str, other: &str) -> Option<String> {
    if one == other {
        return Some(one.to_owned());
    }
    let is_number = |c: char| c.is_ascii_hexdigit() || c == 'x' || c == '…';
    let core = |word: &str| {
        let start = word.find(|c: char| c.is_ascii_digit() || c == '…')?;
        let end = start + word[start..].find(|c| !is_number(c)).unwrap_or(word.len() - start);
        Some((word[..start].to_owned(), word[end..].to_owned()))
    };
    let ((begin, end), others) = (core(one)?, core(other)?);
    ((&begin, &end) == (&others.0, &others.1)).then(|| format!("{begin}…{end}"))
}

impl Why {
    /// Returns the sentence with `…` in place of each word with digits in which the other one differs, or `None` if they
    /// differ in anything else.
    pub(crate) fn common(&self, other: &Self) -> Option<Self> {
        if self.clauses != other.clauses {
            return None;
        }
        let (own, others) = (self.text.split(' '), other.text.split(' '));
        if own.clone().count() != others.clone().count() {
            return None;
        }
        let words: Option<Vec<_>> =
            own.zip(others).map(|(one, other)| without_number(one, other)).collect();
        Some(Self { text: words?.join(" "), clauses: self.clauses.clone() })
    }

    /// Writes the sentence in lines of `width` characters, all but the first indented.
    pub(crate) fn write(&self, indent: usize, width: usize, out: &mut dyn Write) -> io::Result<()> {
        write_within(out, width, indent, Style::new(), &self.text, &brackets(&self.clauses))
    }
}

/// Makes the snapshots, mixed walks and searches of a text and adds them to the report, which
/// explains at most `max_failures`.
pub(crate) fn run(
    fixture: &ProgramFixture,
    on: Generations,
    (max_failures, limit): (usize, Duration),
    report: &mut FileReport,
) {
    let scenario = &fixture.scenario;
    let snapshots = scenario.snapshots().count();
    let mixed_walks = scenario.mixed_walks().count();
    let searches = scenario.explore.len();
    if snapshots + mixed_walks + searches == 0 {
        return;
    }
    let mut failures = Mismatches::new();
    let mut runtimes = Generations::NONE;
    for generation in on.iter() {
        let each = scenario.each_on(generation);
        let mut explained = None;
        for (n, (at, made)) in each.into_iter().enumerate() {
            runtimes = runtimes.with(Generations::of(&[generation]));
            report.counts.cases += 1;
            let words = Words { fixture, at, generation };
            match made {
                Ok(made) if made.expected.is_none() => report.counts.skipped += 1,
                Ok(made) if made.is_right() => report.counts.passed += 1,
                Ok(made) => {
                    report.counts.failed += 1;
                    let explained =
                        explained.get_or_insert_with(|| scenario.explain_each_on(generation));
                    let story = explained.get(n).and_then(|(_, explained)| explained.as_ref().ok());
                    let why = story.and_then(|explained| deciding(&explained.story)).map(Why::from);
                    failures.add(words.different(&made, why));
                }
                Err(error) => {
                    report.counts.failed += 1;
                    failures.add(words.impossible(&error));
                }
            }
        }
    }
    failures.report(report, max_failures);
    if mixed_walks > 0 {
        runtimes = runtimes.with(mixed::run(fixture, on, max_failures, report));
    }
    if searches > 0 {
        runtimes = runtimes.with(search::run(fixture, on, (max_failures, limit), report));
    }
    report.scenario = Some(Summary {
        chapter: chapter(&report.file).to_owned(),
        shows: scenario.about.shows.clone(),
        made: Made { snapshots, mixed_walks, searches },
        runtimes: Runtimes(runtimes),
        checked: scenario.checked().both(on),
        unjudged: unjudged(scenario, on),
    });
}

/// Returns the number of clauses of a text's searches that none of them can judge.
fn unjudged(scenario: &Scenario, on: Generations) -> usize {
    let on = || on.iter();
    let clauses = scenario.explore.iter().flat_map(|it| on().flat_map(|on| it.unjudged_on(on)));
    clauses.collect::<BTreeSet<_>>().len()
}

/// Returns the chapter of a text: its folder.
pub(crate) fn chapter(name: &str) -> &str {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.rsplit_once('/').map_or(folder, |(_, chapter)| chapter)
}

/// The context that describes a failure.
struct Words<'w> {
    fixture: &'w ProgramFixture,
    at: SnapshotAt<'w>,
    generation: Generation,
}

impl Words<'_> {
    fn outline(&self, expected: Option<usize>) -> Mismatch<Snapshot> {
        let place = self.fixture.snapshot_place(self.at, expected).into();
        let expect = expected.and_then(|index| self.at.call.expect.get(index));
        let basis = expect.map_or_else(Basis::none, |it| Basis::new(it.from, &it.clauses));
        let snapshot = Snapshot {
            stop: self.at.stop,
            snapshot: self.at.snapshot,
            title: self.at.call.title.clone(),
            call: callback::call(&self.fixture.scenario, self.at),
        };
        Mismatch::new(snapshot, place, self.generation, basis)
    }

    fn impossible(&self, error: &RunOnError) -> Mismatch<Snapshot> {
        let expected = self.at.call.expected_on(self.generation).map(|(index, _)| index);
        self.outline(expected).with_error(&self.fixture.scenario.named(*error))
    }

    fn different(&self, report: &SnapshotReport, why: Option<Why>) -> Mismatch<Snapshot> {
        let outline = self.outline(report.expected);
        let expect = report.expected.and_then(|index| self.at.call.expect.get(index));
        let Some(expect) = expect else {
            return outline.with_found(Found { why, ..Found::default() });
        };
        let (frames, made) = (&expect.frames, &report.found.frame_reports);
        // Compared by their indices alone, all callbacks after a missing one would be wrong.
        let others = report.differences.iter().filter(|difference| !is_in_rows(difference));
        let wrong_callbacks: Vec<_> =
            others.clone().filter_map(|difference| difference.frame_report()).collect();
        let same = |frame: usize, callback: usize| match (frames.get(frame), made.get(callback)) {
            (Some(frame), Some(callback)) => callback.is_at(frame),
            _ => false,
        };
        let row = |(frame, callback): (Option<usize>, Option<usize>)| {
            let expected = frame.and_then(|frame| frames.get(frame));
            let found = callback.and_then(|callback| made.get(callback));
            let paired = frame.zip(callback).is_some_and(|(frame, callback)| same(frame, callback));
            let alone = expected.is_some() || !expect.others;
            Row {
                expected: expected.map(Callback::expected),
                found: found.map(|callback| Callback::found(callback, expected)),
                is_wrong: !paired && alone
                    || callback.is_some_and(|callback| wrong_callbacks.contains(&callback)),
            }
        };
        let rows = aligned(frames.len(), made.len(), same);
        outline.with_found(Found {
            callbacks: rows.into_iter().map(row).collect(),
            result: Some(Ends {
                expected: expect.result.to_string(),
                found: report.found.outcome.to_string(),
                is_wrong: !expect.result.is(report.found.outcome),
            }),
            differences: others.map(ToString::to_string).collect(),
            hints: expect.hints(&report.found, &report.differences),
            why,
        })
    }
}

/// Returns true if the rows show the difference.
const fn is_in_rows(difference: &SnapshotDifference) -> bool {
    matches!(
        difference,
        SnapshotDifference::Missing { .. }
            | SnapshotDifference::Surplus { .. }
            | SnapshotDifference::Place { .. }
            | SnapshotDifference::Outcome { .. }
    )
}

impl Subject for Snapshot {
    type Found = Found;

    fn order(&self) -> (Option<usize>, usize) {
        (self.stop, self.snapshot)
    }

    fn name(&self) -> String {
        let title = self.title.as_ref().map(|title| format!(" {title:?}")).unwrap_or_default();
        format!("snapshot{title}")
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "  called {}", self.call)
    }

    fn write_found(found: &Found, out: &mut dyn Write) -> io::Result<()> {
        found.write_rows(out)?;
        for difference in &found.differences {
            writeln!(out, "  {BAD}*{BAD:#} {difference}")?;
        }
        for hint in &found.hints {
            write!(out, "  {DIM}hint:{DIM:#}     ")?;
            write_wrapped(out, 13, Style::new(), hint, "")?;
        }
        if let Some(why) = &found.why {
            write!(out, "  {DIM}why:{DIM:#}      ")?;
            why.write(13, width(), out)?;
        }
        Ok(())
    }
}

impl Found {
    /// Writes expected and actual callbacks side by side, and the results.
    fn write_rows(&self, out: &mut dyn Write) -> io::Result<()> {
        let text = |callback: &Option<Callback>| {
            callback.as_ref().map_or_else(|| "-".to_owned(), Callback::text)
        };
        let mut numbers = 0..;
        let pair = |Row { expected, found, is_wrong }: &Row| {
            let n = found.as_ref().and_then(|_| numbers.next());
            Pair { is_wrong: *is_wrong, n, expected: text(expected), found: text(found) }
        };
        let mut pairs: Vec<_> = self.callbacks.iter().map(pair).collect();
        pairs.extend(self.result.as_ref().map(|Ends { expected, found, is_wrong }| Pair {
            is_wrong: *is_wrong,
            n: None,
            expected: expected.clone(),
            found: found.clone(),
        }));
        write_pairs(&pairs, out)
    }
}
