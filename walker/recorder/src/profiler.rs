//! The object that the runtime loads.

#![allow(non_snake_case, reason = "names of the profiling interface")]

use crate::os;
use crate::recorder::{self, Recorder};
use crate::settings::{Mode, Settings};
use clr_com::{
    Bool, ClassFactory, Guid, ICorProfilerCallback2Methods, ICorProfilerCallback3Methods,
    ICorProfilerCallback4Methods, ICorProfilerCallback5Methods, ICorProfilerCallback6Methods,
    ICorProfilerCallback7Methods, ICorProfilerCallback8Methods, ICorProfilerCallback9,
    ICorProfilerCallback9Methods, ICorProfilerCallbackMethods, IUnknown, IUnknownMethods,
    Interface, ModuleId, ObjectId, create,
};
use clr_walker::profiling::{FunctionId, HResult, ReJitId, ThreadId};
use std::ffi::c_void;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The profiler's CLSID.
const CLSID: &str = "3c2a5b7e-6d0f-4f0e-9c51-0a6b9d3f2c11";

/// Returns the factory of the profiler: the export by which a runtime gets it.
///
/// # Safety
/// The pointers are as the documentation of `DllGetClassObject` demands.
#[unsafe(no_mangle)]
#[expect(unreachable_pub, reason = "an export of the library")]
pub unsafe extern "system" fn DllGetClassObject(
    class: *const Guid,
    riid: *const Guid,
    object: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller's pointer.
    if unsafe { class.as_ref() }.copied() != Guid::parse(CLSID) {
        return HResult::CLASS_NOT_AVAILABLE;
    }
    // SAFETY: the caller's pointers.
    unsafe { ClassFactory::get(make, riid, object) }
}

/// Makes the object with the callbacks for the mode of the settings.
fn make() -> ICorProfilerCallback9 {
    match Settings::from_environment().map(|settings| settings.mode) {
        Ok(Mode::Record) => create(crate::record::RecordingProfiler(Profiler)),
        Ok(Mode::Calls) => create(crate::calls::CallingProfiler::default()),
        _ => create(Profiler),
    }
}

/// The callbacks. All state is in the recorder.
pub(crate) struct Profiler;

impl IUnknownMethods for Profiler {}

impl ICorProfilerCallbackMethods for Profiler {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime passes an object, of which it keeps the reference: `info` is not
        // dropped here.
        let info = std::mem::ManuallyDrop::new(unsafe { IUnknown::from_raw(info) });
        let Some(info) = &*info else { return HResult::INVALID_ARGUMENT };
        match recorder::start(info) {
            Ok(()) => HResult::OK,
            Err(why) => {
                eprintln!("clr-recorder: {why}");
                HResult::FAIL
            }
        }
    }

    unsafe fn Shutdown(&self) -> HResult {
        with(Recorder::stop)
    }

    unsafe fn ModuleLoadFinished(&self, module: ModuleId, _status: HResult) -> HResult {
        with(|recorder| recorder.code.module_loaded(&recorder.info, module))
    }

    unsafe fn ModuleUnloadStarted(&self, module: ModuleId) -> HResult {
        with(|recorder| recorder.code.module_unloaded(module))
    }

    unsafe fn FunctionUnloadStarted(&self, function: FunctionId) -> HResult {
        unloaded(function)
    }

    ICorProfilerCallbackMethods!(fn JITCompilationFinished(&self, function, _status,
        _is_safe_to_block) {
        compiled(function)
    });

    unsafe fn RuntimeSuspendStarted(&self, _reason: u32) -> HResult {
        suspending(true)
    }

    unsafe fn RuntimeSuspendAborted(&self) -> HResult {
        suspending(false)
    }

    unsafe fn RuntimeResumeFinished(&self) -> HResult {
        suspending(false)
    }

    unsafe fn ExceptionThrown(&self, _thrown_object: ObjectId) -> HResult {
        with(|recorder| {
            if let Some(thread) = recorder.threads.with_tid(os::own_tid()) {
                thread.set_thrown();
            }
        })
    }

    unsafe fn ThreadAssignedToOSThread(&self, thread: ThreadId, os_thread: u32) -> HResult {
        with(|recorder| {
            if u32::try_from(os::own_tid()) == Ok(os_thread) {
                recorder.threads.add_this(thread);
            }
        })
    }

    unsafe fn ThreadDestroyed(&self, thread: ThreadId) -> HResult {
        with(|recorder| {
            // The stack must stay until a walk of it is over.
            let _walking = recorder.walking.lock().unwrap_or_else(PoisonError::into_inner);
            recorder.threads.remove(thread);
        })
    }
}

/// Handles an event, if the recorder has been started.
fn with(handle: impl FnOnce(&Recorder)) -> HResult {
    if let Some(recorder) = recorder::get() {
        handle(recorder);
    }
    HResult::OK
}

fn suspending(is_suspending: bool) -> HResult {
    with(|recorder| recorder.is_suspending.store(is_suspending, Ordering::SeqCst))
}

fn compiled(function: FunctionId) -> HResult {
    with(|recorder| recorder.code.compiled(&recorder.info, function))
}

fn unloaded(function: FunctionId) -> HResult {
    with(|recorder| recorder.code.unloaded(function))
}

impl ICorProfilerCallback2Methods for Profiler {}
impl ICorProfilerCallback3Methods for Profiler {}

impl ICorProfilerCallback4Methods for Profiler {
    ICorProfilerCallback4Methods!(fn ReJITCompilationFinished(&self, function, _rejit, _status,
        _is_safe_to_block) {
        compiled(function)
    });
}

impl ICorProfilerCallback5Methods for Profiler {}
impl ICorProfilerCallback6Methods for Profiler {}
impl ICorProfilerCallback7Methods for Profiler {}

impl ICorProfilerCallback8Methods for Profiler {
    ICorProfilerCallback8Methods!(fn DynamicMethodJITCompilationFinished(&self, function, _status,
        _is_safe_to_block) {
        compiled(function)
    });
}

impl ICorProfilerCallback9Methods for Profiler {
    unsafe fn DynamicMethodUnloaded(&self, function: FunctionId) -> HResult {
        unloaded(function)
    }
}
