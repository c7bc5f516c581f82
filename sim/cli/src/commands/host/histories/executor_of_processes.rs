//! Interleavings in processes of their own, each of which is the tool with an argument that says what to keep.

use super::description::{Description, Drawing, Walks};
use super::guest::{Ended, Guest, Output, Prepare, Work, open_visit};
use crate::PASSED;
use crate::args::HostArgs;
use crate::input::Source;
use crate::render::error::CliError;
use clr_explore::Search;
use clr_guest::scheduled::{Detail, Died, Executed, answer_history, run_history};
use clr_runtime::generation::Generation;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

/// The request to the process of an interleaving.
#[derive(Debug, Deserialize, Serialize)]
struct Asked {
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
    timeout: Option<u64>,
    generation: Generation,
}

/// Does nothing: the system chooses addresses.
pub(super) const fn with_fixed_addresses() {}

/// Does nothing: the system chooses the processor of each process.
pub(super) const fn stay_here() {}

/// Executes interleavings side by side. `prepare` makes the search of each of the threads here that wait for processes,
/// `work` executes interleavings with it and sends records, and `receive` gets them as they come.
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
        from.iter().for_each(|record| receive(&record));
    });
    Ok(())
}

impl Executor {
    /// Notes the profiler at an absolute path. It is loaded once, so that one that cannot be is an error.
    pub(super) fn new(
        args: &HostArgs,
        path: &Path,
        text: &str,
        generation: Generation,
    ) -> Result<Self, CliError> {
        open_visit(args, path, text, generation, &Walks::default())?;
        let (library, text) = (path.to_owned(), args.scenario.path.clone());
        let (class, timeout) = (args.clsid.clone(), args.timeout);
        Ok(Self { library, text, class, timeout, generation })
    }

    fn run(
        &self,
        search: &mut dyn Search,
        described: Option<(String, Drawing)>,
        aloud: bool,
    ) -> Ended {
        let (learns, injects) = (search.observer().is_some(), search.injector().is_some());
        let asked = Asked { learns, injects, described };
        let asked = serde_json::to_string(&asked).unwrap_or_default();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("host").arg(&self.library).arg(&self.text);
        command.args(["--on", self.generation.name()]);
        if let Some(class) = &self.class {
            command.args(["--clsid", class]);
        }
        if let Some(seconds) = self.timeout {
            command.args(["--timeout", &seconds.to_string()]);
        }
        command.arg("--history").arg(asked);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(if aloud { Stdio::inherit() } else { Stdio::null() });
        let mut child = command.spawn()?;
        answer_history(&mut child, search)
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
