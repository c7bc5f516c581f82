//! Virtual time: what the guest's clocks show, and how long it sleeps.
//!
//! All clocks show the same time, which begins with the interleaving. Only sleeps and limits of waits let it pass:
//!
//! * Of the threads that sleep the one that wakes first may be chosen at any time, whatever others do meanwhile: they
//!   may be slow. Time is then its deadline.
//! * So may the wait whose limit passes first, unless a sleeper wakes before: the thread that would notify may be slow, too. This is
//!   offered the later the longer the limit is, and then ever more seldom (patience.rs of `clr-explore`). Once the limits of a
//!   thread have passed twice, each of the others that can run has a turn before the next one, so that searches end.
//!
//! Where no thread can go on, time jumps to the first limit. These rules are `Kernel::runnable` and `Kernel::jump` of
//! `clr-explore`.

use super::{guest_thread, refuse};
use clr_explore::{CurrentThread, Interruption};
use libc::{c_int, c_uint, clockid_t, timespec, timeval};
use std::ptr::null_mut;

/// Time at which each interleaving begins: 2026-01-01 (µs since 1970).
const BEGIN: u64 = 1_767_225_600_000_000;

/// Returns a time in µs since 1970. A negative one is 0.
///
/// # Safety
/// The time can be read.
pub(super) unsafe fn read(time: *const timespec) -> u64 {
    // SAFETY: the caller's promise.
    let timespec { tv_sec, tv_nsec } = unsafe { time.read() };
    let seconds = u64::try_from(tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(tv_nsec).unwrap_or_default();
    // A part of a microsecond counts as one.
    seconds.saturating_mul(1_000_000).saturating_add(nanoseconds.div_ceil(1_000))
}

/// Returns the time (µs) from now to a time since 1970 (µs), or 0.
pub(super) fn micros_until(me: &CurrentThread<'_, '_>, time: u64) -> u64 {
    time.saturating_sub(BEGIN + me.now())
}

fn now() -> Option<u64> {
    guest_thread::current()?.ask(|me| BEGIN + me.now())
}

/// Sleeps, until a handler interrupts it. Returns the rest (µs); `None` if this is no thread of the guest.
pub(super) fn sleeps(micros: u64) -> Option<u64> {
    let sleep = move |me: &CurrentThread<'_, '_>| {
        me.interruptible(Interruption::Always, || me.sleep_unless_interrupted(micros))
    };
    guest_thread::current()?.ask(sleep)
}

/// Returns 0, or, if a handler has interrupted the sleep, `EINTR`, having stored the rest (µs).
///
/// # Safety
/// `rest` is NULL, or there is room for a time.
unsafe fn slept(left: u64, rest: *mut timespec) -> c_int {
    if left == 0 {
        return 0;
    }
    if !rest.is_null() {
        let (seconds, micros) = (left / 1_000_000, left % 1_000_000);
        let time =
            timespec { tv_sec: seconds.cast_signed(), tv_nsec: (micros * 1_000).cast_signed() };
        // SAFETY: the caller's promise.
        unsafe { rest.write(time) };
    }
    libc::EINTR
}

pub(super) unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    match now() {
        Some(now) => {
            let tv_sec = (now / 1_000_000).cast_signed();
            // SAFETY: the guest's room for a time.
            unsafe {
                time.write(timespec { tv_sec, tv_nsec: (now % 1_000_000 * 1_000).cast_signed() });
            };
            0
        }
        // SAFETY: the guest's arguments.
        None => unsafe { libc::clock_gettime(clock, time) },
    }
}

pub(super) unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut libc::c_void) -> c_int {
    match now() {
        Some(now) => {
            let tv_sec = (now / 1_000_000).cast_signed();
            // SAFETY: the guest's room for a time.
            unsafe { time.write(timeval { tv_sec, tv_usec: (now % 1_000_000).cast_signed() }) };
            0
        }
        // SAFETY: the guest's arguments.
        None => unsafe { libc::gettimeofday(time, zone.cast()) },
    }
}

pub(super) unsafe extern "C" fn seconds(time: *mut i64) -> i64 {
    let Some(now) = now() else {
        // SAFETY: the guest's argument.
        return unsafe { libc::time(time) };
    };
    let seconds = (now / 1_000_000).cast_signed();
    if !time.is_null() {
        // SAFETY: the guest's room for a time.
        unsafe { time.write(seconds) };
    }
    seconds
}

pub(super) unsafe extern "C" fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe {
        let Some(left) = sleeps(read(time)) else { return libc::nanosleep(time, rest) };
        match slept(left, rest) {
            0 => 0,
            error => refuse(error),
        }
    }
}

pub(super) unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    rest: *mut timespec,
) -> c_int {
    // SAFETY: the guest's time.
    let wanted = unsafe { read(time) };
    let absolute = flags & libc::TIMER_ABSTIME != 0;
    let begin = if absolute { now().unwrap_or_default() } else { 0 };
    let micros = wanted.saturating_sub(begin);
    // SAFETY: the guest's arguments; a time to sleep until has no rest.
    unsafe {
        match sleeps(micros) {
            Some(left) => slept(left, if absolute { null_mut() } else { rest }),
            None => libc::clock_nanosleep(clock, flags, time, rest),
        }
    }
}

pub(super) unsafe extern "C" fn usleep(micros: c_uint) -> c_int {
    match sleeps(micros.into()) {
        Some(0) => 0,
        Some(_) => refuse(libc::EINTR),
        // SAFETY: no pointers.
        None => unsafe { libc::usleep(micros) },
    }
}

pub(super) unsafe extern "C" fn sleep(seconds: c_uint) -> c_uint {
    match sleeps(u64::from(seconds) * 1_000_000) {
        // A part of a second counts as one.
        Some(left) => left.div_ceil(1_000_000) as c_uint,
        // SAFETY: no pointers.
        None => unsafe { libc::sleep(seconds) },
    }
}

pub(super) unsafe extern "C" fn sched_yield() -> c_int {
    match guest_thread::current() {
        Some(carrier) => carrier
            .ask(|me| {
                me.point();
            })
            .map_or(0, |()| 0),
        // SAFETY: no pointers.
        None => unsafe { libc::sched_yield() },
    }
}

/// Makes a call of the system by its number, if it is one of these.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 4]) -> Option<isize> {
    let [first, second, third, fourth] = arguments;
    let (clock, flags) = ((first as u32).cast_signed(), (second as u32).cast_signed());
    // SAFETY: the caller's promise.
    let result = unsafe {
        match number {
            libc::SYS_clock_gettime => clock_gettime(clock, second as *mut timespec),
            libc::SYS_gettimeofday => {
                gettimeofday(first as *mut timeval, second as *mut libc::c_void)
            }
            libc::SYS_time => return Some(seconds(first as *mut i64) as isize),
            libc::SYS_nanosleep => nanosleep(first as *const timespec, second as *mut timespec),
            libc::SYS_clock_nanosleep => {
                clock_nanosleep(clock, flags, third as *const timespec, fourth as *mut timespec)
            }
            libc::SYS_sched_yield => sched_yield(),
            _ => return None,
        }
    };
    Some(result as isize)
}
