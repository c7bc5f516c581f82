//! Recorded unwinds in a run.

use crate::render::code::{self, Code};
use crate::render::console::{BAD, HEAD};
use crate::render::differences::{Differing, write_differences};
use crate::render::unwind_data::{self, Function, Hex};
use crate::report::Finding;
use clr_recording::vectors::replay::VectorFailure;
use clr_unwind::Trust;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::io::{self, Write};

/// A failed unwind with its code and unwind data.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct FailedCase {
    case: usize,
    /// Number of callers between the recorded frame and the failed step.
    depth: u32,
    image: String,
    rip: Hex,
    /// Function with the offset in bytes from its start.
    function: String,
    instruction: Option<String>,
    /// The walker's view of the frame, unless it gave an error.
    taken_for: Option<&'static str>,
    /// Heading of the unwind data.
    #[serde(skip)]
    title: &'static str,
    /// The function entry and its chain parents.
    unwind_data: Vec<Function>,
    differences: Vec<Differing>,
    /// Error of the walker.
    error: Option<String>,
}

impl FailedCase {
    /// Creates the description of a failure in `code`.
    pub(crate) fn new(code: &Code<'_, '_>, case: usize, failure: &VectorFailure) -> Self {
        let rip = failure.before.rip;
        let step = failure.got.ok().map(|(_, step)| step);
        // In a caller, rip is a return address, which may lie after the end of the function.
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
}

impl Finding for FailedCase {
    fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
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

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(self)
    }
}

/// Returns the function entry at `address` (VA) and its chain parents. If the codes decide about
/// the frame, those that have run are marked.
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
