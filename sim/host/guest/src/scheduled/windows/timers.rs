//! Waitable timers, by which Rust's threads sleep.

use super::handles::{self, Kind, made, makes};
use super::{Bool, current, succeeds, time};
use crate::scheduled::Replacement;
use std::ffi::c_void;
use windows_sys::Win32::Foundation::{ERROR_INVALID_HANDLE, HANDLE};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Threading::{
    CancelWaitableTimer, CreateWaitableTimerExW, CreateWaitableTimerW, SetWaitableTimer,
    SetWaitableTimerEx,
};

/// `CREATE_WAITABLE_TIMER_MANUAL_RESET`.
const MANUAL: u32 = 1;

makes! {
    create CreateWaitableTimerW u16: {
        (security, manual: Bool, *name) (security, manual, name)
        Kind::Timer { manual: manual != 0 }, false
    };
    create_ex CreateWaitableTimerExW u16: {
        (security, *name, flags: u32, access: u32) (security, name, flags, access)
        Kind::Timer { manual: flags & MANUAL != 0 }, false
    };
}

/// Sets a timer to a time in units of 100 ns: negative from now, or since 1601. `None` if this is no thread of an interleaving.
unsafe fn sets(timer: HANDLE, due: *const i64, period: i32, callback: bool) -> Option<Bool> {
    let carrier = current()?;
    let at = timer as usize;
    let period = u64::from(period.unsigned_abs()) * 1_000;
    // SAFETY: the caller has the guest's time.
    let due = unsafe { due.read() };
    let done = carrier.ask(move |me| {
        if callback {
            me.fail("the profiler has left the simulation: a timer calls it");
        }
        let due = me.now() + time::micros_until(me, due);
        handles::change_and_notify(me, at, |timer| {
            (timer.count, timer.due, timer.period) = (0, Some(due), period);
            matches!(timer.kind, Kind::Timer { .. })
        })
    });
    Some(succeeds(done.flatten() == Some(true), ERROR_INVALID_HANDLE))
}

unsafe extern "system" fn set(
    timer: HANDLE,
    due: *const i64,
    period: i32,
    callback: *const c_void,
    argument: *const c_void,
    resume: Bool,
) -> Bool {
    // SAFETY: the guest's arguments, here and below.
    unsafe {
        sets(timer, due, period, !callback.is_null())
            .unwrap_or_else(|| SetWaitableTimer(timer, due, period, None, argument, resume))
    }
}

unsafe extern "system" fn set_ex(
    timer: HANDLE,
    due: *const i64,
    period: i32,
    callback: *const c_void,
    argument: *const c_void,
    reason: *const c_void,
    delay: u32,
) -> Bool {
    // SAFETY: as above.
    unsafe {
        sets(timer, due, period, !callback.is_null()).unwrap_or_else(|| {
            SetWaitableTimerEx(timer, due, period, None, argument, reason.cast(), delay)
        })
    }
}

unsafe extern "system" fn cancel(timer: HANDLE) -> Bool {
    let at = timer as usize;
    let done = current().and_then(|carrier| {
        carrier.ask(move |me| handles::change_and_notify(me, at, |timer| timer.due = None))
    });
    match done {
        Some(known) => succeeds(known.is_some(), ERROR_INVALID_HANDLE),
        // SAFETY: as above.
        None => unsafe { CancelWaitableTimer(timer) },
    }
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 5] {
    replacements! {
        "CreateWaitableTimerW" => create,
        "CreateWaitableTimerExW" => create_ex,
        "SetWaitableTimer" => set,
        "SetWaitableTimerEx" => set_ex,
        "CancelWaitableTimer" => cancel,
    }
}
