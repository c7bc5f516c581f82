//! A profiler's library over a text's program, in interleavings.

#[cfg(target_os = "linux")]
use super::ending::Died;
use super::ending::{Detail, GuestEnding, Rules};
use super::run::run;
use super::{ScheduledLibrary, guest_thread, sanitizer, system};
use crate::coverage::START;
use crate::limits::GuestLimits;
use crate::load::Loaded;
use crate::visit::{Visit, import};
use clr_codegen::FunctionIndex;
use clr_com::Guid;
use clr_explore::{CurrentThread, EventObject, Explorer, Search, Setup, TestedProcess};
use clr_runtime::OsThreadId;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_scenario::{Demand, Demands, RunOnError, Scenario, ScenarioError};
use clr_world::BuildError;
use clrsim::hosting::{Anchor, Pointers};
use clrsim::{Journal, Session};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use thiserror::Error;

/// The reason why a profiler cannot be visited.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostedProfilerError {
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

/// A process with a text's program and a profiler's library, of which interleavings are executed.
#[derive(Debug)]
pub struct HostedProfiler {
    // The order matters: what borrows is dropped before what is borrowed.
    explorer: Explorer<'static>,
    session: Session,
    _process: Anchor<TestedProcess>,
    library: PathBuf,
    class: Guid,
    limits: GuestLimits,
    rules: Rules,
    coverage: Vec<Demand>,
    /// `None` if each interleaving loads the library, as its initialisers have to be under the scheduler.
    #[cfg_attr(windows, expect(dead_code, reason = "each process loads it"))]
    loaded: Option<ScheduledLibrary>,
}

impl HostedProfiler {
    /// Loads a library, and sets a text up. Nothing of the library is called but its initialisers. What happens
    /// in an interleaving is written to the journal, in the copy of the process in which it is executed. The text's first
    /// `explore` node says whether a violation of a rule is a failure, and whether each instruction is a switch point.
    ///
    /// # Errors
    /// Returns [`HostedProfilerError`].
    pub fn open(
        library: &Path,
        class: Guid,
        text: &str,
        generation: Generation,
        journal: Option<Box<dyn Journal>>,
    ) -> Result<Self, HostedProfilerError> {
        let scenario = Scenario::parse(text)?;
        let budget = scenario.explore.first().cloned().unwrap_or_default().budget();
        let coverage = scenario.coverage.clone();
        let rules = Rules { limits: budget.limits, all: budget.rules };
        let process = scenario.process_on(generation)?.ending_by(scenario.process_end());
        let process = Anchor::new(process);
        // SAFETY: the explorer is dropped before the anchor: see the order of the fields. It is never
        // given away with its lifetime.
        let mut explorer = Explorer::new(unsafe { process.get() })?;
        explorer.rehearse(rules.limits);
        let main = OsThreadId(1);
        let session = Session::of_runtime(scenario, generation, explorer.runtime(), main, journal);
        #[cfg(target_os = "linux")]
        let loaded = ScheduledLibrary::load_if_harmless(library);
        #[cfg(windows)]
        let loaded = ScheduledLibrary::load(library).map(Some);
        let loaded = loaded.map_err(HostedProfilerError::Library)?;
        let library = library.to_owned();
        Ok(Self {
            explorer,
            session,
            _process: process,
            library,
            class,
            limits: GuestLimits::default(),
            rules,
            coverage,
            loaded,
        })
    }

    /// Sets the limits of each interleaving's process. Its time is that of a thread which does not give back control: it
    /// spins, or waits for something that is not simulated.
    pub fn set_limits(&mut self, limits: GuestLimits) {
        self.limits = limits;
    }

    /// Executes an interleaving in a copy of this process. A strategy that learns from the interleavings before does
    /// not learn from this one.
    ///
    /// # Errors
    /// Returns [`Died`] if the profiler ended its process, or this one has other threads.
    #[cfg(target_os = "linux")]
    pub fn run_in_copy(
        &mut self,
        search: &mut dyn Search,
        detail: Detail<'_>,
    ) -> Result<GuestEnding, Died> {
        let limits = self.limits;
        system::fork::run_in_copy(&limits, detail, || self.run_here(search, detail))
    }

    /// Runs one interleaving; afterwards the process must exit, because profiler threads may be blocked forever.
    pub fn run_here(&mut self, search: &mut dyn Search, detail: Detail<'_>) -> GuestEnding {
        #[cfg(target_os = "linux")]
        let is_loaded = self.loaded.is_some();
        let Self { explorer, session, library, class, limits, rules, coverage, .. } = self;
        let demands = Demands::of_library(coverage, session.generation());
        guest_thread::set_limits(limits);
        let guest = Rc::new(Guest {
            session: session.share(),
            library: library.clone(),
            class: *class,
            #[cfg(target_os = "linux")]
            is_loaded,
            loaded: RefCell::default(),
            inside: Cell::default(),
            is_attaching: Cell::default(),
            evacuated: Cell::default(),
        });
        let detaches = Rc::clone(&guest);
        session.on_detach_request(move |me| detaches.begin_detach(me));
        let load = move |setup: &mut Setup<'_>| {
            setup.hide_places();
            setup.expire_limits();
            if !guest.session.attaches() {
                setup.begin_with_start();
            }
            let starts = Rc::clone(&guest);
            setup.before_program(START, move |me| starts.start(me));
            system::set_up(setup);
            let exports = Rc::clone(&guest);
            setup.on_export(move |me, function| exports.enter(me, function));
            for kind in Kind::ALL {
                let raises = Rc::clone(&guest);
                setup.on(*kind, move |me| raises.raise(me, *kind));
            }
        };
        let guest = session.share();
        run(explorer, &load, search, *rules, &|| guest.final_report(), &demands, detail)
    }
}

/// Time before the look at whether a profiler can be detached, in µs (`s_dwMinSleepMs` of src/vm/profdetach.h).
const BEFORE_LOOK: u64 = 300_000;

/// The profiler in one interleaving.
struct Guest {
    session: Session,
    library: PathBuf,
    class: Guid,
    /// The library was loaded before the interleaving.
    #[cfg(target_os = "linux")]
    is_loaded: bool,
    loaded: RefCell<Option<Loaded>>,
    /// Number of threads in callbacks.
    inside: Cell<u32>,
    /// A thread attaches the profiler.
    is_attaching: Cell<bool>,
    /// Set when there are none, once the profiler has asked to be detached.
    evacuated: Cell<Option<EventObject>>,
}

impl Guest {
    /// Loads the profiler as the runtime starts, unless it is attached later.
    fn start(&self, me: &CurrentThread<'_, '_>) {
        if self.session.attaches() {
            return self.session.start_alone();
        }
        let Some(pointers) = self.load(me) else { return };
        // SAFETY: the pointers are NULL or to the profiler's object, with these interfaces; `loaded` has
        // references until the process ends. The session's runtime is that of the interleaving.
        if unsafe { self.session.start(me, pointers) } {
            guest_thread::of(me).execute(me, sanitizer::has_started);
        } else {
            self.release(me);
        }
    }

    /// Loads the library under the scheduler, and does with it what `act` does.
    fn with_library<T>(
        &self,
        me: &CurrentThread<'_, '_>,
        act: impl FnOnce(&Visit<'_>, &Session) -> T,
    ) -> Option<T> {
        let (session, library) = (&self.session, self.library.as_path());
        let (class, generation) = (self.class, session.generation());
        let visit = Visit { library, class, text: "", generation };
        #[cfg(target_os = "linux")]
        if !self.is_loaded {
            ScheduledLibrary::load_under_scheduler(me, library);
        }
        guest_thread::of(me).execute(me, || act(&visit, session))
    }

    /// Loads the library, and makes its profiler's object.
    fn load(&self, me: &CurrentThread<'_, '_>) -> Option<Pointers> {
        let session = &self.session;
        let loaded = self.with_library(me, |visit, session| visit.load(session.shared_state()));
        let loaded = loaded.flatten();
        let loaded = loaded?;
        if let Err(why) = loaded.find_exports(session) {
            me.fail(format!("the profiler's library is another one: {why}"));
            return None;
        }
        session.load_for_notifications(loaded.is_notification_only);
        let pointers = loaded.callbacks(None);
        *self.loaded.borrow_mut() = Some(loaded);
        Some(pointers)
    }

    /// Does what a function of the program stands for, on the thread that enters the function: calls an export, or lets another
    /// thread attach the profiler.
    fn enter(self: &Rc<Self>, me: &CurrentThread<'_, '_>, function: FunctionIndex) {
        if self.session.is_asked_to_attach(function) && !self.is_attaching.replace(true) {
            let attached = me.new_event();
            let guest = Rc::clone(self);
            me.spawn("the thread that attaches", move |me| {
                guest.attach(me, function);
                guest.is_attaching.set(false);
                me.set(attached);
                #[cfg(target_os = "linux")]
                guest_thread::of(me).finish(me);
            });
            return me.wait_for(attached);
        }
        if self.session.is_first_import(function) {
            self.with_library(me, |visit, session| import(visit.library, session));
        }
        // SAFETY: the session's runtime is that of the interleaving.
        unsafe { self.session.call_export(me, function) };
    }

    /// Loads the library and attaches its profiler, on a thread of the runtime that does so for a command of the diagnostic
    /// server.
    fn attach(&self, me: &CurrentThread<'_, '_>, function: FunctionIndex) {
        let Some(pointers) = self.load(me) else { return };
        // SAFETY: as in `start`.
        if unsafe { self.session.attach_profiler_on(me, function, pointers) } {
            guest_thread::of(me).execute(me, sanitizer::has_started);
        } else {
            self.release(me);
        }
    }

    /// Makes a callback of the thread. After the last one the process ends, as its system ends it.
    fn raise(&self, me: &CurrentThread<'_, '_>, kind: Kind) {
        self.inside.update(|count| count + 1);
        // SAFETY: the session's runtime is that of the interleaving.
        if unsafe { self.session.raise_callback(me) } {
            self.release(me);
        }
        self.inside.update(|count| count - 1);
        if let Some(evacuated) = self.evacuated.get().filter(|_| self.inside.get() == 0) {
            me.set(evacuated);
        }
        if kind == Kind::Shutdown && self.session.generation().is_unix() == cfg!(unix) {
            system::exit(me);
        }
    }

    /// Begins to detach the profiler, which has asked for it.
    fn begin_detach(self: &Rc<Self>, me: &CurrentThread<'_, '_>) {
        self.evacuated.set(Some(me.new_event()));
        let guest = Rc::clone(self);
        me.spawn("the thread that detaches", move |me| guest.detach(me));
    }

    /// Detaches the profiler when no thread is in a callback: `ExecuteEvacuationLoop` of src/vm/profdetach.cpp of CoreCLR 3.1,
    /// without its pauses but the first one. Nobody waits for threads of the profiler: what they execute is unloaded, unless the
    /// program has called an export, and so has loaded the library itself.
    fn detach(&self, me: &CurrentThread<'_, '_>) {
        me.sleep(BEFORE_LOOK);
        while let Some(evacuated) = self.evacuated.get().filter(|_| self.inside.get() > 0) {
            me.reset(evacuated);
            me.wait_for(evacuated);
        }
        // SAFETY: the session's runtime is that of the interleaving.
        unsafe { self.session.detach(me) };
        let carrier = guest_thread::of(me);
        if let Some(loaded) = self.loaded.take() {
            carrier.execute(me, || loaded.end(self.session.shared_state(), false));
        }
        #[cfg(target_os = "linux")]
        carrier.finish(me);
    }

    /// Releases the profiler's object, unless another thread of the program is in its code: the end of profiling. A destructor
    /// that waits does so under the scheduler. What is left of the profiler may execute, so its library stays.
    fn release(&self, me: &CurrentThread<'_, '_>) {
        if me.is_alone_in_profiler()
            && let Some(loaded) = self.loaded.take()
        {
            let shared = self.session.shared_state();
            guest_thread::of(me).execute(me, || loaded.end(shared, true));
        }
    }
}
