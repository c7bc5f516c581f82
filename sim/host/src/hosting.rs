//! The steps of a profiler's life in a session, for `clr-guest`.

use crate::callbacks::Raised;
use crate::exports::FindExport;
use crate::import;
use crate::journal::Journal;
use crate::process::Process;
use crate::session::{Session, SessionError};
use crate::target::Target;
use clr_codegen::FunctionIndex;
use clr_explore::CurrentThread;
use clr_runtime::generation::Generation;
use clr_runtime::{OsThreadId, Runtime};
use clr_scenario::Scenario;
use clr_walker::profiling::HResult;
use std::rc::Rc;
use std::sync::Arc;

pub use crate::import::get_dispenser;
pub use crate::lookup::Lookup;
pub use crate::object::prepare_calls;
pub use crate::process::Anchor;
pub use crate::shared::Shared;
pub use crate::target::{OTHERS, Pointers, newest_callback};
pub use crate::turns::{Turns, install};

/// Steps of a profiler's life.
impl Session {
    /// Opens a session of a process that a search executes, by its runtime. `main` is the program's first thread.
    #[must_use]
    pub fn of_runtime(
        scenario: Scenario,
        generation: Generation,
        runtime: Rc<Runtime<'static>>,
        main: OsThreadId,
        journal: Option<Box<dyn Journal>>,
    ) -> Self {
        Self::of_stage(scenario, generation, Process::scheduled(runtime, main), journal)
    }

    /// Returns the runtime.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.inner().generation
    }

    /// Returns the part that other threads may touch.
    #[must_use]
    pub fn shared_state(&self) -> &Arc<Shared> {
        &self.inner().shared
    }

    /// Returns the ids of the session's process as names.
    #[must_use]
    pub fn lookup(&self) -> Lookup {
        Lookup::new(self.inner().key)
    }

    /// Lets [`get_dispenser`] give dispensers of this session.
    pub fn offer_dispenser(&self) {
        import::offer(self.inner());
    }

    /// Calls `watcher` after each callback.
    pub fn watch(&self, watcher: impl Fn(&'static str) + 'static) {
        self.inner().watch(watcher);
    }

    /// Calls `then` when the profiler has been detached.
    pub fn on_detach(&self, then: impl FnOnce() + 'static) {
        self.inner().on_detach.replace(Some(Box::new(then)));
    }

    /// Calls `begin` in an interleaving when the profiler asks to be detached, on the thread that asks: it starts a thread
    /// that [detaches](Self::detach).
    pub fn on_detach_request(&self, begin: impl Fn(&CurrentThread<'_, '_>) + 'static) {
        self.inner().on_request.replace(Some(Rc::new(begin)));
    }

    /// Detaches the profiler on a thread of an interleaving that is the runtime's own, when no callback is in progress.
    ///
    /// # Safety
    /// The session's runtime is that of the interleaving.
    pub unsafe fn detach(&self, me: &CurrentThread<'_, '_>) {
        let inner = self.inner();
        // SAFETY: the caller's promise.
        unsafe { inner.on_behalf_of(me, || inner.detach()) };
    }

    /// Returns true if the process has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner().has_ended()
    }

    /// Finds the exports that the program calls in a library.
    ///
    /// # Errors
    /// Returns a sentence that names an export which the library does not have.
    pub fn find_exports(&self, library: &FindExport<'_>) -> Result<(), String> {
        let inner = self.inner();
        inner.exports.borrow_mut().find(&inner.scenario, library)
    }

    /// Returns true if a function stands for an export, and the program has not loaded the library yet: the first call does so
    /// (P/Invoke), whether a profiler is loaded or not.
    #[must_use]
    pub fn is_first_import(&self, function: FunctionIndex) -> bool {
        let inner = self.inner();
        let is_imported = inner.exports.borrow().is_imported;
        !is_imported && inner.scenario.exports.contains_key(&function)
    }

    /// Finds the exports in the library that the program has loaded, which stays loaded.
    ///
    /// # Errors
    /// As of [`find_exports`](Self::find_exports).
    pub fn import(&self, library: &FindExport<'_>) -> Result<(), String> {
        self.find_exports(library)?;
        self.inner().exports.borrow_mut().is_imported = true;
        Ok(())
    }

    /// Calls `Initialize`. The code of the program's methods then has its hooks.
    ///
    /// # Safety
    /// The pointers are NULL, or point to an object with these interfaces, which lives until profiling ends.
    #[must_use]
    pub unsafe fn load_profiler(&self, pointers: Pointers) -> HResult {
        // SAFETY: the caller's promise.
        self.load_target(unsafe { Target::new(pointers) })
    }

    /// Executes the program with its callbacks, and ends the process. `enter` does what functions of the program stand for,
    /// before the session does.
    ///
    /// # Errors
    /// Returns [`SessionError`] if the program cannot go on.
    pub fn run_to_end(&self, enter: &dyn Fn(FunctionIndex)) -> Result<(), SessionError> {
        self.end_with_program();
        self.run_entering(enter)?;
        if !self.has_ended() {
            self.shut_down();
        }
        Ok(())
    }

    /// Starts the runtime with a profiler, on a thread of an interleaving: in a CLR it is the program's first thread, before
    /// it executes the program. Returns false if the profiler refuses.
    ///
    /// # Safety
    /// As of [`load_profiler`](Self::load_profiler); and the session's runtime is that of the interleaving.
    #[must_use]
    pub unsafe fn start(&self, me: &CurrentThread<'_, '_>, pointers: Pointers) -> bool {
        let inner = self.inner();
        // SAFETY: the caller's promise.
        let target = unsafe { Target::new(pointers) };
        // SAFETY: the same.
        let refused = unsafe { inner.on_behalf_of(me, || self.load_target(target).is_failure()) };
        if let Some(stage) = inner.stage().filter(|_| !refused) {
            // The program's first thread is another one here: what this one has become in `Initialize` is over.
            stage.runtime().change_thread(me.os(), |thread| thread.object = None);
            // SAFETY: the same.
            unsafe { inner.on_behalf_of(me, || self.report_first_handles(me.os())) };
        }
        !refused
    }

    /// Calls the export that a function of the program stands for, on the thread that enters the function.
    ///
    /// # Safety
    /// The session's runtime is that of the interleaving.
    pub unsafe fn call_export(&self, me: &CurrentThread<'_, '_>, function: FunctionIndex) {
        let inner = self.inner();
        // SAFETY: the caller's promise.
        unsafe { inner.on_behalf_of(me, || inner.call_export(function)) };
    }

    /// Makes the callback that a thread of an interleaving is in. Returns true if profiling is over after it, so that the
    /// runtime releases the profiler's object.
    ///
    /// # Safety
    /// The session's runtime is that of the interleaving.
    pub unsafe fn raise_callback(&self, me: &CurrentThread<'_, '_>) -> bool {
        let inner = self.inner();
        let target = inner.profiler.borrow().clone();
        let (Some(callback), Some(target)) = (me.callback(), target) else { return false };
        if inner.is_detaching() {
            return false;
        }
        let (kind, thread, arguments) = (callback.kind, callback.thread, &callback.arguments);
        let raised = Raised { kind, thread, os: me.os(), arguments };
        // SAFETY: the caller's promise.
        let raised = unsafe { inner.on_behalf_of(me, || target.raise(inner, &raised)) };
        if !raised {
            inner.shared.with(|report| report.not_raised(kind.name()));
        }
        inner.end_after(kind);
        inner.profiler.borrow().is_none()
    }
}
