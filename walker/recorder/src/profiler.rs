//! The object that the runtime loads, by the settings.

use crate::calls::CallingProfiler;
use crate::check::Checking;
use crate::output;
use crate::record::{self, RecordingProfiler};
use crate::sample::Sampling;
use crate::settings::{Settings, Task};
use crate::trace;
use clr_com::{ClassFactory, Guid, ICorProfilerCallback9, IUnknown, RuntimeInfo, create};
use clr_sampler::{Callbacks, Mode, Sampler};
use clr_walker::profiling::HResult;
use std::ffi::c_void;

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
    if let Ok(settings) = Settings::from_environment()
        && settings.task == Task::Trace
    {
        // SAFETY: the caller's pointers.
        return unsafe { trace::get_class_object(&settings, class, riid, object) };
    }
    // SAFETY: the caller's pointer.
    if unsafe { class.as_ref() }.copied() != Guid::parse(CLSID) {
        return HResult::CLASS_NOT_AVAILABLE;
    }
    // SAFETY: the caller's pointers.
    unsafe { ClassFactory::get(make, riid, object) }
}

/// Makes the object with the callbacks for the task.
fn make() -> ICorProfilerCallback9 {
    match Settings::from_environment().map(|settings| settings.task) {
        Ok(Task::Record) => create(RecordingProfiler(Callbacks::new(on_initialize))),
        Ok(Task::Calls) => create(CallingProfiler::default()),
        _ => create(Callbacks::new(on_initialize)),
    }
}

fn on_initialize(info: &IUnknown) -> HResult {
    match start(info) {
        Ok(()) => HResult::OK,
        Err(why) => {
            output::say(format_args!("{why}"));
            HResult::FAIL
        }
    }
}

fn start(info: &IUnknown) -> Result<(), String> {
    let settings = Settings::from_environment()?;
    let options = settings.options();
    let mode: Box<dyn Mode> = match settings.task {
        Task::Sample | Task::Calls | Task::Trace => Box::new(Sampling::new(settings)),
        Task::Check => Box::new(Checking::new(settings)),
        Task::Record => {
            let runtime = RuntimeInfo::new(info);
            let runtime = runtime.map_err(|result| format!("ICorProfilerInfo2: {result}"))?;
            record::start(&settings, runtime.get_runtime_version().unwrap_or_default())?
        }
    };
    Sampler::start(info, options, mode)
}
