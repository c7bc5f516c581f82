//! Recorded sequences of callbacks in a run: each is compared with what the simulated runtimes do with the program of
//! its name.

use crate::input::Source;
use crate::render::console::{BAD, HEAD};
use crate::render::error::CliError;
use crate::report::{FileReport, Finding};
use clr_recording::{Sequence, SequenceDifference, SequenceRuntime};
use clr_scenario::Scenario;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::io::{self, Write};

/// Kind of sequences in the table.
pub(crate) const KIND: &str = "callbacks";

/// The table of differences that are known: file, runtime and reason.
const KNOWN: &str = "sequences/known.tsv";

/// A sequence that did not come out.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct FailedSequence {
    shape: String,
    runtime: String,
    #[serde(flatten)]
    what: Failure,
}

/// The reason why a sequence fails.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Failure {
    /// The first line that differs.
    Differs { line: usize, expected: Option<String>, got: Option<String> },
    /// The sequence was not looked at, for this reason.
    NotCompared(String),
    /// The difference is known, for this reason, but there is none.
    NoLongerDiffers(String),
}

/// Compares a sequence with what each of its runtimes does. The report explains at most `max_failures`.
pub(crate) fn run(source: &Source, max_failures: usize) -> Result<FileReport, CliError> {
    let text = source.read_text()?;
    let recorded = Sequence::parse(&text).map_err(|error| source.error(error))?;
    let mut report = FileReport::new(&source.name, KIND);
    let program = program(source, &recorded);
    for runtime in &recorded.runtimes {
        report.counts.cases += 1;
        let failure = match &program {
            Ok(scenario) => compare(scenario, &recorded, runtime),
            Err(reason) => Some(Failure::NotCompared(reason.clone())),
        };
        let known = known(source, runtime);
        let what = match (failure, known) {
            (None, None) => {
                report.counts.passed += 1;
                continue;
            }
            (Some(Failure::Differs { .. }), Some(_)) => {
                report.counts.skipped += 1;
                continue;
            }
            (None, Some(reason)) => Failure::NoLongerDiffers(reason.to_owned()),
            (Some(failure), _) => failure,
        };
        report.counts.failed += 1;
        if report.failures.len() < max_failures {
            let (shape, runtime) = (recorded.shape.clone(), runtime.name.clone());
            report.explain(FailedSequence { shape, runtime, what });
        }
    }
    Ok(report)
}

/// Returns the program of a sequence: the text of its name beside it, or the embedded one.
fn program(source: &Source, recorded: &Sequence) -> Result<Scenario, String> {
    let name = format!("{}.kdl", recorded.shape);
    let text = source.beside(&name).or_else(|| Source::embedded(&format!("sequences/{name}")));
    let text = text.ok_or_else(|| format!("there is no text sequences/{name} of its program"))?;
    let read = text.read_text().map_err(|error| error.to_string())?;
    Scenario::parse(&read).map_err(|error| format!("{}: {error}", text.name))
}

fn compare(scenario: &Scenario, recorded: &Sequence, runtime: &SequenceRuntime) -> Option<Failure> {
    let Some(generation) = runtime.generation else {
        return Some(Failure::NotCompared(format!("{} is not simulated", runtime.name)));
    };
    match scenario.sequence_on(generation, recorded) {
        Err(error) => Some(Failure::NotCompared(error.to_string())),
        Ok(simulated) => recorded.compare(&simulated.lines).map(|difference| {
            let SequenceDifference { index, expected, got } = difference;
            let [expected, got] = [expected, got].map(|line| line.map(|line| line.to_string()));
            Failure::Differs { line: index, expected, got }
        }),
    }
}

/// Returns the reason why a sequence is known to differ on a runtime.
fn known(source: &Source, runtime: &SequenceRuntime) -> Option<&'static str> {
    let table = std::str::from_utf8(clr_fixtures::get(KNOWN)?).ok()?;
    let file = crate::input::end_of(&source.name);
    let mut rows = table.lines().map(|row| row.splitn(3, '\t'));
    rows.find_map(|mut row| {
        let is_it = row.next() == Some(file) && row.next() == Some(runtime.name.as_str());
        row.next().filter(|_| is_it)
    })
}

impl Finding for FailedSequence {
    fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{BAD}failed{BAD:#} {HEAD}{file}{HEAD:#} on {}", self.runtime)?;
        match &self.what {
            Failure::Differs { line, expected, got } => {
                let end = "the end of the sequence";
                writeln!(out, "  line {line} differs")?;
                writeln!(out, "    expected {}", expected.as_deref().unwrap_or(end))?;
                writeln!(out, "    got      {}", got.as_deref().unwrap_or(end))
            }
            Failure::NotCompared(reason) => writeln!(out, "  {BAD}not looked at{BAD:#}: {reason}"),
            Failure::NoLongerDiffers(reason) => {
                writeln!(out, "  {KNOWN} says that it differs ({reason}), but it does not")
            }
        }
    }

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(self)
    }
}
