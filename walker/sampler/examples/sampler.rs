//! A sampling profiler, to copy: it counts the stacks of all threads, managed and native frames together, and writes
//! them as the input of flame graphs.
//!
//! ```text
//! cargo build --release -p clr-sampler --example sampler
//! export CORECLR_ENABLE_PROFILING=1
//! export CORECLR_PROFILER={6f0e5b0e-9a53-4a0b-8f0c-2f7d1c7c3a11}
//! export CORECLR_PROFILER_PATH=$PWD/target/release/examples/libsampler.so
//! SAMPLER_OUT=app.folded SAMPLER_RATE=500 dotnet app.dll
//! ```
//!
//! `sim/host/tests/it/sampler` loads it, as a runtime does, and lets it sample a thread of the test on Linux. The same
//! library code samples real CLRs in `clr-recorder`.
#![cfg(all(any(target_os = "linux", windows), target_arch = "x86_64"))]

use clr_com::{ClassFactory, Guid, ICorProfilerCallback9, IUnknown, create};
use clr_sampler::profile::Format;
use clr_sampler::{
    Callbacks, Missed, Mode, NamedProfile, Options, Process, Sample, Sampler, lock, os,
};
use clr_walker::mixed::{Completeness, MixedStack};
use clr_walker::profiling::HResult;
use std::ffi::c_void;
use std::fmt::Arguments;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The profiler's CLSID. Choose your own.
const CLSID: &str = "6f0e5b0e-9a53-4a0b-8f0c-2f7d1c7c3a11";

/// Returns the factory of the profiler: the export by which a runtime gets it.
///
/// # Safety
/// The pointers are as the documentation of `DllGetClassObject` demands.
#[unsafe(no_mangle)]
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

/// Makes the object that the runtime calls. To handle more callbacks than the sampler needs, wrap [`Callbacks`] in an
/// object of your own, and call it first.
fn make() -> ICorProfilerCallback9 {
    create(Callbacks::new(on_initialize))
}

/// Starts the sampler. A runtime that gets a failure from `Initialize` unloads the profiler, and runs on without it.
fn on_initialize(info: &IUnknown) -> HResult {
    let rate = std::env::var("SAMPLER_RATE").ok().and_then(|rate| rate.parse().ok());
    let options = Options {
        rate: rate.unwrap_or(100),
        // A profiler that stops the process must not do so for ever.
        hang: 60,
        log: say,
        ..Options::default()
    };
    let profile = Profile {
        out: std::env::var_os("SAMPLER_OUT").map(PathBuf::from),
        stacks: Mutex::default(),
        partial: AtomicU32::new(0),
        missed: AtomicU32::new(0),
    };
    match Sampler::start(info, options, Box::new(profile)) {
        Ok(()) => HResult::OK,
        Err(why) => {
            say(format_args!("{why}"));
            HResult::FAIL
        }
    }
}

/// Says something to people. `eprintln` would panic where nobody can listen, and a panic in a callback ends the program.
fn say(text: Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "sampler: {text}");
}

/// The stacks so far with their counts, and the file that they are written to.
#[derive(Debug)]
struct Profile {
    out: Option<PathBuf>,
    stacks: Mutex<NamedProfile>,
    /// Number of stacks of which a part is missing.
    partial: AtomicU32,
    /// Number of samples that could not be taken.
    missed: AtomicU32,
}

impl Profile {
    /// Writes the file, in the format of its extension.
    fn write(&self, stacks: &NamedProfile) -> std::io::Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        std::fs::write(out, stacks.write(Format::of_path(out), "sampler"))
    }
}

/// All of this runs on threads of the profiler, where it may allocate, lock and ask the runtime. What must not, the
/// walk in the signal handler or beside a suspended thread, is over by then.
impl Mode for Profile {
    fn on_sample(&self, process: &Process, sample: &Sample, stack: &MixedStack) {
        // A stack says itself whether it is whole, and each gap has a reason. A profile counts both kinds.
        if matches!(stack.completeness(), Completeness::Partial(_)) {
            self.partial.fetch_add(1, Ordering::Relaxed);
        }
        lock(&self.stacks).add(process, sample, stack);
    }

    fn on_missed(&self, _why: Missed) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    fn on_end(&self, _process: &Process) {
        if let Err(error) = self.write(&lock(&self.stacks)) {
            say(format_args!("{error}"));
        }
        let [partial, missed] = [&self.partial, &self.missed].map(|it| it.load(Ordering::Relaxed));
        say(format_args!("{partial} stacks are not whole, {missed} samples could not be taken"));
    }

    fn on_hang(&self, _process: &Process, stacks: &str) {
        say(format_args!("no sample comes any more\n{stacks}"));
        // The thread that hangs may hold the lock.
        if let Ok(stacks) = self.stacks.try_lock() {
            let _ = self.write(&stacks);
        }
        os::end(1);
    }
}
