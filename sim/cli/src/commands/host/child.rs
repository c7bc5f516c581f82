//! The process of one runtime: the tool starts itself again.

use super::journal::{JournalFile, Line, read};
use super::scratch::Scratch;
use super::trace::sink;
use crate::PASSED;
use crate::args::{HostArgs, LimitArgs};
use crate::input::Source;
use crate::render::error::CliError;
use clr_guest::{
    Beyond, GuestLimits, MIB, RUNTIME_LIBRARY, Visit, Watched, guard, load_runtime_library,
    runtime_library, spawn, wait,
};
use clr_runtime::generation::Generation;
use clr_scenario::RunOnError;
use clrsim::{Guid, SessionError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::Builder;

/// The class of profilers that ignore it.
const NO_CLASS: &str = "00000000-0000-0000-0000-000000000000";
/// Time that a profiler has to return, in seconds.
const TIMEOUT: u64 = 20;
/// Most bytes that are kept of what a profiler prints.
const PRINTED: u64 = 0x1_0000;

/// Returns the class that the library is asked for.
pub(super) fn class(args: &HostArgs) -> Result<Guid, CliError> {
    let class = Guid::parse(args.clsid.as_deref().unwrap_or(NO_CLASS));
    class.ok_or_else(|| CliError::Text("the class has no form".to_owned()))
}

/// Returns the limits of a process, whose usual time in seconds is this.
pub(super) fn limits(limits: &LimitArgs, time: u64) -> GuestLimits {
    let usual = GuestLimits::default();
    let bytes = |mib: Option<u64>, usual| mib.map_or(usual, |mib| mib.saturating_mul(MIB));
    GuestLimits {
        time: Duration::from_secs(limits.timeout.unwrap_or(time)),
        memory: bytes(limits.memory, usual.memory),
        threads: limits.threads.unwrap_or(usual.threads),
        output: bytes(limits.output, usual.output),
    }
}

/// Visits one runtime: this process is the profiler's.
pub(super) fn visit(args: &HostArgs, journal: &Path) -> Result<u8, CliError> {
    let text = Source::find(&args.scenario.path)?.read_text()?;
    let Some(generation) = args.on.runtimes.and_then(|on| on.iter().next()) else {
        return Err(CliError::Text("no runtime is named".to_owned()));
    };
    let class = class(args)?;
    let open = || JournalFile::open(journal);
    let runtime = runtime_folder()?;
    // Called in the guard, which outlives this process and the tool.
    let tell = |watched: &Watched| {
        if let Ok(file) = open() {
            for line in &lines(watched) {
                file.line(line);
            }
        }
        if let Some(folder) = &runtime {
            let _ = std::fs::remove_dir_all(folder);
        }
    };
    guard(&limits(&args.limits, TIMEOUT), &[journal], tell)?;
    let visit = Visit { library: &args.library, class, text: &text, generation };
    let trace = args.trace_lines.as_deref().map(sink).transpose()?;
    if let Some(folder) = &runtime {
        load_runtime_library(&folder.join(RUNTIME_LIBRARY)).map_err(CliError::Text)?;
    }
    match visit.run(Box::new(open()?), trace) {
        Err(SessionError::Run(error)) => open()?.line(&Line::Stuck(stuck(&error))),
        Err(error) => return Err(CliError::Text(error.to_string())),
        Ok(()) => {}
    }
    Ok(PASSED)
}

/// Returns the reason why a program cannot go on.
fn stuck(error: &RunOnError) -> String {
    match error {
        RunOnError::NotReached { steps, .. } => {
            format!("all its threads wait for each other or for the profiler, after {steps} steps")
        }
        RunOnError::World { error, .. } => error.to_string(),
        error => error.to_string(),
    }
}

/// Returns the lines about what was seen of a process from outside.
fn lines(watched: &Watched) -> Vec<Line> {
    let beyond = watched.beyond.map(|beyond| match beyond {
        Beyond::Time => Line::Hung,
        beyond => Line::Limit(beyond.to_string()),
    });
    let left = (watched.left > 0).then_some(Line::Left(watched.left));
    beyond.into_iter().chain(left).collect()
}

/// The remains of a process.
pub(super) struct Remains {
    pub(super) journal: Vec<Line>,
    pub(super) status: ExitStatus,
    /// The process's output on both streams.
    pub(super) printed: String,
}

/// Makes a folder with the runtime's library, if there is one for this system.
fn runtime_folder() -> io::Result<Option<PathBuf>> {
    let Some(library) = runtime_library() else { return Ok(None) };
    let folder = Builder::new().prefix("clrsim-host-").tempdir()?;
    std::fs::write(folder.path().join(RUNTIME_LIBRARY), library)?;
    Ok(Some(folder.keep()))
}

/// Runs a profiler on a runtime, in a process of its own, which writes the lines of a trace if there is a file for them.
pub(super) fn run(
    args: &HostArgs,
    generation: Generation,
    trace: Option<&Scratch>,
) -> io::Result<Remains> {
    let (mut journal, mut printed) = (Scratch::new("journal")?, Scratch::new("printed")?);
    let mut command = Command::new(std::env::current_exe()?);
    // An absolute path is not searched in the system's folders.
    command.arg("host").arg(std::path::absolute(&args.library)?).arg(&args.scenario.path);
    command.args(["--on", generation.name()]);
    command.args(["--clsid", args.clsid.as_deref().unwrap_or(NO_CLASS)]);
    command.args(args.limits.again()).arg("--journal").arg(journal.path());
    if let Some(lines) = trace {
        command.arg("--trace-lines").arg(lines.path());
    }
    command.stdin(Stdio::null()).stdout(printed.stream()?).stderr(printed.stream()?);
    let mut child = spawn(&mut command)?;
    let files = [journal.path(), printed.path()];
    let (status, watched) = wait(&mut child, &limits(&args.limits, TIMEOUT), &files)?;
    let mut all = read(&journal.read(u64::MAX)?);
    all.extend(lines(&watched));
    let printed = printed.read(PRINTED)?.replace("\r\n", "\n");
    Ok(Remains { journal: all, status, printed })
}
