//! The object that the runtime loads.

#![allow(non_snake_case, reason = "names of the profiling interface")]

use crate::os;
use crate::process::Process;
use crate::sampler::Sampler;
use clr_com::{
    Bool, ICorProfilerCallback2Methods, ICorProfilerCallback3Methods, ICorProfilerCallback4Methods,
    ICorProfilerCallback5Methods, ICorProfilerCallback6Methods, ICorProfilerCallback7Methods,
    ICorProfilerCallback8Methods, ICorProfilerCallback9Methods, ICorProfilerCallbackMethods,
    IUnknown, IUnknownMethods, Interface as _, ModuleId, ObjectId,
};
use clr_walker::profiling::{FunctionId, HResult, ReJitId, ThreadId};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// The callbacks that keep a [`Process`] up to date. A profiler that wants others, too, wraps this object.
#[derive(Debug)]
pub struct Callbacks {
    start: fn(&IUnknown) -> HResult,
}

impl Callbacks {
    /// Makes the object. `start` is called in `Initialize`, to [start](Sampler::start) the sampler.
    pub const fn new(start: fn(&IUnknown) -> HResult) -> Self {
        Self { start }
    }
}

impl IUnknownMethods for Callbacks {}

impl ICorProfilerCallbackMethods for Callbacks {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime passes an object, of which it keeps the reference: `info` is not
        // dropped here.
        let info = std::mem::ManuallyDrop::new(unsafe { IUnknown::from_raw(info) });
        let Some(info) = &*info else { return HResult::INVALID_ARGUMENT };
        (self.start)(info)
    }

    unsafe fn Shutdown(&self) -> HResult {
        if let Some(sampler) = Sampler::get() {
            sampler.stop();
        }
        HResult::OK
    }

    unsafe fn ModuleLoadFinished(&self, module: ModuleId, _status: HResult) -> HResult {
        with(|process| process.code.module_loaded(&process.info, module))
    }

    unsafe fn ModuleUnloadStarted(&self, module: ModuleId) -> HResult {
        ends(|process| process.code.module_unloaded(module))
    }

    unsafe fn FunctionUnloadStarted(&self, function: FunctionId) -> HResult {
        ends(|process| process.code.unloaded(function))
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
        with(|process| {
            if let Some(thread) = process.threads.with_tid(os::own_tid()) {
                thread.set_thrown();
            }
        })
    }

    unsafe fn ThreadAssignedToOSThread(&self, thread: ThreadId, os_thread: u32) -> HResult {
        with(|process| {
            if u32::try_from(os::own_tid()) == Ok(os_thread) {
                process.threads.add_this(thread);
            }
        })
    }

    unsafe fn ThreadDestroyed(&self, thread: ThreadId) -> HResult {
        with(|process| {
            // The stack must stay until a walk of it is over.
            let _walking = process.walking();
            process.threads.remove(thread);
        })
    }
}

/// Handles an event, if the sampler has been started.
fn with(handle: impl FnOnce(&Process)) -> HResult {
    if let Some(sampler) = Sampler::get() {
        handle(&sampler.process);
    }
    HResult::OK
}

/// Handles the end of methods. The runtime frees nothing before the callback returns, and that is not before all questions
/// of other threads are over.
fn ends(handle: impl FnOnce(&Process)) -> HResult {
    with(|process| {
        let _ending = process.ending();
        handle(process);
    })
}

fn suspending(is_suspending: bool) -> HResult {
    with(|process| process.suspending().store(is_suspending, Ordering::SeqCst))
}

fn compiled(function: FunctionId) -> HResult {
    with(|process| process.code.compiled(&process.info, function))
}

impl ICorProfilerCallback2Methods for Callbacks {}
impl ICorProfilerCallback3Methods for Callbacks {}

impl ICorProfilerCallback4Methods for Callbacks {
    ICorProfilerCallback4Methods!(fn ReJITCompilationFinished(&self, function, _rejit, _status,
        _is_safe_to_block) {
        compiled(function)
    });
}

impl ICorProfilerCallback5Methods for Callbacks {}
impl ICorProfilerCallback6Methods for Callbacks {}
impl ICorProfilerCallback7Methods for Callbacks {}

impl ICorProfilerCallback8Methods for Callbacks {
    ICorProfilerCallback8Methods!(fn DynamicMethodJITCompilationFinished(&self, function, _status,
        _is_safe_to_block) {
        with(|process| process.code.dynamic_compiled(&process.info, function))
    });
}

impl ICorProfilerCallback9Methods for Callbacks {
    unsafe fn DynamicMethodUnloaded(&self, function: FunctionId) -> HResult {
        ends(|process| process.code.dynamic_unloaded(function))
    }
}
