//! `clrsim import`: what others have recorded, as a scenario.

mod dump;
mod paste;
mod write;

use crate::PASSED;
use crate::args::ImportArgs;
use crate::commands::explain::recorded::{parse_recording, pick};
use crate::input::dump::DumpFile;
use crate::input::{Source, end_of};
use crate::render::console::{Console, HEAD};
use crate::render::error::CliError;
use crate::render::shell::quoted;
use crate::render::words::counted;
use crate::report::recording::recorded_end;
use clr_explore::visible;
use clr_import::{ImportError, Paste};
use clr_recording::{RecordedCode, Recording, RecordingReplay, WalkLine};
use clr_scenario::Scenario;
use std::io;
use write::{check_output, put};

/// A format that can be read. Its content says which one a file has, whatever its name is.
struct Format {
    /// The mark of the format, as an error names it.
    sign: &'static str,
    /// Returns true for the first line of such a file.
    is_first_line: fn(&str) -> bool,
    /// Imports the file and returns the exit code.
    import: fn(&ImportArgs, &Source, &str, &mut Console<'_>) -> Result<u8, CliError>,
}

const FORMATS: &[Format] = &[
    Format {
        sign: "a recording of walks: lines of JSON, the first with its \"generation\"",
        is_first_line: |line| line.starts_with('{') && line.contains("\"generation\""),
        import: import_walk,
    },
    #[cfg(all(feature = "host", target_pointer_width = "64"))]
    Format {
        sign: "a trace of clr-recorder or clrsim host: lines of JSON, the first with its \"trace\"",
        is_first_line: |line| line.starts_with("{\"trace\""),
        import: import_trace,
    },
];

/// Prints or writes the scenario that `args` name, or lists what there is, and returns the exit code.
pub(crate) fn import(args: &ImportArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let source = Source::find(&args.file)?;
    if DumpFile::is_one(&source)? {
        return dump::import(args, &source, console);
    }
    let text = source.read_content()?;
    let first = text.lines().next().unwrap_or_default();
    if let Some(format) = FORMATS.iter().find(|format| (format.is_first_line)(first)) {
        return (format.import)(args, &source, &text, console);
    }
    match Paste::read(&text) {
        Ok(paste) => return paste::import(args, &source, &paste, console),
        Err(ImportError::Format) => {}
        Err(error) => return Err(source.error(error)),
    }
    let signs: Vec<_> = FORMATS.iter().map(|format| format.sign).collect();
    let what = "is none of what clrsim import reads, plain or compressed";
    Err(source.error(format_args!(
        "{what}: a core dump, stacks of a debugger, or {}",
        signs.join(", or ")
    )))
}

/// Prints or writes the scenario of a recorded walk, or lists the walks, and returns the exit code.
fn import_walk(
    args: &ImportArgs,
    source: &Source,
    text: &str,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let recording = parse_recording(source, text)?;
    let Some(n) = args.walk.number else {
        if args.output.path.is_some() {
            return Err(source.error("has many walks: --output needs --walk, which says one"));
        }
        list(source, &recording, console)?;
        return Ok(PASSED);
    };
    let walk = pick(source, &recording.walks, Some(n))?;
    check_output(args, source)?;
    let code = RecordedCode::new(&recording);
    let mut replay =
        RecordingReplay::new(&recording, &code).map_err(|error| source.error(error))?;
    let scenario = Scenario::from_recorded(&recording, &mut replay, walk)
        .map_err(|refusal| CliError::new(&format!("{} walk {n}", source.name), refusal))?;
    let text = head(source, walk) + &scenario.to_string();
    let Some(name) = put(args, &text, console)? else { return Ok(PASSED) };
    let name = quoted(&name);
    writeln!(console.out, "  clrsim run {name}       compares it with what was recorded")?;
    writeln!(
        console.out,
        "  clrsim matrix {name}    shows what it gives on all runtimes, and why"
    )?;
    Ok(PASSED)
}

/// Prints or writes the program of a trace, and returns the exit code.
#[cfg(all(feature = "host", target_pointer_width = "64"))]
fn import_trace(
    args: &ImportArgs,
    source: &Source,
    text: &str,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    let trace = clr_trace::Trace::read(text).map_err(|error| source.error(error))?;
    check_output(args, source)?;
    let program = clr_trace::Program::of(&trace).ok_or_else(|| {
        let how = "trace a profiler that asks for JIT compilations or exceptions";
        source.error(format_args!("names no method of the program: {how}"))
    })?;
    let Some(name) = put(args, &program.text(&visible(end_of(&source.name))), console)? else {
        return Ok(PASSED);
    };
    let host = format!("clrsim host PROFILER {} --compare {}", quoted(&name), quoted(&source.name));
    writeln!(console.out, "  {host}    compares the two")?;
    Ok(PASSED)
}

/// Returns the comment at the begin of a text: the recording, and what was not seen there.
fn head(source: &Source, walk: &WalkLine) -> String {
    // A line of its name would be a line of the text.
    let file = visible(end_of(&source.name));
    let made = format!("// Made by clrsim import {file} --walk {}.\n", walk.n);
    let mut inferred = walk.state.inferred.clone();
    if walk.frames.iter().any(|frame| frame.returns_inferred) {
        inferred.push("where a Frame leads".to_owned());
    }
    if inferred.is_empty() {
        return made;
    }
    format!("{made}// Inferred from the result, not recorded: {}.\n", inferred.join(", "))
}

/// Lists the walks.
fn list(source: &Source, recording: &Recording, console: &mut Console<'_>) -> io::Result<()> {
    let (count, on) = (counted(recording.walks.len(), "walk", "walks"), recording.generation);
    let cut = recording.cut.map(|line| format!("; the file ends within line {line}"));
    let cut = cut.unwrap_or_default();
    writeln!(console.out, "{HEAD}{}{HEAD:#}: {count} on {on}{cut}", source.name)?;
    for walk in &recording.walks {
        let WalkLine { n, situation, variant, result, .. } = walk;
        let count = result.callback_count.map_or(result.callbacks.len(), |count| count as usize);
        let (end, count) = (recorded_end(result), counted(count, "callback", "callbacks"));
        write!(console.out, "{n:6}  {situation}, {variant}: {end}, {count}")?;
        writeln!(console.out, "{}", if walk.replayable { "" } else { "; cannot be replayed" })?;
    }
    Ok(())
}
