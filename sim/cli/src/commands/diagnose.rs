//! `clrsim diagnose`: why a process hangs, from its core dump.

use crate::args::DiagnoseArgs;
use crate::commands::inspect::write_files;
use crate::input::dump::DumpFile;
use crate::render::console::{Console, HEAD};
use crate::render::error::CliError;
use crate::render::json::write_json;
use crate::{FAILED, INCOMPLETE, PASSED};
use clr_dump::{CoreDump, StoppedProcess as _};
use clr_inspect::{Diagnosis, Doubt, Edge, Evidence, Runtime, StackWalker, Unknown, Verdict};
use serde::Serialize;

/// Diagnoses a dump and returns the exit code.
pub(crate) fn diagnose(args: &DiagnoseArgs, console: &mut Console<'_>) -> Result<u8, CliError> {
    let dump = DumpFile::read(&args.dump)?;
    let process = dump.open()?;
    let runtime = Runtime::find(&process);
    let known = runtime.as_ref().map_err(|error| *error);
    let mut walker = StackWalker::new(&process, process.code_map(), known.ok());
    let found = Diagnosis::of(&process, known, &mut walker);
    if args.json.wanted {
        write_json(&Report::new(dump.name(), &process, &found), console)?;
    } else {
        write_files(&process, console)?;
        write(&process, &found, console)?;
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
    let verdict = match found.verdict() {
        Verdict::Nothing => "nothing found: no threads wait in a circle",
        Verdict::Open => "open: no threads wait in a circle in what could be read",
        Verdict::Fits => "fits, not proved: threads may wait in a circle",
        Verdict::Proved => "proved: threads wait in a circle",
    };
    let (waits, threads) = (found.edges.len(), process.threads().len());
    writeln!(console.out, "{HEAD}waits{HEAD:#} for other threads: {waits}, of {threads} threads")?;
    writeln!(console.out, "{HEAD}verdict{HEAD:#} {verdict}")?;
    for circle in &found.circles {
        writeln!(console.out, "\n{HEAD}circle{HEAD:#}")?;
        for edge in circle {
            write_edge(process, edge, console)?;
        }
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
            writeln!(console.out, "  {}", unknown_text(unknown))?;
        }
    }
    Ok(())
}

fn write_edge(
    process: &CoreDump<'_>,
    edge: &Edge,
    console: &mut Console<'_>,
) -> Result<(), CliError> {
    writeln!(console.out, "  thread {} waits for thread {}", edge.from, edge.to)?;
    writeln!(console.out, "    {}", text(process, edge))?;
    if let Some(doubt) = edge.doubt {
        writeln!(console.out, "    but {}", doubt_text(doubt))?;
    }
    Ok(())
}

/// Returns an address, with the module that has it.
fn place(process: &CoreDump<'_>, address: u64) -> String {
    match process.module_at(address) {
        Some(module) => {
            format!("{address:#x} ({}+{:#x})", module.name(), address - module.range.start)
        }
        None => format!("{address:#x}"),
    }
}

/// Returns what says that a thread waits.
fn text(process: &CoreDump<'_>, edge: &Edge) -> String {
    let Edge { from, to, .. } = *edge;
    match edge.evidence {
        Evidence::Mutex { address } => {
            format!("it wants the mutex {}, whose owner is {to}", place(process, address))
        }
        Evidence::End { address } => {
            format!("it joins {to}: the word at {address:#x} is that of {to}'s end")
        }
        Evidence::ThreadStoreLock { address, store } => format!(
            "it wants the lock of the runtime's list of threads at {store:#x} (word {address:#x}), \
             which {to} holds"
        ),
        Evidence::Suspension { address, store } => format!(
            "it waits (word {address:#x}) until {to} resumes the runtime: {to} holds the lock of \
             the list of threads at {store:#x}"
        ),
        Evidence::CooperativeMode { thread } => format!(
            "{from} suspends the runtime, and {to} (Thread {thread:#x}) is in cooperative mode"
        ),
        Evidence::Call { address } => format!(
            "it waits inside the runtime (word {address:#x}), and {to} is in a call of the runtime"
        ),
        _ => String::new(),
    }
}

/// Returns why a wait is not proved.
const fn doubt_text(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Timeout => "the wait ends after some time",
        Doubt::Word { is_dumped: true } => "this runtime does not say what the word is for",
        Doubt::Word { is_dumped: false } => {
            "this runtime does not say what the word is for, and the dump lacks it: take a heap dump"
        }
        Doubt::Holder => "the runtime does not say that it suspends: others hold the lock, too",
        _ => "it is not known for what",
    }
}

fn unknown_text(unknown: &Unknown) -> String {
    match unknown {
        Unknown::Runtime(error) => format!("the runtime: {error}"),
        Unknown::Threads(error) => format!("threads of the runtime: {error}"),
        Unknown::Word { thread, address } => {
            format!("the word that thread {thread} waits for: the dump lacks {address:#x}")
        }
        _ => String::new(),
    }
}

/// The diagnosis as JSON.
#[derive(Serialize)]
struct Report<'d> {
    file: &'d str,
    verdict: &'static str,
    threads: usize,
    waits: usize,
    circles: Vec<Vec<Wait>>,
    followers: Vec<Wait>,
    unknown: Vec<String>,
}

/// A wait of a thread for another one as JSON.
#[derive(Serialize)]
struct Wait {
    from: u32,
    to: u32,
    kind: &'static str,
    address: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'static str>,
}

impl<'d> Report<'d> {
    fn new(file: &'d str, process: &CoreDump<'_>, found: &Diagnosis) -> Self {
        let waits = |edges: &[Edge]| edges.iter().map(|edge| Wait::new(process, edge)).collect();
        Self {
            file,
            verdict: match found.verdict() {
                Verdict::Nothing => "nothing",
                Verdict::Open => "open",
                Verdict::Fits => "fits",
                Verdict::Proved => "proved",
            },
            threads: process.threads().len(),
            waits: found.edges.len(),
            circles: found.circles.iter().map(|circle| waits(circle)).collect(),
            followers: waits(&found.followers()),
            unknown: found.unknown.iter().map(unknown_text).collect(),
        }
    }
}

impl Wait {
    fn new(process: &CoreDump<'_>, edge: &Edge) -> Self {
        let (kind, address) = match edge.evidence {
            Evidence::Mutex { address } => ("mutex", address),
            Evidence::End { address } => ("end", address),
            Evidence::ThreadStoreLock { address, .. } => ("thread-store-lock", address),
            Evidence::Suspension { address, .. } => ("suspension", address),
            Evidence::CooperativeMode { thread } => ("cooperative-mode", thread),
            Evidence::Call { address } => ("call", address),
            _ => ("other", 0),
        };
        Self {
            from: edge.from,
            to: edge.to,
            kind,
            address: format!("{address:#x}"),
            text: text(process, edge),
            doubt: edge.doubt.map(doubt_text),
        }
    }
}
