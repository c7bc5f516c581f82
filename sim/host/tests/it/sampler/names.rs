//! Names of methods whose ids are used again.

use clr_com::*;
use clr_sampler::{NamedProfile, Process, Sample, names::Names, os, profile::Format};
use clr_walker::mixed::{FrameKind, MixedFrame, Policy, Source, WalkBuffer, Walker};
use clr_walker::profiling::{FunctionId, HResult};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

/// The name of the dynamic method that lives now.
static NAME: Mutex<&str> = Mutex::new("");
/// The tests that change it take turns.
static TURN: Mutex<()> = Mutex::new(());
/// The id that all dynamic methods get.
const DYNAMIC: FunctionId = FunctionId(7);
/// The id of a method with metadata, which this runtime does not have.
const OTHER: FunctionId = FunctionId(8);

/// The type argument of all classes.
const ARGUMENT: ClassId = ClassId(0x108);

/// A runtime in which one dynamic method lives at a time.
struct Runtime;

impl IUnknownMethods for Runtime {}
impl ICorProfilerInfoMethods for Runtime {}

/// The id of a method is that of its class; its module has the number before. The class has one type argument, 0x108,
/// which is a class of the same kind.
impl ICorProfilerInfo2Methods for Runtime {
    unsafe fn GetFunctionInfo2(
        &self,
        function: FunctionId,
        _frame: FrameHandle,
        class: *mut ClassId,
        module: *mut ModuleId,
        _token: *mut Token,
        _room: u32,
        len: *mut u32,
        _arguments: *mut ClassId,
    ) -> HResult {
        // SAFETY: the caller's pointers.
        unsafe {
            *class = ClassId(function.0);
            *module = ModuleId(function.0 - 1);
            *len = 0;
        }
        if function == DYNAMIC { HResult::FAIL } else { HResult::OK }
    }

    unsafe fn GetClassIDInfo2(
        &self,
        class: ClassId,
        module: *mut ModuleId,
        _token: *mut Token,
        _parent: *mut ClassId,
        room: u32,
        len: *mut u32,
        arguments: *mut ClassId,
    ) -> HResult {
        // SAFETY: the caller's pointers, and its room.
        unsafe {
            *module = ModuleId(class.0 - 1);
            if room > 0 {
                *len = 1;
                *arguments = ARGUMENT;
            }
        }
        HResult::OK
    }
}

impl ICorProfilerInfo3Methods for Runtime {}
impl ICorProfilerInfo4Methods for Runtime {}
impl ICorProfilerInfo5Methods for Runtime {}
impl ICorProfilerInfo6Methods for Runtime {}
impl ICorProfilerInfo7Methods for Runtime {}

impl ICorProfilerInfo8Methods for Runtime {
    unsafe fn GetDynamicFunctionInfo(
        &self,
        function: FunctionId,
        _module: *mut ModuleId,
        _signature: *mut *const u8,
        _signature_size: *mut u32,
        _name_capacity: u32,
        name_len: *mut u32,
        name: *mut u16,
    ) -> HResult {
        if function != DYNAMIC {
            return HResult::INVALID_ARGUMENT;
        }
        let text: Vec<u16> = NAME.lock().unwrap().encode_utf16().chain([0]).collect();
        // SAFETY: the caller's room, which is larger than the names of this test.
        unsafe {
            name.copy_from_nonoverlapping(text.as_ptr(), text.len());
            *name_len = text.len() as u32;
        }
        HResult::OK
    }
}

pub(super) fn process() -> Process {
    let info: ICorProfilerInfo8 = create(Runtime);
    let info: IUnknown = info.cast().unwrap();
    Process::new(&info, |_| {}).unwrap()
}

/// Begins a dynamic method, and returns a time at which it lives.
fn begin(process: &Process, name: &'static str) -> u64 {
    *NAME.lock().unwrap() = name;
    process.code.dynamic_compiled(&process.info, DYNAMIC);
    now()
}

/// Returns a time, apart from all others.
fn now() -> u64 {
    sleep(Duration::from_micros(50));
    let now = os::now();
    sleep(Duration::from_micros(50));
    now
}

#[test]
fn a_name_is_that_of_the_method_that_lived_at_the_time() {
    let _turn = TURN.lock();
    let process = process();
    let times = ["first", "second", "third"].map(|name| {
        let time = begin(&process, name);
        process.code.dynamic_unloaded(DYNAMIC);
        time
    });
    let last = begin(&process, "last");
    // Late samples come after others, and names that are known are asked for again.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let mut names = Names::default();
        for at in order.into_iter().chain(order) {
            let time = times.get(at).copied().unwrap_or(last);
            let expected = ["first", "second", "third", "last"][at];
            assert_eq!(names.of(&process, DYNAMIC, time).name, expected, "{order:?}");
        }
    }
}

#[test]
fn a_method_that_runs_before_its_callback_has_its_own_name() {
    let _turn = TURN.lock();
    let process = process();
    begin(&process, "dead");
    process.code.dynamic_unloaded(DYNAMIC);
    let early = now();
    begin(&process, "early");
    assert_eq!(Names::default().of(&process, DYNAMIC, early).name, "early");
}

#[test]
fn the_end_of_a_method_that_nobody_has_named_leaves_no_name() {
    let process = process();
    let before = now();
    let mut names = Names::default();
    let mut late = Names::default();
    assert_eq!(names.of(&process, OTHER, before).name, "function 0x8");
    process.code.unloaded(OTHER);
    assert_eq!(names.of(&process, OTHER, before).name, "function 0x8", "it was asked in time");
    assert_eq!(late.of(&process, OTHER, before).name, "[unloaded]");
    assert_eq!(late.of(&process, OTHER, now()).name, "function 0x8");
}

#[test]
fn methods_end_with_their_module_and_with_those_of_type_arguments() {
    for (module, ends) in [(7, true), (0x107, true), (6, false)] {
        let process = process();
        process.code.compiled(&process.info, OTHER);
        let time = now();
        let module = ModuleId(module);
        assert_eq!(process.code.methods(module), if ends { vec![OTHER] } else { vec![] });
        process.code.module_unloaded(module);
        let name = Names::default().of(&process, OTHER, time).name;
        assert_eq!(name, if ends { "[unloaded]" } else { "function 0x8" });
        assert_eq!(process.code.methods(ModuleId(0x107)).is_empty(), ends, "the other one");
        assert_eq!(Names::default().of(&process, OTHER, now()).name, "function 0x8");
    }
}

#[test]
fn a_profile_has_the_names_of_its_samples_times() {
    let _turn = TURN.lock();
    let process = process();
    let mut sample = Sample::new(0);
    sample.taken_at = begin(&process, "first");
    process.code.dynamic_unloaded(DYNAMIC);
    begin(&process, "second");
    let kind = FrameKind::Hidden(Some(DYNAMIC));
    let frame = MixedFrame {
        kind,
        ip: 1,
        sp: 1,
        position: clr_unwind::Position::Interrupted,
        source: Source::Context,
        reported: false,
    };
    let walker = Walker::new(&process.info, &process.code, Policy::Signal);
    let Ok(mut stack) = walker.stitch(&WalkBuffer::new(1));
    stack.frames.push(frame);
    let mut profile = NamedProfile::default();
    profile.add(&process, &sample, &stack);
    sample.taken_at = now();
    profile.add(&process, &sample, &stack);
    let text = String::from_utf8(profile.write(Format::Folded, "")).unwrap();
    assert_eq!(text, "first 1\nsecond 1\n");
}
