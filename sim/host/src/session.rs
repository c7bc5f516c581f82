//! Sessions: a text on a runtime, and what a profiler does there.

use crate::current::Current;
use crate::elt::Hooks;
use crate::events::Events;
use crate::exports::Exports;
use crate::import::{Scope, TokenEnumeration};
use crate::info::Info;
use crate::journal::{Entry, Journal};
use crate::object::{Headed, Kind, bury};
use crate::report::{Finding, Report};
use crate::stage::Stage;
use clr_com::OwnedObject;
use clr_runtime::OsThreadId;
use clr_runtime::generation::Generation;
use clr_scenario::{RunOnError, Scenario, ScenarioError, SnapshotReport};
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use core::fmt;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// The part of a session that other threads may touch.
pub(crate) struct Shared {
    report: Mutex<Report>,
    open: AtomicBool,
    journal: Option<Box<dyn Journal>>,
    /// The last step of loading that gave no object, with its result: histories say it.
    #[cfg_attr(
        not(scheduled),
        allow(dead_code, reason = "elsewhere there are no histories of libraries")
    )]
    refused: Mutex<Option<(&'static str, HResult)>>,
}

impl Shared {
    /// Notes a step of loading that gives no object.
    pub(crate) fn refuse(&self, step: &'static str, result: HResult) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some((step, result));
    }

    /// Returns the last step of loading that gave no object, with its result.
    #[cfg(scheduled)]
    pub(crate) fn refused(&self) -> Option<(&'static str, HResult)> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with(&self, change: impl FnOnce(&mut Report)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes an entry of the journal, if there is one.
    pub(crate) fn write(&self, entry: &Entry<'_>) {
        if let Some(journal) = &self.journal {
            journal.write(entry);
        }
    }

    pub(crate) fn find(&self, finding: Finding) {
        let mut is_new = false;
        self.with(|report| is_new = report.find(finding));
        if is_new {
            self.write(&Entry::Found(&finding));
        }
    }

    /// Notes an id or a handle, other than 0, that the runtime has not given.
    pub(crate) fn find_unknown(&self, method: &'static str, id: u64) {
        if id != 0 {
            self.find(Finding::UnknownId { method, id });
        }
    }

    /// Notes NULL where a CLR does not check.
    pub(crate) fn find_null(&self, method: &'static str, argument: &'static str) {
        self.find(Finding::NullPointer { method, argument });
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
}

thread_local! {
    /// The open sessions of this thread, by key.
    static SESSIONS: RefCell<BTreeMap<u64, Rc<Inner>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Returns an open session of this thread.
pub(crate) fn find(key: u64) -> Option<Rc<Inner>> {
    SESSIONS.try_with(|sessions| sessions.borrow().get(&key).cloned()).ok().flatten()
}

/// The state of a session.
pub(crate) struct Inner {
    pub(crate) key: u64,
    pub(crate) shared: Arc<Shared>,
    pub(crate) scenario: Scenario,
    pub(crate) generation: Generation,
    /// All processes so far, the current one last: what they gave away lives as long as the session.
    stages: RefCell<Vec<Rc<Stage>>>,
    caller: Cell<OsThreadId>,
    /// The thread of a history that has the turn.
    pub(crate) current: Current,
    ended: Cell<bool>,
    pub(crate) high_events: Cell<u32>,
    /// The profiler's object, while callbacks are raised.
    pub(crate) profiler: RefCell<Option<Rc<crate::target::Target>>>,
    info: RefCell<Option<OwnedObject<Info>>>,
    objects: RefCell<Vec<Box<dyn Kept>>>,
    /// The metadata of modules that were asked for, by number of the process and ModuleID.
    pub(crate) scopes: RefCell<BTreeMap<(usize, u64), Arc<Scope>>>,
    pub(crate) enumerations: RefCell<BTreeMap<usize, TokenEnumeration>>,
    /// Nesting of walks.
    pub(crate) walks: Cell<u32>,
    pub(crate) explanations: RefCell<Vec<String>>,
    /// The callback that the profiler is in.
    pub(crate) within: Cell<Option<&'static str>>,
    /// Called after each callback, with its name.
    watcher: RefCell<Option<Box<Watcher>>>,
    pub(crate) hooks: Hooks,
    pub(crate) events: Events,
    /// The exports that the program calls.
    pub(crate) exports: RefCell<Exports>,
    /// Number of objects that the program has made, as of the last callback.
    pub(crate) objects_made: Cell<u64>,
    /// Number of modules that are loaded, of those that a process has from its start; more than there are
    /// when all are.
    pub(crate) modules_loaded: Cell<usize>,
    /// The ids of the classes that callbacks have reported as loaded.
    pub(crate) loaded_classes: RefCell<BTreeSet<u64>>,
    /// The functions that the JIT compiles.
    pub(crate) compiling: RefCell<BTreeSet<FunctionId>>,
    /// Called when the profiler has been detached.
    pub(crate) on_detach: RefCell<Option<Box<dyn FnOnce()>>>,
}

/// A function that looks at the process after a callback.
type Watcher = dyn Fn(&'static str);

/// An object that a session keeps.
pub(crate) trait Kept {
    fn leak(&self) -> Option<Finding>;
    fn buried(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl<T: Headed> Kept for OwnedObject<T> {
    fn leak(&self) -> Option<Finding> {
        self.value().head().leak()
    }

    fn buried(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

impl Inner {
    pub(crate) fn stage(&self) -> Option<Rc<Stage>> {
        self.stages.borrow().last().cloned()
    }

    /// Returns the number of the current process, from 0.
    pub(crate) fn stage_number(&self) -> usize {
        self.stages.borrow().len().saturating_sub(1)
    }

    pub(crate) fn stage_of(&self, number: usize) -> Option<Rc<Stage>> {
        self.stages.borrow().get(number).cloned()
    }

    pub(crate) fn caller(&self) -> OsThreadId {
        self.caller.get()
    }

    pub(crate) fn set_caller(&self, os: OsThreadId) {
        self.caller.set(os);
    }

    /// Calls `act` as a thread.
    pub(crate) fn acting_as<T>(&self, os: OsThreadId, act: impl FnOnce() -> T) -> T {
        let before = self.caller.replace(os);
        let done = act();
        self.caller.set(before);
        done
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    pub(crate) fn end(&self) {
        self.ended.set(true);
    }

    pub(crate) fn set(&self, stage: Stage) {
        self.caller.set(stage.native());
        self.ended.set(false);
        self.stages.borrow_mut().push(Rc::new(stage));
    }

    /// Keeps an object, and returns the pointer for the profiler.
    pub(crate) fn keep<T: Headed>(&self, make: impl FnOnce(u32) -> OwnedObject<T>) -> *mut c_void {
        self.keep_all(|number| {
            let object = make(number);
            let pointer = object.as_raw();
            (Box::new(object), pointer)
        })
    }

    /// Keeps an object that may have more than one pointer, and returns what is made with it.
    pub(crate) fn keep_all<T>(&self, make: impl FnOnce(u32) -> (Box<dyn Kept>, T)) -> T {
        let mut objects = self.objects.borrow_mut();
        let (object, with) = make(objects.len() as u32 + 1);
        objects.push(object);
        with
    }

    /// Calls `watcher` after each callback.
    pub(crate) fn watch(&self, watcher: impl Fn(&'static str) + 'static) {
        *self.watcher.borrow_mut() = Some(Box::new(watcher));
    }

    /// Calls the profiler.
    pub(crate) fn enter(&self, callback: &'static str, call: impl FnOnce() -> HResult) -> HResult {
        self.shared.write(&Entry::Enters(callback));
        let before = self.within.replace(Some(callback));
        // In a history the thread of the system that carries the guest's code executes it.
        #[cfg(scheduled)]
        let result = match self.current() {
            Some(me) => self.switching(|| crate::scheduled::execute(me, call)),
            None => call(),
        };
        #[cfg(not(scheduled))]
        let result = call();
        self.within.set(before);
        self.shared.write(&Entry::Leaves { callback, result });
        if before.is_none()
            && let Some(watcher) = &*self.watcher.borrow()
        {
            watcher(callback);
        }
        result
    }
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
        let stage = Stage::new(&scenario, generation)?;
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
        let stage = Stage::new(&scenario, generation)?;
        Ok(Self::of_stage(scenario, generation, stage, journal))
    }

    /// Opens a session of a process.
    pub(crate) fn of_stage(
        scenario: Scenario,
        generation: Generation,
        stage: Stage,
        journal: Option<Box<dyn Journal>>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (report, refused) = Default::default();
        let shared = Shared { report, open: AtomicBool::new(true), journal, refused };
        let inner = Rc::new(Inner {
            key: NEXT.fetch_add(1, Ordering::Relaxed),
            shared: Arc::new(shared),
            scenario,
            generation,
            stages: RefCell::default(),
            caller: Cell::default(),
            current: Current::default(),
            ended: Cell::new(false),
            high_events: Cell::new(0),
            profiler: RefCell::default(),
            info: RefCell::default(),
            objects: RefCell::default(),
            scopes: RefCell::default(),
            enumerations: RefCell::default(),
            walks: Cell::new(0),
            explanations: RefCell::default(),
            within: Cell::new(None),
            watcher: RefCell::default(),
            hooks: Hooks::default(),
            events: Events::default(),
            exports: RefCell::default(),
            objects_made: Cell::new(0),
            modules_loaded: Cell::new(usize::MAX),
            loaded_classes: RefCell::default(),
            compiling: RefCell::default(),
            on_detach: RefCell::default(),
        });
        inner.set(stage);
        *inner.info.borrow_mut() = Some(Info::make(&inner, Kind::Info(generation.profiler_info())));
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
    pub(crate) fn share(&self) -> Self {
        Self { inner: Rc::clone(&self.inner), closes: false }
    }

    /// Runs the text's threads to a stop, from the beginning.
    ///
    /// # Errors
    /// Returns [`SessionError::Run`]; the process is then the one from before.
    pub fn run_to_stop(&self, stop: usize) -> Result<(), SessionError> {
        self.inner.set(Stage::at_stop(&self.inner.scenario, self.inner.generation, stop)?);
        self.inner.events.clear();
        Ok(())
    }

    /// Returns the runtime's object, an `ICorProfilerInfo` and an `IUnknown`, without counting a
    /// reference. It is NULL for no session.
    pub fn info(&self) -> *mut c_void {
        self.inner.info.borrow().as_ref().map_or(std::ptr::null_mut(), OwnedObject::as_raw)
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
        bury(info.map(|info| Box::new(info) as Box<dyn Any + Send>));
    }
}
