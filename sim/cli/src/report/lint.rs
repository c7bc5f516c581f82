//! The report of `clrsim lint`: findings in words, and the figures of an image.

mod fingerprint;
mod image;
mod sarif;
mod words;

use crate::render::cfi::Rules;
use crate::render::code::{Code, chain};
use crate::render::console::{DIM, HEAD};
use crate::render::unwind_data::{Hex, operation};
use crate::render::version3;
use crate::render::words::counted;
use clr_lint::{Finding, Shown, Subject};
use clr_unwind::compact::Layout;
use clr_unwind::win64::Operation;
use clr_unwind::{CodeRegion, Trust};
use serde::Serialize;
use std::io::{self, Write};
use words::{expected_of_tables, meaning, remedy};

pub(crate) use fingerprint::Fingerprint;

pub(crate) use image::{ImageFacts, ImageReport, conventions, groups, write_heading};
pub(crate) use sarif::Sarif;

/// A finding in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
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
    /// A number that stays as it is when the image is built anew.
    fingerprint: Fingerprint,
    /// True if findings of this kind do not fail.
    allowed: bool,
    /// True if the baseline has it.
    known: bool,
}

impl FindingReport {
    pub(crate) fn new<'a>(code: &Code<'_, 'a>, region: &CodeRegion<'a>, finding: &Finding) -> Self {
        let first = finding.instructions.first().copied().unwrap_or(finding.function.start);
        let last = finding.instructions.last().copied().unwrap_or(first);
        let line = code.instruction(region.base().wrapping_add(u64::from(first)));
        let of_tables = finding.cause.is_of_tables().then(|| expected_of_tables(finding));
        let expected = match (finding.subject, finding.found.expected) {
            (Subject::StackPointer, Some(place)) => format!("caller's rsp = {place}"),
            (subject, Some(place)) => format!("{subject} in {place}"),
            (subject, None) => format!("{subject}, which is nowhere: it was overwritten"),
        };
        let got = match (finding.found.got, finding.found.error) {
            (Shown::Nothing, Some(error)) => error.to_string(),
            (got, _) => got.to_string(),
        };
        let is_of_tables = of_tables.is_some();
        let (expected, got) = of_tables.unwrap_or((expected, got));
        let line = line.filter(|_| !is_of_tables);
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
            in_force: if is_of_tables {
                String::new()
            } else {
                in_force(region, first, finding.found.trust)
            },
            expected,
            got,
            meaning: meaning(finding),
            remedy: remedy(finding.blame, finding.cause, region.cfi().is_some()),
            fingerprint: Fingerprint::new(code, region, finding),
            allowed: false,
            known: false,
        }
    }

    /// Returns the finding with what is known of it beforehand.
    pub(crate) fn with_state(self, allowed: bool, known: bool) -> Self {
        Self { allowed, known, ..self }
    }

    /// Returns true if the baseline has it.
    pub(crate) const fn is_known(&self) -> bool {
        self.known
    }

    /// Returns true if the run fails by it.
    pub(crate) const fn fails(&self) -> bool {
        !self.allowed && !self.known
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
        if self.instructions == 0 {
            writeln!(out, "  {HEAD}{function}{HEAD:#} ({begin}..{end})")?;
        } else {
            writeln!(out, "  {HEAD}{function}{HEAD:#} ({begin}..{end}): {count}{calls}")?;
            writeln!(out, "    {DIM}at{DIM:#}        {first}{range}  {instruction}")?;
            writeln!(out, "    {DIM}in force{DIM:#}  {in_force}")?;
        }
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
