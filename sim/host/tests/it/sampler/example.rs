//! The profiler of `walker/sampler/examples`: loaded as a runtime does it, and run over a thread of this process.
//!
//! The runtime is one of this test, which has no managed code: it takes the event mask, and says what a callback
//! would. The thread is a real one, interrupted by signals; its frames are those of this program.

use clr_com::*;
use clr_sampler::os;
use clr_unwind::CodeMap;
use clr_walker::profiling::{FunctionId, HResult, ThreadId};
use std::ffi::{CString, c_void};
use std::fs::read_to_string;
use std::hint::spin_loop;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The class of the example.
const CLASS: &str = "6f0e5b0e-9a53-4a0b-8f0c-2f7d1c7c3a11";
/// A file that cannot be written.
const NOWHERE: &str = "/nowhere/app.folded";
/// The thread that is sampled.
const THREAD: ThreadId = ThreadId(7);

/// A runtime without managed code.
struct Runtime;

impl IUnknownMethods for Runtime {}

impl ICorProfilerInfoMethods for Runtime {
    unsafe fn GetFunctionFromIP(&self, _ip: *const u8, _function: *mut FunctionId) -> HResult {
        HResult::FAIL
    }
}

impl ICorProfilerInfo2Methods for Runtime {}
impl ICorProfilerInfo3Methods for Runtime {}
impl ICorProfilerInfo4Methods for Runtime {}

impl ICorProfilerInfo5Methods for Runtime {
    unsafe fn SetEventMask2(&self, low: u32, high: u32) -> HResult {
        assert_eq!((low, high), (clr_sampler::EVENTS, 4));
        HResult::OK
    }
}

/// Returns the library, which `cargo test --workspace` has built.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let library = program.ancestors().nth(2).unwrap().join("examples/libsampler.so");
    if !library.exists() {
        let arguments = ["build", "--offline", "-p", "clr-sampler", "--example", "sampler"];
        let build = Command::new(env!("CARGO")).args(arguments).status();
        assert!(build.is_ok_and(|status| status.success()), "{}", library.display());
    }
    library
}

/// Makes the profiler of a library.
fn load(library: &Path) -> ICorProfilerCallback2 {
    type Export = unsafe extern "system" fn(*const Guid, *const Guid, *mut *mut c_void) -> HResult;
    let path = CString::new(library.to_str().unwrap()).unwrap();
    let class = Guid::parse(CLASS).unwrap();
    let mut factory = null_mut();
    let mut profiler = null_mut();
    // SAFETY: the library is the example's, whose export has this type; pointers are to locals, and a reference
    // that a call gives is taken once.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null(), "{}", library.display());
        let export = libc::dlsym(handle, c"DllGetClassObject".as_ptr());
        assert!(!export.is_null());
        let export = std::mem::transmute::<*mut c_void, Export>(export);
        let other = Guid::parse("00000000-0000-0000-c000-000000000046").unwrap();
        let refused = export(&raw const other, &IClassFactory::IID, &raw mut factory);
        assert_eq!(refused, HResult::CLASS_NOT_AVAILABLE);
        assert_eq!(export(&raw const class, &IClassFactory::IID, &raw mut factory), HResult::OK);
        let factory = IClassFactory::from_raw(factory).unwrap();
        let iid = &ICorProfilerCallback2::IID;
        assert_eq!(factory.CreateInstance(null_mut(), iid, &raw mut profiler), HResult::OK);
        ICorProfilerCallback2::from_raw(profiler).unwrap()
    }
}

/// Works until the end.
#[inline(never)]
fn spin(is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        spin_loop();
    }
}

/// Returns the name that a profile has for a function of this program.
fn label(function: u64) -> String {
    let image = os::images().into_iter().find(|image| image.code.contains(&function)).unwrap();
    let mut map = CodeMap::new();
    os::insert_image(&mut map, image.base, os::file_bytes(&image.path).unwrap()).unwrap();
    let (region, rva) = map.find(function).unwrap();
    let start = region.cfi().unwrap().function(rva).unwrap().start;
    format!("{}+{start:#x}", Path::new(&image.path).file_name().unwrap().to_str().unwrap())
}

/// Plays the runtime of the profiler, which writes its profile to `out`.
fn play(out: &str) {
    let profiler = load(&library());
    let info: ICorProfilerInfo5 = create(Runtime);
    let is_over = AtomicBool::new(false);
    // SAFETY: the calls of a runtime, in their order; the object outlives the profiler.
    unsafe {
        assert_eq!(profiler.Initialize(info.as_raw()), HResult::OK);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let tid = os::own_tid().cast_unsigned();
                profiler.ThreadAssignedToOSThread(THREAD, tid);
                spin(&is_over);
                profiler.ThreadDestroyed(THREAD);
            });
            std::thread::sleep(Duration::from_millis(400));
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(profiler.Shutdown(), HResult::OK);
    }
    if out == NOWHERE {
        return;
    }
    let spins = format!(";{}", label(spin as *const () as u64));
    let text = read_to_string(out).unwrap();
    let counts = text.lines().filter_map(|line| {
        let (stack, count) = line.rsplit_once(' ')?;
        stack.ends_with(&spins).then(|| count.parse::<u32>().unwrap())
    });
    assert!(counts.sum::<u32>() > 5, "{spins}\n{text}");
}

/// Returns the command that plays the runtime.
fn player(out: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sampler::example::the_example_samples_a_thread", "--nocapture"]);
    command.env("SAMPLER_OUT", out);
    command
}

/// Nobody listens, and the profile cannot be written.
#[test]
fn the_end_of_the_program_is_its_own() {
    library();
    let full = std::fs::File::create("/dev/full").unwrap();
    let status = player(Path::new(NOWHERE)).stderr(full).status().unwrap();
    assert!(status.success(), "{status}");
}

/// The signal handler and the profiler's threads stay for as long as a process, so this is one of its own.
#[test]
fn the_example_samples_a_thread() {
    if let Ok(out) = std::env::var("SAMPLER_OUT") {
        return play(&out);
    }
    let folder = tempfile::tempdir().unwrap();
    let output = player(&folder.path().join("app.folded")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    assert!(said.contains("stacks are not whole, 0 samples could not be taken"), "{said}");
}
