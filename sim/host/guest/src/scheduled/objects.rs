//! The guest's locks and condition variables, by address, as the scheduler has them.
//!
//! An object is known from its first use on: those with static initialisers are never announced.

use clr_explore::{ConditionVariable, CurrentThread, LockKind, ProfilerLock};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// Objects of one interleaving.
#[derive(Default)]
struct Objects {
    locks: BTreeMap<usize, ProfilerLock>,
    /// Number of locks so far, for their names.
    named: u32,
    conditions: BTreeMap<usize, ConditionVariable>,
    /// Initialisations that are over.
    done: Vec<usize>,
    /// Number of random words so far.
    drawn: u64,
    /// Number of started threads so far, for their names.
    started: u32,
}

thread_local! {
    /// The objects, on the scheduler's thread.
    static OBJECTS: RefCell<Objects> = RefCell::default();
}

fn with<T>(act: impl FnOnce(&mut Objects) -> T) -> T {
    OBJECTS.with(|objects| act(&mut objects.borrow_mut()))
}

/// Returns the lock at an address. It is made if it is new.
pub(super) fn lock(
    me: &CurrentThread<'_, '_>,
    at: usize,
    kind: LockKind,
    what: &str,
) -> ProfilerLock {
    me.looks_up_object();
    if let Some(lock) = with(|objects| objects.locks.get(&at).copied()) {
        return lock;
    }
    let number = with(|objects| {
        objects.named += 1;
        objects.named - 1
    });
    let lock = me.new_lock(&format!("{what} {number}"), kind);
    with(|objects| objects.locks.insert(at, lock));
    lock
}

/// Returns the condition variable at an address. It is made if it is new.
pub(super) fn condition(me: &CurrentThread<'_, '_>, at: usize) -> ConditionVariable {
    me.looks_up_object();
    if let Some(condition) = with(|objects| objects.conditions.get(&at).copied()) {
        return condition;
    }
    let condition = me.new_condition();
    with(|objects| objects.conditions.insert(at, condition));
    condition
}

/// Forgets the objects at an address: another may be made there.
pub(super) fn forget(me: &CurrentThread<'_, '_>, at: usize) {
    me.changes_objects();
    with(|objects| {
        objects.locks.remove(&at);
        objects.conditions.remove(&at);
        objects.done.retain(|done| *done != at);
    });
}

/// Returns the number of the next random word.
pub(super) fn next_random(me: &CurrentThread<'_, '_>) -> u64 {
    me.changes_objects();
    with(|objects| {
        objects.drawn += 1;
        objects.drawn
    })
}

/// Returns true if the initialisation at an address is over.
fn is_done(me: &CurrentThread<'_, '_>, at: usize) -> bool {
    me.looks_up_object();
    with(|objects| objects.done.contains(&at))
}

fn initialisation(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    lock(me, at, LockKind::Plain, "initialisation")
}

/// Waits for the turn of this thread to initialise the object at an address. Returns true if it is to do so. `is_over`: the
/// object itself says that its initialisation is over.
pub(super) fn begin_initialisation(me: &CurrentThread<'_, '_>, at: usize, is_over: bool) -> bool {
    me.looks_up_object();
    if is_over {
        return false;
    }
    // Another object may have been at this address.
    with(|objects| objects.done.retain(|done| *done != at));
    let lock = initialisation(me, at);
    me.acquire(lock);
    let is_late = is_done(me, at);
    if is_late {
        me.unlock(lock);
    }
    !is_late
}

/// Ends the turn of this thread: the initialisation is over, or has failed.
pub(super) fn end_initialisation(me: &CurrentThread<'_, '_>, at: usize, done: bool) {
    if done {
        me.changes_objects();
        with(|objects| objects.done.push(at));
    }
    me.unlock(initialisation(me, at));
}

/// Places of locks of the process among the guest's objects: no object of the guest is there.
#[cfg(windows)]
pub(super) mod place {
    /// All handles.
    pub(crate) const HANDLES: usize = 2;
    /// The loader.
    pub(crate) const LOADER: usize = 3;
    /// The pool of threads.
    pub(crate) const POOL: usize = 4;
}

/// Returns the name of the next thread that is started.
pub(super) fn thread_name() -> String {
    with(|objects| {
        objects.started += 1;
        format!("thread {} of the profiler", objects.started)
    })
}

/// The result of a function of POSIX threads that cannot fail.
pub(super) const fn done((): ()) -> c_int {
    0
}

/// The result of an attempt to take a lock of POSIX threads.
pub(super) const fn tried(taken: bool) -> c_int {
    /// `EBUSY` of glibc's and of mingw's errno.h.
    const BUSY: c_int = 16;
    if taken { 0 } else { BUSY }
}
