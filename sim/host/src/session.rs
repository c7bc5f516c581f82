//! Sessions: a text on a runtime, and what a profiler does there.

use crate::environment::Environment;
use crate::event_state::Events;
use crate::heap::Heap;
use crate::info::Info;
use crate::inner::{Inner, Kept, SESSIONS};
use crate::journal::Journal;
use crate::object::{Kind, bury};
use crate::process::Process;
use crate::profiler_hooks::Hooks;
use crate::report::Report;
use crate::shared::Shared;
use clr_runtime::generation::Generation;
use clr_scenario::{Demands, RunOnError, Scenario, ScenarioError, SnapshotReport};
use clr_walker::profiling::ThreadId;
use core::fmt;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// The reason why a session cannot be opened, or its threads not be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The text is not a scenario.
    #[error(transparent)]
    Text(#[from] ScenarioError),
    /// The threads cannot be brought to a stop.
    #[error(transparent)]
    Run(#[from] RunOnError),
}

/// The thread that calls the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// A thread of the profiler, which the runtime does not know.
    #[default]
    Native,
    /// A thread of the profiler that has run managed code: in preemptive mode.
    Managed,
    /// The thread that has stopped.
    Stopped,
}

/// A text on a runtime, and the runtime's answers to a profiler.
///
/// Everything happens on the thread that opened the session; the pointers it gives away are valid
/// until it is closed, whatever is done with references to them.
pub struct Session {
    inner: Rc<Inner>,
    /// Whether the end of this handle closes the session.
    closes: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("generation", &self.inner.generation)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a text on a runtime: its program before the first instruction, or its stack.
    ///
    /// # Errors
    /// Returns [`SessionError`].
    pub fn open(text: &str, generation: Generation) -> Result<Self, SessionError> {
        Self::of(Scenario::parse(text)?, generation)
    }

    /// Opens a scenario, as [`open`](Self::open) does its text.
    ///
    /// # Errors
    /// Returns [`SessionError::Run`].
    pub fn of(scenario: Scenario, generation: Generation) -> Result<Self, SessionError> {
        let stage = Process::new(&scenario, generation)?;
        Ok(Self::of_stage(scenario, generation, stage, None))
    }

    /// Opens a text on a runtime. What happens is written to the journal.
    ///
    /// # Errors
    /// Returns [`SessionError`].
    pub fn open_with(
        text: &str,
        generation: Generation,
        journal: Option<Box<dyn Journal>>,
    ) -> Result<Self, SessionError> {
        let scenario = Scenario::parse(text)?;
        let stage = Process::new(&scenario, generation)?;
        Ok(Self::of_stage(scenario, generation, stage, journal))
    }

    /// Opens a session of a process.
    pub(crate) fn of_stage(
        scenario: Scenario,
        generation: Generation,
        stage: Process,
        journal: Option<Box<dyn Journal>>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let shared = Shared { report: Mutex::default(), open: AtomicBool::new(true), journal };
        let inner = Rc::new(Inner {
            key: NEXT.fetch_add(1, Ordering::Relaxed),
            shared: Arc::new(shared),
            scenario,
            generation,
            stages: RefCell::default(),
            caller: Cell::default(),
            current: Cell::default(),
            ended: Cell::new(false),
            high_events: Cell::new(0),
            profiler: RefCell::default(),
            info: RefCell::default(),
            objects: RefCell::default(),
            scopes: RefCell::default(),
            metadata: RefCell::default(),
            bodies: RefCell::default(),
            allocators: RefCell::default(),
            allocated: RefCell::default(),
            statics: RefCell::default(),
            rows: RefCell::default(),
            images: RefCell::default(),
            enumerations: RefCell::default(),
            walks: Cell::new(0),
            explanations: RefCell::default(),
            within: Cell::new(None),
            watcher: RefCell::default(),
            hooks: Hooks::default(),
            events: Events::default(),
            exports: RefCell::default(),
            environment: Environment::default(),
            heap: Heap::default(),
            handles: RefCell::default(),
            on_detach: RefCell::default(),
            on_request: RefCell::default(),
        });
        inner.set(stage);
        let info = Info::make(&inner, Kind::Info(generation.profiler_info()));
        let pointer = info.as_raw();
        *inner.info.borrow_mut() = Some((Box::new(info), pointer));
        SESSIONS.with(|sessions| sessions.borrow_mut().insert(inner.key, Rc::clone(&inner)));
        Self { inner, closes: true }
    }

    pub(crate) const fn inner(&self) -> &Rc<Inner> {
        &self.inner
    }

    /// Returns the session's number, which is not 0.
    pub(crate) fn key(&self) -> usize {
        self.inner.key as usize
    }

    /// Returns another handle, which does not close the session.
    #[doc(hidden)]
    #[must_use]
    pub fn share(&self) -> Self {
        Self { inner: Rc::clone(&self.inner), closes: false }
    }

    /// Runs the text's threads to a stop, from the beginning.
    ///
    /// # Errors
    /// Returns [`SessionError::Run`]; the process is then the one from before.
    pub fn run_to_stop(&self, stop: usize) -> Result<(), SessionError> {
        self.inner.set(Process::at_stop(&self.inner.scenario, self.inner.generation, stop)?);
        self.inner.events.clear();
        Ok(())
    }

    /// Returns the runtime's object, an `ICorProfilerInfo` and an `IUnknown`, without counting a
    /// reference. It is NULL for no session.
    pub fn info(&self) -> *mut c_void {
        self.inner.info.borrow().as_ref().map_or(std::ptr::null_mut(), |(_, pointer)| *pointer)
    }

    /// Chooses the thread that the next calls are made on.
    pub fn act_as(&self, role: Role) {
        let Some(stage) = self.inner.stage() else { return };
        self.inner.caller.set(match role {
            Role::Native => stage.native(),
            Role::Managed => stage.managed(),
            Role::Stopped => stage.stopped(),
        });
    }

    /// Returns the `ThreadID` of the thread that has stopped, if the runtime knows it.
    pub fn stopped_thread(&self) -> Option<ThreadId> {
        self.inner.stage()?.stopped_object()
    }

    /// Returns what the profiler has called so far, and what was wrong.
    pub fn report(&self) -> Report {
        if let Some(violation) =
            self.inner.stage().and_then(|stage| stage.runtime().rule_violation())
        {
            self.inner.shared.find(violation.into());
        }
        let mut found = Report::default();
        self.inner.shared.with(|report| found.clone_from(report));
        found
    }

    /// Returns the report with the references that are left: for the end of a test, when the
    /// profiler has released everything.
    pub fn final_report(&self) -> Report {
        let mut report = self.report();
        let objects = self.inner.objects.borrow();
        for leak in objects.iter().filter_map(|object| object.leak()) {
            report.find(leak);
        }
        report
    }

    /// Returns the explanations of all walks so far, a line for each decision.
    pub fn explanation(&self) -> String {
        self.inner.explanations.borrow().concat()
    }

    /// Returns the explanation of one walk, by its number from 0.
    pub fn explanation_of(&self, walk: usize) -> Option<String> {
        self.inner.explanations.borrow().get(walk).cloned()
    }

    /// Makes the calls that the text itself has, as `clrsim run` does, and returns the first one that gives
    /// another result than the text expects on the runtime; or the number of results that were compared.
    ///
    /// # Errors
    /// Returns [`SessionError::Run`].
    pub fn check(&self) -> Result<Result<usize, SnapshotReport>, SessionError> {
        let reports = self.inner.scenario.run_on(self.inner.generation)?;
        let compared = reports.iter().filter(|report| report.expected.is_some()).count();
        Ok(reports.into_iter().find(|report| !report.is_right()).map_or(Ok(compared), Err))
    }

    /// Returns what the session lacks so far, in words: the demands of the text's `coverage` that its calls do not meet,
    /// and the methods that were called and are not simulated. `None` if nothing is demanded on the runtime, and nothing
    /// else is missing.
    pub fn lacks(&self) -> Option<Vec<String>> {
        let inner = &self.inner;
        let demands = Demands::of_library(&inner.scenario.coverage, inner.generation);
        let report = self.report();
        let unmet = demands.unmet_by(&report.points(&demands, &|thread| inner.thread_name(thread)));
        let unmet = unmet.iter().map(ToString::to_string);
        let missing = report.calls_not_simulated().keys();
        let missing = missing.map(|method| format!("{method} is not simulated"));
        let lacks: Vec<_> = unmet.chain(missing).collect();
        (!demands.are_none() || !lacks.is_empty()).then_some(lacks)
    }
}

/// Closes the session. Calls of its objects are refused from then on.
impl Drop for Session {
    fn drop(&mut self) {
        if !self.closes {
            return;
        }
        self.inner.shared.open.store(false, Ordering::Release);
        // During the end of the thread there may be no list any more.
        let _ = SESSIONS.try_with(|sessions| sessions.borrow_mut().remove(&self.inner.key));
        let objects = self.inner.objects.take();
        bury(objects.into_iter().map(Kept::buried));
        let info = self.inner.info.take();
        bury(info.map(|(info, _)| info.buried()));
    }
}
