//! Waits for addresses: `WaitOnAddress`. Locks of Rust, and waits on atomic variables of C++20 with MSVC, are made of them.

use super::locks::limit_of;
use super::{Bool, current, scheduled, succeeds};
use crate::scheduled::{Replacement, objects};
use clr_explore::{CurrentThread, LockKind, ProfilerLock};
use std::ffi::c_void;
use windows_sys::Win32::Foundation::ERROR_TIMEOUT;
use windows_sys::Win32::System::Threading::{WaitOnAddress, WakeByAddressAll, WakeByAddressSingle};

fn lock_of(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Plain, "waited address")
}

/// Returns the bytes of a variable of 1, 2, 4 or 8 bytes.
///
/// # Safety
/// The variable has this size.
unsafe fn value(at: usize, size: usize) -> u64 {
    // SAFETY: the caller's promise. No other thread changes it meanwhile: one runs at a time.
    unsafe {
        match size {
            1 => u64::from((at as *const u8).read_volatile()),
            2 => u64::from((at as *const u16).read_volatile()),
            4 => u64::from((at as *const u32).read_volatile()),
            _ => (at as *const u64).read_volatile(),
        }
    }
}

/// Waits while the variable has a value. Returns false if the limit (µs) is over.
fn waits(
    me: &CurrentThread<'_, '_>,
    at: usize,
    (unwanted, size): (u64, usize),
    limit: Option<u64>,
) -> bool {
    let lock = lock_of(me, at);
    let changed = objects::condition(me, at);
    me.acquire(lock);
    // A thread that changes the variable after this cannot wake before this one waits: it needs the lock for that.
    // SAFETY: the guest's variable.
    let woken = unsafe { value(at, size) } != unwanted || me.wait_on(changed, lock, limit);
    me.unlock(lock);
    woken || limit.is_none()
}

unsafe extern "system" fn wait(
    address: *const c_void,
    unwanted: *const c_void,
    size: usize,
    milliseconds: u32,
) -> Bool {
    let Some(carrier) = current() else {
        // SAFETY: the guest's arguments.
        return unsafe { WaitOnAddress(address, unwanted, size, milliseconds) };
    };
    // SAFETY: the guest's value.
    let unwanted = unsafe { value(unwanted as usize, size) };
    let at = address as usize;
    let woken = carrier.ask(move |me| waits(me, at, (unwanted, size), limit_of(milliseconds)));
    succeeds(woken == Some(true), ERROR_TIMEOUT)
}

fn wakes(me: &CurrentThread<'_, '_>, at: usize, all: bool) {
    let lock = lock_of(me, at);
    let changed = objects::condition(me, at);
    me.acquire(lock);
    me.wake(changed, all);
    me.unlock(lock);
}

unsafe extern "system" fn wake(address: *const c_void) {
    let at = address as usize;
    scheduled!(WakeByAddressSingle(address), |me| wakes(me, at, false));
}

unsafe extern "system" fn wake_all(address: *const c_void) {
    let at = address as usize;
    scheduled!(WakeByAddressAll(address), |me| wakes(me, at, true));
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 3] {
    replacements! {
        "WaitOnAddress" => wait,
        "WakeByAddressSingle" => wake,
        "WakeByAddressAll" => wake_all,
    }
}
