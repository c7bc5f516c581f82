//! `clrsim host --trace` and `--compare`: all calls of a profiler, written and compared.

use crate::args::HostArgs;
use crate::input::{Source, slashed};
use crate::render::console::{BAD, Console, DIM, GOOD, HEAD};
use crate::render::error::CliError;
use crate::render::json::{escaped, write_json};
use crate::render::words::counted;
use clr_guest::Sink;
use clr_runtime::generation::Generation;
use clr_trace::{Comparison, Difference, IdKind, LeftOut, Trace, TraceError, as_text, compare};
use clrsim::Session;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// The end of the names of files with lines of JSON.
const LINES: &str = ".jsonl";
/// The file that stands for the terminal.
const TERMINAL: &str = "-";

/// Returns the sink of a process that writes lines into a file, each before the profiler goes on.
pub(super) fn sink(path: &Path) -> io::Result<Sink> {
    let mut file = File::options().append(true).open(path)?;
    Ok(Box::new(move |line| {
        let Ok(mut text) = serde_json::to_string(line) else { return };
        text.push('\n');
        // A failure is ignored, as in the journal: the end of the trace is missing.
        let _: io::Result<()> = file.write_all(text.as_bytes());
    }))
}

/// The trace that is asked for.
pub(super) struct Asked<'a> {
    args: &'a HostArgs,
    /// The trace to compare with, and its file.
    there: Option<(Source, Trace)>,
}

impl<'a> Asked<'a> {
    /// Reads and checks what is asked for; `None` for nothing.
    pub(super) fn new(args: &'a HostArgs, runtimes: usize) -> Result<Option<Self>, CliError> {
        if args.trace.is_none() && args.compare.is_none() {
            return Ok(None);
        }
        if runtimes != 1 {
            let what = "--trace and --compare are about one runtime: name it with --on";
            return Err(CliError::Text(what.to_owned()));
        }
        if let Some(path) = args.trace.as_deref().filter(|path| *path != Path::new(TERMINAL)) {
            args.draw.replacing.check(path)?;
        }
        let there = args.compare.as_deref().map(read).transpose()?;
        Ok(Some(Self { args, there }))
    }

    /// Writes the trace, and compares it. Returns true unless there is a difference.
    pub(super) fn finish(
        &self,
        lines: &str,
        text: &str,
        generation: Generation,
        console: &mut Console<'_>,
    ) -> Result<bool, CliError> {
        if let Some(path) = &self.args.trace {
            self.write(path, lines, console)?;
        }
        let Some((source, there)) = &self.there else { return Ok(true) };
        let here = Trace::read(lines).map_err(|error| broken(&error))?;
        let all = names(text, generation)?;
        let is_named = |kind: IdKind, name: &str| {
            let at = match kind {
                IdKind::Function => 0,
                IdKind::Class => 1,
                IdKind::Module => 2,
                IdKind::Assembly => 3,
                IdKind::AppDomain | IdKind::Thread | IdKind::OsThread => return true,
            };
            all.get(at).is_some_and(|names| names.contains(name))
        };
        let report = Report::new(source, there, &here, compare(there, &here, &is_named));
        if self.args.json.wanted {
            write_json(&report, console)?;
        } else {
            report.write(console)?;
        }
        Ok(report.is_same)
    }

    fn write(&self, path: &Path, lines: &str, console: &mut Console<'_>) -> Result<(), CliError> {
        let is_terminal = path == Path::new(TERMINAL);
        let is_json = slashed(path).ends_with(LINES) || is_terminal && self.args.json.wanted;
        let content = if is_json {
            escaped(lines)
        } else {
            as_text(lines).map_err(|error| broken(&error))?
        };
        if is_terminal {
            return Ok(write!(console.out, "{content}")?);
        }
        self.args.draw.replacing.write(path, content)
    }
}

/// Returns the error of a run whose trace cannot be read: its process ended before it could write.
fn broken(error: &TraceError) -> CliError {
    CliError::Text(format!("the trace of this run is broken: {error}"))
}

/// Reads a trace.
fn read(path: &Path) -> Result<(Source, Trace), CliError> {
    let source = Source::find(path)?;
    let trace = Trace::read(&source.read_content()?).map_err(|error| source.error(error))?;
    if trace.lost > 0 {
        let lost = counted(trace.lost as usize, "call is", "calls are");
        return Err(source.error(format_args!("is not whole: {lost} missing, as it says")));
    }
    Ok((source, trace))
}

/// Returns the names of functions, classes, modules and assemblies that the text has on a runtime.
fn names(text: &str, generation: Generation) -> Result<[BTreeSet<String>; 4], CliError> {
    let session = Session::open(text, generation);
    let session = session.map_err(|error| CliError::Text(error.to_string()))?;
    Ok(session.lookup().all().map(|names| names.into_iter().collect()))
}

/// Result of a comparison, for a reader.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Report {
    kind: &'static str,
    trace: String,
    /// The runtimes: of the trace, and the simulated one.
    there: String,
    here: String,
    is_same: bool,
    callbacks: usize,
    callbacks_of_program: usize,
    calls: usize,
    left_out: LeftOutWords,
    differences: Vec<Found>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct LeftOutWords {
    unnamed: usize,
    chance: usize,
    native: usize,
}

/// A difference.
#[derive(Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
struct Found {
    difference: &'static str,
    thread: String,
    line: Option<usize>,
    within: Vec<String>,
    text: String,
}

impl Found {
    fn new(difference: &Difference) -> Self {
        let place = difference.place();
        Self {
            difference: difference.kind(),
            thread: place.thread.clone(),
            line: place.line,
            within: place.within.clone(),
            text: difference.to_string(),
        }
    }
}

impl Report {
    fn new(source: &Source, there: &Trace, here: &Trace, found: Comparison) -> Self {
        let is_same = found.is_same();
        let Comparison { differences, callbacks, callbacks_of_program, calls, left_out } = found;
        let LeftOut { unnamed, chance, native } = left_out;
        Self {
            kind: "comparison",
            trace: source.name.clone(),
            there: there.runtime.clone(),
            here: here.runtime.clone(),
            is_same,
            callbacks,
            callbacks_of_program,
            calls,
            left_out: LeftOutWords { unnamed, chance, native },
            differences: differences.iter().map(Found::new).collect(),
        }
    }

    fn write(&self, console: &mut Console<'_>) -> io::Result<()> {
        let out = &mut console.out;
        writeln!(out, "{HEAD}compared with {}{HEAD:#} ({})", self.trace, self.there)?;
        for found in &self.differences {
            let line =
                found.line.map_or_else(|| "at its end".to_owned(), |at| format!("line {at}"));
            writeln!(out, "{BAD}{}{BAD:#}: {}, {line}", found.difference, found.thread)?;
            for call in &found.within {
                writeln!(out, "    in {call}")?;
            }
            writeln!(out, "  {}", found.text)?;
        }
        if self.is_same {
            writeln!(out, "{GOOD}the same story{GOOD:#}")?;
        } else if self.differences.is_empty() {
            let why = "no callback that is kept is about the program";
            writeln!(out, "{BAD}nothing was compared{BAD:#}: {why}")?;
        }
        let LeftOutWords { unnamed, chance, native } = self.left_out;
        let callbacks = counted(self.callbacks, "callback", "callbacks");
        let of_program = self.callbacks_of_program;
        let calls = counted(self.calls, "call", "calls");
        writeln!(out, "  compared: {callbacks}, {of_program} of the program, and {calls}")?;
        writeln!(
            out,
            "{DIM}  left out of the trace: {unnamed} about code that the text does not name, {chance} \
             that come by chance, {native} of threads that the runtime does not know{DIM:#}"
        )
    }
}
