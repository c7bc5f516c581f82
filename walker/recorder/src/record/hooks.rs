//! Enter, leave and tailcall hooks: each is a situation.
//!
//! They are hooks with frame info. The runtime calls these by a stub of its own that keeps all
//! registers, so that they can be functions of the language; it puts up a Frame for them, and the
//! thread stays in cooperative mode.

use super::callbacks::in_callback;
use clr_com::{Bool, EltInfo, FunctionHook, ICorProfilerInfo5};
use clr_walker::profiling::{FunctionId, HResult};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// One of this number of functions gets hooks: each call and each return of it costs a call of the
/// process.
const SHARE: u32 = 4;

/// Number of functions that were compiled.
static COMPILED: AtomicU32 = AtomicU32::new(0);

/// Sets the hooks, in `Initialize`, after the event mask.
///
/// # Errors
/// The runtime's answer.
pub(super) fn set(info: &ICorProfilerInfo5) -> Result<(), HResult> {
    let mapper: unsafe extern "system" fn(FunctionId, *mut c_void, *mut Bool) -> u64 = map;
    let hook = |hook: unsafe extern "system" fn(FunctionId, EltInfo)| hook as FunctionHook;
    // SAFETY: the functions have the types of FunctionIDMapper2, FunctionEnter3WithInfo,
    // FunctionLeave3WithInfo and FunctionTailcall3WithInfo, and are there as long as the process.
    let results = unsafe {
        [
            info.SetFunctionIDMapper2(mapper as *const c_void, null_mut()),
            info.SetEnterLeaveFunctionHooks3WithInfo(hook(enter), hook(leave), hook(tailcall)),
        ]
    };
    results.into_iter().find(|result| result.is_failure()).map_or(Ok(()), Err)
}

/// Chooses the functions that get hooks, before each is compiled.
unsafe extern "system" fn map(function: FunctionId, _: *mut c_void, has_hooks: *mut Bool) -> u64 {
    let number = COMPILED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the runtime's own pointer.
    unsafe { *has_hooks = Bool::from(number.is_multiple_of(SHARE)) };
    function.0
}

unsafe extern "system" fn enter(_: FunctionId, _: EltInfo) {
    in_callback("elt-info:Enter");
}

unsafe extern "system" fn leave(_: FunctionId, _: EltInfo) {
    in_callback("elt-info:Leave");
}

unsafe extern "system" fn tailcall(_: FunctionId, _: EltInfo) {
    in_callback("elt-info:Tailcall");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_four_functions_gets_hooks_and_each_keeps_its_id() {
        let chosen = (1..=8).filter(|id| {
            let mut has_hooks = 2;
            // SAFETY: the pointer is to a local.
            let kept = unsafe { map(FunctionId(*id), null_mut(), &raw mut has_hooks) };
            assert_eq!(kept, *id);
            assert!((0..=1).contains(&has_hooks), "{has_hooks}");
            has_hooks == 1
        });
        assert_eq!(chosen.count(), 2);
    }
}
