//! Locks and condition variables of POSIX threads, as the guest's imports lead to them.
//!
//! A thread that the scheduler does not know, such as one of the host, calls the C library.

use super::objects::{self, done, tried};
use super::{guest_thread, time};
use clr_explore::{CurrentThread, EventObject, LockKind, ProfilerLock};
use libc::{c_int, clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, timespec};
use std::cell::RefCell;
use std::collections::BTreeMap;

unsafe extern "C" {
    fn pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    fn pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
}

/// Offset of the kind in glibc's `pthread_mutex_t`, in words of 4 bytes, and the bits of the type in it,
/// in which `PTHREAD_MUTEX_RECURSIVE` is 1 and `PTHREAD_MUTEX_ERRORCHECK` is 2
/// (sysdeps/x86/nptl/bits/struct_mutex.h).
const KIND: usize = 4;
const TYPE: i32 = 3;

/// Asks the scheduler, or calls the C library. The arguments are objects that order threads.
macro_rules! scheduled {
    ($($function:ident)::+ ($($object:expr),+), |$me:ident| $body:expr) => {
        match guest_thread::current() {
            Some(carrier) => {
                $($crate::scheduled::sanitizer::releases($object as usize);)+
                let answer = carrier.ask(move |$me| $body).unwrap_or(libc::EINVAL);
                $($crate::scheduled::sanitizer::acquires($object as usize);)+
                answer
            }
            // SAFETY: the guest's own arguments.
            None => unsafe { $($function)::+ ($($object),+) },
        }
    };
}
pub(super) use scheduled;

/// Declares functions of the C library with an object as their only argument, and what the scheduler does for each.
macro_rules! of_objects {
    ($($name:ident: $function:ident($object:ident), |$me:ident, $at:ident| $act:expr;)*) => {$(
        #[allow(clippy::unit_arg, reason = "calls that cannot fail return nothing")]
        pub(super) unsafe extern "C" fn $name(object: *mut libc::$object) -> c_int {
            let $at = object as usize;
            scheduled!(libc::$function(object), |$me| $act)
        }
    )*};
}
pub(super) use of_objects;

/// The type of a mutex.
unsafe fn type_of(mutex: *mut pthread_mutex_t) -> i32 {
    // SAFETY: the guest's mutex, which is initialised.
    unsafe { mutex.cast::<i32>().add(KIND).read() & TYPE }
}

fn mutex_lock(me: &CurrentThread<'_, '_>, at: usize, kind: i32) -> ProfilerLock {
    let of =
        if kind == libc::PTHREAD_MUTEX_RECURSIVE { LockKind::Reentrant } else { LockKind::Plain };
    objects::lock(me, at, of, "mutex")
}

/// Takes a mutex, within a limit (µs) if there is one.
fn take(me: &CurrentThread<'_, '_>, at: usize, kind: i32, limit: Option<u64>) -> c_int {
    me.calls_for_lock();
    let lock = mutex_lock(me, at, kind);
    if kind == libc::PTHREAD_MUTEX_ERRORCHECK && me.owns(lock) {
        return libc::EDEADLK;
    }
    match limit {
        None => me.acquire(lock),
        Some(micros) if me.try_acquire(lock, micros) => {}
        Some(0) => return libc::EBUSY,
        Some(_) => return libc::ETIMEDOUT,
    }
    0
}

pub(super) unsafe extern "C" fn mutex_acquire(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the guest's mutex.
    let kind = unsafe { type_of(mutex) };
    let at = mutex as usize;
    scheduled!(libc::pthread_mutex_lock(mutex), |me| take(me, at, kind, None))
}

pub(super) unsafe extern "C" fn mutex_try(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the guest's mutex.
    let kind = unsafe { type_of(mutex) };
    let at = mutex as usize;
    scheduled!(libc::pthread_mutex_trylock(mutex), |me| take(me, at, kind, Some(0)))
}

pub(super) unsafe extern "C" fn mutex_timed(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the guest's mutex, and its time.
    let (kind, deadline) = unsafe { (type_of(mutex), time::read(until)) };
    let at = mutex as usize;
    scheduled!(libc::pthread_mutex_timedlock(mutex, until), |me| {
        // A limit of 0 is another call's.
        take(me, at, kind, Some(time::micros_until(me, deadline).max(1)))
    })
}

pub(super) unsafe extern "C" fn mutex_release(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the guest's mutex.
    let kind = unsafe { type_of(mutex) };
    let at = mutex as usize;
    scheduled!(libc::pthread_mutex_unlock(mutex), |me| {
        let lock = mutex_lock(me, at, kind);
        if !me.owns(lock) && kind != libc::PTHREAD_MUTEX_NORMAL {
            return libc::EPERM;
        }
        me.unlock(lock);
        0
    })
}

/// Waits on a condition variable.
fn wait(
    me: &CurrentThread<'_, '_>,
    [condition, mutex]: [usize; 2],
    kind: i32,
    until: Option<u64>,
) -> c_int {
    let lock = mutex_lock(me, mutex, kind);
    let at = condition;
    let condition = objects::condition(me, condition);
    let limit = until.map(|until| time::micros_until(me, until));
    WAITERS.with_borrow_mut(|all| all.entry(at).or_default().count += 1);
    let is_woken = me.wait_on(condition, lock, limit);
    if let Some(gone) = WAITERS.with_borrow_mut(|all| leave(all, at)) {
        me.set(gone);
    }
    if is_woken || limit.is_none() { 0 } else { libc::ETIMEDOUT }
}

/// Threads that wait on a condition variable, and the event for one that destroys it.
#[derive(Default)]
struct Waiters {
    count: u32,
    gone: Option<EventObject>,
}

thread_local! {
    /// The waiters by address, on the scheduler's thread.
    static WAITERS: RefCell<BTreeMap<usize, Waiters>> = RefCell::default();
}

/// Notes that a thread waits no longer. Returns the event of one that waits for the last to leave.
fn leave(all: &mut BTreeMap<usize, Waiters>, at: usize) -> Option<EventObject> {
    let waiters = all.get_mut(&at)?;
    waiters.count -= 1;
    if waiters.count > 0 { None } else { all.remove(&at)?.gone }
}

/// Destroys a condition variable: glibc waits until nobody waits on it (`__pthread_cond_destroy` of glibc 2.36,
/// nptl/pthread_cond_destroy.c).
fn destroy_condition(me: &CurrentThread<'_, '_>, at: usize) {
    me.looks_up_object();
    if WAITERS.with_borrow(|all| all.contains_key(&at)) {
        let gone = me.new_event();
        WAITERS.with_borrow_mut(|all| all.entry(at).or_default().gone = Some(gone));
        me.wait_for(gone);
    }
    objects::forget(me, at);
}

pub(super) unsafe extern "C" fn condition_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: the guest's mutex.
    let kind = unsafe { type_of(mutex) };
    let at = [condition as usize, mutex as usize];
    scheduled!(libc::pthread_cond_wait(condition, mutex), |me| wait(me, at, kind, None))
}

pub(super) unsafe extern "C" fn condition_timed(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the guest's mutex and time.
    let (kind, deadline) = unsafe { (type_of(mutex), time::read(until)) };
    let at = [condition as usize, mutex as usize];
    scheduled!(libc::pthread_cond_timedwait(condition, mutex, until), |me| {
        wait(me, at, kind, Some(deadline))
    })
}

fn shared_lock(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Plain, "read-write lock")
}

pub(super) unsafe extern "C" fn read_lock_timed(
    lock: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    let at = lock as usize;
    // SAFETY: the guest's time.
    let deadline = unsafe { time::read(until) };
    scheduled!(pthread_rwlock_timedrdlock(lock, until), |me| {
        // A limit of 0 is another call's.
        let limit = time::micros_until(me, deadline).max(1);
        if me.try_share(shared_lock(me, at), limit) { 0 } else { libc::ETIMEDOUT }
    })
}

pub(super) unsafe extern "C" fn write_lock_timed(
    lock: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    let at = lock as usize;
    // SAFETY: the guest's time.
    let deadline = unsafe { time::read(until) };
    scheduled!(pthread_rwlock_timedwrlock(lock, until), |me| {
        let lock = shared_lock(me, at);
        if me.owns(lock) {
            return libc::EDEADLK;
        }
        let limit = time::micros_until(me, deadline).max(1);
        if me.try_acquire(lock, limit) { 0 } else { libc::ETIMEDOUT }
    })
}

of_objects! {
    mutex_destroy: pthread_mutex_destroy(pthread_mutex_t), |me, at| done(objects::forget(me, at));
    condition_signal: pthread_cond_signal(pthread_cond_t), |me, at|
        done(me.notify_one(objects::condition(me, at)));
    condition_broadcast: pthread_cond_broadcast(pthread_cond_t), |me, at|
        done(me.notify_all(objects::condition(me, at)));
    condition_destroy: pthread_cond_destroy(pthread_cond_t), |me, at| done(destroy_condition(me, at));
    read_lock: pthread_rwlock_rdlock(pthread_rwlock_t), |me, at|
        done(me.share(shared_lock(me, at)));
    try_read_lock: pthread_rwlock_tryrdlock(pthread_rwlock_t), |me, at|
        tried(me.try_share(shared_lock(me, at), 0));
    write_lock: pthread_rwlock_wrlock(pthread_rwlock_t), |me, at| {
        let lock = shared_lock(me, at);
        if me.owns(lock) {
            return libc::EDEADLK;
        }
        me.acquire(lock);
        0
    };
    try_write_lock: pthread_rwlock_trywrlock(pthread_rwlock_t), |me, at|
        tried(me.try_acquire(shared_lock(me, at), 0));
    release_shared: pthread_rwlock_unlock(pthread_rwlock_t), |me, at|
        done(me.unlock(shared_lock(me, at)));
    destroy_shared: pthread_rwlock_destroy(pthread_rwlock_t), |me, at|
        done(objects::forget(me, at));
}

/// Declares functions that wait by a clock: all clocks are the same one.
macro_rules! by_clocks {
    ($($name:ident: $timed:ident($($object:ident: $type:ident),+);)*) => {$(
        pub(super) unsafe extern "C" fn $name(
            $($object: *mut $type,)+
            _: clockid_t,
            until: *const timespec,
        ) -> c_int {
            // SAFETY: the guest's objects and time.
            unsafe { $timed($($object,)+ until) }
        }
    )*};
}

by_clocks! {
    mutex_clock: mutex_timed(mutex: pthread_mutex_t);
    condition_clock: condition_timed(condition: pthread_cond_t, mutex: pthread_mutex_t);
    read_lock_clock: read_lock_timed(lock: pthread_rwlock_t);
    write_lock_clock: write_lock_timed(lock: pthread_rwlock_t);
}
