//! `clrsim diagnose`: why a process hangs, from its core dump.

pub(crate) mod json;
mod places;
mod words;

use crate::args::DiagnoseArgs;
use crate::commands::inspect::write_files;
use crate::input::dump::DumpFile;
use crate::render::console::{Console, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::render::style::Style;
use crate::render::wrap::write_wrapped;
use crate::{FAILED, INCOMPLETE, PASSED};
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_inspect::{Cause, Diagnosis, Edge, Runtime, StackWalker, Verdict};
use places::Places;

/// Diagnoses a dump, or the later one of two, and returns the exit code.
pub(crate) fn diagnose(args: &DiagnoseArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let dump = DumpFile::read(&args.dump)?;
    let process = dump.open()?;
    let Some(later) = &args.later else {
        return report(dump.name(), &process, &find(&process), args, console);
    };
    let later = DumpFile::read_at(later, &args.dump.files)?;
    let later_process = later.open()?;
    let found = find(&later_process).compare(&later_process, &find(&process), &process);
    let found = found.map_err(|error| later.error(error))?;
    report(later.name(), &later_process, &found, args, console)
}

fn find(process: &CoreDump<'_>) -> Diagnosis {
    let runtime = Runtime::find(process);
    let known = runtime.as_ref().map_err(|error| *error);
    let mut walker = StackWalker::new(process, process.code_map(), known.ok());
    Diagnosis::of(process, known, &mut walker)
}

fn report(
    name: &str,
    process: &CoreDump<'_>,
    found: &Diagnosis,
    args: &DiagnoseArgs,
    console: &mut Console<'_>,
) -> Result<u8, CliError> {
    if args.json.wanted {
        write_json(&json::Report::new(name, process, found), console)?;
    } else {
        write_files(process, console)?;
        write(process, found, console)?;
    }
    Ok(match found.verdict() {
        Verdict::Nothing => PASSED,
        Verdict::Fits | Verdict::Open => INCOMPLETE,
        Verdict::Proved => FAILED,
    })
}

/// Prints the verdict, the circles, the threads behind them, and what is unknown.
fn write(
    process: &CoreDump<'_>,
    found: &Diagnosis,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    let verdict = words::verdict(found.verdict());
    let (waits, threads) = (found.edges.len(), process.threads().len());
    writeln!(console.out, "{HEAD}waits{HEAD:#} for other threads: {waits}, of {threads} threads")?;
    writeln!(console.out, "{HEAD}verdict{HEAD:#} {verdict}")?;
    if !found.moved.is_empty() {
        let moved = found.moved.len();
        writeln!(console.out, "  circles whose threads have moved between the dumps: {moved}")?;
    }
    let mut places = Places::new(process);
    for circle in &found.circles {
        writeln!(console.out, "\n{HEAD}circle{HEAD:#}")?;
        for edge in &circle.edges {
            write_edge(process, edge, console)?;
            for place in places.of(edge.from) {
                writeln!(console.out, "    in {place}")?;
            }
        }
        write_mistake(circle.cause, console)?;
    }
    let followers = found.followers();
    if !followers.is_empty() {
        writeln!(console.out, "\n{HEAD}behind it{HEAD:#}")?;
        for edge in &followers {
            write_edge(process, edge, console)?;
        }
    }
    if !found.unknown.is_empty() {
        writeln!(console.out, "\n{HEAD}not known{HEAD:#}")?;
        for unknown in &found.unknown {
            writeln!(console.out, "  {}", words::unknown(unknown))?;
        }
    }
    Ok(())
}

/// Prints the mistake behind a circle, with the number of the hazard, and what avoids it.
fn write_mistake(cause: Cause, console: &mut Console<'_>) -> Result<(), CliError> {
    let Some((title, avoided_by)) = words::mistake(cause) else { return Ok(()) };
    let number = words::hazard(cause).map_or_else(String::new, |hazard| format!("{hazard}: "));
    for text in [format!("{number}{title}"), format!("avoid it: {avoided_by}")] {
        write!(console.out, "  ")?;
        write_wrapped(console.out, 4, Style::new(), &text, "")?;
    }
    Ok(())
}

fn write_edge(
    process: &CoreDump<'_>,
    edge: &Edge,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    if edge.from == edge.to {
        writeln!(console.out, "  thread {} is in its own way", edge.from)?;
    } else {
        writeln!(console.out, "  thread {} waits for thread {}", edge.from, edge.to)?;
    }
    writeln!(console.out, "    {}", words::evidence(process, edge))?;
    if let Some(doubt) = edge.doubt {
        writeln!(console.out, "    but {}", words::doubt(doubt))?;
    }
    Ok(())
}
