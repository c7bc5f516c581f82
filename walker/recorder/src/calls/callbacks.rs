//! The object that the runtime loads for `mode=calls`.

#![allow(non_snake_case, reason = "names of the profiling interface")]

use super::Trace;
use super::subject::Subject;
use crate::output;
use crate::settings::Settings;
use clr_com::{
    AssemblyId, Bool, ClassId, GcHandleId, ICorProfilerCallback2Methods,
    ICorProfilerCallback3Methods, ICorProfilerCallback4Methods, ICorProfilerCallback5Methods,
    ICorProfilerCallback6Methods, ICorProfilerCallback7Methods, ICorProfilerCallback8Methods,
    ICorProfilerCallback9Methods, ICorProfilerCallbackMethods, IUnknown, IUnknownMethods,
    Interface, ModuleId, ObjectId,
};
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// The callbacks. Each is made in the trace.
#[derive(Debug, Default)]
pub(crate) struct CallingProfiler(OnceLock<Trace>);

impl CallingProfiler {
    fn on(&self, callback: &'static str, subject: Subject) -> HResult {
        if let Some(trace) = self.0.get() {
            trace.on(callback, subject);
        }
        HResult::OK
    }
}

/// Implements callbacks, with what each is about.
macro_rules! traced {
    ($($name:ident($($argument:ident: $type:ty),*) $subject:expr;)*) => {$(
        unsafe fn $name(&self, $($argument: $type),*) -> HResult {
            self.on(stringify!($name), $subject)
        }
    )*};
}

impl IUnknownMethods for CallingProfiler {}

impl ICorProfilerCallbackMethods for CallingProfiler {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime passes an object, of which it keeps the reference: `info` is not
        // dropped here.
        let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) });
        let Some(info) = &*info else { return HResult::INVALID_ARGUMENT };
        let begun = Settings::from_environment().and_then(|settings| Trace::begin(info, &settings));
        match begun {
            Ok(trace) => {
                let _ = self.0.set(trace);
                self.on("Initialize", Subject::Nothing)
            }
            Err(why) => {
                output::say(format_args!("{why}"));
                HResult::FAIL
            }
        }
    }

    traced! {
        Shutdown() Subject::Nothing;
        AssemblyLoadStarted(assembly: AssemblyId) Subject::Assembly(assembly);
        AssemblyLoadFinished(assembly: AssemblyId, _status: HResult) Subject::Assembly(assembly);
        ModuleLoadStarted(module: ModuleId) Subject::Early(module);
        ModuleLoadFinished(module: ModuleId, _status: HResult) Subject::Module(module);
        ModuleAttachedToAssembly(module: ModuleId, _assembly: AssemblyId) Subject::Module(module);
        ClassLoadFinished(class: ClassId, _status: HResult) Subject::Class(class);
        JITCompilationStarted(function: FunctionId, _is_safe_to_block: Bool) Subject::Function(function);
        JITCompilationFinished(function: FunctionId, _status: HResult, _is_safe_to_block: Bool)
            Subject::Function(function);
        ThreadCreated(thread: ThreadId) Subject::Thread(thread);
        ThreadDestroyed(thread: ThreadId) Subject::Thread(thread);
        ThreadAssignedToOSThread(thread: ThreadId, _os_thread: u32) Subject::Thread(thread);
        RuntimeSuspendStarted(_reason: u32) Subject::Nothing;
        RuntimeSuspendFinished() Subject::Nothing;
        RuntimeSuspendAborted() Subject::Nothing;
        RuntimeResumeStarted() Subject::Nothing;
        RuntimeResumeFinished() Subject::Nothing;
        RuntimeThreadSuspended(_thread: ThreadId) Subject::Nothing;
        RuntimeThreadResumed(_thread: ThreadId) Subject::Nothing;
        ObjectAllocated(object: ObjectId, class: ClassId) Subject::Object(object, class);
        ExceptionThrown(thrown: ObjectId) Subject::Thrown(thrown);
        ExceptionSearchFunctionEnter(function: FunctionId) Subject::Function(function);
        ExceptionSearchFunctionLeave() Subject::Nothing;
        ExceptionSearchFilterEnter(function: FunctionId) Subject::Function(function);
        ExceptionSearchFilterLeave() Subject::Nothing;
        ExceptionSearchCatcherFound(function: FunctionId) Subject::Function(function);
        ExceptionUnwindFunctionEnter(function: FunctionId) Subject::Function(function);
        ExceptionUnwindFunctionLeave() Subject::Nothing;
        ExceptionUnwindFinallyEnter(function: FunctionId) Subject::Function(function);
        ExceptionUnwindFinallyLeave() Subject::Nothing;
        ExceptionCatcherEnter(function: FunctionId, _object: ObjectId) Subject::Function(function);
        ExceptionCatcherLeave() Subject::Nothing;
        UnmanagedToManagedTransition(function: FunctionId, _reason: u32) Subject::Function(function);
        ManagedToUnmanagedTransition(function: FunctionId, _reason: u32) Subject::Function(function);
    }
}

impl ICorProfilerCallback2Methods for CallingProfiler {
    traced! {
        ThreadNameChanged(thread: ThreadId, _name_len: u32, _name: *const u16) Subject::Thread(thread);
        GarbageCollectionStarted(_generations: i32, _collected: *const Bool, _reason: u32)
            Subject::Nothing;
        GarbageCollectionFinished() Subject::Nothing;
        HandleCreated(_handle: GcHandleId, object: ObjectId) Subject::Thrown(object);
        HandleDestroyed(_handle: GcHandleId) Subject::Nothing;
    }
}

impl ICorProfilerCallback3Methods for CallingProfiler {}
impl ICorProfilerCallback4Methods for CallingProfiler {}
impl ICorProfilerCallback5Methods for CallingProfiler {}
impl ICorProfilerCallback6Methods for CallingProfiler {}
impl ICorProfilerCallback7Methods for CallingProfiler {}
impl ICorProfilerCallback8Methods for CallingProfiler {}
impl ICorProfilerCallback9Methods for CallingProfiler {}
