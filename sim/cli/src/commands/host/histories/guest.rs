//! The guest of a search or a replay: a profiler over a text on a runtime.

use super::super::child;
use super::description::{Description, Drawing, Walks};
use super::executor::Executor;
use super::name::{HistoryName, LibraryDigest};
use crate::args::HostArgs;
use crate::input::program::ProgramFixture;
use crate::input::{Source, slashed};
use crate::render::error::CliError;
use crate::render::shell::quoted;
use clr_explore::{ScheduleString, Search};
use clr_guest::scheduled::{Died, GuestEnding, HostedProfiler};
use clr_runtime::generation::Generation;
use clr_scenario::{Demand, Demands, TextDigest};
use std::path::Path;

/// Time that a thread may run without a call that is simulated, in seconds.
pub(super) const PATIENCE: u64 = 10;

/// The end of an interleaving, or of its process.
pub(super) type Ended = Result<GuestEnding, Died>;

/// Makes a search of a guest's interleavings.
pub(super) type Prepare<'p> = dyn Fn(&mut Guest) -> Box<dyn Search> + Sync + 'p;

/// Executes the share of a worker with this number, and sends a record of each interleaving.
pub(super) type Work<'w> =
    dyn Fn(usize, &mut dyn Search, &mut Guest, &mut dyn FnMut(&[u8])) + Sync + 'w;

/// The fingerprint of interleavings that do not fail.
pub(super) const ENDS: &str = "ends";

/// The beginning of the fingerprint of an interleaving whose profiler is not loaded.
pub(super) const NOT_LOADED: &str = "not loaded: ";

/// Returns the fingerprint of an end.
pub(super) fn fingerprint(ended: &Ended) -> String {
    match ended {
        Ok(ending) => match (&ending.verdict, &ending.coverage.not_loaded) {
            (Some(verdict), _) => verdict.clone(),
            (None, Some(why)) => format!("{NOT_LOADED}{why}"),
            (None, None) => ENDS.to_owned(),
        },
        Err(died) => died.to_string(),
    }
}

/// What becomes of the guest's output while an interleaving is described.
#[derive(Clone, Copy)]
pub(super) enum Output<'a> {
    Capture,
    Print,
    /// It is printed, and the process stops at the end of the interleaving, and this function gets its id.
    #[cfg_attr(windows, expect(dead_code, reason = "there no process stops"))]
    PrintAndStop(&'a dyn Fn(u32)),
}

/// Loads a profiler over a text, with the limits of the arguments.
pub(super) fn open_visit(
    args: &HostArgs,
    library: &Path,
    text: &str,
    generation: Generation,
    walks: &Walks,
) -> Result<HostedProfiler, CliError> {
    let journal = Some(Box::new(walks.clone()) as _);
    let mut visit = HostedProfiler::open(library, child::class(args)?, text, generation, journal)
        .map_err(|error| CliError::new(&slashed(&args.library), error))?;
    visit.set_limits(child::limits(&args.limits, PATIENCE));
    Ok(visit)
}

/// A profiler over a text on a runtime.
#[cfg_attr(windows, derive(Clone))]
pub(super) struct Guest {
    pub(super) library: String,
    pub(super) text: String,
    /// `--clsid` with the class, if it was given.
    class: String,
    pub(super) generation: Generation,
    /// True if the text makes each violation of a rule a failure.
    pub(super) fails_by_rules: bool,
    title: String,
    digests: (TextDigest, LibraryDigest),
    /// The text's demands on coverage.
    coverage: Vec<Demand>,
    /// True if the text expects something of searches with its own profiler.
    pub(super) expects_of_own: bool,
    executor: Executor,
}

impl Guest {
    /// Loads the profiler.
    pub(super) fn new(
        args: &HostArgs,
        source: &Source,
        generation: Generation,
    ) -> Result<Self, CliError> {
        let library = slashed(&args.library);
        let refused = |error: &dyn std::fmt::Display| CliError::new(&library, error);
        let fixture = ProgramFixture::read(source)?;
        let path = std::path::absolute(&args.library).map_err(|error| refused(&error.kind()))?;
        let digest = LibraryDigest::of(&path).map_err(|error| refused(&error.kind()))?;
        let executor = Executor::new(args, &path, &source.read_text()?, generation)?;
        let title = fixture.scenario.about.shows.clone();
        let fails_by_rules = fixture.scenario.explore.first().is_some_and(|explore| explore.rules);
        Ok(Self {
            library,
            text: source.name.clone(),
            class: args
                .clsid
                .as_ref()
                .map(|id| format!(" --clsid {}", quoted(id)))
                .unwrap_or_default(),
            generation,
            fails_by_rules,
            title: title.unwrap_or_else(|| source.name.clone()),
            digests: (fixture.scenario.digest(), digest),
            expects_of_own: fixture.scenario.expects_of_searches(generation),
            coverage: fixture.scenario.coverage,
            executor,
        })
    }

    /// Returns the beginning of the commands for this guest.
    pub(super) fn command(&self) -> String {
        let Self { library, text, class, .. } = self;
        format!("clrsim host {} {}{class}", quoted(library), quoted(text))
    }

    /// Returns the text's demands on coverage.
    pub(super) fn demands(&self) -> Demands<'_> {
        Demands::of_library(&self.coverage, self.generation)
    }

    /// Returns the name of an interleaving.
    pub(super) fn name(&self, schedule: &ScheduleString) -> HistoryName {
        let Self { generation, digests, .. } = *self;
        HistoryName { generation, schedule: schedule.clone(), digests: Some(digests) }
    }

    /// Returns true for the text, and for the library, if it is another one than when an interleaving was found;
    /// `None` if its name does not say.
    pub(super) fn is_changed(&self, name: &HistoryName) -> Option<(bool, bool)> {
        let (text, library) = name.digests.as_ref()?;
        Some((*text != self.digests.0, *library != self.digests.1))
    }

    /// Executes the interleaving that a search has begun, and prints the output of the guest if it is `aloud`.
    pub(super) fn execute(&mut self, search: &mut dyn Search, aloud: bool) -> Ended {
        self.executor.execute(search, aloud)
    }

    /// Executes the interleaving that a search has begun, and describes it.
    pub(super) fn describe(
        &mut self,
        search: &mut dyn Search,
        drawing: &Drawing,
        output: Output<'_>,
    ) -> (Ended, Description) {
        let mut ended = self.executor.describe(search, (&self.title, drawing), output);
        let take = |ending: &mut GuestEnding| std::mem::take(&mut ending.description);
        let bytes = ended.as_mut().map(take).unwrap_or_default();
        (ended, Description::from_bytes(&bytes))
    }
}
