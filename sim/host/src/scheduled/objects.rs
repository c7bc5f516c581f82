//! The guest's locks and condition variables, by address, as the scheduler has them.
//!
//! An object is known from its first use on: those with static initialisers are never announced.

use clr_explore::{ConditionVariable, CurrentThread, LockKind, ProfilerLock};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Objects of one history.
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
    if let Some(condition) = with(|objects| objects.conditions.get(&at).copied()) {
        return condition;
    }
    let condition = me.new_condition();
    with(|objects| objects.conditions.insert(at, condition));
    condition
}

/// Forgets the objects at an address: another may be made there.
pub(super) fn forget(at: usize) {
    with(|objects| {
        objects.locks.remove(&at);
        objects.conditions.remove(&at);
        objects.done.retain(|done| *done != at);
    });
}

/// Returns the number of the next random word.
pub(super) fn next_random() -> u64 {
    with(|objects| {
        objects.drawn += 1;
        objects.drawn
    })
}

/// Returns true if the initialisation at an address is over.
pub(super) fn is_done(at: usize) -> bool {
    with(|objects| objects.done.contains(&at))
}

/// Notes that the initialisation at an address is over.
pub(super) fn set_done(at: usize) {
    with(|objects| objects.done.push(at));
}

/// Returns the name of the next thread that is started.
pub(super) fn thread_name() -> String {
    with(|objects| {
        objects.started += 1;
        format!("thread {} of the profiler", objects.started)
    })
}
