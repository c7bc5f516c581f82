//! The guest's locks and condition variables, by address, as the scheduler has them.
//!
//! An object is known from its first use on: those with static initialisers are never announced.

use clr_explore::{ConditionVariable, CurrentThread, LockKind, ProfilerLock, ThreadIndex};
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
    /// Rounds of barriers that are over, and threads that wait in the current one.
    barriers: BTreeMap<usize, (u64, u32)>,
    /// Numbers of threads that wait for futexes and that nothing has woken.
    sleepers: BTreeMap<usize, u32>,
    /// Number of random words so far.
    drawn: u64,
    /// Threads, by what `pthread_create` has returned.
    threads: BTreeMap<u64, ThreadIndex>,
    /// Results of threads.
    results: BTreeMap<u64, usize>,
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
        objects.barriers.remove(&at);
    });
}

/// Adds a thread to those that wait in a barrier of `count` threads. Returns the round, and true if the thread
/// is its last.
pub(super) fn arrive(at: usize, count: u32) -> (u64, bool) {
    with(|objects| {
        let (round, waiting) = objects.barriers.entry(at).or_default();
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
pub(super) fn round(at: usize) -> u64 {
    with(|objects| objects.barriers.get(&at).map_or(0, |(round, _)| *round))
}

/// Adds a thread to those that wait for a futex.
pub(super) fn add_sleeper(at: usize) {
    with(|objects| *objects.sleepers.entry(at).or_default() += 1);
}

/// Removes at most this number of threads from those that wait for a futex. Returns their number.
pub(super) fn wake_sleepers(at: usize, most: u32) -> u32 {
    with(|objects| {
        let Some(sleepers) = objects.sleepers.get_mut(&at) else { return 0 };
        let woken = most.min(*sleepers);
        *sleepers -= woken;
        woken
    })
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
    with(|objects| format!("thread {} of the profiler", objects.threads.len() + 1))
}

/// Notes a thread that was started.
pub(super) fn add_thread(id: u64, thread: ThreadIndex) {
    with(|objects| objects.threads.insert(id, thread));
}

/// Returns the thread with this id.
pub(super) fn thread(id: u64) -> Option<ThreadIndex> {
    with(|objects| objects.threads.get(&id).copied())
}

/// Notes the result of a thread.
pub(super) fn set_result(id: u64, result: usize) {
    with(|objects| objects.results.insert(id, result));
}

/// Returns the result of a thread.
pub(super) fn result(id: u64) -> usize {
    with(|objects| objects.results.get(&id).copied().unwrap_or_default())
}
