//! Waits for some of several descriptors. Masks of signals are not looked at.

use super::descriptors::{Waited, is_ready, point, wait_for, wait_for_handler};
use super::{Replacement, guest_thread, refuse, refused, time};
use clr_explore::Interruption;
use libc::{c_int, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use std::ptr::null_mut;

/// Returns a time in µs; `None` is no limit.
///
/// # Safety
/// The time is NULL, or can be read.
unsafe fn limit_of(time: *const timespec) -> Option<u64> {
    // SAFETY: the caller's promise.
    (!time.is_null()).then(|| unsafe { time::read(time) })
}

/// Returns a limit in milliseconds in µs. A negative one is none.
fn millis(limit: c_int) -> Option<u64> {
    u64::try_from(limit).ok().map(|millis| millis * 1_000)
}

/// A handler has interrupted the wait.
struct Interrupted;

/// Waits for descriptors, or for a time alone, or a handler.
fn waits(
    call: &'static str,
    watched: &[c_int],
    limit: Option<u64>,
    is_ready: impl Fn() -> bool,
) -> Result<(), Interrupted> {
    let interrupted = match limit {
        // A loop that looks again and again lets others run.
        Some(0) => {
            point();
            false
        }
        Some(limit) if watched.is_empty() => time::sleeps(limit).is_some_and(|left| left > 0),
        None if watched.is_empty() => {
            point();
            guest_thread::current().map(|carrier| carrier.ask(wait_for_handler));
            true
        }
        _ => {
            let ends = (limit, Interruption::Always);
            wait_for(call, watched, ends, is_ready) == Waited::Interrupted
        }
    };
    if interrupted { Err(Interrupted) } else { Ok(()) }
}

/// Waits as `poll` does.
///
/// # Safety
/// The arguments are those of `poll`.
unsafe fn waits_to_poll(
    call: &'static str,
    polled: *mut pollfd,
    count: nfds_t,
    limit: Option<u64>,
) -> Result<(), Interrupted> {
    if guest_thread::current().is_none() || (polled.is_null() && count > 0) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let watched: Vec<_> = (0..count as usize).map(|at| unsafe { (*polled.add(at)).fd }).collect();
    let watched: Vec<_> = watched.into_iter().filter(|it| *it >= 0).collect();
    // SAFETY: the caller's promise: the call returns at once.
    waits(call, &watched, limit, || unsafe { libc::poll(polled, count, 0) != 0 })
}

unsafe extern "C" fn poll(polled: *mut pollfd, count: nfds_t, limit: c_int) -> c_int {
    let is_in = guest_thread::current().is_some();
    // SAFETY: the guest's arguments.
    unsafe {
        if waits_to_poll("poll", polled, count, millis(limit)).is_err() {
            return refuse(libc::EINTR);
        }
        libc::poll(polled, count, if is_in { 0 } else { limit })
    }
}

unsafe extern "C" fn poll_checked(
    polled: *mut pollfd,
    count: nfds_t,
    limit: c_int,
    _: usize,
) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe { poll(polled, count, limit) }
}

unsafe extern "C" fn ppoll(
    polled: *mut pollfd,
    count: nfds_t,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe {
        if guest_thread::current().is_none() {
            return libc::ppoll(polled, count, limit, mask);
        }
        if waits_to_poll("ppoll", polled, count, limit_of(limit)).is_err() {
            return refuse(libc::EINTR);
        }
        libc::poll(polled, count, 0)
    }
}

/// The sets of a call of `select`.
type Sets = [*mut fd_set; 3];

/// Waits as `select` does.
///
/// # Safety
/// The arguments are those of `select`.
unsafe fn waits_to_select(
    call: &'static str,
    count: c_int,
    sets: Sets,
    limit: Option<u64>,
) -> Result<(), Interrupted> {
    if usize::try_from(count).is_ok_and(|count| count > libc::FD_SETSIZE) {
        refused::refuse(call);
        return Ok(());
    }
    // SAFETY: the caller's promise: each is NULL or a set.
    let copies = sets.map(|set| unsafe { set.as_ref() }.copied());
    // SAFETY: a set, and numbers below its size.
    let has = |set: &fd_set, number| unsafe { libc::FD_ISSET(number, set) };
    let is_in = |number: &c_int| copies.iter().flatten().any(|set| has(set, *number));
    let watched: Vec<_> = (0..count).filter(is_in).collect();
    waits(call, &watched, limit, || {
        let mut copies = copies;
        let mut now = timeval { tv_sec: 0, tv_usec: 0 };
        let [read, write, failed] =
            copies.each_mut().map(|set| set.as_mut().map_or(null_mut(), |set| &raw mut *set));
        // SAFETY: copies of the sets.
        unsafe { libc::select(count, read, write, failed, &raw mut now) != 0 }
    })
}

unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    failed: *mut fd_set,
    limit: *mut timeval,
) -> c_int {
    // SAFETY: NULL, or the guest's time.
    let given = unsafe { limit.as_ref() }.copied();
    // SAFETY: the guest's arguments, and locals.
    unsafe {
        if guest_thread::current().is_none() {
            return libc::select(count, read, write, failed, limit);
        }
        let given = given.map(|it| timespec { tv_sec: it.tv_sec, tv_nsec: it.tv_usec * 1_000 });
        let given = given.map(|given| time::read(&raw const given));
        if waits_to_select("select", count, [read, write, failed], given).is_err() {
            return refuse(libc::EINTR);
        }
        libc::select(count, read, write, failed, &mut timeval { tv_sec: 0, tv_usec: 0 })
    }
}

unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    failed: *mut fd_set,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the guest's arguments, and a local.
    unsafe {
        if guest_thread::current().is_none() {
            return libc::pselect(count, read, write, failed, limit, mask);
        }
        let limit = limit_of(limit);
        if waits_to_select("pselect", count, [read, write, failed], limit).is_err() {
            return refuse(libc::EINTR);
        }
        libc::select(count, read, write, failed, &mut timeval { tv_sec: 0, tv_usec: 0 })
    }
}

/// Waits until a set of `epoll` has something. To ask the set itself would take it.
fn waits_for_events(call: &'static str, set: c_int, limit: Option<u64>) -> Result<(), Interrupted> {
    waits(call, &[set], limit, || is_ready(set, libc::POLLIN))
}

unsafe extern "C" fn epoll_wait(
    set: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    limit: c_int,
) -> c_int {
    let is_in = guest_thread::current().is_some();
    if is_in && waits_for_events("epoll_wait", set, millis(limit)).is_err() {
        return refuse(libc::EINTR);
    }
    // SAFETY: the guest's arguments.
    unsafe { libc::epoll_wait(set, events, most, if is_in { 0 } else { limit }) }
}

unsafe extern "C" fn epoll_pwait(
    set: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    limit: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe {
        if guest_thread::current().is_none() {
            return libc::epoll_pwait(set, events, most, limit, mask);
        }
        epoll_wait(set, events, most, limit)
    }
}

unsafe extern "C" fn epoll_pwait2(
    set: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    limit: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the guest's arguments; 8 is the size of the kernel's masks.
    unsafe {
        if guest_thread::current().is_none() {
            let number = libc::SYS_epoll_pwait2;
            return libc::syscall(number, set, events, most, limit, mask, 8) as c_int;
        }
        if waits_for_events("epoll_pwait2", set, limit_of(limit)).is_err() {
            return refuse(libc::EINTR);
        }
        libc::epoll_wait(set, events, most, 0)
    }
}

/// Returns the number that is in a register.
pub(super) const fn int(argument: usize) -> c_int {
    (argument as u32).cast_signed()
}

/// Makes a call of the system by its number, if it is one of these.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 5]) -> Option<isize> {
    let [first, second, third, fourth, fifth] = arguments;
    let times = third as *const timespec;
    // SAFETY: the caller's promise.
    let result = unsafe {
        match number {
            libc::SYS_poll => poll(first as *mut pollfd, second as nfds_t, int(third)),
            libc::SYS_ppoll => ppoll(first as *mut pollfd, second as nfds_t, times, fourth as _),
            libc::SYS_select => {
                select(int(first), second as _, third as _, fourth as _, fifth as *mut timeval)
            }
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
                epoll_wait(int(first), second as _, int(third), int(fourth))
            }
            _ => return None,
        }
    };
    Some(result as isize)
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 9] {
    replacements! {
        "poll" => poll,
        "__poll_chk" => poll_checked,
        "ppoll" => ppoll,
        "__ppoll_chk" => ppoll,
        "select" => select,
        "pselect" => pselect,
        "epoll_wait" => epoll_wait,
        "epoll_pwait" => epoll_pwait,
        "epoll_pwait2" => epoll_pwait2,
    }
}
