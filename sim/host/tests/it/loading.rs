//! What a profiler may do by the way in which it was loaded, as each bit and method was tried in CLRs.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::{FunctionId, HResult};
use clrsim::{Role, Session};
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
