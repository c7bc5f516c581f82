//! Barriers and spin locks of POSIX threads.

use super::guest_thread;
use super::objects::{self, done, tried};
use super::sync::{of_objects, scheduled};
use clr_explore::{CurrentThread, LockKind, ProfilerLock};
use libc::{c_int, pthread_barrier_t};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Place of the number of threads in glibc's `pthread_barrier_t`, in words of 4 bytes: behind the threads
/// that came in, and the round (sysdeps/nptl/internaltypes.h, since 2.25).
const COUNT: usize = 2;

thread_local! {
    /// Rounds of barriers that are over, and threads that wait in the current one, on the scheduler's thread.
    static BARRIERS: RefCell<BTreeMap<usize, (u64, u32)>> = RefCell::default();
}

/// Adds a thread to those that wait in a barrier of `count` threads. Returns the round, and true if the thread
/// is its last.
fn arrive(at: usize, count: u32) -> (u64, bool) {
    BARRIERS.with_borrow_mut(|barriers| {
        let (round, waiting) = barriers.entry(at).or_default();
        let mine = *round;
        *waiting += 1;
        let is_last = *waiting >= count;
        if is_last {
            (*round, *waiting) = (mine + 1, 0);
        }
        (mine, is_last)
    })
}

/// Returns the number of rounds of a barrier that are over.
fn round(at: usize) -> u64 {
    BARRIERS.with_borrow(|barriers| barriers.get(&at).map_or(0, |(round, _)| *round))
}

/// Waits until `count` threads wait. Returns true in one of them.
fn wait(me: &CurrentThread<'_, '_>, at: usize, count: u32) -> bool {
    let lock = objects::lock(me, at, LockKind::Plain, "barrier");
    let passed = objects::condition(me, at);
    me.acquire(lock);
    let (mine, is_last) = arrive(at, count);
    if is_last {
        me.notify_all(passed);
    }
    while round(at) == mine && !me.is_over() {
        me.wait_on(passed, lock, None);
    }
    me.unlock(lock);
    is_last
}

pub(super) unsafe extern "C" fn barrier_wait(barrier: *mut pthread_barrier_t) -> c_int {
    // SAFETY: the guest's barrier, which is initialised.
    let count = unsafe { barrier.cast::<u32>().add(COUNT).read() };
    let at = barrier as usize;
    scheduled!(libc::pthread_barrier_wait(barrier), |me| {
        if wait(me, at, count) { libc::PTHREAD_BARRIER_SERIAL_THREAD } else { 0 }
    })
}

fn spin_lock_of(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Plain, "spin lock")
}

of_objects! {
    // The C library's own has no threads: nothing waits in it.
    barrier_destroy: pthread_barrier_destroy(pthread_barrier_t), |me, at| {
        BARRIERS.with_borrow_mut(|barriers| barriers.remove(&at));
        done(objects::forget(me, at))
    };
    spin_lock: pthread_spin_lock(pthread_spinlock_t), |me, at|
        done(me.acquire(spin_lock_of(me, at)));
    spin_try: pthread_spin_trylock(pthread_spinlock_t), |me, at|
        tried(me.try_acquire(spin_lock_of(me, at), 0));
    spin_unlock: pthread_spin_unlock(pthread_spinlock_t), |me, at|
        done(me.unlock(spin_lock_of(me, at)));
    spin_destroy: pthread_spin_destroy(pthread_spinlock_t), |me, at| done(objects::forget(me, at));
}
