//! Callbacks into the profiler.

use crate::report::Finding;
use crate::session::{Inner, Session, SessionError};
use crate::stage::Stage;
use clr_com::{
    AppDomainId, AssemblyId, Bool, ICorProfilerCallback, ICorProfilerCallback2, IUnknown,
    Interface, ModuleId,
};
use clr_machine::Machine;
use clr_runtime::metadata::APP_DOMAIN;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{OsThreadId, Profiler, ProfilerStatus, Runtime};
use clr_scenario::RunOnError;
use clr_walker::profiling::{EventMask, FunctionId, HResult, ProfilerCallback, ThreadId};
use clr_world::{StepEvent, Waiting};
use std::ffi::c_void;
use std::rc::Rc;

/// `COR_PRF_SUSPEND_FOR_PROFILER`.
const SUSPEND_FOR_PROFILER: u32 = 9;
/// `COR_PRF_CACHED_FUNCTION_FOUND`.
const CACHED_FUNCTION_FOUND: u32 = 0;
/// `COR_PRF_MONITOR_MODULE_LOADS`, `_ASSEMBLY_LOADS`, `_APPDOMAIN_LOADS`.
const MODULE_LOADS: EventMask = EventMask(0x4);
const ASSEMBLY_LOADS: EventMask = EventMask(0x8);
const APP_DOMAIN_LOADS: EventMask = EventMask(0x10);
/// The name that `name-thread` gives: `worker`.
const NAME: [u16; 6] = [0x77, 0x6F, 0x72, 0x6B, 0x65, 0x72];
/// Maximum number of steps of a program.
const STEPS: u64 = 1_000_000;

/// The object that callbacks are raised into.
pub(crate) struct Target {
    first: ICorProfilerCallback,
    second: Option<ICorProfilerCallback2>,
}

/// The receiver of the callbacks that methods of the runtime make.
pub(crate) struct Receiver<'s>(pub(crate) &'s Inner);

impl Profiler<'static, Machine> for Receiver<'_> {
    fn call_back(
        &self,
        _runtime: &Runtime<'static, Machine>,
        thread: OsThreadId,
        callback: ProfilerCallback,
    ) {
        let Some(target) = self.0.profiler.borrow().clone() else { return };
        self.0.acting_as(thread, || target.tell(callback));
    }
}

impl Target {
    /// Makes one of the callbacks of suspensions.
    fn tell(&self, callback: ProfilerCallback) {
        let to = &self.first;
        // SAFETY: the profiler's object, which the session holds a reference to. The callbacks have
        // no pointers.
        let _ = unsafe {
            match callback {
                ProfilerCallback::RuntimeThreadSuspended(thread) => {
                    to.RuntimeThreadSuspended(thread)
                }
                ProfilerCallback::RuntimeThreadResumed(thread) => to.RuntimeThreadResumed(thread),
                ProfilerCallback::RuntimeSuspendStarted => {
                    to.RuntimeSuspendStarted(SUSPEND_FOR_PROFILER)
                }
                ProfilerCallback::RuntimeSuspendFinished => to.RuntimeSuspendFinished(),
                ProfilerCallback::RuntimeResumeStarted => to.RuntimeResumeStarted(),
                ProfilerCallback::RuntimeResumeFinished => to.RuntimeResumeFinished(),
            }
        };
    }

    /// Makes a callback of a thread of the program, if its arguments are known. Returns true if it
    /// was made.
    fn raise(
        &self,
        kind: Kind,
        thread: Option<ThreadId>,
        os: OsThreadId,
        function: FunctionId,
    ) -> bool {
        let (to, thread) = (&self.first, thread.unwrap_or_default());
        let is_method = function.0 != 0;
        // SAFETY: the profiler's object, which the session holds a reference to; pointers are to
        // locals.
        let _ = unsafe {
            match kind {
                Kind::ThreadCreated => to.ThreadCreated(thread),
                Kind::ThreadDestroyed => to.ThreadDestroyed(thread),
                Kind::ThreadAssignedToOSThread => to.ThreadAssignedToOSThread(thread, os.0),
                Kind::JITCompilationStarted if is_method => to.JITCompilationStarted(function, 1),
                Kind::JITCompilationFinished if is_method => {
                    to.JITCompilationFinished(function, HResult::OK, 1)
                }
                Kind::JITCachedFunctionSearchStarted if is_method => {
                    let mut uses: Bool = 1;
                    to.JITCachedFunctionSearchStarted(function, &raw mut uses)
                }
                Kind::JITCachedFunctionSearchFinished if is_method => {
                    to.JITCachedFunctionSearchFinished(function, CACHED_FUNCTION_FOUND)
                }
                Kind::ExceptionSearchFunctionLeave => to.ExceptionSearchFunctionLeave(),
                Kind::ExceptionSearchFilterLeave => to.ExceptionSearchFilterLeave(),
                Kind::ExceptionUnwindFunctionLeave => to.ExceptionUnwindFunctionLeave(),
                Kind::ExceptionUnwindFinallyLeave => to.ExceptionUnwindFinallyLeave(),
                Kind::ExceptionCatcherLeave => to.ExceptionCatcherLeave(),
                Kind::RuntimeSuspendFinished => to.RuntimeSuspendFinished(),
                Kind::RuntimeSuspendAborted => to.RuntimeSuspendAborted(),
                Kind::RuntimeResumeStarted => to.RuntimeResumeStarted(),
                Kind::RuntimeResumeFinished => to.RuntimeResumeFinished(),
                Kind::Shutdown => to.Shutdown(),
                Kind::GarbageCollectionFinished => match &self.second {
                    Some(to) => to.GarbageCollectionFinished(),
                    None => return false,
                },
                Kind::ThreadNameChanged => match &self.second {
                    Some(to) => to.ThreadNameChanged(thread, NAME.len() as u32, NAME.as_ptr()),
                    None => return false,
                },
                _ => return false,
            }
        };
        true
    }
}

impl Session {
    /// Loads a profiler: calls `Initialize` with the runtime's object. Until `Initialize` returns,
    /// all events can be chosen; before that, none is.
    ///
    /// # Safety
    /// `profiler` is NULL, or points to an object with `ICorProfilerCallback`.
    pub unsafe fn initialize(&self, profiler: *mut c_void) -> HResult {
        let inner = self.inner();
        let Some(stage) = inner.stage() else { return HResult::UNEXPECTED };
        // SAFETY: the caller's promise; the caller keeps its reference, and this takes others.
        let unknown = std::mem::ManuallyDrop::new(unsafe { IUnknown::from_raw(profiler) });
        let Some(unknown) = unknown.as_ref() else { return HResult::INVALID_ARGUMENT };
        let first = match unknown.cast() {
            Ok(first) => first,
            Err(refused) => return refused,
        };
        let target = Rc::new(Target { first, second: unknown.cast().ok() });
        *inner.profiler.borrow_mut() = Some(Rc::clone(&target));
        let runtime = stage.runtime();
        runtime.change_process(|process| {
            process.profiler = ProfilerStatus::InitializingForStartup;
            process.event_mask = EventMask(0);
        });
        inner.high_events.set(0);
        // SAFETY: the profiler's object; the runtime's outlives it.
        let result = unsafe { target.first.Initialize(self.info()) };
        runtime.change_process(|process| process.profiler = ProfilerStatus::Active);
        if result.is_failure() {
            inner.shared.find(Finding::Refused(result));
            *inner.profiler.borrow_mut() = None;
        }
        result
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
        let executed = world.borrow().executed();
        if executed == 0 {
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
                        StepEvent::Stepped | StepEvent::Hook => went_on = true,
                        StepEvent::Callback(kind) => {
                            went_on = true;
                            self.raise(&stage, kind, thread);
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

    /// Reports the modules that a process has from its start.
    fn load_modules(&self, stage: &Stage) {
        let inner = self.inner();
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let runtime = stage.runtime();
        let wants = |events| runtime.process.get().event_mask.contains(events);
        let to = &target.first;
        let caller = runtime.on(stage.stopped());
        // SAFETY: the profiler's object; the callbacks have no pointers.
        unsafe {
            if wants(APP_DOMAIN_LOADS) {
                let domain = AppDomainId(APP_DOMAIN);
                caller.in_callback(Kind::AppDomainCreationStarted, |_| {
                    to.AppDomainCreationStarted(domain)
                });
                caller.in_callback(Kind::AppDomainCreationFinished, |_| {
                    to.AppDomainCreationFinished(domain, HResult::OK)
                });
            }
            // The core library comes first.
            for module in runtime.metadata.modules().iter().rev() {
                let (id, assembly) = (ModuleId(module.id), AssemblyId(module.assembly));
                inner.acting_as(stage.stopped(), || {
                    if wants(ASSEMBLY_LOADS) {
                        caller.in_callback(Kind::AssemblyLoadStarted, |_| {
                            to.AssemblyLoadStarted(assembly)
                        });
                    }
                    if wants(MODULE_LOADS) {
                        caller.in_callback(Kind::ModuleLoadStarted, |_| to.ModuleLoadStarted(id));
                        caller.in_callback(Kind::ModuleLoadFinished, |_| {
                            to.ModuleLoadFinished(id, HResult::OK)
                        });
                        caller.in_callback(Kind::ModuleLoadFinished, |_| {
                            to.ModuleAttachedToAssembly(id, assembly)
                        });
                    }
                    if wants(ASSEMBLY_LOADS) {
                        caller.in_callback(Kind::AssemblyLoadFinished, |_| {
                            to.AssemblyLoadFinished(assembly, HResult::OK)
                        });
                    }
                });
            }
        }
    }

    /// Makes a callback of the program, in which the profiler acts as the program's thread.
    fn raise(&self, stage: &Stage, kind: Kind, thread: usize) {
        let inner = self.inner();
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let Some(world) = stage.world() else { return };
        let (os, object, function) = {
            let mut world = world.borrow_mut();
            world.sync();
            let os = world.os(thread).unwrap_or_default();
            (os, world.object(thread), FunctionId(world.method_of_callback(thread)))
        };
        let raised = inner.acting_as(os, || target.raise(kind, object, os, function));
        if !raised {
            inner.shared.with(|report| report.not_raised(kind.name()));
        }
    }
}
