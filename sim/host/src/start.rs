//! The start of a profiler: `Initialize`, and the modules that a process has from its start.

use crate::process::Process;
use crate::report::Finding;
use crate::session::Session;
use crate::target::Target;
use clr_com::{AppDomainId, AssemblyId, IUnknown, Interface, ModuleId};
use clr_runtime::metadata::APP_DOMAIN;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{OsThreadId, ProfilerStatus};
use clr_walker::profiling::{EventMask, HResult};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// `COR_PRF_MONITOR_MODULE_LOADS`, `_ASSEMBLY_LOADS`, `_APPDOMAIN_LOADS`.
const MODULE_LOADS: EventMask = EventMask(0x4);
const ASSEMBLY_LOADS: EventMask = EventMask(0x8);
const APP_DOMAIN_LOADS: EventMask = EventMask(0x10);

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
            // Profilers are loaded before the runtime counts as started (C-002), and before the GC.
            process.started &= !is_new;
            process.gc_initialized &= !is_new;
        });
        inner.modules_loaded.set(if is_new { 0 } else { usize::MAX });
        inner.compiling.borrow_mut().clear();
        inner.high_events.set(0);
        inner.hooks.clear();
        inner.events.clear();
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
            self.add_hooks(&stage);
        }
        if let Some(stage) = inner.stage() {
            stage.runtime().change_process(|process| {
                process.started = true;
                process.gc_initialized = true;
            });
        }
        result
    }

    /// Sets the program up again if the profiler's hooks are not those of the code.
    fn add_hooks(&self, stage: &Process) {
        let inner = self.inner();
        let process = stage.runtime().process.get();
        let hooks = inner.hooks.in_code(process.event_mask);
        if stage.world().is_none() || !inner.hooks.are_set() || inner.has_ended() {
            return;
        }
        let mut scenario = inner.scenario.clone();
        scenario.hooks = hooks;
        if let Ok(stage) = Process::new(&scenario, inner.generation) {
            stage.runtime().process.set(process);
            inner.set(stage);
        }
    }

    /// Reports the modules that a process has from its start. While the core library is loaded the runtime
    /// does not count as started. The thread that loads them is one of the runtime.
    pub(crate) fn load_modules(&self, stage: &Process, os: OsThreadId) {
        let inner = self.inner();
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let runtime = stage.runtime();
        let wants = |events| runtime.process.get().event_mask.contains(events);
        let to = &target.first;
        let caller = runtime.on(os);
        let call = |kind: Kind, name: &'static str, act: &dyn Fn() -> HResult| {
            if inner.is_detaching() {
                return;
            }
            inner.acting_as(os, || {
                caller.in_callback(kind, |_| inner.enter(name, act));
            });
        };
        let call_of = |kind: Kind, act: &dyn Fn() -> HResult| call(kind, kind.name(), act);
        // SAFETY: the profiler's object; the callbacks have no pointers.
        unsafe {
            runtime.change_process(|process| process.started = false);
            if wants(APP_DOMAIN_LOADS) {
                let domain = AppDomainId(APP_DOMAIN);
                call_of(Kind::AppDomainCreationStarted, &|| to.AppDomainCreationStarted(domain));
                call_of(Kind::AppDomainCreationFinished, &|| {
                    to.AppDomainCreationFinished(domain, HResult::OK)
                });
            }
            // The core library comes first. The runtime has started when it loads the program's
            // (recorded on 3.1, 8 and 9 Unix).
            for (loaded, module) in runtime.metadata.modules().iter().rev().enumerate() {
                runtime.change_process(|process| process.started = loaded > 0);
                let (id, assembly) = (ModuleId(module.id), AssemblyId(module.assembly));
                if wants(ASSEMBLY_LOADS) {
                    call_of(Kind::AssemblyLoadStarted, &|| to.AssemblyLoadStarted(assembly));
                }
                if wants(MODULE_LOADS) {
                    call_of(Kind::ModuleLoadStarted, &|| to.ModuleLoadStarted(id));
                    inner.modules_loaded.set(loaded + 1);
                    call_of(Kind::ModuleLoadFinished, &|| to.ModuleLoadFinished(id, HResult::OK));
                    call(Kind::ModuleLoadFinished, "ModuleAttachedToAssembly", &|| {
                        to.ModuleAttachedToAssembly(id, assembly)
                    });
                }
                inner.modules_loaded.set(loaded + 1);
                if wants(ASSEMBLY_LOADS) {
                    call_of(Kind::AssemblyLoadFinished, &|| {
                        to.AssemblyLoadFinished(assembly, HResult::OK)
                    });
                }
            }
        }
        runtime.change_process(|process| process.started = true);
        inner.detach_if_asked();
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
