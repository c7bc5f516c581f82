//! Timers with descriptors (`timerfd`), which expire by the simulation's time.
//!
//! One that has expired is set to the shortest time, so that it is ready for the system, too.

use super::{descriptors, guest_thread, refuse, time};
use clr_explore::CurrentThread;
use libc::{c_int, itimerspec, timespec};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A timer that was set.
#[derive(Clone, Copy)]
struct Timer {
    /// Time at which it expires next, and the time between two times (µs); 0 if it expires once.
    due: Option<u64>,
    interval: u64,
    /// Number of times that it has expired and nobody has read.
    expired: u64,
}

/// The guest's timers, by descriptor: one at a time looks at them.
static TIMERS: Mutex<BTreeMap<c_int, Timer>> = Mutex::new(BTreeMap::new());

/// Milliseconds after which a timer of the system has expired.
const AT_ONCE: c_int = 1_000;

fn timers() -> MutexGuard<'static, BTreeMap<c_int, Timer>> {
    TIMERS.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn spec(of: u64) -> timespec {
    timespec {
        tv_sec: (of / 1_000_000).cast_signed(),
        tv_nsec: (of % 1_000_000 * 1_000).cast_signed(),
    }
}

/// Sets the system's timer so that it has expired, or does not expire.
fn set_real(descriptor: c_int, expired: bool) -> c_int {
    let value = timespec { tv_sec: 0, tv_nsec: expired.into() };
    let times = itimerspec { it_interval: spec(0), it_value: value };
    let mut one = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: locals.
    unsafe {
        let set = libc::timerfd_settime(descriptor, 0, &raw const times, std::ptr::null_mut());
        if expired && set == 0 {
            libc::poll(&raw mut one, 1, AT_ONCE);
        }
        set
    }
}

/// Lets the timers expire whose time has come.
pub(super) fn expire(me: &CurrentThread<'_, '_>) {
    let mut timers = timers();
    if timers.is_empty() {
        return;
    }
    let now = me.now();
    for (descriptor, timer) in &mut *timers {
        let Some(due) = timer.due.filter(|due| *due <= now) else { continue };
        let more = (now - due).checked_div(timer.interval);
        timer.expired += 1 + more.unwrap_or_default();
        timer.due = more.map(|more| due + (more + 1) * timer.interval);
        set_real(*descriptor, true);
    }
}

/// Returns the time (µs) until the next timer of the descriptors expires.
pub(super) fn next(me: &CurrentThread<'_, '_>, watched: &[c_int]) -> Option<u64> {
    let timers = timers();
    if timers.is_empty() {
        return None;
    }
    let watched = descriptors::with_members(watched);
    let due = timers.iter().filter(|(it, _)| watched.contains(it)).filter_map(|(_, it)| it.due);
    due.min().map(|due| due.saturating_sub(me.now()))
}

/// Forgets the timer of a descriptor that is closed.
pub(super) fn forget(descriptor: c_int) {
    timers().remove(&descriptor);
}

/// Returns the number of times that a timer has expired, which its reader gets.
pub(super) fn take(descriptor: c_int) -> Option<u64> {
    let mut timers = timers();
    let timer = timers.get_mut(&descriptor)?;
    Some(std::mem::take(&mut timer.expired))
}

fn current(me: &CurrentThread<'_, '_>, descriptor: c_int) -> itimerspec {
    let known = timers().get(&descriptor).copied();
    let left = known.and_then(|it| it.due).map(|due| due.saturating_sub(me.now()).max(1));
    let interval = known.map_or(0, |timer| timer.interval);
    itimerspec { it_interval: spec(interval), it_value: spec(left.unwrap_or_default()) }
}

pub(super) unsafe extern "C" fn set(
    descriptor: c_int,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    let carrier = guest_thread::current().filter(|_| !new.is_null());
    let Some(carrier) = carrier else {
        // SAFETY: the guest's arguments.
        return unsafe { libc::timerfd_settime(descriptor, flags, new, old) };
    };
    // SAFETY: the guest's times.
    let (value, interval) = unsafe {
        (time::read(&raw const (*new).it_value), time::read(&raw const (*new).it_interval))
    };
    if set_real(descriptor, false) != 0 {
        return -1;
    }
    let before = carrier.ask(|me| {
        me.point();
        let before = current(me, descriptor);
        let is_absolute = flags & libc::TFD_TIMER_ABSTIME != 0;
        let lasts = if is_absolute { time::micros_until(me, value) } else { value };
        let due = (value > 0).then(|| me.now() + lasts);
        timers().insert(descriptor, Timer { due, interval, expired: 0 });
        before
    });
    descriptors::announce();
    if let (Some(before), false) = (before, old.is_null()) {
        // SAFETY: the guest's room for times.
        unsafe { old.write(before) };
    }
    0
}

pub(super) unsafe extern "C" fn get(descriptor: c_int, times: *mut itimerspec) -> c_int {
    let is_known = timers().contains_key(&descriptor);
    let Some(carrier) = guest_thread::current().filter(|_| is_known) else {
        // SAFETY: the guest's arguments.
        return unsafe { libc::timerfd_gettime(descriptor, times) };
    };
    let Some(found) = carrier.ask(|me| current(me, descriptor)) else { return refuse(libc::EBADF) };
    // SAFETY: the guest's room for times.
    unsafe { times.write(found) };
    0
}
