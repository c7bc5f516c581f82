//! The process of one runtime: the tool starts itself again.

use super::journal::{JournalFile, Line, read};
use crate::PASSED;
use crate::args::HostArgs;
use crate::input::Source;
use crate::render::error::CliError;
use clr_guest::Visit;
use clr_runtime::generation::Generation;
use clr_scenario::RunOnError;
use clrsim::{Guid, SessionError};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The class of profilers that ignore it.
const NO_CLASS: &str = "00000000-0000-0000-0000-000000000000";
/// Time that a profiler has to return, in seconds.
const TIMEOUT: u64 = 20;
/// Longest pause between two looks at a process.
const PAUSE: Duration = Duration::from_millis(20);
/// Most folders that are tried.
const TRIES: u32 = 100;
/// Most bytes that are kept of what a profiler prints.
const PRINTED: usize = 0x1_0000;

/// Returns the class that the library is asked for.
pub(super) fn class(args: &HostArgs) -> Result<Guid, CliError> {
    let class = Guid::parse(args.clsid.as_deref().unwrap_or(NO_CLASS));
    class.ok_or_else(|| CliError::Text("the class has no form".to_owned()))
}

/// Visits one runtime: this process is the profiler's.
pub(super) fn visit(args: &HostArgs, journal: &Path) -> Result<u8, CliError> {
    let text = Source::find(&args.scenario.path)?.read_text()?;
    let Some(generation) = args.on.runtimes.and_then(|on| on.iter().next()) else {
        return Err(CliError::Text("no runtime is named".to_owned()));
    };
    let class = class(args)?;
    let open = || JournalFile::open(journal);
    let visit = Visit { library: &args.library, class, text: &text, generation };
    match visit.run(Box::new(open()?)) {
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

/// The remains of a process.
pub(super) struct Remains {
    pub(super) journal: Vec<Line>,
    /// Its exit status; `None` if it was ended after the time.
    pub(super) status: Option<ExitStatus>,
    /// The process's output on both streams.
    pub(super) printed: String,
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    /// Makes a folder. One that a process with the same number has left is not used again.
    fn new(generation: Generation) -> io::Result<Self> {
        let mut number = 0;
        loop {
            let name = format!("clrsim-host-{}-{generation}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < TRIES => {
                    number += 1;
                }
                made => return made.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing needs it any more.
        let _: io::Result<()> = fs::remove_dir_all(&self.0);
    }
}

/// Runs a profiler on a runtime, in a process of its own.
pub(super) fn run(args: &HostArgs, generation: Generation) -> io::Result<Remains> {
    let folder = Folder::new(generation)?;
    let (journal, printed) = (folder.0.join("journal"), folder.0.join("printed"));
    File::create_new(&journal)?;
    let out = File::create_new(&printed)?;
    let mut command = Command::new(std::env::current_exe()?);
    // An absolute path is not searched in the system's folders.
    command.arg("host").arg(std::path::absolute(&args.library)?).arg(&args.scenario.path);
    command.args(["--on", generation.name()]);
    command.args(["--clsid", args.clsid.as_deref().unwrap_or(NO_CLASS)]);
    command.arg("--journal").arg(&journal);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let mut child = command.spawn()?;
    let status = wait(&mut child, Duration::from_secs(args.timeout.unwrap_or(TIMEOUT)))?;
    let journal = read(&fs::read_to_string(&journal)?);
    let mut printed = fs::read(&printed)?;
    printed.truncate(PRINTED);
    let printed = String::from_utf8_lossy(&printed).replace("\r\n", "\n");
    Ok(Remains { journal, status, printed })
}

/// Waits for the end of a process. Ends it after the time.
fn wait(child: &mut Child, time: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= time {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE);
    }
}
