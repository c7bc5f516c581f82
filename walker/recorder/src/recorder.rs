//! The state that the callbacks, the signal handler and the sampler share.

use crate::code::Code;
use crate::events;
use crate::request::Request;
use crate::sampler::{self, Outcome};
use crate::settings::{Mode, Settings};
use crate::threads::Threads;
use crate::watchdog::{self, Watchdog};
use clr_com::{ICorProfilerInfo5, IUnknown, RuntimeInfo};
use clr_walker::mixed::Policy;
use clr_walker::profiling::HResult;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// The recorder of this process. It is never freed: a handler may run at any time.
static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// Returns the recorder, after [`start`].
pub(crate) fn get() -> Option<&'static Recorder> {
    RECORDER.get()
}

/// The recorder.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) settings: Settings,
    pub(crate) info: RuntimeInfo,
    /// Major, minor and build number, as the runtime says.
    pub(crate) version: [u16; 3],
    pub(crate) code: Code,
    pub(crate) threads: Threads,
    pub(crate) request: Request,
    /// Held by the sampler while it asks a thread, and by the callback that ends a thread.
    pub(crate) walking: Mutex<()>,
    /// True from RuntimeSuspendStarted to RuntimeResumeFinished.
    pub(crate) is_suspending: AtomicBool,
    pub(crate) watchdog: Watchdog,
    /// The recording, for `mode=record`.
    pub(crate) record: Option<crate::record::Record>,
    /// The results of samples.
    pub(crate) outcome: Mutex<Outcome>,
    beats: AtomicU32,
    is_over: AtomicBool,
    sampler: Mutex<Option<JoinHandle<()>>>,
}

/// MONITOR_EXCEPTIONS: only for judgements of walks that the runtime has a part in, because it hides the
/// frames that an exception has left.
const EXCEPTIONS: u32 = 0x40;
/// COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS.
const HIGH_EVENTS: u32 = 0x4;

/// Starts the recorder, in `Initialize`.
///
/// # Errors
/// A text for people: a wrong setting, or a refusal of the runtime.
pub(crate) fn start(info: &IUnknown) -> Result<(), String> {
    let settings = Settings::from_environment()?;
    let said = |what: &'static str| move |result: HResult| format!("{what}: {result}");
    let wants_exceptions =
        settings.mode == Mode::Check && settings.policy == Policy::RuntimeSuspended;
    let mask = match settings.mode {
        Mode::Record => settings.events,
        _ if wants_exceptions => events::ALWAYS | EXCEPTIONS,
        _ => events::ALWAYS,
    };
    let interface: ICorProfilerInfo5 = info.cast().map_err(said("ICorProfilerInfo5"))?;
    // SAFETY: the call has no pointers.
    let result = unsafe { interface.SetEventMask2(mask, HIGH_EVENTS) };
    if result.is_failure() {
        return Err(said("SetEventMask2")(result));
    }
    if events::has_hooks(mask) {
        crate::record::set_hooks(&interface)
            .map_err(said("SetEnterLeaveFunctionHooks3WithInfo"))?;
    }
    let info = RuntimeInfo::new(info).map_err(said("ICorProfilerInfo2"))?;
    let version = info.get_runtime_version().unwrap_or_default();
    let recorder = Recorder {
        record: crate::record::Record::of(&settings, version)?,
        code: Code::new(version, settings.log),
        threads: Threads::new(),
        request: Request::new(settings.mode == Mode::Check && settings.judge),
        walking: Mutex::new(()),
        is_suspending: AtomicBool::new(false),
        watchdog: Watchdog::new(),
        outcome: Mutex::new(Outcome::new(settings.mode)),
        beats: AtomicU32::new(0),
        is_over: AtomicBool::new(false),
        sampler: Mutex::new(None),
        settings,
        info,
        version,
    };
    let recorder = match RECORDER.set(recorder) {
        Ok(()) => RECORDER.get().ok_or("no recorder")?,
        Err(_) => return Err("the recorder runs already".to_owned()),
    };
    #[cfg(target_os = "linux")]
    if !crate::os::install(crate::request::on_signal) {
        return Err("the signal handler cannot be installed".to_owned());
    }
    let thread = std::thread::Builder::new().name("clr-recorder".to_owned());
    let sampler = thread.spawn(|| run(recorder)).map_err(|error| error.to_string())?;
    if recorder.settings.hang > 0 {
        let thread = std::thread::Builder::new().name("clr-watchdog".to_owned());
        thread.spawn(|| watchdog::run(recorder)).map_err(|error| error.to_string())?;
    }
    *recorder.sampler.lock().unwrap_or_else(PoisonError::into_inner) = Some(sampler);
    Ok(())
}

/// The recorder's own thread.
fn run(recorder: &'static Recorder) {
    if let Some(record) = &recorder.record {
        return crate::record::run(recorder, record);
    }
    sampler::run(recorder);
}

impl Recorder {
    /// Returns true if no more samples shall be taken.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts a turn of the sampler.
    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a number that changes for as long as the sampler works.
    pub(crate) fn beats(&self) -> u32 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Writes the result, with this number of hangs.
    pub(crate) fn write_result(&self, hangs: u32) {
        // A sampler that hangs while it judges keeps its result.
        if let Ok(outcome) = self.outcome.try_lock() {
            sampler::write(&self.settings, &outcome.bytes(self, hangs));
        }
    }

    /// Ends sampling, and waits until the result is written.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let sampler = self.sampler.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sampler) = sampler {
            let _ = sampler.join();
        }
    }
}
