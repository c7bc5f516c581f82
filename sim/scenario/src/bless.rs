//! Blessing of snapshots: rewriting unmet expectations of a text with the results found.

use super::error::ScenarioError;
use super::format::expected_text;
use super::parse::tokens::{Token, Tokens};
use super::snapshot::{
    ExpectedFlags, ExpectedFrameReport, ExpectedOutcome, ExpectedSnapshot, Provenance, Stale,
};
use super::snapshot_result::{FoundFrameReport, SnapshotResult};
use super::source_map::{SnapshotAt, inside, named};
use super::stopped_thread::SnapshotReport;
use super::{Scenario, Span};
use clr_runtime::generation::{Generation, Generations};
use clr_walker::registers::{Gpr, Registers};
use core::ops::Range;
use kdl::{KdlDocument, KdlNode};

/// Rewrites the `expect` nodes of snapshots that are not met according to `reports`, and adds some
/// to a snapshot that has none. All other bytes stay as they are. Generations with the same result
/// share a node; nodes that are met keep their provenance and their clauses.
///
/// A simulator's result alone is no reason to expect it: the new text must be reviewed by a person.
///
/// # Errors
/// Returns [`ScenarioError`] if the text is not a scenario.
pub fn bless(
    text: &str,
    reports: &[(Generation, Vec<SnapshotReport>)],
) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let calls = scenario.snapshots().map(|SnapshotAt { stop, snapshot, call }| {
        let mut found = Vec::new();
        for (generation, reports) in reports {
            let report = reports.iter().find(|it| it.stop == stop && it.snapshot == snapshot);
            found.extend(report.map(|it| (*generation, it.is_right(), &it.found)));
        }
        (call.expect.as_slice(), found)
    });
    Ok(apply(text, edit_all(text, "snapshot", calls)))
}

/// An expectation that can be written from a result.
pub(super) trait Blessable: Clone + PartialEq {
    /// Type of the result.
    type Found;

    /// Converts a result to an expectation.
    fn from_result(on: Generations, found: &Self::Found) -> Self;

    /// Returns the generations that the expectation is for.
    fn on(&mut self) -> &mut Generations;

    /// Returns true if the expectation equals `new`, which was made from a result, apart from
    /// generations and clauses.
    fn matches_result(&self, new: &Self) -> bool;

    /// Prints the node as it appears at a depth of nested blocks.
    fn text(&self, depth: usize) -> String;
}

impl Blessable for ExpectedSnapshot {
    type Found = SnapshotResult;

    fn from_result(on: Generations, found: &SnapshotResult) -> Self {
        Self::of(on, found)
    }

    fn on(&mut self) -> &mut Generations {
        &mut self.on
    }

    fn matches_result(&self, new: &Self) -> bool {
        let clauses = self.clauses.clone();
        self.from == Provenance::Source && *self == Self { on: self.on, clauses, ..new.clone() }
    }

    fn text(&self, depth: usize) -> String {
        expected_text(self, depth)
    }
}

/// The expectations of a node, and its results on generations, each with a flag that is true if the
/// result is as expected.
type Made<'m, E> = (&'m [E], Vec<(Generation, bool, &'m <E as Blessable>::Found)>);

/// Returns the replacements in the nodes with the given name.
pub(super) fn edit_all<'m, E: Blessable + 'm>(
    text: &str,
    name: &'static str,
    made: impl Iterator<Item = Made<'m, E>>,
) -> Vec<(Range<usize>, String)> {
    let mut edits = Vec::new();
    for ((expect, found), place) in made.zip(&places(text, name)) {
        place.edit(text, expect, &blessed(expect, &found), &mut edits);
    }
    edits
}

/// Applies replacements to a text.
pub(super) fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
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
pub(super) fn blessed<E: Blessable>(
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

impl ExpectedSnapshot {
    /// Converts the result of a snapshot to an expectation.
    #[must_use]
    pub fn of(on: Generations, found: &SnapshotResult) -> Self {
        let flags =
            |frame_report: &FoundFrameReport| Some(frame_report.frame_report.context?.flags);
        let named = |flags| {
            if flags == found.rules.own_flags {
                ExpectedFlags::Own
            } else {
                ExpectedFlags::Value(flags)
            }
        };
        let first = found.frame_reports.first().and_then(flags);
        let same = found.frame_reports.iter().all(|frame_report| flags(frame_report) == first);
        let usual = |frame_report: &FoundFrameReport| {
            flags(frame_report) == found.rules.flags || frame_report.frame_report.context.is_none()
        };
        let frame_report = |frame_report: &FoundFrameReport| ExpectedFrameReport {
            marker: frame_report.frame_report.function.is_none(),
            label: Some(frame_report.frame_report.label.clone()),
            registers: registers(frame_report, found),
            stale: stale(frame_report, found),
            context_flags: flags(frame_report).filter(|_| !same && !usual(frame_report)).map(named),
        };
        let nested = found.nested.iter().filter_map(|nested| nested.outcomes.first());
        Self {
            on,
            from: Provenance::Source,
            others: false,
            context_flags: first
                .filter(|_| same && !found.frame_reports.iter().all(usual))
                .map(named),
            frames: found.frame_reports.iter().map(frame_report).collect(),
            nested: nested.map(|outcome| ExpectedOutcome::from(*outcome)).collect(),
            result: found.outcome.into(),
            clauses: Vec::new(),
        }
    }
}

/// Returns rsp, and the nonvolatile registers that match neither the activation's values nor those
/// that the walk started with (they belong to another activation). rax is included if it changed.
fn registers(frame_report: &FoundFrameReport, found: &SnapshotResult) -> Vec<(Gpr, u64)> {
    let Some(context) = frame_report.frame_report.context else { return Vec::new() };
    let value = |register: Gpr| context.registers.get(register);
    let is_of_none = |register: &Gpr| {
        let others = [frame_report.true_registers, found.rules.start];
        frame_report.true_registers.is_some()
            && others.into_iter().flatten().all(|one| one.get(*register) != value(*register))
    };
    let others = found.rules.nonvolatile.iter().copied().filter(is_of_none);
    let mut registers: Vec<_> = others.filter(|register| *register != Gpr::Rsp).collect();
    registers.push(Gpr::Rsp);
    let is_other = |start: Registers| start.get(Gpr::Rax) != value(Gpr::Rax);
    registers.extend(found.rules.start.filter(|start| is_other(*start)).map(|_| Gpr::Rax));
    registers.sort();
    registers.into_iter().map(|register| (register, value(register))).collect()
}

/// Returns the registers that have the value that the walk started with instead of the
/// activation's.
fn stale(frame_report: &FoundFrameReport, found: &SnapshotResult) -> Stale {
    let (Some(context), Some(true_registers), Some(start)) =
        (frame_report.frame_report.context, frame_report.true_registers, found.rules.start)
    else {
        return Stale::None;
    };
    let value = |register: Gpr| context.registers.get(register);
    let is_started = |register: Gpr| value(register) == start.get(register);
    let is_stale =
        |register: &Gpr| value(*register) != true_registers.get(*register) && is_started(*register);
    let nonvolatile = found.rules.nonvolatile;
    let mut stale: Vec<_> = nonvolatile.iter().copied().filter(is_stale).collect();
    stale.sort();
    if stale.is_empty() {
        return Stale::None;
    }
    let all = nonvolatile.iter().all(|register| *register == Gpr::Rbp || is_started(*register));
    if all && !stale.contains(&Gpr::Rbp) { Stale::All } else { Stale::Only(stale) }
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
    let Ok(document) = KdlDocument::parse_v2(text) else { return Vec::new() };
    let tokens: Vec<_> = Tokens::new(text).collect();
    let range = |node: &KdlNode| {
        let start = node.name().span().offset();
        start..end_of(&tokens, start)
    };
    let stops = named(document.nodes(), "stop").flat_map(|stop| named(inside(stop), name));
    let all = stops.chain(named(document.nodes(), name));
    let place = |node: &KdlNode| Place {
        node: range(node),
        has_block: node.children().is_some(),
        expect: named(inside(node), "expect").map(range).collect(),
    };
    all.map(place).collect()
}

/// Returns the end offset of the node that starts at an offset.
pub(super) fn end_of<E>(tokens: &[(Span, Result<Token, E>)], start: usize) -> usize {
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
            // Before the closing brace, and before the blanks in front of it.
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
pub(super) fn indentation(text: &str, at: usize) -> &str {
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
