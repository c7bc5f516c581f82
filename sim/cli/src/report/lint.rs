//! The report of `clrsim lint`: findings in words, and the figures of an image.

use crate::render::cfi::Rules;
use crate::render::code::{Code, chain};
use crate::render::console::{BAD, DIM, GOOD, HEAD};
use crate::render::unwind_data::{Hex, operation};
use crate::render::version3;
use crate::render::words::counted;
use clr_lint::{Blame, Cause, Finding, Shown, Subject, Totals};
use clr_unwind::compact::Layout;
use clr_unwind::win64::Operation;
use clr_unwind::{CodeRegion, Trust};
use serde::Serialize;
use std::io::{self, Write};

/// A finding in words.
#[derive(Debug, Serialize)]
pub(crate) struct FindingReport {
    kind: &'static str,
    /// The image, as it was named.
    file: String,
    /// Name of the function, or one that is made of its RVA.
    function: String,
    /// RVA of the function's first byte.
    begin: Hex,
    /// RVA after its last byte.
    end: Hex,
    blame: &'static str,
    cause: &'static str,
    /// The first wrong part of the answer.
    subject: String,
    /// Number of instructions with a wrong answer.
    instructions: usize,
    /// Number of calls among them whose return address is unwound wrong.
    calls: u32,
    /// RVA of the first of the instructions.
    first: Hex,
    /// RVA of the last of the instructions.
    last: Hex,
    /// The first of the instructions.
    instruction: String,
    /// The unwind data that applies to it.
    in_force: String,
    /// The right answer there.
    expected: String,
    /// The unwinder's answer there.
    got: String,
    /// The consequence for a profiler.
    meaning: &'static str,
    /// The change that would make the answer right.
    remedy: &'static str,
}

impl FindingReport {
    pub(crate) fn new<'a>(code: &Code<'_, 'a>, region: &CodeRegion<'a>, finding: &Finding) -> Self {
        let first = finding.instructions.first().copied().unwrap_or(finding.function.start);
        let last = finding.instructions.last().copied().unwrap_or(first);
        let line = code.instruction(region.base().wrapping_add(u64::from(first)));
        let expected = match (finding.subject, finding.found.expected) {
            (Subject::StackPointer, Some(place)) => format!("caller's rsp = {place}"),
            (subject, Some(place)) => format!("{subject} in {place}"),
            (subject, None) => format!("{subject}, which is nowhere: it was overwritten"),
        };
        let got = match (finding.found.got, finding.found.error) {
            (Shown::Nothing, Some(error)) => error.to_string(),
            (got, _) => got.to_string(),
        };
        Self {
            kind: "finding",
            file: code.image.clone(),
            function: code.locate(region, finding.function.start).to_string(),
            begin: finding.function.start.into(),
            end: finding.function.end.into(),
            blame: finding.blame.name(),
            cause: finding.cause.name(),
            subject: finding.subject.to_string(),
            instructions: finding.instructions.len(),
            calls: finding.calls,
            first: first.into(),
            last: last.into(),
            instruction: line.map_or_else(String::new, |line| line.text),
            in_force: in_force(region, first, finding.found.trust),
            expected,
            got,
            meaning: meaning(finding),
            remedy: remedy(finding.blame, finding.cause, region.cfi().is_some()),
        }
    }

    /// Writes the finding as text.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { function, begin, end, first, last, instruction, .. } = self;
        let Self { in_force, expected, got, .. } = self;
        let count = counted(self.instructions, "instruction", "instructions");
        let range = if first == last { String::new() } else { format!("..{last}") };
        let calls = match self.calls {
            0 => String::new(),
            calls => format!(", {}", counted(calls, "call", "calls")),
        };
        writeln!(out)?;
        writeln!(out, "  {HEAD}{function}{HEAD:#} ({begin}..{end}): {count}{calls}")?;
        writeln!(out, "    {DIM}at{DIM:#}        {first}{range}  {instruction}")?;
        writeln!(out, "    {DIM}in force{DIM:#}  {in_force}")?;
        writeln!(out, "    {DIM}expected{DIM:#}  {expected}")?;
        writeln!(out, "    {DIM}got{DIM:#}       {got}")
    }
}

/// Returns the unwind data that applies at `rva`, in words.
fn in_force(region: &CodeRegion<'_>, rva: u32, trust: Option<Trust>) -> String {
    if let Some(words) = compact(region, rva) {
        return words;
    }
    if let Some(table) = region.cfi() {
        return match table.row(rva) {
            Ok(Some(row)) => Rules::new(table, &row).to_string(),
            Ok(None) => "no call frame information".to_owned(),
            Err(error) => error.to_string(),
        };
    }
    let Some(entry) = region.functions().find(rva) else {
        return "no RUNTIME_FUNCTION, so it counts as a leaf".to_owned();
    };
    if trust == Some(Trust::EpilogueInstructions) {
        return "the instructions from here on, which look like an epilogue".to_owned();
    }
    let mut words = Vec::new();
    for (depth, link) in chain(region, entry).into_iter().enumerate() {
        let Ok(info) = link.info else { break };
        let offset = rva.wrapping_sub(link.function.begin);
        if info.version() == 3 {
            let at = if depth > 0 { u32::MAX } else { rva };
            words.extend(version3::applying(&info, link.function, at).unwrap_or_default());
            continue;
        }
        for entry in info.codes().map_while(Result::ok) {
            let applies = depth > 0 || u32::from(entry.offset) <= offset;
            if applies && entry.operation != Operation::Epilog {
                words.push(operation(entry.operation, &info));
            }
        }
    }
    match words.as_slice() {
        [] => "no unwind code applies".to_owned(),
        words => format!("unwind codes: {}", words.join(", ")),
    }
}

/// Returns the compact unwind information that applies at `rva`, in words.
fn compact(region: &CodeRegion<'_>, rva: u32) -> Option<String> {
    let entry = match region.compact()?.find(rva) {
        Ok(entry) => entry?,
        Err(error) => return Some(error.to_string()),
    };
    let (frame, saved) = match entry.encoding.layout() {
        // Call frame information has it, or nothing does.
        Ok(Layout::Dwarf { .. } | Layout::Nothing) => return None,
        Err(problem) => return Some(problem.to_string()),
        Ok(Layout::FramePointer(saved)) => ("cfa = rbp+0x10, rbp = [cfa-0x10]".to_owned(), saved),
        Ok(Layout::Frameless { size, saved }) => (format!("cfa = rsp+{size:#x}"), saved),
        Ok(Layout::FramelessIndirect { size_at, saved, .. }) => {
            (format!("a frame of the size at {size_at:#x} in the function"), saved)
        }
    };
    let saved =
        saved.iter().map(|(register, below)| format!(", {} = [cfa-{below:#x}]", register.name()));
    Some(format!("compact unwind: {frame}{}", saved.collect::<String>()))
}

/// Returns the consequence for a profiler.
fn meaning(finding: &Finding) -> &'static str {
    let is_frame = matches!(finding.subject, Subject::Caller | Subject::StackPointer);
    match (finding.blame, finding.cause) {
        (Blame::WindowsRules, _) => {
            "RtlVirtualUnwind, and with it debuggers, ETW and most profilers, go wrong here; \
             clr-unwind with precise rules does not"
        }
        (Blame::Walker, _) => "clr-unwind goes wrong here, and could know better: please report it",
        (_, Cause::OwnReturnAddress) => {
            "right for code that is entered by a jump, as a hijacked or redirected thread does; if it \
             is called, its callers are lost"
        }
        (_, Cause::HandlerAlone) => {
            "every walk through the function goes wrong: only the dispatch of an exception asks the \
             handler"
        }
        (_, Cause::Refused) => "no unwinder can walk through the function",
        _ if !is_frame => {
            "the frames up to here are right, and so is the caller's place; its register is wrong, so a \
             frame further up that is computed from it is lost, and a seed with it is wrong"
        }
        _ if finding.calls > 0 => {
            "every stack that goes through one of the calls ends there or continues with wrong frames"
        }
        _ => {
            "a sample at one of these instructions ends there or continues with wrong frames; stacks that \
             go through calls of the function are right"
        }
    }
}

/// Returns the change that would make the answer right, in an image with call frame information or with
/// UNWIND_INFO.
const fn remedy(blame: Blame, cause: Cause, is_cfi: bool) -> &'static str {
    match (blame, cause, is_cfi) {
        (Blame::WindowsRules, ..) => {
            "end the function in a form that Windows documents for epilogues, or unwind with \
             clr-unwind's precise rules"
        }
        (Blame::Walker, ..) => "nothing in the image",
        (_, Cause::FrameGone, true) => {
            "let the rows end with the frame; in assembly .cfi_def_cfa_offset after each pop"
        }
        (_, Cause::FrameGone, false) => {
            "end the function in a form that Windows documents for epilogues; give code without the \
             frame a range of its own"
        }
        (_, Cause::FrameGrown, true) => {
            "describe each instruction that moves rsp; in assembly .cfi_adjust_cfa_offset"
        }
        (_, Cause::FrameGrown, false) => {
            "move rsp in the prologue alone, and describe it; in assembly .allocstack, .pushreg"
        }
        (_, Cause::RegisterLost, true) => {
            "save the register before it is overwritten, and say where; in assembly .cfi_offset"
        }
        (_, Cause::SavedElsewhere, true) => {
            "name the place that the register is saved in; in assembly .cfi_offset, .cfi_register"
        }
        (_, Cause::RegisterLost | Cause::SavedElsewhere, false) => {
            "save the register on the stack, in the prologue, and say where; in assembly .pushreg, \
             .savereg, .savexmm128"
        }
        (_, Cause::NoData, true) => "describe the function; in assembly .cfi_startproc",
        (_, Cause::NoData, false) => "describe the function; in assembly PROC FRAME",
        (_, Cause::HandlerAlone, _) => "describe the frame by unwind codes, beside the handler",
        (_, Cause::OwnReturnAddress, _) => "nothing, unless the function is called",
        (_, Cause::Refused, _) => "make the data legal; the error says where it is not",
        (_, Cause::Other, _) => "compare the function's unwind data with its code: clrsim show",
    }
}

/// Returns the words for a kind of difference.
const fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::FrameGone => "describes a frame, or a part of one, that is not there",
        Cause::FrameGrown => "does not describe that rsp was moved",
        Cause::RegisterLost => "does not say where an overwritten register was saved",
        Cause::SavedElsewhere => "says that a register is in another place than it is",
        Cause::NoData => "is missing, and the code is no leaf",
        Cause::HandlerAlone => "has no codes: only the handler knows the frame",
        Cause::OwnReturnAddress => "names a word that the function pushed itself as return address",
        Cause::Refused => "cannot be used",
        Cause::Other => "leads elsewhere",
    }
}

/// Returns the heading of findings of a kind.
fn heading(blame: Blame, cause: Cause) -> String {
    match blame {
        Blame::WindowsRules => "the rules of Windows give a wrong answer".to_owned(),
        Blame::Walker => "clr-unwind gives a wrong answer".to_owned(),
        Blame::Unknown => format!("perhaps the unwind data {}", words(cause)),
        Blame::Data => format!("the unwind data {}", words(cause)),
    }
}

/// The findings of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Group {
    blame: &'static str,
    cause: &'static str,
    functions: usize,
    instructions: usize,
    calls: u32,
}

/// The figures of an image.
#[derive(Debug, Serialize)]
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
    findings: usize,
    groups: Vec<Group>,
}

impl ImageReport {
    pub(crate) fn new(
        file: &str,
        format: &'static str,
        unusable: u32,
        totals: &Totals,
        findings: &[Finding],
    ) -> Self {
        let groups = groups(findings).map(|group| Group {
            blame: group.first().map_or("", |one| one.blame.name()),
            cause: group.first().map_or("", |one| one.cause.name()),
            functions: group.len(),
            instructions: group.iter().map(|one| one.instructions.len()).sum(),
            calls: group.iter().map(|one| one.calls).sum(),
        });
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
            findings: findings.len(),
            groups: groups.collect(),
        }
    }

    /// Writes the figures as text.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { file, format, ranges, functions, instructions, right, .. } = self;
        let Self { wrong, not_judged, .. } = self;
        let style = if self.findings == 0 { GOOD } else { BAD };
        writeln!(
            out,
            "{HEAD}{file}{HEAD:#}: {format}, ranges of unwind data: {ranges}, executed functions: \
             {functions}, {} of the code",
            percent(self.executed_bytes, self.bytes)
        )?;
        writeln!(
            out,
            "  {instructions} instructions: {right} right, {style}{wrong} wrong{style:#}, \
             {not_judged} not judged"
        )?;
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
        if self.ranges == 0 {
            writeln!(
                out,
                "  {BAD}the image has no unwind data: only leaf functions can be unwound{BAD:#}"
            )?;
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
    writeln!(
        out,
        "{BAD}{}{BAD:#} ({}, {}): {} of {}",
        heading(first.blame, first.cause),
        first.blame.name(),
        first.cause.name(),
        counted(instructions, "instruction", "instructions"),
        counted(group.len(), "function", "functions"),
    )?;
    writeln!(out, "  {}", meaning(worst))?;
    let remedy = remedy(first.blame, first.cause, region.cfi().is_some());
    writeln!(out, "  {DIM}to mend it:{DIM:#} {remedy}")
}
