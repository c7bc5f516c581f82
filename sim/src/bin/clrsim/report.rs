//! The report of a run, for people and as JSON.

use crate::code::{self, Code};
use crate::console::{BAD, Console, DIM, GOOD, HEAD, Trouble};
use crate::input::RECORDINGS;
use crate::recorded::{self, DifferentWalk, Walks};
use crate::unwind_data::{self, Function, Hex};
use crate::walks::FailedWalk;
use clr_sim::replay::{Difference, Failure, Verdict};
use clr_walker::unwind::Trust;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::AddAssign;

/// How many reasons of skipped walks are told.
const REASONS: usize = 5;

/// How many cases there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) cases: usize,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    /// Counts one case.
    pub(crate) const fn add(&mut self, verdict: &Verdict) {
        self.cases += 1;
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Failed(_) => self.failed += 1,
            Verdict::Skipped => self.skipped += 1,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.cases += other.cases;
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// What became of the cases of a file.
#[derive(Debug, Serialize)]
pub(crate) struct FileReport {
    file: String,
    kind: &'static str,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Only of recordings of walks.
    #[serde(flatten)]
    pub(crate) walks: Option<Walks>,
    /// The first of those that failed.
    pub(crate) failures: Vec<Explained>,
}

/// A failure of any kind of case.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Explained {
    /// Of a recorded unwind.
    Replay(FailedCase),
    /// Of a walk in a program.
    Walk(FailedWalk),
    /// Of a recorded walk.
    Recorded(DifferentWalk),
}

/// What became of all cases.
#[derive(Debug, Serialize)]
pub(crate) struct Total {
    kind: &'static str,
    /// How many files were replayed.
    files: usize,
    /// How many could not be.
    pub(crate) unreadable: usize,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

/// A case that failed, with what one needs to find out why.
#[derive(Debug, Serialize)]
pub(crate) struct FailedCase {
    case: usize,
    /// How many callers out the step began that failed.
    depth: u32,
    image: String,
    rip: Hex,
    /// The function and the distance from its start.
    function: String,
    instruction: Option<String>,
    /// How the walker took the frame, unless it gave an error.
    taken_for: Option<&'static str>,
    /// The heading of the unwind data.
    #[serde(skip)]
    title: &'static str,
    /// The function entry and its chain parents.
    unwind_data: Vec<Function>,
    differences: Vec<Differing>,
    /// The walker's error.
    error: Option<String>,
}

/// A value that is not as expected.
#[derive(Debug, Serialize)]
pub(crate) struct Differing {
    pub(crate) of: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl From<Difference> for Differing {
    fn from(difference: Difference) -> Self {
        Self {
            of: difference.of.to_string(),
            expected: Hex::from(difference.expected).to_string(),
            got: Hex::from(difference.got).to_string(),
        }
    }
}

impl FileReport {
    /// No cases yet.
    pub(crate) fn new(file: &str, kind: &'static str) -> Self {
        Self {
            file: file.to_owned(),
            kind,
            counts: Counts::default(),
            walks: None,
            failures: Vec::new(),
        }
    }

    /// What recordings that pass are counted under instead of having a line each: the generation,
    /// and a pattern of their names.
    fn group(&self) -> Option<(String, String)> {
        let walks = self.walks.as_ref().filter(|_| self.counts.failed == 0)?;
        let end = RECORDINGS.into_iter().find(|end| self.file.ends_with(end))?;
        let folder = self.file.rfind('/').map_or(0, |slash| slash + 1);
        Some((walks.generation.clone(), format!("{}*{end}", self.file.get(..folder)?)))
    }
}

impl FailedCase {
    /// What there is to tell of a failure in `code`.
    pub(crate) fn new(code: &Code<'_, '_>, case: usize, failure: &Failure) -> Self {
        let rip = failure.before.rip;
        let step = failure.got.ok().map(|(_, step)| step);
        // Further out rip is a return address, which may lie behind the function that called.
        let inside = rip.wrapping_sub(u64::from(failure.depth > 0));
        let (differences, error) = match failure.got {
            Ok((registers, step)) => (failure.expected.differences(&registers, &step), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Self {
            case,
            depth: failure.depth,
            image: code.image.clone(),
            rip: rip.into(),
            function: code.name(rip),
            instruction: code.instruction(rip).map(|line| line.text),
            taken_for: step.map(|step| unwind_data::trust(step.trust)),
            title: unwind_data::title(step.map(|step| step.trust)),
            unwind_data: unwind_data(code, inside, step.map(|step| step.trust)),
            differences: differences.into_iter().map(Differing::from).collect(),
            error,
        }
    }

    fn write(&self, file: &str, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let Self { case, depth, image, rip, function, .. } = self;
        writeln!(out, "\n{BAD}failed{BAD:#} {HEAD}{file} case {case}{HEAD:#}")?;
        let caller = match depth {
            0 => String::new(),
            depth => format!(", caller {depth} of the recorded frame"),
        };
        writeln!(out, "  at {rip} {function} in {image}{caller}")?;
        if let Some(instruction) = &self.instruction {
            writeln!(out, "  before the instruction: {instruction}")?;
        }
        if let Some(trust) = self.taken_for {
            writeln!(out, "  taken for: {trust}")?;
        }
        match self.unwind_data.as_slice() {
            [] => writeln!(out, "  no unwind data")?,
            links => {
                writeln!(out, "  {}:", self.title)?;
                for link in links {
                    link.write(out, "    ")?;
                }
            }
        }
        if let Some(error) = &self.error {
            writeln!(out, "  {BAD}error:{BAD:#} {error}")?;
        }
        write_differences(&self.differences, "  ", out)
    }
}

/// Writes a table of values that are not as expected.
pub(crate) fn write_differences(
    differences: &[Differing],
    indent: &str,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    let width = |of: fn(&Differing) -> usize| differences.iter().map(of).max().unwrap_or(0);
    let name = width(|row| row.of.len());
    let expected = width(|row| row.expected.chars().count()).max("expected".len());
    writeln!(out, "{indent}{DIM}{:name$}  {:expected$}  got{DIM:#}", "", "expected")?;
    for row in differences {
        let Differing { of, expected: value, got } = row;
        writeln!(out, "{indent}{of:name$}  {value:expected$}  {BAD}{got}{BAD:#}")?;
    }
    Ok(())
}

/// The function entry at `address` (VA) and its chain parents. If the codes decide about the frame,
/// those that have run are marked.
pub(crate) fn unwind_data(
    code: &Code<'_, '_>,
    address: u64,
    trust: Option<Trust>,
) -> Vec<Function> {
    let Some((region, rva)) = code.map.find(address) else {
        return Vec::new();
    };
    let Some(entry) = region.functions().find(rva) else {
        return Vec::new();
    };
    let by_codes = !unwind_data::is_epilogue(trust);
    let words = |link| {
        let function = Function::new(code, region, link);
        if by_codes { function.marked_at(rva, link) } else { function }
    };
    code::chain(region, entry).iter().map(words).collect()
}

/// Writes the report as it comes.
pub(crate) struct Reporter {
    json: bool,
    rules: &'static str,
    total: Total,
    /// Recordings whose lines are still to be written.
    groups: BTreeMap<(String, String), Group>,
    /// What is explained below the table.
    files: Vec<FileReport>,
}

/// Files that share a line.
struct Group {
    counts: Counts,
    files: usize,
    first: String,
}

impl Reporter {
    /// A report of a replay under these rules.
    pub(crate) const fn new(json: bool, rules: &'static str) -> Self {
        let counts = Counts { cases: 0, passed: 0, failed: 0, skipped: 0 };
        let total = Total { kind: "total", files: 0, unreadable: 0, counts };
        Self { json, rules, total, groups: BTreeMap::new(), files: Vec::new() }
    }

    /// Before the first file.
    pub(crate) fn begin(&self, console: &mut Console<'_>) -> Result<(), Trouble> {
        if !self.json {
            writeln!(console.out, "Replaying under {} rules:\n", self.rules)?;
            writeln!(
                console.out,
                "{DIM}        {:13}  {:>7}  {:>7}  {:>7}  {:>7}  file{DIM:#}",
                "kind", "cases", "passed", "failed", "skipped"
            )?;
        }
        Ok(())
    }

    /// A file has been replayed.
    pub(crate) fn file(
        &mut self,
        file: FileReport,
        console: &mut Console<'_>,
    ) -> Result<(), Trouble> {
        self.total.files += 1;
        self.total.counts += file.counts;
        if self.json {
            write_json(&file, console)?;
        } else {
            if let Some(key) = file.group() {
                let none = Group { counts: Counts::default(), files: 0, first: file.file.clone() };
                let group = self.groups.entry(key).or_insert(none);
                group.counts += file.counts;
                group.files += 1;
            } else {
                if file.walks.is_none() {
                    self.write_groups(console)?;
                }
                write_row(file.kind, file.counts, &file.file, console)?;
            }
            self.files.push(file);
        }
        // Whoever looks on wants to see what is done.
        Ok(console.out.flush()?)
    }

    /// The recordings since the last file of another kind.
    fn write_groups(&mut self, console: &mut Console<'_>) -> Result<(), Trouble> {
        for ((generation, pattern), group) in std::mem::take(&mut self.groups) {
            let name = match group.files {
                1 => group.first,
                files => format!("{pattern} of {generation} ({files} files)"),
            };
            write_row(recorded::KIND, group.counts, &name, console)?;
        }
        Ok(())
    }

    /// Why walks were skipped, the most frequent reasons first.
    fn write_reasons(&self, console: &mut Console<'_>) -> Result<(), Trouble> {
        let mut counts = BTreeMap::new();
        for walk in self.files.iter().filter_map(|file| file.walks.as_ref()) {
            for skipped in &walk.skipped_walks {
                *counts.entry(skipped.reason.as_str()).or_insert(0_usize) += 1;
            }
        }
        let mut reasons: Vec<_> = counts.into_iter().collect();
        reasons.sort_by_key(|(_, count)| Reverse(*count));
        if !reasons.is_empty() {
            writeln!(console.out, "\nskipped walks, by what their recordings say:")?;
        }
        let rest = reasons.split_off(reasons.len().min(REASONS));
        for (reason, count) in reasons {
            writeln!(console.out, "{count:>7}  {reason}")?;
        }
        if !rest.is_empty() {
            let count: usize = rest.iter().map(|(_, count)| count).sum();
            writeln!(console.out, "{count:>7}  for other reasons (--json tells them)")?;
        }
        Ok(())
    }

    /// A file could not be replayed.
    pub(crate) fn unreadable(&mut self, trouble: &Trouble, console: &mut Console<'_>) {
        self.total.unreadable += 1;
        console.complain(trouble);
    }

    /// After the last file.
    pub(crate) fn finish(mut self, console: &mut Console<'_>) -> Result<Total, Trouble> {
        if self.json {
            write_json(&self.total, console)?;
            return Ok(self.total);
        }
        self.write_groups(console)?;
        for file in &self.files {
            for case in &file.failures {
                match case {
                    Explained::Replay(case) => case.write(&file.file, console.out)?,
                    Explained::Walk(walk) => walk.write(&file.file, console.out)?,
                    Explained::Recorded(walk) => walk.write(&file.file, console.out)?,
                }
            }
            let silent = file.counts.failed - file.failures.len();
            if silent > 0 {
                writeln!(
                    console.out,
                    "\n{} more failed in {} (--max-failures tells how many are explained)",
                    silent, file.file
                )?;
            }
        }
        self.write_reasons(console)?;
        let Total { files, unreadable, counts, .. } = &self.total;
        let Counts { cases, passed, failed, skipped } = counts;
        let (style, word) =
            if *failed + *unreadable == 0 { (GOOD, "passed") } else { (BAD, "failed") };
        let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        write!(
            console.out,
            "\n{style}{word}{style:#}: {files}, {cases} cases: {passed} passed, {failed} failed, \
             {skipped} skipped (no answer is expected)"
        )?;
        if *unreadable > 0 {
            let s = if *unreadable == 1 { "" } else { "s" };
            write!(console.out, "; {unreadable} file{s} could not be read")?;
        }
        writeln!(console.out)?;
        Ok(self.total)
    }
}

/// Writes a line of the table.
fn write_row(
    kind: &str,
    counts: Counts,
    name: &str,
    console: &mut Console<'_>,
) -> Result<(), Trouble> {
    let Counts { cases, passed, failed, skipped } = counts;
    let (style, word) = if failed == 0 { (GOOD, "ok") } else { (BAD, "FAILED") };
    Ok(writeln!(
        console.out,
        "{style}{word:6}{style:#}  {kind:13}  {cases:>7}  {passed:>7}  {failed:>7}  \
         {skipped:>7}  {name}"
    )?)
}

/// Writes `value` on a line of its own.
pub(crate) fn write_json(value: &impl Serialize, console: &mut Console<'_>) -> Result<(), Trouble> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    Ok(writeln!(console.out, "{text}")?)
}
