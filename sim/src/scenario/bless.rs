//! Writes into a text what its snapshots gave, in place of expectations that were not met.

use super::error::ScenarioError;
use super::format::expected_text;
use super::found::{FoundShot, FoundSnapshot};
use super::parse::tokens::{Token, Tokens};
use super::places::{SnapshotAt, inside, named};
use super::site::SnapshotReport;
use super::snapshot::{
    ExpectedFlags, ExpectedOutcome, ExpectedShot, ExpectedSnapshot, Provenance, SnapshotCall, Stale,
};
use super::{Scenario, Span};
use crate::generation::{Generation, Generations};
use clr_walker::registers::{Gpr, Registers};
use core::ops::Range;
use kdl::{KdlDocument, KdlNode};

/// The text with the `expect` nodes of snapshots rewritten where `reports` tell that they were not
/// met; a snapshot without any gets some. All other bytes stay as they are. Generations that gave the
/// same share a node; nodes that were met keep where they come from, and their clauses.
///
/// That a simulator does something is no reason to expect it: what is written is for a person to read.
///
/// # Errors
/// [`ScenarioError`] if the text is no scenario.
pub fn bless(
    text: &str,
    reports: &[(Generation, Vec<SnapshotReport>)],
) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let nodes = places(text);
    let mut edits = Vec::new();
    for (SnapshotAt { stop, snapshot, call }, place) in scenario.snapshots().zip(&nodes) {
        let mut found = Vec::new();
        for (generation, reports) in reports {
            let mut reports = reports.iter();
            let report = reports.find(|it| it.stop == stop && it.snapshot == snapshot);
            found.extend(report.map(|report| (*generation, report)));
        }
        place.edit(text, call, &blessed(call, &found), &mut edits);
    }
    Ok(apply(text, edits))
}

/// The text with parts replaced.
pub(super) fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    // From the end, so that the places of the others stay.
    edits.sort_by_key(|(range, _)| core::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    text
}

/// What is expected of a snapshot now: the nodes that there are, `None` where one is gone, then new
/// ones.
pub(super) fn blessed(
    call: &SnapshotCall,
    reports: &[(Generation, &SnapshotReport)],
) -> Vec<Option<ExpectedSnapshot>> {
    let is_wrong = |report: &SnapshotReport| call.expect.is_empty() || !report.is_right();
    let wrong: Vec<_> = reports.iter().filter(|(_, report)| is_wrong(report)).collect();
    let all = wrong
        .iter()
        .fold(Generations::NONE, |all, (generation, _)| all.with(Generations::of(&[*generation])));
    let mut expect: Vec<Option<ExpectedSnapshot>> = Vec::new();
    for old in &call.expect {
        let on = old.on.without(all);
        expect.push((!on.is_empty()).then(|| ExpectedSnapshot { on, ..old.clone() }));
    }
    for (generation, report) in wrong {
        let new = ExpectedSnapshot::of(Generations::of(&[*generation]), &report.found);
        let same = expect.iter_mut().flatten().find(|other| {
            let ExpectedSnapshot { on, clauses, .. } = &**other;
            other.from == Provenance::Source
                && **other == ExpectedSnapshot { on: *on, clauses: clauses.clone(), ..new.clone() }
        });
        match same {
            Some(same) => same.on = same.on.with(new.on),
            None => expect.push(Some(new)),
        }
    }
    expect
}

impl ExpectedSnapshot {
    /// What was found, as an expectation.
    #[must_use]
    pub fn of(on: Generations, found: &FoundSnapshot) -> Self {
        let flags = |shot: &FoundShot| Some(shot.shot.context?.flags);
        let named = |flags| {
            if flags == found.rules.own_flags {
                ExpectedFlags::Own
            } else {
                ExpectedFlags::Value(flags)
            }
        };
        let first = found.shots.first().and_then(flags);
        let same = found.shots.iter().all(|shot| flags(shot) == first);
        let usual =
            |shot: &FoundShot| flags(shot) == found.rules.flags || shot.shot.context.is_none();
        let shot = |shot: &FoundShot| ExpectedShot {
            marker: shot.shot.function.is_none(),
            label: Some(shot.shot.label.clone()),
            registers: registers(shot, found),
            stale: stale(shot, found),
            context_flags: flags(shot).filter(|_| !same && !usual(shot)).map(named),
        };
        let nested = found.nested.iter().filter_map(|nested| nested.outcomes.first());
        Self {
            on,
            from: Provenance::Source,
            others: false,
            context_flags: first.filter(|_| same && !found.shots.iter().all(usual)).map(named),
            frames: found.shots.iter().map(shot).collect(),
            nested: nested.map(|outcome| ExpectedOutcome::from(*outcome)).collect(),
            result: found.outcome.into(),
            clauses: Vec::new(),
        }
    }
}

/// rsp, and the nonvolatile registers that are neither the row's nor those that the walk started with:
/// those of another row. rax if it is not what it was.
fn registers(shot: &FoundShot, found: &FoundSnapshot) -> Vec<(Gpr, u64)> {
    let Some(context) = shot.shot.context else { return Vec::new() };
    let value = |register: Gpr| context.registers.get(register);
    let is_of_none = |register: &Gpr| {
        let others = [shot.truth, found.rules.start];
        shot.truth.is_some()
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

/// Which registers are not the row's but those that the walk started with.
fn stale(shot: &FoundShot, found: &FoundSnapshot) -> Stale {
    let (Some(context), Some(truth), Some(start)) =
        (shot.shot.context, shot.truth, found.rules.start)
    else {
        return Stale::None;
    };
    let value = |register: Gpr| context.registers.get(register);
    let is_started = |register: Gpr| value(register) == start.get(register);
    let is_stale =
        |register: &Gpr| value(*register) != truth.get(*register) && is_started(*register);
    let nonvolatile = found.rules.nonvolatile;
    let mut stale: Vec<_> = nonvolatile.iter().copied().filter(is_stale).collect();
    stale.sort();
    if stale.is_empty() {
        return Stale::None;
    }
    let all = nonvolatile.iter().all(|register| *register == Gpr::Rbp || is_started(*register));
    if all && !stale.contains(&Gpr::Rbp) { Stale::All } else { Stale::Only(stale) }
}

/// Where a snapshot stands, and its expectations.
struct Place {
    node: Range<usize>,
    has_block: bool,
    expect: Vec<Range<usize>>,
}

/// The snapshots of a text that is a scenario.
fn places(text: &str) -> Vec<Place> {
    let Ok(document) = KdlDocument::parse_v2(text) else { return Vec::new() };
    let tokens: Vec<_> = Tokens::new(text).collect();
    let range = |node: &KdlNode| {
        let start = node.name().span().offset();
        start..end_of(&tokens, start)
    };
    let stops = named(document.nodes(), "stop").flat_map(|stop| named(inside(stop), "snapshot"));
    let all = stops.chain(named(document.nodes(), "snapshot"));
    let place = |node: &KdlNode| Place {
        node: range(node),
        has_block: node.children().is_some(),
        expect: named(inside(node), "expect").map(range).collect(),
    };
    all.map(place).collect()
}

/// Where the node ends that starts at an offset.
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
    /// Notes what is to be replaced by what.
    fn edit(
        &self,
        text: &str,
        call: &SnapshotCall,
        expect: &[Option<ExpectedSnapshot>],
        edits: &mut Vec<(Range<usize>, String)>,
    ) {
        let depth = |at: usize| indentation(text, at).len() / 4;
        let (old, new) = expect.split_at(self.expect.len().min(expect.len()));
        let added = |depth: usize| {
            let text = |new: &ExpectedSnapshot| {
                format!("\n{}{}", "    ".repeat(depth), expected_text(new, depth))
            };
            new.iter().flatten().map(text).collect::<String>()
        };
        for ((range, before), after) in self.expect.iter().zip(&call.expect).zip(old) {
            match after {
                Some(after) if after == before => {}
                Some(after) => {
                    edits.push((range.clone(), expected_text(after, depth(range.start))));
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
            // In front of the brace that ends it, and what stands in front of that.
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

/// The blanks in front of the first thing in the line.
pub(super) fn indentation(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..).unwrap_or_default();
    let end = line.find(|c| c != ' ').unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}

/// The place of a node, with its line if nothing else stands in it.
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
