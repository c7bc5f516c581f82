//! The figures of an image, and of its findings by kind.

use super::words::{heading, meaning, remedy};
use crate::render::console::{BAD, DIM, GOOD, HEAD};
use crate::render::words::counted;
use clr_lint::{Finding, Layout, Report};
use clr_unwind::CodeRegion;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The findings of one kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Group {
    blame: &'static str,
    cause: &'static str,
    functions: usize,
    instructions: usize,
    calls: u32,
}

/// The figures of an image.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct ImageReport {
    kind: &'static str,
    file: String,
    format: &'static str,
    ranges: u64,
    bytes: u64,
    functions: u64,
    entered_inside: u64,
    parts: u64,
    executed_bytes: u64,
    instructions: u64,
    right: u64,
    wrong: u64,
    not_judged: u64,
    strange: u64,
    unfollowed: u64,
    undecoded: u64,
    unknown_jumps: u64,
    cut: u64,
    /// Number of entries of call frame information that cannot be used.
    unusable: u32,
    /// Size of all code in bytes, padding and what linkers add apart.
    code: u64,
    /// Size in bytes of the code that has unwind data.
    described: u64,
    /// Numbers of functions in which nothing was decided, by the reason.
    undecided: UndecidedReport,
    /// The languages with a convention of their own.
    conventions: Vec<&'static str>,
    /// The .NET that made the image.
    dotnet: Option<String>,
    findings: usize,
    /// Number of findings that are neither allowed nor known.
    failing: usize,
    groups: Vec<Group>,
}

/// Numbers of functions in which nothing was decided, by the reason.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct UndecidedReport {
    unreached: u64,
    strange: u64,
    undecoded: u64,
    no_data: u64,
    unknown: u64,
}

/// What is known of an image before it is judged.
pub(crate) struct ImageFacts<'i> {
    pub(crate) file: &'i str,
    pub(crate) format: &'static str,
    /// Number of entries of call frame information that cannot be used.
    pub(crate) unusable: u32,
    pub(crate) dotnet: Option<String>,
    /// The languages with a convention of their own.
    pub(crate) conventions: Vec<&'static str>,
}

/// Returns the names of the languages that have a convention of their own.
pub(crate) fn conventions(layout: &Layout<'_>) -> Vec<&'static str> {
    let names: BTreeSet<_> = layout.languages.iter().map(|(_, it)| it.name()).collect();
    names.into_iter().collect()
}

impl ImageReport {
    pub(crate) fn new(facts: ImageFacts<'_>, report: &Report, failing: usize) -> Self {
        let ImageFacts { file, format, unusable, dotnet, conventions } = facts;
        let Report { totals, coverage, findings, .. } = report;
        let groups = groups(findings).map(|group| Group {
            blame: group.first().map_or("", |one| one.blame.name()),
            cause: group.first().map_or("", |one| one.cause.name()),
            functions: group.len(),
            instructions: group.iter().map(|one| one.instructions.len()).sum(),
            calls: group.iter().map(|one| one.calls).sum(),
        });
        let undecided = totals.undecided;
        Self {
            kind: "image",
            file: file.to_owned(),
            format,
            ranges: totals.ranges,
            bytes: totals.bytes,
            functions: totals.functions,
            entered_inside: totals.entered_inside,
            parts: totals.parts,
            executed_bytes: totals.executed_bytes,
            instructions: totals.instructions,
            right: totals.right,
            wrong: totals.wrong,
            not_judged: totals.not_judged,
            strange: totals.strange,
            unfollowed: totals.unfollowed,
            undecoded: totals.undecoded,
            unknown_jumps: totals.unknown_jumps,
            cut: totals.cut,
            unusable,
            code: coverage.code.saturating_sub(coverage.padding),
            described: coverage.described,
            undecided: UndecidedReport {
                unreached: undecided.unreached,
                strange: undecided.strange,
                undecoded: undecided.undecoded,
                no_data: undecided.no_data,
                unknown: undecided.unknown,
            },
            conventions,
            dotnet,
            findings: findings.len(),
            failing,
            groups: groups.collect(),
        }
    }

    /// Writes the figures as text.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { file, format, ranges, functions, instructions, right, .. } = self;
        let Self { wrong, not_judged, code, .. } = self;
        let style = if self.failing == 0 { GOOD } else { BAD };
        let made_by = self.dotnet.as_ref().map_or_else(String::new, |it| format!(" ({it})"));
        writeln!(
            out,
            "{HEAD}{file}{HEAD:#}: {format}{made_by}, ranges of unwind data: {ranges}, executed functions: \
             {functions}"
        )?;
        writeln!(
            out,
            "  {code} bytes of code: {} with unwind data, {} executed",
            percent(self.described, *code),
            percent(self.executed_bytes, *code)
        )?;
        writeln!(
            out,
            "  {instructions} instructions: {right} right, {style}{wrong} wrong{style:#}, \
             {not_judged} not judged"
        )?;
        if !self.conventions.is_empty() {
            let names = self.conventions.join(", ");
            writeln!(out, "  registers are judged by the convention of {names} in its functions")?;
        }
        let undecided = self.undecided;
        let reasons = [
            (undecided.unreached, "no call or known jump leads there"),
            (undecided.strange, "they switch stacks or return elsewhere"),
            (undecided.undecoded, "they begin with no known instruction"),
            (undecided.no_data, "they have no unwind data"),
            (undecided.unknown, "too little is known of the registers"),
        ];
        let count: u64 = reasons.iter().map(|(number, _)| number).sum();
        let reasons = reasons.iter().filter(|(number, _)| *number > 0);
        let reasons: Vec<_> = reasons.map(|(number, why)| format!("{number} ({why})")).collect();
        if count > 0 {
            let reasons = reasons.join(", ");
            writeln!(out, "  functions in which nothing was decided: {count}: {reasons}")?;
        }
        let left_out = [
            (self.unknown_jumps, "jumps with unknown targets within a frame"),
            (self.unfollowed, "calls that do not return"),
            (self.undecoded, "paths to bytes that are no known instruction"),
            (self.strange, "functions that switch stacks or return elsewhere"),
            (self.cut, "functions that are too large to be followed to the end"),
            (u64::from(self.unusable), "entries that cannot be used"),
        ];
        let left_out = left_out.iter().filter(|(number, ..)| *number > 0);
        let words = |(number, what): &(u64, &str)| format!("{what}: {number}");
        let left_out: Vec<_> = left_out.map(words).collect();
        let known = self.findings.saturating_sub(self.failing);
        if known > 0 {
            writeln!(out, "  findings that are allowed or known: {known}")?;
        }
        if !left_out.is_empty() {
            writeln!(out, "  {DIM}not judged, or not followed: {}{DIM:#}", left_out.join("; "))?;
        }
        Ok(())
    }
}

/// Returns a share in percent; entered functions without data may make it more than all.
fn percent(part: u64, whole: u64) -> String {
    let tenths = part.saturating_mul(1000).checked_div(whole).unwrap_or(0).min(1000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns the findings by what is wrong and kind.
pub(crate) fn groups(findings: &[Finding]) -> impl Iterator<Item = &[Finding]> {
    findings.chunk_by(|a, b| (a.blame, a.cause) == (b.blame, b.cause))
}

/// Writes the heading of a group.
pub(crate) fn write_heading(
    region: &CodeRegion<'_>,
    group: &[Finding],
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    let instructions: usize = group.iter().map(|one| one.instructions.len()).sum();
    let worst = group.iter().find(|one| one.calls > 0).unwrap_or(first);
    writeln!(out)?;
    let count = match (instructions, group.len()) {
        (0, 1) => String::new(),
        (0, entries) => format!(": {entries} entries"),
        (instructions, functions) => {
            let instructions = counted(instructions, "instruction", "instructions");
            format!(": {instructions} of {}", counted(functions, "function", "functions"))
        }
    };
    let (blame, cause) = (first.blame.name(), first.cause.name());
    let heading = heading(first.blame, first.cause);
    writeln!(out, "{BAD}{heading}{BAD:#} ({blame}, {cause}){count}")?;
    writeln!(out, "  {}", meaning(worst))?;
    let remedy = remedy(first.blame, first.cause, region.cfi().is_some());
    writeln!(out, "  {DIM}to mend it:{DIM:#} {remedy}")
}
