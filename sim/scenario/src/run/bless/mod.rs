//! Blessing: rewriting unmet expectations of a text with the results found.

mod history;
mod snapshot;
mod walk;

use crate::model::SnapshotAt;
use crate::model::{ExpectedMixed, MixedAt};
use crate::model::{ExpectedSnapshot, Provenance};
use crate::run::bare::StopReport;
use crate::run::exploration::Explored;
use crate::run::mixed::{FoundMixed, MixedReport};
use crate::run::snapshot_result::SnapshotResult;
use crate::run::stopped_thread::SnapshotReport;
use crate::text::codec::text_of;
use crate::text::document::{Node, named};
use crate::text::error::ScenarioError;
use crate::text::nodes;
use crate::text::parse;
use crate::text::parse::tokens::{Token, Tokens};
use crate::text::source_map::calls;
use crate::{Scenario, Span};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use core::ops::Range;

/// Results of one kind for all nodes of a text, from which their expectations are rewritten.
#[derive(Clone, Copy, Debug)]
pub enum Results<'r> {
    /// Results of snapshots on each generation.
    Snapshots(&'r [(Generation, Vec<SnapshotReport>)]),
    /// Results of mixed walks on each generation.
    MixedWalks(&'r [(Generation, Vec<MixedReport>)]),
    /// Results of searches.
    Histories(&'r [Explored]),
    /// Results of the unwinder's walks at stops.
    Walks(&'r [StopReport]),
}

/// Rewrites the expectations of a text that are not met according to `results`, and adds some to
/// snapshots and mixed walks that have none. All other bytes stay as they are. Generations with the
/// same result share a node; nodes that are met keep their provenance and their clauses. Of searches
/// only the string of the failure is rewritten.
///
/// A simulator's result alone is no reason to expect it: the new text must be reviewed by a person.
///
/// # Errors
/// Returns [`ScenarioError`] if the text is not a scenario.
pub fn bless(text: &str, results: Results<'_>) -> Result<String, ScenarioError> {
    match results {
        Results::Snapshots(reports) => {
            let scenario = Scenario::parse(text)?;
            let calls = scenario
                .snapshots()
                .map(|SnapshotAt { stop, snapshot, call }| ((stop, snapshot), &*call.expect));
            Ok(bless_calls::<ExpectedSnapshot>(text, calls, reports))
        }
        Results::MixedWalks(reports) => {
            let scenario = Scenario::parse(text)?;
            let walks = scenario.mixed_walks();
            let calls = walks.map(|MixedAt { stop, walk, says }| ((stop, walk), &*says.expect));
            Ok(bless_calls::<ExpectedMixed>(text, calls, reports))
        }
        Results::Histories(explored) => history::bless(text, explored),
        Results::Walks(reports) => walk::bless(text, reports),
    }
}

/// Location of a call: the stop, or `None` on a stack placed by hand, and the index among the calls
/// of its kind there.
type CallAt = (Option<usize>, usize);

/// An expectation that can be written from a result.
pub(crate) trait Blessable: Clone + PartialEq {
    /// Name of the nodes that have such expectations.
    const NODE: &'static str;

    /// Type of the result.
    type Found;

    /// Type of the result with its location.
    type Report;

    /// Returns the location of a result, true if it is as expected, and the result.
    fn parts(report: &Self::Report) -> (CallAt, bool, &Self::Found);

    /// Converts a result to an expectation.
    fn from_result(on: Generations, found: &Self::Found) -> Self;

    /// Returns the generations that the expectation is for.
    fn on(&mut self) -> &mut Generations;

    /// Returns the clauses that the expectation cites.
    fn clauses(&mut self) -> &mut Vec<Clause>;

    /// Returns the origin of the expectation.
    fn provenance(&self) -> Provenance;

    /// Prints the node as it appears at a depth of nested blocks.
    fn text(&self, depth: usize) -> String;

    /// Returns true if the expectation equals `new`, which was made from a result, apart from
    /// generations and clauses.
    fn matches_result(&self, new: &Self) -> bool {
        if self.provenance() != Provenance::Rules {
            return false;
        }
        let (mut old, mut new) = (self.clone(), new.clone());
        *new.on() = *old.on();
        new.clauses().clone_from(old.clauses());
        old == new
    }
}

macro_rules! blessable {
    ($expected:ident $node:literal $found:ident $report:ident.$index:ident $codec:ident) => {
        impl Blessable for $expected {
            const NODE: &'static str = $node;

            type Found = $found;
            type Report = $report;

            fn parts(report: &$report) -> (CallAt, bool, &$found) {
                ((report.stop, report.$index), report.is_right(), &report.found)
            }

            fn from_result(on: Generations, found: &$found) -> Self {
                Self::of(on, found)
            }

            fn on(&mut self) -> &mut Generations {
                &mut self.on
            }

            fn clauses(&mut self) -> &mut Vec<Clause> {
                &mut self.clauses
            }

            fn provenance(&self) -> Provenance {
                self.from
            }

            fn text(&self, depth: usize) -> String {
                text_of(&Scenario::default(), depth, "expect", self, nodes::$codec)
            }
        }
    };
}

blessable! { ExpectedSnapshot "snapshot" SnapshotResult SnapshotReport.snapshot expected }
blessable! { ExpectedMixed "mixed-walk" FoundMixed MixedReport.walk expected_mixed }

/// Rewrites the expectations of all calls of one kind.
fn bless_calls<'m, E: Blessable + 'm>(
    text: &str,
    calls: impl Iterator<Item = (CallAt, &'m [E])>,
    reports: &[(Generation, Vec<E::Report>)],
) -> String {
    let mut edits = Vec::new();
    for ((at, expect), place) in calls.zip(&places(text, E::NODE)) {
        let mut found = Vec::new();
        for (generation, reports) in reports {
            let mut parts = reports.iter().map(E::parts);
            let report = parts.find(|(report_at, ..)| *report_at == at);
            found.extend(report.map(|(_, is_right, result)| (*generation, is_right, result)));
        }
        place.edit(text, expect, &blessed(expect, &found), &mut edits);
    }
    apply(text, edits)
}

/// Applies replacements to a text.
fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    // From the end, so that earlier offsets stay valid.
    edits.sort_by_key(|(range, _)| core::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    text
}

/// Returns the new expectations: the existing nodes, `None` where one is removed, then the added
/// ones.
pub(crate) fn blessed<E: Blessable>(
    old: &[E],
    found: &[(Generation, bool, &E::Found)],
) -> Vec<Option<E>> {
    let wrong: Vec<_> =
        found.iter().filter(|(_, is_right, _)| old.is_empty() || !is_right).collect();
    let all: Vec<_> = wrong.iter().map(|(generation, ..)| *generation).collect();
    let all = Generations::of(&all);
    let mut expect: Vec<Option<E>> = Vec::new();
    for old in old {
        let mut old = old.clone();
        let on = old.on().without(all);
        *old.on() = on;
        expect.push((!on.is_empty()).then_some(old));
    }
    for (generation, _, found) in wrong {
        let on = Generations::of(&[*generation]);
        let new = E::from_result(on, found);
        match expect.iter_mut().flatten().find(|other| other.matches_result(&new)) {
            Some(same) => *same.on() = same.on().with(on),
            None => expect.push(Some(new)),
        }
    }
    expect
}

/// Source ranges of a snapshot and of its expectations.
struct Place {
    node: Range<usize>,
    has_block: bool,
    expect: Vec<Range<usize>>,
}

/// Returns the ranges of the nodes with the given name: those in stops first, then those outside.
/// The text must be a scenario.
fn places(text: &str, name: &'static str) -> Vec<Place> {
    let Ok(nodes) = parse::read(text) else { return Vec::new() };
    let tokens: Vec<_> = Tokens::new(text).collect();
    let range = |node: &Node<'_>| {
        let start = node.name.span.offset;
        start..end_of(&tokens, start)
    };
    let place = |node: &Node<'_>| Place {
        node: range(node),
        has_block: node.block.is_some(),
        expect: named(node.children(), "expect").map(range).collect(),
    };
    calls(&nodes, name).map(place).collect()
}

/// Returns the end offset of the node that starts at an offset.
fn end_of<E>(tokens: &[(Span, Result<Token, E>)], start: usize) -> usize {
    let (mut depth, mut end) = (0_usize, start);
    for (span, token) in tokens.iter().filter(|(span, _)| span.offset >= start) {
        match token {
            Ok(Token::Open) => depth += 1,
            Ok(Token::Close) if depth <= 1 => return if depth == 1 { span.end() } else { end },
            Ok(Token::Close) => depth -= 1,
            Ok(Token::Newline | Token::Semicolon | Token::LineComment) if depth == 0 => return end,
            Ok(Token::Space | Token::BlockComment | Token::Continuation) => continue,
            _ => {}
        }
        end = span.end();
    }
    end
}

impl Place {
    /// Adds the replacements for this node.
    fn edit<E: Blessable>(
        &self,
        text: &str,
        before: &[E],
        expect: &[Option<E>],
        edits: &mut Vec<(Range<usize>, String)>,
    ) {
        let depth = |at: usize| indentation(text, at).len() / 4;
        let (old, new) = expect.split_at(self.expect.len().min(expect.len()));
        let added = |depth: usize| {
            let text = |new: &E| format!("\n{}{}", "    ".repeat(depth), new.text(depth));
            new.iter().flatten().map(text).collect::<String>()
        };
        for ((range, before), after) in self.expect.iter().zip(before).zip(old) {
            match after {
                Some(after) if after == before => {}
                Some(after) => {
                    edits.push((range.clone(), after.text(depth(range.start))));
                }
                None => edits.push((whole_line(text, range), String::new())),
            }
        }
        let last = self.expect.iter().zip(old).rfind(|(_, after)| after.is_some());
        if new.is_empty() {
            return;
        }
        if let Some((range, _)) = last {
            edits.push((range.end..range.end, added(depth(range.start))));
            return;
        }
        let depth = depth(self.node.start);
        let end = format!("\n{}}}", "    ".repeat(depth));
        if self.has_block {
            // Before the closing brace, and before the blanks to its left.
            let inside = text.get(self.node.start..self.node.end.saturating_sub(1));
            let inside = inside.unwrap_or_default();
            let at = self.node.start + inside.trim_end().len();
            edits.push((at..self.node.end, added(depth + 1) + &end));
        } else {
            let block = format!(" {{{}{end}", added(depth + 1));
            edits.push((self.node.end..self.node.end, block));
        }
    }
}

/// Returns the blanks at the beginning of the line.
fn indentation(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..).unwrap_or_default();
    let end = line.find(|c| c != ' ').unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}

/// Returns the range of a node, with its whole line if the line contains nothing more.
fn whole_line(text: &str, range: &Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let blank_after = after.trim_start_matches([' ', ';', '\r']);
    let end = text.len() - blank_after.len();
    let line = before.trim_end_matches(' ');
    if line.ends_with('\n') && blank_after.starts_with('\n') {
        line.len()..end + 1
    } else {
        range.start..end
    }
}
