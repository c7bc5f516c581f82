//! The object that the runtime loads for `mode=record`: each callback is a situation.

#![allow(non_snake_case, reason = "names of the profiling interface")]

use super::mode::get;
use super::suspensions::Suspensions;
use clr_com::{
    AppDomainId, AssemblyId, Bool, ClassId, GcHandleId, ICorProfilerCallback2Methods,
    ICorProfilerCallback3Methods, ICorProfilerCallback4Methods, ICorProfilerCallback5Methods,
    ICorProfilerCallback6Methods, ICorProfilerCallback7Methods, ICorProfilerCallback8Methods,
    ICorProfilerCallback9Methods, ICorProfilerCallbackMethods, IUnknownMethods, ModuleId, ObjectId,
};
use clr_sampler::Callbacks;
use clr_walker::profiling::{FunctionId, HResult, ReJitId, ThreadId};
use std::ffi::c_void;

/// The callbacks. Those that any recorder needs are the other object's.
pub(crate) struct RecordingProfiler(pub(crate) Callbacks);

/// Makes calls in a callback.
pub(super) fn in_callback(name: &'static str) -> HResult {
    if let Some((process, record)) = get() {
        record.in_callback(process, name);
    }
    HResult::OK
}

/// Notes the beginning or the end of a suspension.
fn suspensions(note: fn(&Suspensions)) {
    if let Some((_, record)) = get() {
        note(&record.suspensions);
    }
}

/// Notes that the runtime frees a function's code.
fn unloaded(function: FunctionId) {
    if let Some((process, record)) = get() {
        record.unloaded(process, function);
    }
}

/// Implements callbacks as situations: after what the other object does in them.
macro_rules! situations {
    ($methods:ident: $($name:ident)*) => { $($methods!($name in situation);)* };
}

macro_rules! situation {
    ($name:ident($($argument:ident: $type:ty),*);) => {
        unsafe fn $name(&self, $($argument: $type),*) -> HResult {
            // SAFETY: the runtime's own arguments.
            unsafe { self.0.$name($($argument),*) };
            in_callback(concat!("callback:", stringify!($name)))
        }
    };
}

/// Returns the situation of a transition: a call, or a return (COR_PRF_TRANSITION_RETURN).
const fn transition(reason: u32, call: &'static str, back: &'static str) -> &'static str {
    if reason == 1 { back } else { call }
}

impl IUnknownMethods for RecordingProfiler {}

impl ICorProfilerCallbackMethods for RecordingProfiler {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime's own argument.
        unsafe { self.0.Initialize(info) }
    }

    unsafe fn Shutdown(&self) -> HResult {
        in_callback("Shutdown");
        // SAFETY: there are no arguments.
        unsafe { self.0.Shutdown() }
    }

    unsafe fn RuntimeSuspendStarted(&self, reason: u32) -> HResult {
        suspensions(Suspensions::begin);
        // SAFETY: the runtime's own argument.
        unsafe { self.0.RuntimeSuspendStarted(reason) };
        in_callback("callback:RuntimeSuspendStarted")
    }

    unsafe fn RuntimeSuspendAborted(&self) -> HResult {
        // SAFETY: there are no arguments.
        unsafe { self.0.RuntimeSuspendAborted() };
        suspensions(Suspensions::end);
        in_callback("callback:RuntimeSuspendAborted")
    }

    unsafe fn RuntimeResumeFinished(&self) -> HResult {
        // SAFETY: there are no arguments.
        unsafe { self.0.RuntimeResumeFinished() };
        suspensions(Suspensions::end);
        in_callback("callback:RuntimeResumeFinished")
    }

    unsafe fn UnmanagedToManagedTransition(&self, _function: FunctionId, reason: u32) -> HResult {
        const CALL: &str = "callback:UnmanagedToManagedTransition:call";
        in_callback(transition(reason, CALL, "callback:UnmanagedToManagedTransition:return"))
    }

    unsafe fn ManagedToUnmanagedTransition(&self, _function: FunctionId, reason: u32) -> HResult {
        const CALL: &str = "callback:ManagedToUnmanagedTransition:call";
        in_callback(transition(reason, CALL, "callback:ManagedToUnmanagedTransition:return"))
    }

    unsafe fn ModuleUnloadStarted(&self, module: ModuleId) -> HResult {
        if let Some((process, _)) = get() {
            process.code.methods(module).into_iter().for_each(unloaded);
        }
        // SAFETY: the runtime's own argument.
        unsafe { self.0.ModuleUnloadStarted(module) };
        in_callback("callback:ModuleUnloadStarted")
    }

    unsafe fn FunctionUnloadStarted(&self, function: FunctionId) -> HResult {
        unloaded(function);
        // SAFETY: the runtime's own argument.
        unsafe { self.0.FunctionUnloadStarted(function) };
        in_callback("callback:FunctionUnloadStarted")
    }

    situations! {
        ICorProfilerCallbackMethods:
        AppDomainCreationStarted AppDomainCreationFinished AssemblyLoadStarted AssemblyLoadFinished
        AssemblyUnloadStarted AssemblyUnloadFinished ModuleLoadStarted ModuleLoadFinished
        ModuleUnloadFinished ModuleAttachedToAssembly ClassLoadStarted
        ClassLoadFinished ClassUnloadStarted ClassUnloadFinished JITCompilationStarted
        JITCompilationFinished ThreadCreated ThreadDestroyed ThreadAssignedToOSThread
        RuntimeSuspendFinished RuntimeResumeStarted RuntimeThreadSuspended RuntimeThreadResumed
        ObjectAllocated ExceptionThrown ExceptionSearchFunctionEnter ExceptionSearchFunctionLeave
        ExceptionSearchFilterEnter ExceptionSearchFilterLeave ExceptionSearchCatcherFound
        ExceptionUnwindFunctionEnter ExceptionUnwindFunctionLeave ExceptionUnwindFinallyEnter
        ExceptionUnwindFinallyLeave ExceptionCatcherEnter ExceptionCatcherLeave
    }
}

impl ICorProfilerCallback2Methods for RecordingProfiler {
    situations! {
        ICorProfilerCallback2Methods:
        ThreadNameChanged GarbageCollectionStarted GarbageCollectionFinished
        FinalizeableObjectQueued HandleCreated HandleDestroyed
    }
}

impl ICorProfilerCallback3Methods for RecordingProfiler {}

impl ICorProfilerCallback4Methods for RecordingProfiler {
    ICorProfilerCallback4Methods!(fn ReJITCompilationFinished(&self, function, rejit, status,
        is_safe_to_block) {
        // SAFETY: the runtime's own arguments.
        unsafe { self.0.ReJITCompilationFinished(function, rejit, status, is_safe_to_block) }
    });
}

impl ICorProfilerCallback5Methods for RecordingProfiler {}
impl ICorProfilerCallback6Methods for RecordingProfiler {}
impl ICorProfilerCallback7Methods for RecordingProfiler {}

impl ICorProfilerCallback8Methods for RecordingProfiler {
    situations! {
        ICorProfilerCallback8Methods:
        DynamicMethodJITCompilationStarted DynamicMethodJITCompilationFinished
    }
}

impl ICorProfilerCallback9Methods for RecordingProfiler {
    unsafe fn DynamicMethodUnloaded(&self, function: FunctionId) -> HResult {
        unloaded(function);
        // SAFETY: the runtime's own argument.
        unsafe { self.0.DynamicMethodUnloaded(function) };
        in_callback("callback:DynamicMethodUnloaded")
    }
}
