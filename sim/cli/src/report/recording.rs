//! Recordings in a run: replayed walks of real CLRs.

use crate::render::console::{BAD, HEAD};

use crate::input::Source;
use crate::render::differences::{Differing, write_differences};
use crate::render::error::CliError;
use crate::render::unwind_data::Hex;
use crate::render::words::counted;
use crate::report::{FileReport, Finding};
use clr_recording::{
    CallbackLine, RecordedCallback, RecordedCode, Recording, RecordingError, RecordingProblem,
    RecordingReplay, ResultLine, WalkDifference, WalkLine, WalkVerdict,
};
use clr_runtime::Context;
use clr_runtime::profiling::HResult;
use clr_unwind::Gpr;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::io::{self, Write};

/// Kind of recordings in the table.
pub(crate) const KIND: &str = "clr-walks";

/// The part of a report that only recordings have.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Walks {
    /// The recorded runtime.
    pub(crate) generation: String,
    /// Number of replayable walks with state that was inferred from their results.
    #[serde(rename = "inferred_walks")]
    pub(crate) inferred: usize,
    /// Number of the last line, if it is cut.
    #[serde(rename = "cut_line", skip_serializing_if = "Option::is_none")]
    pub(crate) cut: Option<usize>,
    #[serde(rename = "skipped_walks")]
    pub(crate) skipped: Vec<SkippedWalk>,
}

/// A walk whose replay may differ from the recording.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct SkippedWalk {
    #[serde(flatten)]
    title: Title,
    /// Reason given by the recording.
    pub(crate) reason: String,
}

/// A walk whose replay differs from the recording.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct DifferentWalk {
    #[serde(flatten)]
    title: Title,
    #[serde(skip)]
    generation: String,
    /// Result of the recorded call.
    recorded: String,
    recorded_callbacks: usize,
    /// The first callback that differs; `None` if only the result does.
    callback: Option<DifferentCallback>,
    differences: Vec<Differing>,
}

/// Number and situation of a walk.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Title {
    n: u32,
    situation: String,
    variant: String,
}

/// A callback in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct DifferentCallback {
    index: u32,
    /// The recorded callback; `None` if there are more than recorded, or its data were not
    /// recorded.
    recorded: Option<String>,
    /// The callback of the replay; `None` if there are fewer than recorded.
    found: Option<String>,
}

/// Replays the walks of a recording. The report explains at most `max_failures`.
pub(crate) fn run(source: &Source, max_failures: usize) -> Result<FileReport, CliError> {
    let text = source.read_content()?;
    let recording = Recording::parse(&text).map_err(|error| source.error(problem(&error)))?;
    let code = RecordedCode::new(&recording);
    let mut replay =
        RecordingReplay::new(&recording, &code).map_err(|error| source.error(error))?;
    let mut report = FileReport::new(&source.name, KIND);
    let mut skipped_walks = Vec::new();
    for walk in &recording.walks {
        report.counts.cases += 1;
        match replay.walk(walk, |_| {}) {
            _ if !walk.replayable => {
                report.counts.skipped += 1;
                skipped_walks.push(SkippedWalk::new(walk));
            }
            WalkVerdict::Same => report.counts.passed += 1,
            WalkVerdict::Different(difference) => {
                report.counts.failed += 1;
                if report.failures.len() < max_failures {
                    let walk = DifferentWalk::new(&recording, walk, &difference);
                    report.explain(walk);
                }
            }
        }
    }
    report.walks = Some(Walks {
        generation: recording.generation.to_string(),
        inferred: recording.inferred_walks(),
        cut: recording.cut,
        skipped: skipped_walks,
    });
    Ok(report)
}

/// Returns the message of an error. The JSON reader gets each line alone and calls it line 1.
pub(crate) fn problem(error: &RecordingError) -> String {
    match &error.problem {
        RecordingProblem::Json(text) => match text.rsplit_once(" at line 1 column ") {
            Some((text, column)) => format!("line {}, column {column}: {text}", error.line),
            None => error.to_string(),
        },
        _ => error.to_string(),
    }
}

impl Title {
    fn new(walk: &WalkLine) -> Self {
        Self { n: walk.n, situation: walk.situation.clone(), variant: walk.variant.clone() }
    }
}

impl SkippedWalk {
    fn new(walk: &WalkLine) -> Self {
        let reason = walk.why.as_deref().unwrap_or("the recording does not say why");
        Self { title: Title::new(walk), reason: reason.to_owned() }
    }
}

impl DifferentWalk {
    pub(crate) fn new(recording: &Recording, walk: &WalkLine, difference: &WalkDifference) -> Self {
        let result = &walk.result;
        let recorded_callbacks =
            result.callback_count.map_or(result.callbacks.len(), |count| count as usize);
        let ends = |found: String| (None, vec![differing("result", recorded_end(result), found)]);
        let (callback, differences) = match difference {
            WalkDifference::Outcome(found) => ends(found.to_string()),
            WalkDifference::Nested { outcome, callbacks } => {
                let nested = recording.nested(walk);
                let hr = nested.and_then(|nested| nested.hr);
                let hr = hr.map_or_else(String::new, |hr| HResult(hr.0 as u32).to_string());
                let count = nested.and_then(|nested| nested.callback_count);
                let count = count.map_or_else(String::new, |count| count.to_string());
                let mut rows = vec![
                    differing("result of the nested call", hr, outcome.to_string()),
                    differing("callbacks of the nested call", count, callbacks.to_string()),
                ];
                rows.retain(|row| row.expected != row.got);
                (None, rows)
            }
            WalkDifference::Memory { address } => {
                ends(format!("no result: needs memory at {address:#x}, which was not recorded"))
            }
            WalkDifference::Load(error) => ends(error.to_string()),
            WalkDifference::Callback { index, found } => {
                let recorded = result.callbacks.get(*index as usize);
                let found = found.as_deref();
                let callback = DifferentCallback {
                    index: *index,
                    recorded: recorded
                        .map(|callback| place(recording, callback.function, callback.ip.0)),
                    found: found
                        .map(|callback| place(recording, number(recording, callback), callback.ip)),
                };
                let rows = match (recorded, found) {
                    (Some(recorded), Some(found)) => fields(recording, recorded, found),
                    _ => Vec::new(),
                };
                (Some(callback), rows)
            }
            WalkDifference::Count(count) => (
                None,
                vec![differing("callbacks", recorded_callbacks.to_string(), count.to_string())],
            ),
        };
        Self {
            title: Title::new(walk),
            generation: recording.generation.to_string(),
            recorded: recorded_end(result),
            recorded_callbacks,
            callback,
            differences,
        }
    }

    /// Writes the recorded result and the differences from it.
    pub(crate) fn write_differences(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let count = self.recorded_callbacks;
        let callbacks = counted(count, "callback", "callbacks");
        writeln!(out, "  recorded: {} after {callbacks}", self.recorded)?;
        if let Some(callback) = &self.callback {
            callback.write(count, out)?;
        }
        write_differences(&self.differences, "  ", out)
    }
}

impl Finding for DifferentWalk {
    fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let Title { n, situation, variant } = &self.title;
        writeln!(out, "\n{BAD}failed{BAD:#} {HEAD}{file} walk {n}{HEAD:#}")?;
        writeln!(out, "  {situation}, {variant}, of {}", self.generation)?;
        self.write_differences(out)
    }

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(self)
    }
}

impl DifferentCallback {
    fn write(&self, count: usize, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let Self { index, recorded, found } = self;
        match (recorded, found) {
            (Some(recorded), Some(_)) => {
                let last = count.saturating_sub(1);
                writeln!(out, "  callback {index} of 0 to {last} differs: {recorded}")
            }
            (None, Some(found)) => {
                writeln!(out, "  callback {index} is {BAD}one too many{BAD:#}: {found}")
            }
            (recorded, None) => {
                write!(out, "  callback {index} is {BAD}missing{BAD:#}")?;
                match recorded {
                    Some(recorded) => writeln!(out, ": {recorded}"),
                    None => writeln!(out),
                }
            }
        }
    }
}

fn differing(of: &str, expected: String, got: String) -> Differing {
    Differing { of: of.to_owned(), expected, got }
}

fn differing_number(of: &str, expected: impl Into<Hex>, got: impl Into<Hex>) -> Differing {
    differing(of, expected.into().to_string(), got.into().to_string())
}

/// Returns the result of the recorded call in words.
pub(crate) fn recorded_end(result: &ResultLine) -> String {
    match (result.hr, &result.killed) {
        (Some(hr), _) => match u32::try_from(hr.0) {
            Ok(number) => HResult(number).to_string(),
            Err(_) => Hex::from(hr.0).to_string(),
        },
        (None, Some(killed)) => format!("the process died ({killed})"),
        (None, None) => "no result".to_owned(),
    }
}

/// Returns the recording's number for the function of a callback.
fn number(recording: &Recording, callback: &RecordedCallback) -> Option<u32> {
    let id = callback.function?;
    Some(recording.function_by_id(id).map_or(u32::MAX, |function| function.id))
}

/// Returns the place of a callback in words.
fn place(recording: &Recording, function: Option<u32>, ip: u64) -> String {
    format!("{} at {ip:#x}", name(recording, function))
}

/// Returns the name of a function, with its number because methods can share a name.
fn name(recording: &Recording, function: Option<u32>) -> String {
    match function {
        None => "marker".to_owned(),
        Some(id) => match recording.function(id) {
            Some(function) => format!("{} (function {id})", function.name),
            None => format!("function {id}"),
        },
    }
}

/// Returns a pointer in words.
fn presence(given: bool) -> String {
    if given { "not null" } else { "null" }.to_owned()
}

/// Returns the fields of a callback that differ from the recorded ones.
fn fields(
    recording: &Recording,
    recorded: &CallbackLine,
    found: &RecordedCallback,
) -> Vec<Differing> {
    let function = number(recording, found);
    let mut rows = vec![
        differing("function", name(recording, recorded.function), name(recording, function)),
        differing_number("ip", recorded.ip.0, found.ip),
        differing("frameInfo", presence(recorded.frame_info), presence(found.frame_info)),
        differing_number("context size", recorded.context_size, found.context_size),
    ];
    match (&recorded.registers, &found.context) {
        (Some(registers), Some(Context { registers: found, flags })) => {
            let names = Gpr::ALL.map(Gpr::name).into_iter().chain(["rip"]);
            let values = Gpr::ALL.map(|register| found.get(register)).into_iter();
            let values = values.chain([found.rip]);
            rows.extend(
                names
                    .zip(registers)
                    .zip(values)
                    .map(|((name, recorded), found)| differing_number(name, recorded.0, found)),
            );
            rows.extend(
                recorded
                    .context_flags
                    .map(|recorded| differing_number("ContextFlags", recorded.0, *flags)),
            );
        }
        (Some(_), None) => {
            rows.push(differing("context", "delivered".to_owned(), "none".to_owned()));
        }
        (None, _) => {}
    }
    rows.retain(|row| row.expected != row.got);
    if rows.is_empty() {
        // All other fields are the same.
        let recorded = recorded.native.clone().unwrap_or_else(|| "in no module".to_owned());
        rows.push(differing("native code", recorded, "another module or offset".to_owned()));
    }
    rows
}
