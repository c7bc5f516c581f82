//! A method that a profiler has compiled again.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::{FunctionId, HResult, ReJitId};
use clrsim::Session;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;

const TEXT: &str = r#"
function "App.Main" kind="jit" { body { first-call "App.Save"; first-call "App.Save"; first-call "App.Save" } }
function "App.Save" kind="jit" { body { work 1 } }
"#;
/// COR_PRF_MONITOR_JIT_COMPILATION, COR_PRF_ENABLE_REJIT.
const EVENTS: u32 = 0x4_0020;

thread_local! {
    static INFO: RefCell<Option<ManuallyDrop<ICorProfilerInfo4>>> = const { RefCell::new(None) };
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(line: String) -> HResult {
    SEEN.with_borrow_mut(|seen| seen.push(line));
    HResult::OK
}

/// Returns the ReJITIDs of a function.
fn ids(function: FunctionId) -> Vec<u64> {
    let (mut ids, mut len) = ([ReJitId(0); 4], 0);
    let result = INFO.with_borrow(|info| {
        // SAFETY: the room is as announced.
        unsafe { info.as_ref().unwrap().GetReJITIDs(function, 4, &raw mut len, ids.as_mut_ptr()) }
    });
    assert_eq!(result, HResult::OK);
    ids[..len as usize].iter().map(|id| id.0).collect()
}

struct Requester;

impl IUnknownMethods for Requester {}

impl ICorProfilerCallbackMethods for Requester {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime's object; its references are not counted.
        let info = ManuallyDrop::new(unsafe { ICorProfilerInfo4::from_raw(info) }.unwrap());
        // SAFETY: no pointers.
        let result = unsafe { info.SetEventMask(EVENTS) };
        INFO.with_borrow_mut(|known| *known = Some(info));
        result
    }

    unsafe fn JITCompilationFinished(&self, function: FunctionId, _: HResult, _: Bool) -> HResult {
        let (mut module, mut token) = (ModuleId(0), 0);
        let results = INFO.with_borrow(|info| {
            let info = info.as_ref().unwrap();
            // SAFETY: pointers to locals.
            unsafe {
                info.GetFunctionInfo(
                    function,
                    std::ptr::null_mut(),
                    &raw mut module,
                    &raw mut token,
                );
                [(0, token), (module.0, token | 0xFFF), (module.0, token), (module.0, token)].map(
                    |(module, token)| {
                        let module = ModuleId(module);
                        info.RequestReJIT(1, &raw const module, &raw const token)
                    },
                )
            }
        });
        assert_eq!(results, [HResult::OK; 4], "an error is reported by a callback");
        note(format!("compiled, ids {:?}", ids(function)))
    }
}

impl ICorProfilerCallback2Methods for Requester {}
impl ICorProfilerCallback3Methods for Requester {}

impl ICorProfilerCallback4Methods for Requester {
    unsafe fn GetReJITParameters(&self, _: ModuleId, _: Token, control: *mut c_void) -> HResult {
        // SAFETY: the runtime's object, whose reference is the runtime's own.
        let control = unsafe { ICorProfilerFunctionControl::from_raw(control) };
        let control = ManuallyDrop::new(control.unwrap());
        // SAFETY: a body of one byte, or none.
        let results = unsafe {
            let body = [0x2A];
            [
                control.SetILFunctionBody(1, body.as_ptr()),
                control.SetILFunctionBody(0, body.as_ptr()),
            ]
        };
        assert_eq!(results, [HResult::OK, HResult::INVALID_ARGUMENT]);
        note("parameters".to_owned())
    }

    unsafe fn ReJITCompilationStarted(&self, _: FunctionId, rejit: ReJitId, _: Bool) -> HResult {
        note(format!("started {}", rejit.0))
    }

    unsafe fn ReJITCompilationFinished(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        _: HResult,
        _: Bool,
    ) -> HResult {
        note(format!("finished {}, ids {:?}", rejit.0, ids(function)))
    }

    unsafe fn ReJITError(
        &self,
        module: ModuleId,
        _: Token,
        function: FunctionId,
        status: HResult,
    ) -> HResult {
        note(format!("error {} {} {status}", module.0 != 0, function.0))
    }
}

/// Recorded on 3.1.23, 8.0.34, 10.0.15 and 11.0.0 with the same requests.
#[test]
fn the_next_call_compiles_a_requested_method_once() {
    for generation in Generation::ALL.into_iter().filter(|one| one.profiler_info() >= 4) {
        let session = Session::open(TEXT, generation).unwrap();
        let profiler = create::<ICorProfilerCallback4, _>(Requester);
        // SAFETY: an object with the interface, which outlives the session's use of it.
        assert_eq!(unsafe { session.initialize(profiler.as_raw()) }, HResult::OK);
        session.run().unwrap();
        let lists_first = !generation.family().is_core_since(11);
        let before = if lists_first { "[0]" } else { "[]" };
        let after = if lists_first { "[0, 2]" } else { "[2]" };
        let expected = [
            "error false 0 E_INVALIDARG".to_owned(),
            "error true 0 E_INVALIDARG".to_owned(),
            format!("compiled, ids {before}"),
            "parameters".to_owned(),
            "started 2".to_owned(),
            format!("finished 2, ids {after}"),
        ];
        assert_eq!(SEEN.take(), expected, "{generation}");
        INFO.with_borrow_mut(|info| *info = None);
    }
}
