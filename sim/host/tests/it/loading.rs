//! The rights of a profiler by the way in which it was loaded: each bit and method was tried in CLRs.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::{FunctionId, HResult};
use clrsim::{Role, Session};
use std::cell::{OnceCell, RefCell};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

const TEXT: &str = r#"function "App.Main" kind="jit" { body { work 1 } }"#;

unsafe extern "system" fn mapper(function: FunctionId, _: *mut Bool) -> u64 {
    function.0
}

/// Returns the bits of an event mask that are refused with a result.
fn refused(set: impl Fn(u32) -> HResult, result: HResult) -> Vec<u32> {
    (0..32).map(|bit| 1 << bit).filter(|bit| set(*bit) == result).collect()
}

/// Recorded on 8.0.34, 9.0.23, 10.0.15 and 11.0.0, in `Initialize`.
#[test]
fn a_profiler_for_notifications_may_not_change_the_program() {
    let session = Session::open(TEXT, Generation::Net10Unix).unwrap();
    session.load_for_notifications(true);
    session.act_as(Role::Native);
    // SAFETY: the session's object, which is not counted.
    let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
    let info = ManuallyDrop::new(info.cast::<ICorProfilerInfo15>().unwrap());
    // SAFETY: no pointers.
    let (low, high) = unsafe {
        let low = refused(|bit| info.SetEventMask2(bit, 0), HResult::INVALID_ARGUMENT);
        (low, refused(|bit| info.SetEventMask2(0, bit & 0xFFF), HResult::INVALID_ARGUMENT))
    };
    assert_eq!(
        low,
        [
            0x80,
            0x400,
            0x1000,
            0x4000,
            0x8000,
            0x4_0000,
            0x8_0000,
            0x10_0000,
            0x200_0000,
            0x400_0000,
            0x800_0000,
            0x4000_0000,
        ]
    );
    assert_eq!(high, [1, 0x100, 0x200, 0x400, 0x800]);
    let (module, method) = (ModuleId(0), 0x0600_0001);
    let hook = mapper as *const c_void;
    // SAFETY: pointers to locals; no function is called.
    let results = unsafe {
        [
            info.RequestReJIT(1, &raw const module, &raw const method),
            info.RequestReJITWithInliners(2, 1, &raw const module, &raw const method),
            info.RequestRevert(1, &raw const module, &raw const method, null_mut()),
            info.SetILFunctionBody(module, method, [2_u8].as_ptr()),
            info.SetFunctionIDMapper(hook),
            info.SetFunctionIDMapper2(hook, null_mut()),
        ]
    };
    assert_eq!(results, [HResult::INVALID_ARGUMENT; 6]);
    // SAFETY: the same.
    unsafe {
        assert_eq!(info.SetEventMask2(0x20, 0), HResult::OK);
        assert!(info.SetEnterLeaveFunctionHooks3(hook, hook, hook).is_failure());
    }
    session.load_for_notifications(false);
    // SAFETY: no pointers.
    unsafe { assert_eq!(info.SetEventMask2(0x80, 1), HResult::OK) };
}

/// Keeps what GetModuleInfo and GetAssemblyInfo gave in `ModuleLoadStarted` and `AssemblyLoadStarted`.
struct Early;

thread_local! {
    static INFO: OnceCell<ManuallyDrop<ICorProfilerInfo3>> = const { OnceCell::new() };
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

impl IUnknownMethods for Early {}

impl ICorProfilerCallbackMethods for Early {
    unsafe fn Initialize(&self, info: *mut c_void) -> HResult {
        // SAFETY: the runtime's object; its references are not counted.
        let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(info) }.unwrap());
        let info: ICorProfilerInfo3 = info.cast().unwrap();
        // SAFETY: no pointers. MONITOR_MODULE_LOADS and _ASSEMBLY_LOADS.
        let result = unsafe { info.SetEventMask(0xC) };
        INFO.with(|known| assert!(known.set(ManuallyDrop::new(info)).is_ok()));
        result
    }

    unsafe fn AssemblyLoadStarted(&self, assembly: AssemblyId) -> HResult {
        let (mut name, mut len) = ([0; 64], 0);
        let (mut domain, mut module) = (AppDomainId(0), ModuleId(9));
        // SAFETY: pointers to locals, with room for 64 units.
        let result = INFO.with(|info| unsafe {
            let (len, domain, module) = (&raw mut len, &raw mut domain, &raw mut module);
            let info = info.get().unwrap();
            info.GetAssemblyInfo(assembly, 64, len, name.as_mut_ptr(), domain, module)
        });
        let name = String::from_utf16_lossy(&name[..len as usize - 1]);
        let line = format!("{result} {name} {} {}", domain.0 != 0, module.0);
        SEEN.with_borrow_mut(|seen| seen.push(line));
        HResult::OK
    }

    unsafe fn ModuleLoadStarted(&self, module: ModuleId) -> HResult {
        let (mut name, mut len, mut flags) = ([0; 300], 0, 0);
        let (mut base, mut assembly) = (std::ptr::dangling(), AssemblyId(9));
        // SAFETY: pointers to locals, with room for 300 units.
        let result = INFO.with(|info| unsafe {
            let (len, base, name) = (&raw mut len, &raw mut base, name.as_mut_ptr());
            let (assembly, flags) = (&raw mut assembly, &raw mut flags);
            let info = info.get().unwrap();
            info.GetModuleInfo2(module, base, 300, len, name, assembly, flags)
        });
        let path = String::from_utf16_lossy(&name[..len as usize - 1]);
        let file = path.rsplit(['/', '\\']).next().unwrap();
        let line = format!("{result} {file} {base:?} {:x} {flags:x}", assembly.0);
        SEEN.with_borrow_mut(|seen| seen.push(line));
        HResult::OK
    }
}

impl ICorProfilerCallback2Methods for Early {}

/// Recorded on 8.0.34, 9.0.23, 10.0.15 and 11.0.0.
#[test]
fn names_are_known_before_a_module_has_its_place_and_its_assembly() {
    let session = Session::open(TEXT, Generation::Net8Unix).unwrap();
    let profiler = create::<ICorProfilerCallback2, _>(Early);
    // SAFETY: an object with the interface, which outlives the session's use of it.
    assert_eq!(unsafe { session.initialize(profiler.as_raw()) }, HResult::OK);
    session.run().unwrap();
    assert_eq!(
        SEEN.take(),
        [
            "CORPROF_E_DATAINCOMPLETE System.Private.CoreLib true 0",
            "CORPROF_E_DATAINCOMPLETE System.Private.CoreLib.dll 0x0 fffffffd 1",
            "CORPROF_E_DATAINCOMPLETE App true 0",
            "CORPROF_E_DATAINCOMPLETE App.dll 0x0 fffffffd 21",
        ]
    );
}
