//! Semaphores of POSIX threads. The count stays in the guest's own `sem_t`, by the calls of the C library that
//! do not wait; the scheduler does the waiting.

use super::{guest_thread, objects, refuse, sanitizer, time};
use clr_explore::{CurrentThread, Interruption, LockKind, ProfilerLock};
use libc::{c_int, clockid_t, sem_t, timespec};

unsafe extern "C" {
    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int;
}

fn lock_of(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Plain, "semaphore")
}

/// Takes one from the count, unless it is 0.
fn takes(at: usize) -> bool {
    // SAFETY: the guest's semaphore.
    unsafe { libc::sem_trywait(at as *mut sem_t) == 0 }
}

/// Takes one from the count, until a time (µs since 1970) if there is one. Returns 0, or an error of the system.
fn take(me: &CurrentThread<'_, '_>, at: usize, until: Option<u64>) -> c_int {
    me.uninterrupted(|| {
        me.interruptible(Interruption::UnlessRestarted, || {
            if wait_to_take(me, at, until) {
                0
            } else if me.is_interrupted() || until.is_none() {
                libc::EINTR
            } else {
                libc::ETIMEDOUT
            }
        })
    })
}

/// Takes one from the count. Returns false if it stayed 0 until the time was over, or a handler came.
fn wait_to_take(me: &CurrentThread<'_, '_>, at: usize, until: Option<u64>) -> bool {
    let lock = lock_of(me, at);
    let posted = objects::condition(me, at);
    me.acquire(lock);
    let mut taken = takes(at);
    let mut in_time = true;
    while !taken && in_time && !me.is_over() {
        let limit = until.map(|until| time::micros_until(me, until));
        let woken = me.wait_on(posted, lock, limit);
        in_time = woken || limit.is_none() && !me.is_interrupted();
        taken = !me.is_interrupted() && takes(at);
    }
    me.unlock(lock);
    taken
}

pub(super) unsafe extern "C" fn wait(semaphore: *mut sem_t) -> c_int {
    let Some(carrier) = guest_thread::current() else {
        // SAFETY: the guest's semaphore.
        return unsafe { libc::sem_wait(semaphore) };
    };
    let at = semaphore as usize;
    let error = carrier.ask(move |me| take(me, at, None)).unwrap_or(libc::EINTR);
    sanitizer::acquires(at);
    if error == 0 { 0 } else { refuse(error) }
}

pub(super) unsafe extern "C" fn try_wait(semaphore: *mut sem_t) -> c_int {
    let Some(carrier) = guest_thread::current() else {
        // SAFETY: the guest's semaphore.
        return unsafe { libc::sem_trywait(semaphore) };
    };
    let at = semaphore as usize;
    let taken = carrier.ask(move |me| {
        me.uninterrupted(|| {
            let lock = lock_of(me, at);
            me.acquire(lock);
            let taken = takes(at);
            me.unlock(lock);
            taken
        })
    });
    sanitizer::acquires(at);
    if taken == Some(true) { 0 } else { refuse(libc::EAGAIN) }
}

pub(super) unsafe extern "C" fn timed_wait(semaphore: *mut sem_t, until: *const timespec) -> c_int {
    let Some(carrier) = guest_thread::current() else {
        // SAFETY: the guest's arguments.
        return unsafe { libc::sem_timedwait(semaphore, until) };
    };
    // SAFETY: the guest's time.
    let until = unsafe { time::read(until) };
    let at = semaphore as usize;
    let error = carrier.ask(move |me| take(me, at, Some(until))).unwrap_or(libc::EINTR);
    sanitizer::acquires(at);
    if error == 0 { 0 } else { refuse(error) }
}

pub(super) unsafe extern "C" fn clock_wait(
    semaphore: *mut sem_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    if guest_thread::current().is_none() {
        // SAFETY: the guest's arguments.
        return unsafe { sem_clockwait(semaphore, clock, until) };
    }
    // SAFETY: the guest's semaphore and time. All clocks are the same one.
    unsafe { timed_wait(semaphore, until) }
}

pub(super) unsafe extern "C" fn post(semaphore: *mut sem_t) -> c_int {
    let Some(carrier) = guest_thread::current() else {
        // SAFETY: the guest's semaphore.
        return unsafe { libc::sem_post(semaphore) };
    };
    let at = semaphore as usize;
    sanitizer::releases(at);
    let posted = carrier.ask(move |me| {
        me.uninterrupted(|| {
            let lock = lock_of(me, at);
            me.acquire(lock);
            // SAFETY: the guest's semaphore.
            let posted = unsafe { libc::sem_post(at as *mut sem_t) } == 0;
            me.wake(objects::condition(me, at), false);
            me.unlock(lock);
            posted
        })
    });
    if posted == Some(true) { 0 } else { refuse(libc::EOVERFLOW) }
}

pub(super) unsafe extern "C" fn destroy(semaphore: *mut sem_t) -> c_int {
    if let Some(carrier) = guest_thread::current() {
        let at = semaphore as usize;
        carrier.ask(move |me| objects::forget(me, at));
    }
    // SAFETY: the guest's semaphore.
    unsafe { libc::sem_destroy(semaphore) }
}
