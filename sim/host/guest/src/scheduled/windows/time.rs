//! Virtual time, as on Linux: what the guest's clocks show, and how long it sleeps.
//!
//! Only sleeps and limits of waits let time pass; an interleaving begins at the same time.

use super::locks::limit_of;
use super::{Bool, current, scheduled};
use crate::scheduled::{Replacement, guest_thread};
use clr_explore::CurrentThread;
use std::ffi::c_int;
use std::sync::OnceLock;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::{
    GetSystemTimeAsFileTime, GetSystemTimePreciseAsFileTime, GetTickCount, GetTickCount64,
};
use windows_sys::Win32::System::Threading::{Sleep, SleepEx, SwitchToThread};

/// Time at which each interleaving begins: 2026-01-01 (µs since 1970), and the beginning of 1970 in units of 100 ns since 1601.
pub(super) const BEGIN: u64 = 1_767_225_600_000_000;
const UNIX: u64 = 116_444_736_000_000_000;
/// Time since the system's start at which each interleaving begins (µs).
pub(super) const SINCE_START: u64 = 1_000_000_000;
/// Ticks of the performance counter in a second: those of newer Windows.
const FREQUENCY: i64 = 10_000_000;

/// Returns the time since the system's start (µs).
fn since_start() -> Option<u64> {
    current()?.ask(|me| SINCE_START + me.now())
}

/// Returns the time (µs) from now to one in units of 100 ns: negative from now, or since 1601.
pub(super) fn micros_until(me: &CurrentThread<'_, '_>, due: i64) -> u64 {
    let micros = due.unsigned_abs().div_ceil(10);
    let now = (UNIX / 10) + BEGIN + me.now();
    if due < 0 { micros } else { micros.saturating_sub(now) }
}

/// Sleeps for a time (µs); 0 lets other threads run.
pub(super) fn sleep_micros(micros: u64) {
    current().and_then(|carrier| {
        carrier.ask(move |me| if micros == 0 { me.point() } else { me.sleep(micros) })
    });
}

fn sleeps(milliseconds: u32) {
    // Nothing ends a sleep without a limit.
    sleep_micros(limit_of(milliseconds).unwrap_or(u64::MAX >> 1));
}

unsafe extern "system" fn sleep(milliseconds: u32) {
    if guest_thread::current().is_some() {
        return sleeps(milliseconds);
    }
    // SAFETY: no pointers.
    unsafe { Sleep(milliseconds) };
}

/// Sleeps. There are no asynchronous procedure calls that could interrupt it.
unsafe extern "system" fn sleep_alertable(milliseconds: u32, alertable: Bool) -> u32 {
    if guest_thread::current().is_some() {
        sleeps(milliseconds);
        return 0;
    }
    // SAFETY: no pointers.
    unsafe { SleepEx(milliseconds, alertable) }
}

unsafe extern "system" fn switch_thread() -> Bool {
    scheduled!(SwitchToThread(), |me| {
        me.point();
        1
    })
}

unsafe extern "system" fn tick_count() -> u32 {
    since_start().map_or_else(
        // SAFETY: no pointers.
        || unsafe { GetTickCount() },
        |now| (now / 1_000) as u32,
    )
}

unsafe extern "system" fn tick_count_64() -> u64 {
    since_start().map_or_else(
        // SAFETY: no pointers.
        || unsafe { GetTickCount64() },
        |now| now / 1_000,
    )
}

unsafe extern "system" fn counter(count: *mut i64) -> Bool {
    match since_start() {
        Some(now) => {
            // SAFETY: the guest's room for a number.
            unsafe { count.write(now.cast_signed() * FREQUENCY / 1_000_000) };
            1
        }
        // SAFETY: the guest's argument.
        None => unsafe { QueryPerformanceCounter(count) },
    }
}

unsafe extern "system" fn frequency(count: *mut i64) -> Bool {
    if guest_thread::current().is_some() {
        // SAFETY: the guest's room for a number.
        unsafe { count.write(FREQUENCY) };
        return 1;
    }
    // SAFETY: the guest's argument.
    unsafe { QueryPerformanceFrequency(count) }
}

/// Writes the time. Returns false if this is no thread of an interleaving.
///
/// # Safety
/// There is room for a time.
unsafe fn write(time: *mut FILETIME) -> bool {
    let Some(now) = since_start() else { return false };
    let units = UNIX + (BEGIN - SINCE_START + now) * 10;
    let (dwLowDateTime, dwHighDateTime) = (units as u32, (units >> 32) as u32);
    // SAFETY: the caller's promise.
    unsafe { time.write(FILETIME { dwLowDateTime, dwHighDateTime }) };
    true
}

unsafe extern "system" fn system_time(time: *mut FILETIME) {
    // SAFETY: the guest's room for a time.
    unsafe {
        if !write(time) {
            GetSystemTimeAsFileTime(time);
        }
    }
}

unsafe extern "system" fn precise_time(time: *mut FILETIME) {
    // SAFETY: the guest's room for a time.
    unsafe {
        if !write(time) {
            GetSystemTimePreciseAsFileTime(time);
        }
    }
}

unsafe extern "C" fn seconds(time: *mut i64) -> i64 {
    let now = since_start().map(|now| (BEGIN - SINCE_START + now) / 1_000_000);
    let now = now.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map(|since| since.as_secs()).unwrap_or_default()
    });
    if !time.is_null() {
        // SAFETY: the guest's room for a time.
        unsafe { time.write(now.cast_signed()) };
    }
    now.cast_signed()
}

/// Returns the milliseconds since the process began, as `CLOCKS_PER_SEC` is 1000.
unsafe extern "C" fn clock() -> c_int {
    static BEGUN: OnceLock<std::time::Instant> = OnceLock::new();
    let real = || BEGUN.get_or_init(std::time::Instant::now).elapsed().as_millis() as u64;
    let milliseconds = since_start().map_or_else(real, |now| (now - SINCE_START) / 1_000);
    (milliseconds as u32).cast_signed()
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 13] {
    replacements! {
        "Sleep" => sleep,
        "SleepEx" => sleep_alertable,
        "SwitchToThread" => switch_thread,
        "GetTickCount" => tick_count,
        "timeGetTime" => tick_count,
        "GetTickCount64" => tick_count_64,
        "QueryPerformanceCounter" => counter,
        "QueryPerformanceFrequency" => frequency,
        "GetSystemTimeAsFileTime" => system_time,
        "GetSystemTimePreciseAsFileTime" => precise_time,
        "_time64" => seconds,
        "time" => seconds,
        "clock" => clock,
    }
}
