//! Callbacks into the profiler.

use crate::callbacks::Raised;
use crate::journal::Entry;
use crate::report::Finding;
use crate::session::{Inner, Session, SessionError};
use crate::stage::Stage;
use crate::target::Target;
use clr_com::{AppDomainId, AssemblyId, IUnknown, Interface, ModuleId};
use clr_machine::Machine;
use clr_runtime::metadata::APP_DOMAIN;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{OsThreadId, Profiler, ProfilerStatus, Runtime, Wait};
use clr_scenario::RunOnError;
use clr_walker::profiling::{EventMask, HResult, ProfilerCallback};
use clr_world::{StepEvent, Waiting};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::rc::Rc;

/// `COR_PRF_MONITOR_MODULE_LOADS`, `_ASSEMBLY_LOADS`, `_APPDOMAIN_LOADS`.
const MODULE_LOADS: EventMask = EventMask(0x4);
const ASSEMBLY_LOADS: EventMask = EventMask(0x8);
const APP_DOMAIN_LOADS: EventMask = EventMask(0x10);
/// Maximum number of steps of a program.
const STEPS: u64 = 1_000_000;

/// The receiver of the callbacks that methods of the runtime make.
pub(crate) struct Receiver<'s>(pub(crate) &'s Inner);

impl Profiler<'static, Machine> for Receiver<'_> {
    fn call_back(
        &self,
        runtime: &Runtime<'static, Machine>,
        thread: OsThreadId,
        callback: ProfilerCallback,
    ) {
        if let Some(me) = self.0.current() {
            return self.0.switching(|| me.call_back(runtime, thread, callback));
        }
        let Some(target) = self.0.profiler.borrow().clone() else { return };
        self.0.acting_as(thread, || {
            self.0.enter(Kind::from(callback).name(), || target.tell(callback));
        });
    }

    fn wait(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId, wait: Wait) -> bool {
        let Some(me) = self.0.current() else { return false };
        self.0.switching(|| Profiler::wait(me, runtime, thread, wait))
    }

    fn between(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId) {
        if let Some(me) = self.0.current() {
            self.0.switching(|| me.between(runtime, thread));
        }
    }

    fn suspends(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId) {
        if let Some(me) = self.0.current() {
            self.0.switching(|| me.suspends(runtime, thread));
        }
    }

    fn reads_unlocked(&self, runtime: &Runtime<'static, Machine>, thread: OsThreadId) {
        if let Some(me) = self.0.current() {
            self.0.switching(|| me.reads_unlocked(runtime, thread));
        }
    }
}

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
            Ok(target) => self.load(Some(target)),
            Err(refused) => refused,
        }
    }

    /// Loads a profiler: calls `Initialize`. The code of the program's methods then has its hooks.
    pub(crate) fn load(&self, target: Option<Target>) -> HResult {
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
            // Profilers are loaded before the runtime counts as started (C-002).
            process.started &= !is_new;
        });
        inner.high_events.set(0);
        inner.hooks.clear();
        inner.events.clear();
        // SAFETY: the runtime's object outlives the profiler's.
        let result = unsafe { target.initialize(inner, self.info()) };
        runtime.change_process(|process| process.profiler = ProfilerStatus::Active);
        if result.is_failure() {
            inner.shared.find(Finding::Refused(result));
            *inner.profiler.borrow_mut() = None;
        } else if is_new {
            self.add_hooks(&stage);
        }
        if let Some(stage) = inner.stage() {
            stage.runtime().change_process(|process| process.started = true);
        }
        result
    }

    /// Sets the program up again if the profiler's hooks are not those of the code.
    fn add_hooks(&self, stage: &Stage) {
        let inner = self.inner();
        let process = stage.runtime().process.get();
        let hooks = inner.hooks.in_code(process.event_mask);
        if stage.world().is_none() || !inner.hooks.are_set() || inner.has_ended() {
            return;
        }
        let mut scenario = inner.scenario.clone();
        scenario.hooks = hooks;
        if let Ok(stage) = Stage::new(&scenario, inner.generation) {
            stage.runtime().process.set(process);
            inner.set(stage);
        }
    }

    /// Executes the text's program from where it is to its end, and makes the callbacks that the
    /// profiler has asked for. The profiler was loaded by [`initialize`](Self::initialize).
    ///
    /// # Errors
    /// Returns [`SessionError::Run`] if a thread cannot go on, or none can.
    pub fn run(&self) -> Result<(), SessionError> {
        let inner = self.inner();
        let Some(stage) = inner.stage() else { return Ok(()) };
        let Some(world) = stage.world() else { return Ok(()) };
        if stage.is_new() {
            self.load_modules(&stage);
        }
        let threads = world.borrow().thread_count();
        let mut waiting = vec![Waiting::default(); threads];
        let mut steps = 0;
        loop {
            let (mut went_on, mut ended) = (false, 0);
            for thread in 0..threads {
                loop {
                    steps += 1;
                    if steps > STEPS || inner.has_ended() {
                        return self.stuck(thread, steps);
                    }
                    let event = world.borrow_mut().step(thread);
                    let event = event.map_err(|error| RunOnError::World { stop: 0, error })?;
                    let waits = waiting.get_mut(thread).is_some_and(|one| one.is_for_others(event));
                    match event {
                        StepEvent::Stepped => went_on = true,
                        StepEvent::Hook | StepEvent::Entered(_) | StepEvent::Callback(_) => {
                            went_on = true;
                            self.raise(&stage, event, thread);
                            inner.detach_if_asked();
                        }
                        StepEvent::Waits if !waits => went_on = true,
                        StepEvent::Waits => {}
                        StepEvent::Ended => ended += 1,
                    }
                    if matches!(event, StepEvent::Waits | StepEvent::Ended) {
                        break;
                    }
                }
            }
            if ended == threads {
                return Ok(());
            }
            if !went_on {
                return self.stuck(0, steps);
            }
        }
    }

    fn stuck(&self, thread: usize, steps: u64) -> Result<(), SessionError> {
        if self.inner().has_ended() {
            return Ok(());
        }
        Err(RunOnError::NotReached { stop: 0, thread: thread as u32, steps }.into())
    }

    /// Reports the modules that a process has from its start, during which the runtime does not count as
    /// started.
    pub(crate) fn load_modules(&self, stage: &Stage) {
        let inner = self.inner();
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let runtime = stage.runtime();
        runtime.change_process(|process| process.started = false);
        let wants = |events| runtime.process.get().event_mask.contains(events);
        let to = &target.first;
        let caller = runtime.on(stage.stopped());
        let call = |kind: Kind, name: &'static str, act: &dyn Fn() -> HResult| {
            if inner.is_detaching() {
                return;
            }
            inner.acting_as(stage.stopped(), || {
                caller.in_callback(kind, |_| inner.enter(name, act));
            });
        };
        let call_of = |kind: Kind, act: &dyn Fn() -> HResult| call(kind, kind.name(), act);
        // SAFETY: the profiler's object; the callbacks have no pointers.
        unsafe {
            if wants(APP_DOMAIN_LOADS) {
                let domain = AppDomainId(APP_DOMAIN);
                call_of(Kind::AppDomainCreationStarted, &|| to.AppDomainCreationStarted(domain));
                call_of(Kind::AppDomainCreationFinished, &|| {
                    to.AppDomainCreationFinished(domain, HResult::OK)
                });
            }
            // The core library comes first.
            for module in runtime.metadata.modules().iter().rev() {
                let (id, assembly) = (ModuleId(module.id), AssemblyId(module.assembly));
                if wants(ASSEMBLY_LOADS) {
                    call_of(Kind::AssemblyLoadStarted, &|| to.AssemblyLoadStarted(assembly));
                }
                if wants(MODULE_LOADS) {
                    call_of(Kind::ModuleLoadStarted, &|| to.ModuleLoadStarted(id));
                    call_of(Kind::ModuleLoadFinished, &|| to.ModuleLoadFinished(id, HResult::OK));
                    call(Kind::ModuleLoadFinished, "ModuleAttachedToAssembly", &|| {
                        to.ModuleAttachedToAssembly(id, assembly)
                    });
                }
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

    /// Makes a callback or calls a hook of the program. The profiler acts as the program's thread.
    fn raise(&self, stage: &Stage, event: StepEvent, thread: usize) {
        let inner = self.inner();
        if inner.is_detaching() {
            return;
        }
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let Some(world) = stage.world() else { return };
        let (os, object, arguments) = {
            let mut world = world.borrow_mut();
            world.sync();
            let os = world.os(thread).unwrap_or_default();
            (os, world.object(thread).unwrap_or_default(), world.callback_arguments(thread))
        };
        let raised = inner.acting_as(os, || match event {
            StepEvent::Callback(kind) if kind != Kind::EnterLeaveSlow => {
                target.raise(inner, &Raised { kind, thread: object, os, arguments: &arguments })
            }
            StepEvent::Entered(function) => {
                inner.call_export(function);
                true
            }
            _ => {
                inner.call_hook(stage, thread);
                true
            }
        });
        if let StepEvent::Callback(kind) = event
            && !raised
        {
            inner.shared.with(|report| report.not_raised(kind.name()));
            inner.shared.write(&Entry::NotRaised(kind.name()));
        }
    }
}
