//! The start and the end of a profiler: `Initialize`, and `Shutdown`.

use crate::callbacks::FIRST_THREAD;
use crate::process::Process;
use crate::report::Finding;
use crate::session::Session;
use crate::target::Target;
use clr_com::{IUnknown, Interface};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{OsThreadId, ProfilerStatus};
use clr_walker::profiling::HResult;
use std::borrow::Cow;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::rc::Rc;

impl Session {
    /// Loads a profiler: calls `Initialize` with the runtime's object. Until `Initialize` returns,
    /// all events can be chosen; before that, none is.
    ///
    /// # Safety
    /// `profiler` is NULL, or points to an object with `ICorProfilerCallback`.
    pub unsafe fn initialize(&self, profiler: *mut c_void) -> HResult {
        // SAFETY: the caller's promise; the caller keeps its reference, and this takes others.
        let unknown = ManuallyDrop::new(unsafe { IUnknown::from_raw(profiler) });
        let Some(unknown) = unknown.as_ref() else { return HResult::INVALID_ARGUMENT };
        match Target::of_object(unknown, self.inner().generation) {
            Ok(target) => self.load_target(Some(target)),
            Err(refused) => refused,
        }
    }

    /// Sets whether the profiler that is loaded next is loaded for notifications only.
    #[doc(hidden)]
    pub fn load_for_notifications(&self, only: bool) {
        if let Some(stage) = self.inner().stage() {
            stage.runtime().change_process(|process| process.notification_only = only);
        }
    }

    /// Loads a profiler: calls `Initialize`. The code of the program's methods then has its hooks.
    pub(crate) fn load_target(&self, target: Option<Target>) -> HResult {
        let inner = self.inner();
        let (Some(stage), Some(target)) = (inner.stage(), target) else {
            return HResult::UNEXPECTED;
        };
        let target = Rc::new(target);
        *inner.profiler.borrow_mut() = Some(Rc::clone(&target));
        let runtime = stage.runtime();
        let is_new = stage.is_new();
        // The program of a search begins with the start of the runtime, if it has one.
        let starts_later = stage.is_scheduled() && !runtime.process.get().started;
        runtime.change_process(|process| {
            process.reset_profiler(ProfilerStatus::InitializingForStartup);
            // Profilers are loaded before the runtime counts as started (C-002), and before the GC.
            process.started &= !is_new;
            process.gc_initialized &= !is_new;
        });
        if is_new {
            let modules = runtime.metadata.modules().iter().map(|module| module.id);
            runtime.unfinished.borrow_mut().begin(modules);
        }
        inner.high_events.set(0);
        inner.hooks.clear();
        inner.events.clear();
        inner.environment.clear();
        inner.heap.clear();
        inner.handles.borrow_mut().clear();
        // SAFETY: the runtime's object outlives the profiler's.
        let result = inner.enter("Initialize", || unsafe { target.initialize(self.info()) });
        runtime.change_process(|process| process.profiler = ProfilerStatus::Active);
        if result.is_failure() {
            inner.shared.find(Finding::Refused(result));
            inner
                .shared
                .with(|report| report.not_loaded(Some(format!("Initialize returned {result}"))));
            *inner.profiler.borrow_mut() = None;
        } else if is_new {
            self.compile_for_profiler(&stage);
        }
        if let Some(stage) = inner.stage() {
            stage.runtime().change_process(|process| {
                process.started |= !starts_later;
                process.gc_initialized = true;
            });
            // Between `Initialize` and the program a test may ask about all that is there.
            if !starts_later {
                stage.runtime().unfinished.borrow_mut().end();
            }
        }
        result
    }

    /// Sets the program up again if the profiler's hooks or its events change the code.
    fn compile_for_profiler(&self, stage: &Process) {
        let inner = self.inner();
        let process = stage.runtime().process.get();
        let mut scenario = inner.scenario.compiled_for(process.event_mask);
        if inner.hooks.are_set() {
            scenario.to_mut().hooks = inner.hooks.in_code(process.event_mask);
        }
        let Cow::Owned(scenario) = scenario else { return };
        if stage.world().is_none() || inner.has_ended() {
            return;
        }
        if let Ok(stage) = Process::new(&scenario, inner.generation) {
            stage.runtime().process.set(process);
            inner.set(stage);
        }
    }

    /// Reports the handles of the first thread, on a thread that the runtime does not know yet.
    pub(crate) fn report_first_handles(&self, os: OsThreadId) {
        let inner = self.inner();
        if let Some(target) = inner.profiler.borrow().clone() {
            inner.acting_as(os, || target.thread_handles(inner, FIRST_THREAD));
        }
    }

    /// Ends the process: calls `Shutdown`, unless the program has ended with it, or the profiler is gone.
    pub(crate) fn shut_down(&self) {
        let inner = self.inner();
        let (Some(stage), Some(target)) = (inner.stage(), inner.profiler.borrow().clone()) else {
            return;
        };
        if stage.world().is_some_and(|world| world.borrow().has_exited()) {
            return;
        }
        let runtime = stage.runtime();
        runtime.change_process(|process| process.shutting_down = true);
        inner.acting_as(stage.stopped(), || {
            runtime.on(stage.stopped()).in_callback(Kind::Shutdown, |_| {
                inner.enter(Kind::Shutdown.name(), || target.shutdown());
            });
        });
    }

    /// Ends profiling: from now on the runtime refuses all calls but those of `IUnknown`.
    #[doc(hidden)]
    pub fn end_profiling(&self) {
        self.inner().end_profiling();
    }
}
