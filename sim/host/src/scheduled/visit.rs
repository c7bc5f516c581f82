//! A profiler's library over a text's program, in histories.

#[cfg(target_os = "linux")]
use super::ending::Died;
use super::ending::{GuestEnding, Kept, Rules};
use super::run::run;
use super::{ScheduledLibrary, carrier, sanitizer, system};
use crate::callbacks::Raised;
use crate::guest::{Loaded, Visit};
use crate::journal::Journal;
use crate::raise::Receiver;
use crate::report::Finding;
use crate::session::{Inner, Session};
use crate::stage::{Anchor, Stage};
use crate::target::Target;
use clr_codegen::FunctionIndex;
use clr_com::Guid;
use clr_explore::{CurrentThread, Explorer, Search, Setup, TestedProcess};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{OsThreadId, Profiler as _};
use clr_scenario::{RunOnError, Scenario, ScenarioError};
use clr_world::BuildError;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;

/// The reason why a profiler cannot be visited.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VisitError {
    /// The text is not a scenario.
    #[error(transparent)]
    Text(#[from] ScenarioError),
    /// The text's program cannot be set up.
    #[error(transparent)]
    Run(#[from] RunOnError),
    /// The process cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The library cannot be loaded.
    #[error("{0}")]
    Library(String),
}

/// A process with a text's program and a profiler's library, of which histories are executed.
#[derive(Debug)]
pub struct ScheduledVisit {
    // The order matters: what borrows is dropped before what is borrowed.
    explorer: Explorer<'static>,
    session: Session,
    _process: Anchor<TestedProcess>,
    library: PathBuf,
    class: Guid,
    patience: Duration,
    rules: Rules,
    _loaded: ScheduledLibrary,
}

impl ScheduledVisit {
    /// Loads a library, and sets a text up. Nothing of the library is called but its initialisers. What happens
    /// in a history is written to the journal, in the copy of the process in which it is executed. The text's first
    /// `explore` node says whether a violation of a rule is a failure, and whether each instruction is a switch point.
    ///
    /// # Errors
    /// Returns [`VisitError`].
    pub fn open(
        library: &Path,
        class: Guid,
        text: &str,
        generation: Generation,
        journal: Option<Box<dyn Journal>>,
    ) -> Result<Self, VisitError> {
        let scenario = Scenario::parse(text)?;
        let budget = scenario.explore.first().cloned().unwrap_or_default().budget();
        let rules = Rules { limits: budget.limits, all: budget.rules };
        let process = scenario.process_on(generation)?.ending_by(scenario.process_end());
        let process = Anchor::new(process);
        // SAFETY: the explorer is dropped before the anchor: see the order of the fields. It is never
        // given away with its lifetime.
        let explorer = Explorer::new(unsafe { process.get() })?;
        let main = OsThreadId(1);
        let stage = Stage::scheduled(explorer.runtime(), main);
        let session = Session::of_stage(scenario, generation, stage, journal);
        let loaded = ScheduledLibrary::load(library).map_err(VisitError::Library)?;
        let library = library.to_owned();
        let patience = carrier::PATIENCE;
        Ok(Self {
            explorer,
            session,
            _process: process,
            library,
            class,
            patience,
            rules,
            _loaded: loaded,
        })
    }

    /// Sets the real time after which a guest that has not given back control has left the simulation: it spins,
    /// or waits for something that is not simulated. It is 10 seconds unless it is set.
    pub fn set_patience(&mut self, limit: Duration) {
        self.patience = limit;
    }

    /// Executes a history in a copy of this process. A strategy that learns from the histories before does
    /// not learn from this one.
    ///
    /// # Errors
    /// Returns [`Died`] if the profiler ended its process, or this one has other threads.
    #[cfg(target_os = "linux")]
    pub fn run_in_copy(
        &mut self,
        search: &mut dyn Search,
        kept: Kept<'_>,
    ) -> Result<GuestEnding, Died> {
        system::fork::run_in_copy(kept, || self.run_here(search, kept))
    }

    /// Executes a history in this process, whose last act it is: threads of the profiler may wait for ever.
    pub fn run_here(&mut self, search: &mut dyn Search, kept: Kept<'_>) -> GuestEnding {
        let Self { explorer, session, library, class, patience, rules, .. } = self;
        carrier::set_patience(*patience);
        let guest = Rc::new(Guest {
            session: session.share(),
            library: library.clone(),
            class: *class,
            loaded: RefCell::default(),
        });
        let load = move |setup: &mut Setup<'_>| {
            setup.hide_places();
            let starts = Rc::clone(&guest);
            setup.before_program("the runtime's start", move |me| starts.start(me));
            system::set_up(setup);
            let exports = Rc::clone(&guest);
            setup.on_export(move |me, function| exports.export(me, function));
            for kind in Kind::ALL {
                let raises = Rc::clone(&guest);
                setup.on(*kind, move |me| raises.raise(me));
            }
        };
        let guest = session.share();
        run(explorer, &load, search, *rules, &|| mistakes(&guest), kept)
    }
}

/// Returns the mistakes of a profiler that its histories have to show. References to the runtime's object may
/// be left: not each CLR releases the profiler's object when the process ends. CoreCLR 3.1 does so after
/// `Shutdown` (`EEShutDownHelper` calls `TerminateProfiling` in src/vm/ceemain.cpp); the same function in
/// src/coreclr/vm/ceemain.cpp of dotnet/runtime does not.
fn mistakes(session: &Session) -> Vec<Finding> {
    let report = session.final_report();
    let found = report.findings().iter().filter(|finding| match finding {
        Finding::Leak { object, .. } => *object > 0,
        Finding::Rule(_)
        | Finding::Refused(_)
        | Finding::StartedThreads { .. }
        | Finding::WrongThread { .. }
        | Finding::Ended { .. } => false,
        _ => true,
    });
    found.copied().collect()
}

/// The profiler in one history.
struct Guest {
    session: Session,
    library: PathBuf,
    class: Guid,
    loaded: RefCell<Option<Loaded>>,
}

impl Guest {
    fn inner(&self) -> &Rc<Inner> {
        self.session.inner()
    }

    /// Loads the profiler as the runtime starts.
    fn start(&self, me: &CurrentThread<'_, '_>) {
        let inner = self.inner();
        let visit = Visit {
            library: &self.library,
            class: self.class,
            text: "",
            generation: inner.generation,
        };
        let loaded = carrier::of(me).execute(me, || visit.load(&inner.shared)).flatten();
        let Some(loaded) = loaded else {
            let refused = inner.shared.refused();
            let why = refused.map(|(step, result)| format!(": {step} returned {result}"));
            return me.fail(format!("the profiler is not loaded{}", why.unwrap_or_default()));
        };
        if let Err(why) = loaded.find_exports(inner) {
            return me.fail(format!("the profiler's library is another one: {why}"));
        }
        // SAFETY: the pointers are NULL or to the profiler's object, with these interfaces; `loaded` has
        // references until the process ends.
        let target = unsafe { Target::new(loaded.callbacks()) };
        *self.loaded.borrow_mut() = Some(loaded);
        // SAFETY: the session's runtime is that of the history.
        let refused = unsafe { inner.on_behalf_of(me, || self.session.load(target).is_failure()) };
        if refused {
            return;
        }
        let Some(stage) = inner.stage() else { return };
        // In a CLR it is the program's first thread, before it executes the program: for that time it is one of the
        // runtime.
        let (runtime, os) = (stage.runtime(), me.os());
        // SAFETY: the same.
        unsafe {
            inner.on_behalf_of(me, || {
                Receiver(inner).attach(runtime, os);
                self.session.load_modules(&stage, os);
            });
        }
        runtime.change_thread(os, |thread| thread.object = None);
        carrier::of(me).execute(me, sanitizer::has_started);
    }

    /// Calls the export that a function of the program stands for, on the thread that enters the function.
    fn export(&self, me: &CurrentThread<'_, '_>, function: FunctionIndex) {
        let inner = self.inner();
        // SAFETY: the session's runtime is that of the history.
        unsafe { inner.on_behalf_of(me, || inner.call_export(function)) };
    }

    /// Makes a callback of the thread.
    fn raise(&self, me: &CurrentThread<'_, '_>) {
        let inner = self.inner();
        let target = inner.profiler.borrow().clone();
        let (Some(callback), Some(target)) = (me.callback(), target) else { return };
        let (kind, thread, arguments) = (callback.kind, callback.thread, &callback.arguments);
        let raised = Raised { kind, thread, os: me.os(), arguments };
        // SAFETY: the session's runtime is that of the history.
        let raised = unsafe { inner.on_behalf_of(me, || target.raise(inner, &raised)) };
        if !raised {
            inner.shared.with(|report| report.not_raised(kind.name()));
        }
    }
}
