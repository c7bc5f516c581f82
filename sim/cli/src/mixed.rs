//! Walks of whole stacks in a run, and what is wrong with them.

use crate::aligned::aligned;
use crate::clauses::in_words;
use crate::console::{BAD, DIM, HEAD};
use crate::expectation::{Basis, Place};
use crate::program::ProgramFixture;
use crate::report::{Explained, FileReport};
use crate::runtimes::{OnRuntimes, Runtimes, keep};
use crate::snapshots::write_pair;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{
    ExpectedMixed, ExpectedMixedItem, FoundMixed, FoundMixedItem, Keyword, MixedAt, MixedClaim,
    MixedReport, RunOnError,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// A walk of a whole stack that finds something else than is expected, on runtimes where it finds the
/// same.
#[derive(Debug, Serialize)]
pub(crate) struct FailedMixed {
    /// The stop, from 0; none in a stack placed by hand.
    stop: Option<usize>,
    /// Its place among the walks there.
    mixed_walk: usize,
    title: Option<String>,
    policy: &'static str,
    /// Where the expectation stands in the file, or else the walk.
    #[serde(flatten)]
    place: Place,
    runtimes: Runtimes,
    #[serde(flatten)]
    basis: Basis,
    /// Frames and gaps, what the walk claims, and how `DoStackSnapshot` ended.
    items: Vec<Row>,
    /// Why it could not be made.
    error: Option<String>,
}

/// A frame, a gap, a claim or a result: as expected and as found.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    expected: Option<String>,
    found: Option<String>,
    is_wrong: bool,
}

/// Makes the walks of a text, and reports on them: the first failures in full.
pub(crate) fn run(
    fixture: &ProgramFixture,
    on: Generations,
    max_failures: usize,
    report: &mut FileReport,
) -> Generations {
    let mut failures: Vec<FailedMixed> = Vec::new();
    let mut runtimes = Generations::NONE;
    for generation in on.iter() {
        for (at, made) in fixture.scenario.each_mixed_on(generation) {
            runtimes = runtimes.with(Generations::of(&[generation]));
            report.counts.cases += 1;
            match made {
                Ok(made) if made.expected.is_none() => report.counts.skipped += 1,
                Ok(made) if made.is_right() => report.counts.passed += 1,
                made => {
                    report.counts.failed += 1;
                    let failed = failed(fixture, at, generation, made);
                    keep(failed, &mut failures, FailedMixed::is_like);
                }
            }
        }
    }
    failures.sort_by_key(|failed| (failed.stop, failed.mixed_walk));
    let wanted = max_failures.saturating_sub(report.failures.len());
    report.failures.extend(failures.into_iter().take(wanted).map(Explained::Mixed));
    runtimes
}

fn failed(
    fixture: &ProgramFixture,
    at: MixedAt<'_>,
    generation: Generation,
    made: Result<MixedReport, RunOnError>,
) -> FailedMixed {
    let expect = at.says.expected_on(generation);
    let place = fixture.mixed_place(at, expect.map(|(index, _)| index)).into();
    let expect = expect.map(|(_, expect)| expect);
    let (items, error) = match (made, expect) {
        (Ok(made), Some(expect)) => (rows(expect, &made.found), None),
        (Ok(_), None) => (Vec::new(), None),
        (Err(error), _) => (Vec::new(), Some(error.to_string())),
    };
    FailedMixed {
        stop: at.stop,
        mixed_walk: at.walk,
        title: at.says.title.clone(),
        policy: at.says.policy.name(),
        place,
        runtimes: Runtimes::one(generation),
        basis: expect.map_or_else(Basis::none, |it| Basis::new(it.from, &it.clauses)),
        items,
        error,
    }
}

/// What is expected and what was found, side by side.
fn rows(expect: &ExpectedMixed, found: &FoundMixed) -> Vec<Row> {
    let items = found.items();
    let same = |frame: usize, item: usize| match (expect.items.get(frame), items.get(item)) {
        (Some(expected), Some(found)) => found.is(expected),
        _ => false,
    };
    let pairs = aligned(expect.items.len(), items.len(), same);
    let row = |(expected, found): (Option<usize>, Option<usize>)| {
        let paired = expected.zip(found).is_some_and(|(expected, found)| same(expected, found));
        let item = expected.and_then(|expected| expect.items.get(expected));
        let alone = item.is_some() || !expect.others;
        let found = found.and_then(|found| items.get(found));
        Row {
            expected: item.map(expected_words),
            found: found.map(found_words),
            is_wrong: !paired && alone,
        }
    };
    let mut rows: Vec<_> = pairs.into_iter().map(row).collect();
    let claim =
        |claim: Option<MixedClaim>| claim.map(|claim| format!("complete: {}", claim.word()));
    rows.push(Row {
        expected: claim(expect.claim),
        found: claim(found.claim()),
        is_wrong: expect.claim != found.claim(),
    });
    let is_right = match (expect.result, found.outcome) {
        (Some(expected), Some(found)) => expected.is(found),
        (expected, found) => expected.is_none() && found.is_none(),
    };
    rows.push(Row {
        expected: expect.result.map(|result| result.to_string()),
        found: found.outcome.map(|outcome| outcome.to_string()),
        is_wrong: !is_right,
    });
    rows.retain(|row| row.expected.is_some() || row.found.is_some());
    rows
}

fn expected_words(item: &ExpectedMixedItem) -> String {
    match item {
        ExpectedMixedItem::Gap { reason, result } => {
            let result = result.map(|result| format!(" {result}")).unwrap_or_default();
            format!("gap: {}{result}", reason.word())
        }
        ExpectedMixedItem::Frame(frame) => {
            let mut text = frame.kind.word().to_owned();
            if let Some(label) = &frame.label {
                let _ = write!(text, " {label}");
            }
            if let Some(sp) = frame.sp {
                let _ = write!(text, ", rsp {sp:#x}");
            }
            if let Some(seen_by) = frame.seen_by {
                let _ = write!(text, " ({})", seen_by.word());
            }
            if let Some(trust) = frame.trust {
                let _ = write!(text, ", by {}", trust.word());
            }
            text
        }
    }
}

fn found_words(item: &FoundMixedItem<'_>) -> String {
    match item {
        FoundMixedItem::Gap(reason) => format!("gap: {reason}"),
        FoundMixedItem::Frame(frame) => {
            let trust = frame.trust().map(|trust| format!(", by {}", trust.word()));
            format!("{frame}{}", trust.unwrap_or_default())
        }
    }
}

impl OnRuntimes for FailedMixed {
    fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }
}

impl FailedMixed {
    /// How many cases it stands for.
    pub(crate) fn cases(&self) -> usize {
        self.runtimes.count()
    }

    /// Whether it tells the same of another runtime.
    fn is_like(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.stop, it.mixed_walk, it.place, it.error.is_some());
        of(self) == of(other) && self.items == other.items
    }

    /// Writes the explanation.
    pub(crate) fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let title = self.title.as_ref().map(|title| format!(" {title:?}")).unwrap_or_default();
        writeln!(out, "\n{BAD}failed{BAD:#} {HEAD}{file}{}{HEAD:#} mixed walk{title}", self.place)?;
        writeln!(out, "  on {}", in_words(self.runtimes.0))?;
        writeln!(out, "  by the policy {}", self.policy)?;
        if let Some(error) = &self.error {
            return writeln!(out, "  {BAD}cannot be made:{BAD:#} {error}");
        }
        let text = |item: &Option<String>| item.clone().unwrap_or_else(|| "-".to_owned());
        let expected: Vec<_> = self.items.iter().map(|row| text(&row.expected)).collect();
        let widths = expected.iter().map(|text| text.chars().count());
        let width = widths.max().unwrap_or(0).max("expected".len());
        writeln!(out, "  {DIM}   #  {:width$}  found{DIM:#}", "expected")?;
        let mut number = 0;
        for (row, expected) in self.items.iter().zip(&expected) {
            let is_item = row.found.as_ref().is_some_and(|found| found.contains(", rsp "));
            let n = if is_item { number.to_string() } else { String::new() };
            number += usize::from(is_item);
            write_pair(row.is_wrong, &n, expected, width, &text(&row.found), out)?;
        }
        self.basis.write(out)
    }
}
