//! The start of a profiler: `Initialize`, and the modules that a process has from its start.

use crate::callbacks::FIRST_THREAD;
use crate::process::Process;
use crate::report::Finding;
use crate::session::Session;
use crate::target::Target;
use clr_com::{AppDomainId, AssemblyId, IUnknown, Interface, ModuleId};
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{OsThreadId, ProfilerStatus, Runtime};
use clr_walker::profiling::{EventMask, HResult};
use clr_world::{StartStep, StartSubject, start_steps};
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
        runtime.change_process(|process| {
            process.profiler = ProfilerStatus::InitializingForStartup;
            process.event_mask = EventMask(0);
            process.allocation_ticks = false;
            process.basic_gc = false;
            process.large_objects = false;
            process.pinned_objects = false;
            // Profilers are loaded before the runtime counts as started (C-002), and before the GC.
            process.started &= !is_new;
            process.gc_initialized &= !is_new;
        });
        inner.modules_loaded.set(if is_new { 0 } else { usize::MAX });
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
                process.started = true;
                process.gc_initialized = true;
            });
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

    /// Begins the start of the runtime: reports the handles of the first thread, which is none of the runtime yet.
    pub(crate) fn begin_start(&self, stage: &Process, os: OsThreadId) {
        let inner = self.inner();
        let Some(target) = inner.profiler.borrow().clone() else { return };
        stage.runtime().change_process(|process| process.started = false);
        inner.acting_as(os, || target.thread_handles(inner, FIRST_THREAD));
    }

    /// Reports what the start of the runtime loads: all modules of the program. The thread that loads them is one of the runtime.
    pub(crate) fn load_modules(&self, stage: &Process, os: OsThreadId) {
        let inner = self.inner();
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let runtime = stage.runtime();
        // The core library is the last one.
        let modules = runtime.metadata.modules().iter().rev();
        let mut loaded = 0;
        for step in start_steps(modules.map(|module| module.id)) {
            let StartStep::Callback(kind, subject) = step else {
                runtime.change_process(|process| process.started = true);
                continue;
            };
            // The module is one of the process when its load has begun, or, if nobody hears of that, when it is over.
            loaded += usize::from(kind == Kind::ModuleLoadFinished);
            inner.modules_loaded.set(loaded);
            if let StartSubject::Module(module) = subject {
                runtime.unfinished.borrow_mut().note_load(kind, module);
            }
            let ends = || {
                if let StartSubject::Module(module) = subject {
                    runtime.unfinished.borrow_mut().note_end(kind, module);
                }
            };
            let is_wanted = runtime.process.get().requests(kind);
            if !is_wanted || inner.is_detaching() {
                ends();
                continue;
            }
            inner.acting_as(os, || {
                runtime.on(os).in_callback(kind, |_| {
                    inner.enter(kind.name(), || target.raise_start(runtime, kind, subject));
                });
            });
            ends();
        }
        inner.detach_if_asked();
    }
}

impl Target {
    /// Makes a callback of the runtime's start.
    fn raise_start(&self, runtime: &Runtime<'_>, kind: Kind, subject: StartSubject) -> HResult {
        let to = &self.first;
        // SAFETY: the profiler's object; the callbacks have no pointers.
        unsafe {
            match subject {
                StartSubject::Domain(id) if kind == Kind::AppDomainCreationStarted => {
                    to.AppDomainCreationStarted(AppDomainId(id))
                }
                StartSubject::Domain(id) => {
                    to.AppDomainCreationFinished(AppDomainId(id), HResult::OK)
                }
                StartSubject::Module(id) => {
                    let assembly = runtime.metadata.module(id).map_or(0, |module| module.assembly);
                    let (module, assembly) = (ModuleId(id), AssemblyId(assembly));
                    match kind {
                        Kind::AssemblyLoadStarted => to.AssemblyLoadStarted(assembly),
                        Kind::ModuleLoadStarted => to.ModuleLoadStarted(module),
                        Kind::ModuleLoadFinished => to.ModuleLoadFinished(module, HResult::OK),
                        Kind::ModuleAttachedToAssembly => {
                            to.ModuleAttachedToAssembly(module, assembly)
                        }
                        _ => to.AssemblyLoadFinished(assembly, HResult::OK),
                    }
                }
            }
        }
    }
}

impl Session {
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
