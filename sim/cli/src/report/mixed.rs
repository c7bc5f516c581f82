//! Mixed walks of texts in a run.

use crate::input::program::ProgramFixture;
use crate::render::alignment::aligned;
use crate::render::differences::{Pair, write_pairs};
use crate::report::FileReport;
use crate::report::expectation::Basis;
use crate::report::mismatch::{Mismatch, Mismatches, Subject};
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{
    ExpectedMixed, ExpectedMixedItem, FoundMixedItem, Keyword, MixedAt, MixedClaim,
    MixedDifference, MixedReport, RunOnError,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// A mixed walk of a text.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON schema")]
pub(crate) struct MixedWalk {
    /// The index of the stop; `None` in a stack placed by hand.
    stop: Option<usize>,
    /// The index among the mixed walks of the stop.
    mixed_walk: usize,
    title: Option<String>,
    policy: &'static str,
}

/// The frames and gaps of a mixed walk, its claim, and the result of `DoStackSnapshot`.
#[derive(Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Found {
    items: Vec<Row>,
}

/// A frame, a gap, a claim or a result: as expected and as found.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Row {
    expected: Option<String>,
    found: Option<String>,
    is_wrong: bool,
}

/// Makes the mixed walks of a text and adds them to the report, which explains at most
/// `max_failures`. Returns the runtimes of the walks.
pub(crate) fn run(
    fixture: &ProgramFixture,
    on: Generations,
    max_failures: usize,
    report: &mut FileReport,
) -> Generations {
    let mut failures = Mismatches::new();
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
                    failures.add(mismatch(fixture, at, generation, made));
                }
            }
        }
    }
    failures.report(report, max_failures);
    runtimes
}

fn mismatch(
    fixture: &ProgramFixture,
    at: MixedAt<'_>,
    generation: Generation,
    made: Result<MixedReport, RunOnError>,
) -> Mismatch<MixedWalk> {
    let expect = at.says.expected_on(generation);
    let place = fixture.mixed_place(at, expect.map(|(index, _)| index)).into();
    let expect = expect.map(|(_, expect)| expect);
    let basis = expect.map_or_else(Basis::none, |it| Basis::new(it.from, &it.clauses));
    let (title, policy) = (at.says.title.clone(), at.says.policy.name());
    let walk = MixedWalk { stop: at.stop, mixed_walk: at.walk, title, policy };
    let outline = Mismatch::new(walk, place, generation, basis);
    match (made, expect) {
        (Ok(made), Some(expect)) => outline.with_found(Found { items: rows(expect, &made) }),
        (Ok(_), None) => outline,
        (Err(error), _) => outline.with_error(&fixture.scenario.named(error)),
    }
}

/// Aligns expected and found items.
fn rows(expect: &ExpectedMixed, made: &MixedReport) -> Vec<Row> {
    let found = &made.found;
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
    rows.extend(made.differences.iter().filter_map(|difference| match difference {
        MixedDifference::Clause { named } => {
            let expected = Some(format!("decided by {named}"));
            Some(Row { expected, found: Some("decided by others".to_owned()), is_wrong: true })
        }
        _ => None,
    }));
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

impl Subject for MixedWalk {
    type Found = Found;

    fn order(&self) -> (Option<usize>, usize) {
        (self.stop, self.mixed_walk)
    }

    fn name(&self) -> String {
        let title = self.title.as_ref().map(|title| format!(" {title:?}")).unwrap_or_default();
        format!("mixed walk{title}")
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "  by the policy {}", self.policy)
    }

    fn write_found(found: &Found, out: &mut dyn Write) -> io::Result<()> {
        let text = |item: &Option<String>| item.clone().unwrap_or_else(|| "-".to_owned());
        let mut numbers = 0..;
        let pair = |row: &Row| {
            let is_item = row.found.as_ref().is_some_and(|found| found.contains(", rsp "));
            let n = if is_item { numbers.next() } else { None };
            let (expected, found) = (text(&row.expected), text(&row.found));
            Pair { is_wrong: row.is_wrong, n, expected, found }
        };
        write_pairs(&found.items.iter().map(pair).collect::<Vec<_>>(), out)
    }
}
