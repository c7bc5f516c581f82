//! Signals that a thread does not take now (masks), or waits for, and stacks for handlers. The real ones stay: the simulation's own
//! signals come anyway.

use super::signals::{self, Sent, with};
use super::{Replacement, descriptors, guest_thread, refuse, time};
use clr_explore::CurrentThread;
use libc::{c_int, c_void, siginfo_t, sigset_t, stack_t, timespec};
use std::cell::Cell;
use std::ptr::null_mut;

/// Returns the first word of a set: the signals up to 64.
///
/// # Safety
/// The set is NULL, or has a word.
unsafe fn word(set: *const c_void) -> Option<u64> {
    // SAFETY: the caller's promise.
    (!set.is_null()).then(|| unsafe { set.cast::<u64>().read_unaligned() })
}

/// Returns true if a set has a signal.
pub(super) const fn has(set: u64, number: c_int) -> bool {
    number > 0 && set >> (number - 1) & 1 != 0
}

/// Changes the mask of this thread. Returns the one before.
fn change(me: &CurrentThread<'_, '_>, how: c_int, set: Option<u64>) -> Result<u64, c_int> {
    let before = with(|signals| signals.mask_of(me.index()));
    let Some(set) = set else { return Ok(before) };
    let now = match how {
        libc::SIG_BLOCK => before | set,
        libc::SIG_UNBLOCK => before & !set,
        libc::SIG_SETMASK => set,
        _ => return Err(libc::EINVAL),
    };
    with(|signals| signals.masks.insert(me.index(), now));
    signals::deliver(me, before & !now);
    Ok(before)
}

/// Changes the mask of this thread, as the C library and the kernel do. Returns an error of the system, or 0; `None` if this is no
/// thread of an interleaving.
///
/// # Safety
/// The sets are NULL, or have a word.
unsafe fn changes(how: c_int, set: *const c_void, old: *mut c_void) -> Option<c_int> {
    let carrier = guest_thread::current()?;
    // SAFETY: the caller's promise.
    let set = unsafe { word(set) };
    Some(match carrier.ask(move |me| change(me, how, set))? {
        Ok(before) => {
            if !old.is_null() {
                // SAFETY: the caller's promise.
                unsafe { old.cast::<u64>().write_unaligned(before) };
            }
            0
        }
        Err(error) => error,
    })
}

unsafe extern "C" fn thread_mask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe {
        changes(how, set.cast(), old.cast()).unwrap_or_else(|| libc::pthread_sigmask(how, set, old))
    }
}

unsafe extern "C" fn process_mask(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the guest's arguments.
    match unsafe { changes(how, set.cast(), old.cast()) } {
        Some(0) => 0,
        Some(error) => refuse(error),
        // SAFETY: as above.
        None => unsafe { libc::sigprocmask(how, set, old) },
    }
}

/// Waits for a signal of a set, until a limit (µs) if there is one.
fn waits(me: &CurrentThread<'_, '_>, set: u64, limit: Option<u64>) -> Option<Sent> {
    me.point();
    let until = limit.map(|limit| me.now().saturating_add(limit));
    let event = me.new_event();
    loop {
        let taken = with(|signals| signals.take(me.index(), |number| has(set, number)));
        if taken.is_some() {
            return taken;
        }
        let left = until.map(|until| until.saturating_sub(me.now()));
        if left == Some(0) || me.is_over() {
            return None;
        }
        with(|signals| signals.waiting.insert(me.index(), (set, event)));
        match left {
            None => me.wait_for(event),
            Some(left) => _ = me.wait_at_most(event, left),
        }
        with(|signals| signals.waiting.remove(&me.index()));
        me.reset(event);
    }
}

/// Waits for a signal, and returns its number, or -1.
///
/// # Safety
/// The arguments are those of `sigtimedwait`.
unsafe fn wait(set: *const sigset_t, info: *mut siginfo_t, limit: Option<u64>) -> Option<c_int> {
    let carrier = guest_thread::current()?;
    // SAFETY: the caller's promise.
    let set = unsafe { word(set.cast()) }.unwrap_or_default();
    let Some(taken) = carrier.ask(move |me| waits(me, set, limit)).flatten() else {
        return Some(refuse(libc::EAGAIN));
    };
    if !info.is_null() {
        // SAFETY: the caller's promise; plain data.
        unsafe { info.write(signals::information(taken)) };
    }
    Some(taken.number)
}

unsafe extern "C" fn sigwait(set: *const sigset_t, number: *mut c_int) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe {
        let Some(found) = wait(set, null_mut(), None) else { return libc::sigwait(set, number) };
        number.write(found);
    }
    0
}

unsafe extern "C" fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe { wait(set, info, None).unwrap_or_else(|| libc::sigwaitinfo(set, info)) }
}

unsafe extern "C" fn sigtimedwait(
    set: *const sigset_t,
    info: *mut siginfo_t,
    limit: *const timespec,
) -> c_int {
    // SAFETY: the guest's arguments.
    unsafe {
        let most = (!limit.is_null()).then(|| time::read(limit));
        wait(set, info, most).unwrap_or_else(|| libc::sigtimedwait(set, info, limit))
    }
}

/// Waits for a signal's handler, with another mask meanwhile if there is one. Returns false if this is no thread of the guest.
fn waits_for_handler(mask: Option<u64>) -> bool {
    let waits = move |me: &CurrentThread<'_, '_>| {
        me.point();
        let before = with(|signals| signals.mask_of(me.index()));
        let during = mask.unwrap_or(before);
        with(|signals| signals.masks.insert(me.index(), during));
        // A handler that comes at once ends the wait before it begins.
        if signals::deliver(me, before & !during) == 0 {
            descriptors::wait_for_handler(me);
        }
        _ = change(me, libc::SIG_SETMASK, Some(before));
    };
    guest_thread::current().and_then(|carrier| carrier.ask(waits)).is_some()
}

unsafe extern "C" fn pause() -> c_int {
    if waits_for_handler(None) {
        return refuse(libc::EINTR);
    }
    // SAFETY: no pointers.
    unsafe { libc::pause() }
}

unsafe extern "C" fn sigsuspend(mask: *const sigset_t) -> c_int {
    // SAFETY: the guest's argument.
    unsafe {
        if waits_for_handler(Some(word(mask.cast()).unwrap_or_default())) {
            return refuse(libc::EINTR);
        }
        libc::sigsuspend(mask)
    }
}

const NO_STACK: stack_t = stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };

thread_local! {
    /// The stack that the guest has given this thread for handlers.
    static STACK: Cell<stack_t> = const { Cell::new(NO_STACK) };
}

/// Notes a stack for handlers. The one of the simulation stays: faults are handled on it.
unsafe extern "C" fn stack(new: *const stack_t, old: *mut stack_t) -> c_int {
    if guest_thread::current().is_none() {
        // SAFETY: the guest's arguments.
        return unsafe { libc::sigaltstack(new, old) };
    }
    let before = STACK.get();
    // SAFETY: NULL, or the guest's stack, and room for one.
    unsafe {
        if let Some(new) = new.as_ref() {
            STACK.set(*new);
        }
        if !old.is_null() {
            old.write(before);
        }
    }
    0
}

/// Makes a call of the system by its number, if it is one of these.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 3]) -> Option<c_int> {
    let [first, second, third] = arguments;
    // SAFETY: the caller's promise.
    unsafe {
        match number {
            libc::SYS_rt_sigprocmask => {
                changes((first as u32).cast_signed(), second as *const c_void, third as *mut c_void)
            }
            libc::SYS_pause if waits_for_handler(None) => Some(libc::EINTR),
            libc::SYS_rt_sigsuspend if waits_for_handler(word(first as *const c_void)) => {
                Some(libc::EINTR)
            }
            libc::SYS_sigaltstack if guest_thread::current().is_some() => {
                Some(stack(first as *const stack_t, second as *mut stack_t))
            }
            _ => None,
        }
    }
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 8] {
    replacements! {
        "pthread_sigmask" => thread_mask,
        "sigprocmask" => process_mask,
        "sigwait" => sigwait,
        "sigwaitinfo" => sigwaitinfo,
        "sigtimedwait" => sigtimedwait,
        "pause" => pause,
        "sigsuspend" => sigsuspend,
        "sigaltstack" => stack,
    }
}
