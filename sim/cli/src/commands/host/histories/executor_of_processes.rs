//! Interleavings in processes of their own, each of which is the tool with an argument that says what to keep.

use super::super::child::limits;
use super::super::scratch::Scratch;
use super::description::{Description, Drawing, Walks};
use super::guest::{Ended, Guest, Output, PATIENCE, Prepare, Work, open_visit};
use crate::PASSED;
use crate::args::{HostArgs, LimitArgs};
use crate::input::{Source, slashed};
use crate::render::error::CliError;
use clr_explore::Search;
use clr_guest::scheduled::{Detail, Died, Executed, answer_history, run_history};
use clr_runtime::generation::Generation;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

/// Time in which a profiler has to be loaded, in seconds.
const TO_LOAD: u64 = 20;
/// Most bytes that are read of a refusal.
const MOST_SAID: u64 = 0x1_0000;

/// The request to the process of an interleaving.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Asked {
    /// The process only loads the profiler.
    loads: bool,
    /// The search learns from interleavings.
    learns: bool,
    /// The search makes calls fail.
    injects: bool,
    /// The title of the text, and the drawings, if the interleaving is described.
    described: Option<(String, Drawing)>,
}

/// A profiler, which each interleaving loads.
#[derive(Clone)]
pub(super) struct Executor {
    library: PathBuf,
    text: PathBuf,
    class: Option<String>,
    limits: LimitArgs,
    generation: Generation,
}

/// Does nothing: the system chooses addresses.
pub(super) const fn with_fixed_addresses() {}

/// Does nothing: the system chooses the processor of each process.
pub(super) const fn stay_here() {}

/// Executes interleavings side by side. `prepare` makes the search of each of the threads here that wait for processes,
/// `work` executes interleavings with it and sends records, and `receive` gets them as they come.
#[expect(clippy::unnecessary_wraps, reason = "copies of a process, on other systems, can fail")]
pub(super) fn share(
    jobs: usize,
    guest: &mut Guest,
    prepare: &Prepare<'_>,
    work: &Work<'_>,
    receive: &mut dyn FnMut(&[u8]),
) -> Result<(), Died> {
    let (to, from) = channel::<Vec<u8>>();
    std::thread::scope(|scope| {
        for worker in 0..jobs {
            let (mut guest, to) = (guest.clone(), to.clone());
            scope.spawn(move || {
                let mut search = prepare(&mut guest);
                // Nobody listens only after a panic.
                work(worker, &mut *search, &mut guest, &mut |record| _ = to.send(record.to_vec()));
            });
        }
        drop(to);
        for record in from {
            receive(&record);
        }
    });
    Ok(())
}

impl Executor {
    /// Notes the profiler at an absolute path. A process loads it once, so that one that cannot be loaded is an error.
    pub(super) fn new(
        args: &HostArgs,
        path: &Path,
        _: &str,
        generation: Generation,
    ) -> Result<Self, CliError> {
        let (library, text) = (path.to_owned(), args.scenario.path.clone());
        let (class, limits) = (args.clsid.clone(), args.limits.clone());
        let executor = Self { library, text, class, limits, generation };
        executor.check(&slashed(&args.library))?;
        Ok(executor)
    }

    /// Loads the profiler in a process.
    fn check(&self, name: &str) -> Result<(), CliError> {
        let mut said = Scratch::new("said")?;
        let mut command = self.command(&Asked { loads: true, ..Asked::default() })?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.stream()?);
        let mut child = clr_guest::spawn(&mut command)?;
        let (status, watched) =
            clr_guest::wait(&mut child, &limits(&self.limits, TO_LOAD), &[said.path()])?;
        let said = said.read(MOST_SAID)?;
        match (watched.beyond, status.code().unwrap_or_default()) {
            (Some(beyond), _) => {
                Err(CliError::new(name, format_args!("while it is loaded: {beyond}")))
            }
            (None, 0) => Ok(()),
            // The tool's own refusal.
            (None, 2) => Err(CliError::Text(said.trim().trim_start_matches("error: ").to_owned())),
            (None, code) => Err(CliError::new(
                name,
                format_args!("while it is loaded: the process ended with {code:#x}"),
            )),
        }
    }

    /// Returns the command of a process.
    fn command(&self, asked: &Asked) -> std::io::Result<Command> {
        let asked = serde_json::to_string(asked).unwrap_or_default();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("host").arg(&self.library).arg(&self.text);
        command.args(["--on", self.generation.name()]);
        if let Some(class) = &self.class {
            command.args(["--clsid", class]);
        }
        command.args(self.limits.again()).arg("--history").arg(asked);
        Ok(command)
    }

    fn run(
        &self,
        search: &mut dyn Search,
        described: Option<(String, Drawing)>,
        aloud: bool,
    ) -> Ended {
        let (learns, injects) = (search.observer().is_some(), search.injector().is_some());
        let asked = Asked { loads: false, learns, injects, described };
        let mut command = self.command(&asked)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let printed = if aloud { Some(Scratch::new("printed")?) } else { None };
        match &printed {
            Some(printed) => command.stderr(printed.stream()?),
            None => command.stderr(Stdio::null()),
        };
        let mut child = clr_guest::spawn(&mut command)?;
        let limits = limits(&self.limits, PATIENCE);
        let output: Vec<_> = printed.iter().map(Scratch::path).collect();
        let ended = answer_history(&mut child, &limits, &output, search);
        if let Some(mut printed) = printed {
            eprint!("{}", printed.read(limits.output)?);
        }
        ended
    }

    /// Executes the interleaving that a search has begun, and prints the output of the guest if it is `aloud`.
    pub(super) fn execute(&self, search: &mut dyn Search, aloud: bool) -> Ended {
        self.run(search, None, aloud)
    }

    /// Executes the interleaving that a search has begun, and describes it under a title.
    pub(super) fn describe(
        &self,
        search: &mut dyn Search,
        (title, drawing): (&str, &Drawing),
        output: Output<'_>,
    ) -> Ended {
        let described = Some((title.to_owned(), drawing.clone()));
        self.run(search, described, !matches!(output, Output::Capture))
    }
}

/// Executes an interleaving: this process is the profiler's. It answers on its standard output, and ends.
pub(in super::super) fn execute(args: &HostArgs, asked: &str) -> Result<u8, CliError> {
    let refused = |why: &dyn std::fmt::Display| CliError::new("--history", why);
    let asked: Asked = serde_json::from_str(asked).map_err(|error| refused(&error))?;
    let text = Source::find(&args.scenario.path)?.read_text()?;
    let generation = args.on.runtimes.and_then(|on| on.iter().next());
    let generation = generation.ok_or_else(|| refused(&"needs the runtime, by --on"))?;
    let walks = Walks::default();
    let mut visit = open_visit(args, &args.library, &text, generation, &walks)?;
    if asked.loads {
        return Ok(PASSED);
    }
    walks.write_down(asked.described.is_some());
    let describe = |executed: &Executed<'_>| {
        let Some((title, drawing)) = &asked.described else { return Vec::new() };
        Description::new(executed, &walks, title, drawing).to_bytes()
    };
    let kept =
        if asked.described.is_some() { Detail::Description(&describe) } else { Detail::Ending };
    run_history(&mut visit, (asked.learns, asked.injects), kept)
        .map_err(|error| refused(&error))?;
    Ok(PASSED)
}
