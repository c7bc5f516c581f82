//! A trace of another profiler: `mode=trace`. The recorder stands between it and the runtime.
//!
//! ```text
//! CORECLR_PROFILER={the profiler's CLSID}
//! CORECLR_PROFILER_PATH=…/libclr_recorder.so
//! CLR_RECORDER="mode=trace profiler=/path/of/the/profiler.so out=app.trace.jsonl"
//! ```
//!
//! Each call is passed on by objects of `clr-com`, and written as the simulator's `clrsim host --trace` writes it. What the
//! profiler sees stays as it is:
//!
//! * A walk of the own stack begins in the runtime's Frame of the call, or in the first managed frame: those of the
//!   recorder are native frames above it, as the profiler's own. Seeds, contexts and the profiler's client data are
//!   passed as they are; its callback is called with the runtime's own pointers.
//! * Hooks for enter, leave and tailcall are the profiler's own functions; the recorder does not see their calls.
//! * Calls may come from signal handlers, and while other threads are suspended: they take no lock that anybody holds, and
//!   allocate nothing. They copy their arguments into a ring; a thread of the recorder writes the lines, and asks the runtime
//!   for names. Of a function whose code is unloaded within milliseconds it would ask too late.
//!
//! | module | content |
//! |---|---|
//! | `profiler_library` | the other profiler's library |
//! | `ring` | calls that are not written yet |
//! | `names` | names, as the runtime says them |

mod names;
mod profiler_library;
mod ring;

use crate::output;
use crate::settings::Settings;
use clr_com::{
    CallObserver, Callee, ForwardedCall, Forwarding, Guid, IClassFactory, ICorProfilerInfo,
    IUnknown, Interface, RuntimeInfo,
};
use clr_sampler::{lock, os};
use clr_trace::{Line, Moment, Writer};
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use names::RuntimeNames;
use ring::{Entry, Ring};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Time between looks at the ring.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest time that the end of the process waits for the lines.
const PATIENCE: Duration = Duration::from_secs(10);

/// The observer of all calls.
struct Tracer {
    ring: Arc<Ring>,
    out: Option<PathBuf>,
    /// The runtime's object, from `Initialize` on.
    info: OnceLock<ManuallyDrop<ICorProfilerInfo>>,
    /// The names that are asked for by the thread that writes.
    has_started: AtomicBool,
}

/// Returns the factory of the other profiler, whose objects are observed.
///
/// # Safety
/// The pointers are as the documentation of `DllGetClassObject` demands.
pub(crate) unsafe fn get_class_object(
    settings: &Settings,
    class: *const Guid,
    riid: *const Guid,
    object: *mut *mut c_void,
) -> HResult {
    let Some(path) = &settings.profiler else {
        eprintln!("clr-recorder: mode=trace needs profiler=PATH, the library that is traced");
        return HResult::FAIL;
    };
    let get = match profiler_library::load(path) {
        Ok(get) => get,
        Err(why) => {
            eprintln!("clr-recorder: {}: {why}", path.display());
            return HResult::FAIL;
        }
    };
    // SAFETY: the caller's pointers.
    let result = unsafe { get(class, riid, object) };
    if !result.is_failure() {
        // SAFETY: the export has succeeded with these pointers.
        unsafe {
            if *riid == IClassFactory::IID {
                object.write(forwarding(settings).wrap(object.read(), &*riid));
            }
        }
    }
    result
}

/// Returns the forwarding of the process.
fn forwarding(settings: &Settings) -> &'static Arc<Forwarding> {
    static FORWARDING: OnceLock<Arc<Forwarding>> = OnceLock::new();
    FORWARDING.get_or_init(|| {
        Forwarding::new(Arc::new(Tracer {
            ring: Arc::new(Ring::new()),
            out: settings.out.clone(),
            info: OnceLock::new(),
            has_started: AtomicBool::new(false),
        }))
    })
}

impl Tracer {
    /// Starts the thread that writes, when the profiler gets the runtime's object.
    fn start(&self, info: *mut c_void) {
        if self.has_started.swap(true, Ordering::AcqRel) {
            return;
        }
        // SAFETY: the runtime's object outlives the process's managed code, and is not released here.
        let unknown = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) });
        let Some(unknown) = unknown.as_ref() else { return };
        if let Ok(info) = unknown.cast::<ICorProfilerInfo>() {
            let _ = self.info.set(ManuallyDrop::new(info));
        }
        let Ok(info) = RuntimeInfo::new(unknown) else { return };
        let (ring, out) = (Arc::clone(&self.ring), self.out.clone());
        thread::spawn(move || write_all(info, &ring, out.as_deref()));
    }

    fn push(&self, moment: Moment) {
        let mut thread = ThreadId(0);
        if let Some(info) = self.info.get() {
            // Any thread may ask for itself at any time; on failure it is none of the runtime's.
            // SAFETY: the pointer is to a local.
            let _ = unsafe { info.GetCurrentThreadID(&raw mut thread) };
        }
        self.ring.push(Entry { thread, os_thread: os_thread(), moment });
    }
}

/// Returns the system's number of this thread.
fn os_thread() -> u64 {
    u64::from(os::own_tid().cast_unsigned())
}

/// Writes the lines of all calls, as long as the process lives.
fn write_all(info: RuntimeInfo, ring: &Ring, out: Option<&std::path::Path>) {
    let [major, minor, build] = info.get_runtime_version().unwrap_or_default();
    let runtime = format!("CLR {major}.{minor}.{build} on {}", os::NAME);
    let mut writer = Writer::new(RuntimeNames::new(info));
    let mut lines = vec![Line::Trace { version: 1, runtime }];
    loop {
        while let Some(entry) = ring.next() {
            lines.extend(writer.lines(entry.thread, entry.os_thread, &entry.moment));
        }
        let calls = ring.take_lost();
        lines.extend((calls > 0).then_some(Line::Lost { calls }));
        let texts = lines.drain(..).filter_map(|line| serde_json::to_string(&line).ok());
        let text: String = texts.flat_map(|text| [text, "\n".to_owned()]).collect();
        if text.is_empty() {
            thread::sleep(PAUSE);
        } else {
            output::append(out, text.as_bytes());
            ring.set_written();
        }
    }
}

impl CallObserver for Tracer {
    fn begins(&self, call: &ForwardedCall<'_>) {
        if call.callee == Callee::Profiler && call.method.name.starts_with("Initialize") {
            self.start(call.words.first().map_or(0, |word| *word as usize) as _);
        }
        // SAFETY: the caller's arguments, as the documentation of the method demands.
        self.push(Moment::Begins(unsafe { call.inputs() }));
    }

    fn ends(&self, call: &ForwardedCall<'_>, result: u64) {
        // SAFETY: as above, and the call has ended.
        self.push(Moment::Ends(unsafe { call.outputs(result) }, result));
        let is_last = ["Shutdown", "ProfilerDetachSucceeded"].contains(&call.method.name);
        if call.callee == Callee::Profiler && is_last {
            // After this the process may end at any time.
            static ENDING: Mutex<()> = Mutex::new(());
            let _one = lock(&ENDING);
            let begin = Instant::now();
            while !self.ring.is_written() && begin.elapsed() < PATIENCE {
                thread::sleep(PAUSE);
            }
        }
    }

    fn frame(&self, function: FunctionId, answer: HResult) {
        self.push(Moment::Frame(function, answer));
    }
}
