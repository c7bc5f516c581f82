//! The object that the runtime loads for `mode=record`: each callback is a situation.

#![allow(non_snake_case, reason = "names of the profiling interface")]

use super::Suspensions;
use crate::profiler::Profiler;
use crate::recorder;
use clr_com::{
    AppDomainId, AssemblyId, Bool, ClassId, GcHandleId, ICorProfilerCallback2Methods,
    ICorProfilerCallback3Methods, ICorProfilerCallback4Methods, ICorProfilerCallback5Methods,
    ICorProfilerCallback6Methods, ICorProfilerCallback7Methods, ICorProfilerCallback8Methods,
    ICorProfilerCallback9Methods, ICorProfilerCallbackMethods, IUnknownMethods, ModuleId, ObjectId,
};
use clr_walker::profiling::{FunctionId, HResult, ReJitId, ThreadId};
use std::ffi::c_void;

/// The callbacks. Those that any recorder needs are the other object's.
pub(crate) struct RecordingProfiler(pub(crate) Profiler);

/// Makes calls in a callback.
pub(super) fn in_callback(name: &'static str) -> HResult {
    if let Some(recorder) = recorder::get()
        && let Some(record) = &recorder.record
    {
        record.in_callback(recorder, name);
    }
    HResult::OK
}

/// Notes the beginning or the end of a suspension.
fn suspensions(note: fn(&Suspensions)) {
    if let Some(record) = recorder::get().and_then(|recorder| recorder.record.as_ref()) {
        note(&record.suspensions);
    }
}

/// Notes that the runtime frees a function's code.
fn unloaded(function: FunctionId) {
    if let Some(recorder) = recorder::get()
        && let Some(record) = &recorder.record
    {
        record.unloaded(recorder, function);
    }
}

/// Implements callbacks as situations: after what the other object does in them.
macro_rules! situations {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        unsafe fn $name(&self, $($argument: $type),*) -> HResult {
            // SAFETY: the runtime's own arguments.
            unsafe { self.0.$name($($argument),*) };
            in_callback(concat!("callback:", stringify!($name)))
        }
    )*};
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

    unsafe fn FunctionUnloadStarted(&self, function: FunctionId) -> HResult {
        unloaded(function);
        // SAFETY: the runtime's own argument.
        unsafe { self.0.FunctionUnloadStarted(function) };
        in_callback("callback:FunctionUnloadStarted")
    }

    situations! {
        AppDomainCreationStarted(app_domain: AppDomainId);
        AppDomainCreationFinished(app_domain: AppDomainId, status: HResult);
        AssemblyLoadStarted(assembly: AssemblyId);
        AssemblyLoadFinished(assembly: AssemblyId, status: HResult);
        AssemblyUnloadStarted(assembly: AssemblyId);
        AssemblyUnloadFinished(assembly: AssemblyId, status: HResult);
        ModuleLoadStarted(module: ModuleId);
        ModuleLoadFinished(module: ModuleId, status: HResult);
        ModuleUnloadStarted(module: ModuleId);
        ModuleUnloadFinished(module: ModuleId, status: HResult);
        ModuleAttachedToAssembly(module: ModuleId, assembly: AssemblyId);
        ClassLoadStarted(class: ClassId);
        ClassLoadFinished(class: ClassId, status: HResult);
        ClassUnloadStarted(class: ClassId);
        ClassUnloadFinished(class: ClassId, status: HResult);
        JITCompilationStarted(function: FunctionId, is_safe_to_block: Bool);
        JITCompilationFinished(function: FunctionId, status: HResult, is_safe_to_block: Bool);
        ThreadCreated(thread: ThreadId);
        ThreadDestroyed(thread: ThreadId);
        ThreadAssignedToOSThread(thread: ThreadId, os_thread: u32);
        RuntimeSuspendFinished();
        RuntimeResumeStarted();
        RuntimeThreadSuspended(thread: ThreadId);
        RuntimeThreadResumed(thread: ThreadId);
        ObjectAllocated(object: ObjectId, class: ClassId);
        ExceptionThrown(thrown_object: ObjectId);
        ExceptionSearchFunctionEnter(function: FunctionId);
        ExceptionSearchFunctionLeave();
        ExceptionSearchFilterEnter(function: FunctionId);
        ExceptionSearchFilterLeave();
        ExceptionSearchCatcherFound(function: FunctionId);
        ExceptionUnwindFunctionEnter(function: FunctionId);
        ExceptionUnwindFunctionLeave();
        ExceptionUnwindFinallyEnter(function: FunctionId);
        ExceptionUnwindFinallyLeave();
        ExceptionCatcherEnter(function: FunctionId, object: ObjectId);
        ExceptionCatcherLeave();
    }
}

impl ICorProfilerCallback2Methods for RecordingProfiler {
    situations! {
        ThreadNameChanged(thread: ThreadId, name_len: u32, name: *const u16);
        GarbageCollectionStarted(generations: i32, collected: *const Bool, reason: u32);
        GarbageCollectionFinished();
        FinalizeableObjectQueued(flags: u32, object: ObjectId);
        HandleCreated(handle: GcHandleId, object: ObjectId);
        HandleDestroyed(handle: GcHandleId);
    }
}

impl ICorProfilerCallback3Methods for RecordingProfiler {}

impl ICorProfilerCallback4Methods for RecordingProfiler {
    unsafe fn ReJITCompilationFinished(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        status: HResult,
        is_safe_to_block: Bool,
    ) -> HResult {
        // SAFETY: the runtime's own arguments.
        unsafe { self.0.ReJITCompilationFinished(function, rejit, status, is_safe_to_block) }
    }
}

impl ICorProfilerCallback5Methods for RecordingProfiler {}
impl ICorProfilerCallback6Methods for RecordingProfiler {}
impl ICorProfilerCallback7Methods for RecordingProfiler {}

impl ICorProfilerCallback8Methods for RecordingProfiler {
    situations! {
        DynamicMethodJITCompilationStarted(
            function: FunctionId, is_safe_to_block: Bool, il_header: *const u8, il_header_len: u32
        );
        DynamicMethodJITCompilationFinished(
            function: FunctionId, status: HResult, is_safe_to_block: Bool
        );
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
