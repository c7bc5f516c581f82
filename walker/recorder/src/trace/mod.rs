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
//!   for names. A callback that announces the end of an object waits until that thread has written it: the runtime does not
//!   check ids, and crashes if it is asked about an object that is gone.
//!
//! | module | content |
//! |---|---|
//! | `ring` | calls that are not written yet |
//! | `names` | names, as the runtime says them |

mod names;
mod ring;

use crate::output::{self, Output};
use crate::settings::Settings;
use clr_com::{
    CallObserver, Forwarding, GetClassObject, Guid, IClassFactory, ICorProfilerInfo, IUnknown,
    Interface, MainReason, Moment, ProfilerLibrary, RuntimeInfo,
};
use clr_sampler::os;
use clr_trace::{Line, Writer};
use clr_walker::profiling::{HResult, ThreadId};
use names::RuntimeNames;
use ring::{Entry, Ring};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Time between looks at the ring.
const PAUSE: Duration = Duration::from_millis(1);
/// The callbacks after which the process may end at any time.
const LAST: [&str; 2] = ["Shutdown", "ProfilerDetachSucceeded"];
/// Longest time that the end of the process waits for the lines.
const PATIENCE: Duration = Duration::from_secs(10);
/// The callbacks before whose end the names of an object must be asked for, and the longest time for that.
const ENDS: [&str; 5] = [
    "AssemblyUnloadStarted",
    "ClassUnloadStarted",
    "DynamicMethodUnloaded",
    "FunctionUnloadStarted",
    "ModuleUnloadStarted",
];
const PATIENCE_OF_ENDS: Duration = Duration::from_secs(1);

/// The observer of all calls.
struct Tracer {
    ring: Arc<Ring>,
    out: Option<PathBuf>,
    /// The runtime's object, from `Initialize` on.
    info: OnceLock<ManuallyDrop<ICorProfilerInfo>>,
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
        output::say(format_args!("mode=trace needs profiler=PATH, the library that is traced"));
        return HResult::FAIL;
    };
    let get = match load(path) {
        Ok(get) => get,
        Err(why) => {
            output::say(format_args!("{}: {why}", path.display()));
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

/// Loads a profiler's library, which stays loaded, and returns its export.
fn load(path: &Path) -> Result<GetClassObject, String> {
    let library = ProfilerLibrary::load(path)?;
    if !library.call_main(MainReason::Attach) {
        return Err("DllMain returned FALSE".to_owned());
    }
    library.get_class_object().ok_or_else(|| "it does not export DllGetClassObject".to_owned())
}

/// Returns the forwarding of the process.
fn forwarding(settings: &Settings) -> &'static Arc<Forwarding> {
    static FORWARDING: OnceLock<Arc<Forwarding>> = OnceLock::new();
    FORWARDING.get_or_init(|| {
        Forwarding::new(Arc::new(Tracer {
            ring: Arc::new(Ring::new()),
            out: settings.out.clone(),
            info: OnceLock::new(),
        }))
    })
}

/// Returns the system's number of this thread.
fn os_thread() -> u64 {
    u64::from(os::own_tid().cast_unsigned())
}

/// Writes the lines of all calls, as long as the process lives.
fn write_all(info: RuntimeInfo, ring: &Ring, out: Option<&Path>) {
    let [major, minor, build] = info.get_runtime_version().unwrap_or_default();
    let runtime = format!("CLR {major}.{minor}.{build} on {}", os::NAME);
    let mut writer = Writer::new(RuntimeNames::new(info));
    let mut lines = vec![Line::Trace { version: 1, runtime }];
    // Held for as long as the process lives: calls of two processes in one file are no trace.
    let mut file = out.and_then(|path| {
        let opened = Output::append(path);
        opened.inspect_err(|error| output::say(format_args!("{}: {error}", path.display()))).ok()
    });
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
            match &mut file {
                Some(open) => {
                    // What fits may be a line later: the part before it is missing then.
                    if let Err(error) = open.write(text.as_bytes()) {
                        output::say(format_args!("{error}"));
                        file = None;
                    }
                }
                None if out.is_none() => output::append(None, text.as_bytes()),
                None => {}
            }
            ring.set_written();
        }
    }
}

impl CallObserver for Tracer {
    /// Starts the thread that writes, once.
    fn starts(&self, info: &IUnknown) {
        let Ok(known) = info.cast::<ICorProfilerInfo>() else { return };
        if self.info.set(ManuallyDrop::new(known)).is_err() {
            return;
        }
        let Ok(info) = RuntimeInfo::new(info) else { return };
        let (ring, out) = (Arc::clone(&self.ring), self.out.clone());
        thread::spawn(move || write_all(info, &ring, out.as_deref()));
    }

    fn notice(&self, moment: Moment) {
        let is_last = matches!(&moment, Moment::Ends(call, _) if LAST.contains(&call.method.name));
        let ends = matches!(&moment, Moment::Begins(call) if ENDS.contains(&call.method.name));
        let mut thread = ThreadId(0);
        if let Some(info) = self.info.get() {
            // Any thread may ask for itself at any time; on failure it is none of the runtime's.
            // SAFETY: the pointer is to a local.
            let _ = unsafe { info.GetCurrentThreadID(&raw mut thread) };
        }
        let number = self.ring.push(Entry { thread, os_thread: os_thread(), moment });
        let begin = Instant::now();
        if is_last {
            while !self.ring.is_written() && begin.elapsed() < PATIENCE {
                thread::sleep(PAUSE);
            }
        } else if ends && let Some(number) = number {
            while !self.ring.has_written(number) && begin.elapsed() < PATIENCE_OF_ENDS {
                thread::sleep(PAUSE);
            }
        }
    }
}
