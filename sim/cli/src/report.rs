//! What a run tells of a file, for people and as JSON.

use crate::code::{self, Code};
use crate::console::{BAD, Console, DIM, HEAD, Trouble};
use crate::mixed::FailedMixed;
use crate::recorded::{DifferentWalk, Walks};
use crate::searched::FailedSearch;
use crate::snapshots::{FailedSnapshot, Summary};
use crate::unwind_data::{self, Function, Hex};
use crate::walks::FailedWalk;
use clr_recording::vectors::replay::{VectorDifference, VectorFailure, VectorVerdict};
use clr_walker::unwind::Trust;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::AddAssign;

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
    pub(crate) const fn add(&mut self, verdict: &VectorVerdict) {
        self.cases += 1;
        match verdict {
            VectorVerdict::Passed => self.passed += 1,
            VectorVerdict::Failed(_) => self.failed += 1,
            VectorVerdict::Skipped => self.skipped += 1,
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
    pub(crate) file: String,
    pub(crate) kind: &'static str,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Only of recordings of walks.
    #[serde(flatten)]
    pub(crate) walks: Option<Walks>,
    /// Only of texts with snapshots.
    #[serde(flatten)]
    pub(crate) scenario: Option<Summary>,
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
    /// Of a snapshot of a text.
    Snapshot(FailedSnapshot),
    /// Of a walk of a whole stack in a text.
    Mixed(FailedMixed),
    /// Of a search of the histories of a text.
    Search(FailedSearch),
}

impl Explained {
    /// How many cases it explains.
    pub(crate) fn cases(&self) -> usize {
        match self {
            Self::Replay(_) | Self::Walk(_) | Self::Recorded(_) => 1,
            Self::Snapshot(failed) => failed.cases(),
            Self::Mixed(failed) => failed.cases(),
            Self::Search(failed) => failed.cases(),
        }
    }

    /// Writes the explanation.
    pub(crate) fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Replay(case) => case.write(file, out),
            Self::Walk(walk) => walk.write(file, out),
            Self::Recorded(walk) => walk.write(file, out),
            Self::Snapshot(failed) => failed.write(file, out),
            Self::Mixed(failed) => failed.write(file, out),
            Self::Search(failed) => failed.write(file, out),
        }
    }
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

impl From<VectorDifference> for Differing {
    fn from(difference: VectorDifference) -> Self {
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
            scenario: None,
            failures: Vec::new(),
        }
    }
}

impl FailedCase {
    /// What there is to tell of a failure in `code`.
    pub(crate) fn new(code: &Code<'_, '_>, case: usize, failure: &VectorFailure) -> Self {
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

/// The version of what is printed as JSON; `schema.md` tells what that is. What is added to it changes
/// nothing for who reads it; what is taken away or means something else makes a new version.
pub(crate) const SCHEMA: &str = "clrsim/1";

/// An object with the version in front.
#[derive(Serialize)]
struct Versioned<'v, T> {
    schema: &'static str,
    #[serde(flatten)]
    value: &'v T,
}

/// Writes `value`, an object, on a line of its own.
pub(crate) fn write_json(value: &impl Serialize, console: &mut Console<'_>) -> Result<(), Trouble> {
    let value = Versioned { schema: SCHEMA, value };
    let text = serde_json::to_string(&value).map_err(io::Error::from)?;
    Ok(writeln!(console.out, "{text}")?)
}
