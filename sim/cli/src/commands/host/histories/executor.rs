//! Interleavings in copies of this process.

use super::description::{Description, Drawing, Walks};
use super::guest::{Ended, Guest, Output, Prepare, Work, open_visit};
use crate::args::HostArgs;
use crate::render::error::CliError;
use clr_explore::Search;
pub(super) use clr_guest::scheduled::stay_here;
use clr_guest::scheduled::{Detail, Died, Executed, HostedProfiler, fix_addresses, in_workers};
use clr_runtime::generation::Generation;
use std::convert::Infallible;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A loaded profiler.
pub(super) struct Executor {
    visit: HostedProfiler,
    walks: Walks,
}

/// Starts the tool again with fixed addresses, if they are not: containers that are ordered by address are
/// then traversed in the same order. With random addresses everything works as well.
pub(super) fn with_fixed_addresses() {
    if fix_addresses() {
        let again = || -> io::Result<Infallible> {
            let tool = std::env::current_exe()?;
            Err(Command::new(tool).args(std::env::args_os().skip(1)).exec())
        };
        let _ = again();
    }
}

/// Executes interleavings in several processes. `prepare` makes the search of each, `work` executes interleavings with it and
/// sends records, and `receive` gets them as they come.
pub(super) fn share(
    jobs: usize,
    guest: &mut Guest,
    prepare: &Prepare<'_>,
    work: &Work<'_>,
    receive: &mut dyn FnMut(&[u8]),
) -> Result<(), Died> {
    let mut search = prepare(guest);
    in_workers(jobs, |worker, send| work(worker, &mut *search, guest, send), receive)
}

impl Executor {
    /// Loads the profiler at an absolute path.
    pub(super) fn new(
        args: &HostArgs,
        path: &Path,
        text: &str,
        generation: Generation,
    ) -> Result<Self, CliError> {
        let walks = Walks::default();
        Ok(Self { visit: open_visit(args, path, text, generation, &walks)?, walks })
    }

    /// Executes the interleaving that a search has begun, and prints the output of the guest if it is `aloud`.
    pub(super) fn execute(&mut self, search: &mut dyn Search, aloud: bool) -> Ended {
        let nothing = |_: &Executed<'_>| Vec::new();
        self.visit
            .run_in_copy(search, if aloud { Detail::Printed(&nothing) } else { Detail::Ending })
    }

    /// Executes the interleaving that a search has begun, and describes it under a title.
    pub(super) fn describe(
        &mut self,
        search: &mut dyn Search,
        (title, drawing): (&str, &Drawing),
        output: Output<'_>,
    ) -> Ended {
        let Self { visit, walks } = self;
        let describe =
            |executed: &Executed<'_>| Description::new(executed, walks, title, drawing).to_bytes();
        walks.write_down(true);
        let kept = match output {
            Output::Capture => Detail::Description(&describe),
            Output::Print => Detail::Printed(&describe),
            Output::PrintAndStop(then) => Detail::Stopped(&describe, then),
        };
        let ended = visit.run_in_copy(search, kept);
        walks.write_down(false);
        ended
    }
}
