//! Callbacks into the profiler.

use crate::journal::Entry;
use crate::session::{Inner, Session, SessionError};
use crate::stage::Stage;
use clr_com::{
    Bool, ClassId, ICorProfilerCallback, ICorProfilerCallback2, ICorProfilerCallback3,
    ICorProfilerCallback10, IUnknown, Interface, ObjectId,
};
use clr_machine::Machine;
use clr_runtime::profiling::CallbackKind as Kind;
use clr_runtime::{OsThreadId, Profiler, Runtime, Wait};
use clr_scenario::RunOnError;
use clr_walker::profiling::{FunctionId, HResult, ProfilerCallback, ThreadId};
use clr_world::{StepEvent, Waiting};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

/// `COR_PRF_SUSPEND_FOR_PROFILER`.
const SUSPEND_FOR_PROFILER: u32 = 9;
/// `COR_PRF_SUSPEND_FOR_GC`.
const SUSPEND_FOR_GC: u32 = 1;
/// `COR_PRF_GC_INDUCED` (assumed: texts do not say why there is a GC).
const GC_INDUCED: u32 = 1;
/// `COR_PRF_CACHED_FUNCTION_FOUND`.
const CACHED_FUNCTION_FOUND: u32 = 0;
/// Number of the GC's generations, with the large object heap.
const GENERATIONS: i32 = 4;
/// The name that `name-thread` gives: `worker`.
const NAME: [u16; 6] = [0x77, 0x6F, 0x72, 0x6B, 0x65, 0x72];
/// Id of the first object: an address that nothing is at (assumed: texts say no addresses).
pub(crate) const OBJECTS: u64 = 0x7000_0000_1000;
/// Size of an object without fields in bytes, and the distance to the next one.
pub(crate) const OBJECT_SIZE: u64 = 24;
/// Maximum number of steps of a program.
const STEPS: u64 = 1_000_000;

/// The object that callbacks are raised into. Its pointers are not counted.
pub(crate) struct Target {
    first: ManuallyDrop<ICorProfilerCallback>,
    second: Option<ManuallyDrop<ICorProfilerCallback2>>,
    third: Option<ManuallyDrop<ICorProfilerCallback3>>,
    pub(crate) tenth: Option<ManuallyDrop<ICorProfilerCallback10>>,
    /// References for as long as this exists, if nothing else holds them.
    _held: Vec<IUnknown>,
}

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

impl Target {
    /// Makes the target of an object that its owner keeps.
    ///
    /// # Safety
    /// The pointers are NULL, or point to an object with `ICorProfilerCallback2`, 3 and 10, which lives for as
    /// long as the target.
    pub(crate) unsafe fn of_guest([second, third, tenth]: [*mut c_void; 3]) -> Option<Self> {
        // SAFETY: the caller's promise. The references are not given up.
        unsafe {
            Some(Self {
                first: ManuallyDrop::new(ICorProfilerCallback::from_raw(second)?),
                second: ICorProfilerCallback2::from_raw(second).map(ManuallyDrop::new),
                third: ICorProfilerCallback3::from_raw(third).map(ManuallyDrop::new),
                tenth: ICorProfilerCallback10::from_raw(tenth).map(ManuallyDrop::new),
                _held: Vec::new(),
            })
        }
    }

    /// Makes the target of an object, which is asked for its interfaces.
    pub(crate) fn of_object(object: &IUnknown) -> Result<Self, HResult> {
        let first: IUnknown = object.cast::<ICorProfilerCallback>()?.into();
        let second = object.cast::<ICorProfilerCallback2>().ok().map(IUnknown::from);
        let third = object.cast::<ICorProfilerCallback3>().ok().map(IUnknown::from);
        let tenth = object.cast::<ICorProfilerCallback10>().ok().map(IUnknown::from);
        let raw = |one: &Option<IUnknown>| one.as_ref().map_or(null_mut(), IUnknown::as_raw);
        // SAFETY: pointers to these interfaces, whose references are held below.
        let pointers = unsafe {
            (
                ICorProfilerCallback::from_raw(first.as_raw()),
                ICorProfilerCallback2::from_raw(raw(&second)),
                ICorProfilerCallback3::from_raw(raw(&third)),
                ICorProfilerCallback10::from_raw(raw(&tenth)),
            )
        };
        let (Some(one), two, three, ten) = pointers else { return Err(HResult::NO_INTERFACE) };
        Ok(Self {
            first: ManuallyDrop::new(one),
            second: two.map(ManuallyDrop::new),
            third: three.map(ManuallyDrop::new),
            tenth: ten.map(ManuallyDrop::new),
            _held: [Some(first), second, third, tenth].into_iter().flatten().collect(),
        })
    }

    /// Calls `Initialize`.
    ///
    /// # Safety
    /// The pointer is to the runtime's object, which outlives the profiler's.
    pub(crate) unsafe fn initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the caller's promise.
        unsafe { self.first.Initialize(info) }
    }

    /// Returns the first interface.
    pub(crate) fn first(&self) -> &ICorProfilerCallback {
        &self.first
    }

    /// Returns true if the object has `ICorProfilerCallback3`.
    pub(crate) const fn has_third(&self) -> bool {
        self.third.is_some()
    }

    /// Calls `ProfilerDetachSucceeded`.
    pub(crate) fn detach_succeeded(&self) -> HResult {
        // SAFETY: the profiler's object, which there is a reference to.
        self.third.as_ref().map_or(HResult::OK, |to| unsafe { to.ProfilerDetachSucceeded() })
    }

    /// Calls `Shutdown`.
    pub(crate) fn shutdown(&self) -> HResult {
        // SAFETY: the same.
        unsafe { self.first.Shutdown() }
    }

    /// Makes one of the callbacks of suspensions.
    pub(crate) fn tell(&self, callback: ProfilerCallback) -> HResult {
        let to = &self.first;
        // SAFETY: the profiler's object, which there is a reference to. The callbacks have no pointers.
        unsafe {
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
        }
    }

    /// Makes a callback about a method of the program. Returns false if the callback is none.
    fn raise_of_method(&self, inner: &Inner, kind: Kind, function: FunctionId) -> bool {
        let to = &self.first;
        let call = |act: &mut dyn FnMut() -> HResult| {
            inner.enter(kind.name(), act);
        };
        // SAFETY: the profiler's object, which there is a reference to; pointers are to locals.
        unsafe {
            match kind {
                Kind::JITCompilationStarted => {
                    inner.compiling.borrow_mut().insert(function);
                    call(&mut || to.JITCompilationStarted(function, 1));
                }
                Kind::JITCompilationFinished => {
                    inner.compiling.borrow_mut().remove(&function);
                    call(&mut || to.JITCompilationFinished(function, HResult::OK, 1));
                }
                Kind::JITCachedFunctionSearchStarted => {
                    let mut uses: Bool = 1;
                    call(&mut || to.JITCachedFunctionSearchStarted(function, &raw mut uses));
                }
                Kind::JITCachedFunctionSearchFinished => {
                    call(&mut || {
                        to.JITCachedFunctionSearchFinished(function, CACHED_FUNCTION_FOUND)
                    });
                }
                Kind::ExceptionSearchFunctionEnter => {
                    call(&mut || to.ExceptionSearchFunctionEnter(function));
                }
                Kind::ExceptionSearchFilterEnter => {
                    call(&mut || to.ExceptionSearchFilterEnter(function));
                }
                Kind::ExceptionSearchCatcherFound => {
                    call(&mut || to.ExceptionSearchCatcherFound(function));
                }
                Kind::ExceptionUnwindFunctionEnter => {
                    call(&mut || to.ExceptionUnwindFunctionEnter(function));
                }
                Kind::ExceptionUnwindFinallyEnter => {
                    call(&mut || to.ExceptionUnwindFinallyEnter(function));
                }
                Kind::ExceptionCatcherEnter => {
                    let exception = inner.thrown.get();
                    call(&mut || to.ExceptionCatcherEnter(function, exception));
                }
                _ => return false,
            }
        }
        true
    }

    /// Makes a callback of a thread of the program, if its arguments are known. Returns true if it
    /// was made.
    pub(crate) fn raise(
        &self,
        inner: &Inner,
        kind: Kind,
        thread: Option<ThreadId>,
        os: OsThreadId,
        function: FunctionId,
    ) -> bool {
        if function.0 != 0 && self.raise_of_method(inner, kind, function) {
            return true;
        }
        let (to, thread) = (&self.first, thread.unwrap_or_default());
        let call = |act: &mut dyn FnMut() -> HResult| {
            inner.enter(kind.name(), act);
        };
        // SAFETY: the profiler's object, which there is a reference to; pointers are to locals.
        unsafe {
            match kind {
                Kind::ThreadCreated => call(&mut || to.ThreadCreated(thread)),
                Kind::ThreadDestroyed => call(&mut || to.ThreadDestroyed(thread)),
                Kind::ThreadAssignedToOSThread => {
                    call(&mut || to.ThreadAssignedToOSThread(thread, os.0));
                }
                Kind::ExceptionSearchFunctionLeave => {
                    call(&mut || to.ExceptionSearchFunctionLeave());
                }
                Kind::ExceptionSearchFilterLeave => call(&mut || to.ExceptionSearchFilterLeave()),
                Kind::ExceptionUnwindFunctionLeave => {
                    call(&mut || to.ExceptionUnwindFunctionLeave());
                }
                Kind::ExceptionUnwindFinallyLeave => call(&mut || to.ExceptionUnwindFinallyLeave()),
                Kind::ExceptionCatcherLeave => call(&mut || to.ExceptionCatcherLeave()),
                Kind::RuntimeSuspendStarted => {
                    call(&mut || to.RuntimeSuspendStarted(SUSPEND_FOR_GC));
                }
                Kind::RuntimeThreadSuspended => call(&mut || to.RuntimeThreadSuspended(thread)),
                Kind::RuntimeThreadResumed => call(&mut || to.RuntimeThreadResumed(thread)),
                Kind::RuntimeSuspendFinished => call(&mut || to.RuntimeSuspendFinished()),
                Kind::RuntimeSuspendAborted => call(&mut || to.RuntimeSuspendAborted()),
                Kind::RuntimeResumeStarted => call(&mut || to.RuntimeResumeStarted()),
                Kind::RuntimeResumeFinished => call(&mut || to.RuntimeResumeFinished()),
                Kind::Shutdown => call(&mut || to.Shutdown()),
                Kind::EventPipeEventDelivered => inner.write_allocation_tick(),
                Kind::ObjectAllocated => {
                    let (object, class) = (inner.new_object(), inner.object_class());
                    call(&mut || to.ObjectAllocated(object, class));
                }
                // The exception was made without a callback: only objects of `new` have one.
                Kind::ExceptionThrown => {
                    let exception = inner.new_object();
                    inner.thrown.set(exception);
                    call(&mut || to.ExceptionThrown(exception));
                }
                Kind::GarbageCollectionStarted => match &self.second {
                    Some(to) => {
                        let all: [Bool; GENERATIONS as usize] = [1; GENERATIONS as usize];
                        call(&mut || {
                            to.GarbageCollectionStarted(GENERATIONS, all.as_ptr(), GC_INDUCED)
                        });
                    }
                    None => return false,
                },
                Kind::GarbageCollectionFinished => match &self.second {
                    Some(to) => call(&mut || to.GarbageCollectionFinished()),
                    None => return false,
                },
                Kind::ThreadNameChanged => match &self.second {
                    Some(to) => {
                        call(&mut || {
                            to.ThreadNameChanged(thread, NAME.len() as u32, NAME.as_ptr())
                        });
                    }
                    None => return false,
                },
                _ => return false,
            }
        }
        true
    }
}

impl Inner {
    /// Returns the id of the next object. Objects do not move.
    fn new_object(&self) -> ObjectId {
        let made = self.objects_made.get();
        self.objects_made.set(made + 1);
        ObjectId(OBJECTS + made * OBJECT_SIZE)
    }

    /// Returns true for the id of an object.
    pub(crate) fn is_object(&self, object: ObjectId) -> bool {
        let offset = object.0.checked_sub(OBJECTS);
        offset.is_some_and(|offset| {
            offset % OBJECT_SIZE == 0 && offset / OBJECT_SIZE < self.objects_made.get()
        })
    }

    /// Returns the class of all objects: `System.Object` (assumed: texts say no classes of objects).
    pub(crate) fn object_class(&self) -> ClassId {
        ClassId(self.stage().map_or(0, |stage| stage.runtime().metadata.object_class()))
    }
}

impl Session {
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
                        StepEvent::Hook | StepEvent::Callback(_) => {
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

    /// Makes a callback or calls a hook of the program. The profiler acts as the program's thread.
    fn raise(&self, stage: &Stage, event: StepEvent, thread: usize) {
        let inner = self.inner();
        if inner.is_detaching() {
            return;
        }
        let Some(target) = inner.profiler.borrow().clone() else { return };
        let Some(world) = stage.world() else { return };
        let (os, object, function) = {
            let mut world = world.borrow_mut();
            world.sync();
            let os = world.os(thread).unwrap_or_default();
            (os, world.object(thread), FunctionId(world.method_of_callback(thread)))
        };
        let raised = inner.acting_as(os, || match event {
            StepEvent::Callback(kind) if kind != Kind::EnterLeaveSlow => {
                target.raise(inner, kind, object, os, function)
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
