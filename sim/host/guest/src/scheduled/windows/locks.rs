//! Critical sections, slim read-write locks, condition variables, and initialisations that are executed once.

use super::{Bool, current, last_error, scheduled, set_last_error, succeeds};
use crate::scheduled::{Replacement, objects};
use clr_explore::{CurrentThread, LockKind, ProfilerLock};
use std::ffi::c_void;
use windows_sys::Win32::Foundation::ERROR_TIMEOUT;
use windows_sys::Win32::System::Threading::{
    AcquireSRWLockExclusive, AcquireSRWLockShared, CONDITION_VARIABLE,
    CONDITION_VARIABLE_LOCKMODE_SHARED, CRITICAL_SECTION, DeleteCriticalSection,
    EnterCriticalSection, INFINITE, INIT_ONCE, INIT_ONCE_ASYNC, INIT_ONCE_CHECK_ONLY,
    INIT_ONCE_INIT_FAILED, InitOnceBeginInitialize, InitOnceComplete, InitOnceExecuteOnce,
    LeaveCriticalSection, PINIT_ONCE_FN, ReleaseSRWLockExclusive, ReleaseSRWLockShared, SRWLOCK,
    SleepConditionVariableCS, SleepConditionVariableSRW, TryAcquireSRWLockExclusive,
    TryAcquireSRWLockShared, TryEnterCriticalSection, WakeAllConditionVariable,
    WakeConditionVariable,
};

/// Returns a limit in µs: `None` for no limit.
pub(super) const fn limit_of(milliseconds: u32) -> Option<u64> {
    if milliseconds == INFINITE { None } else { Some(milliseconds as u64 * 1_000) }
}

fn section(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Reentrant, "critical section")
}

fn slim(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Plain, "slim lock")
}

unsafe extern "system" fn delete(section_: *mut CRITICAL_SECTION) {
    let at = section_ as usize;
    if let Some(carrier) = current() {
        carrier.ask(move |me| objects::forget(me, at));
    }
    // SAFETY: the guest's section, of which the system has had no owner.
    unsafe { DeleteCriticalSection(section_) };
}

/// Declares functions of the system with an object as their only argument, and what the scheduler does for each.
macro_rules! of_objects {
    ($($name:ident: $function:ident($object:ident) $(-> $result:ty)?, |$me:ident, $at:ident| $act:expr;)*) => {$(
        unsafe extern "system" fn $name(object: *mut $object) $(-> $result)? {
            let $at = object as usize;
            scheduled!($function(object), |$me| $act)
        }
    )*};
}

of_objects! {
    enter: EnterCriticalSection(CRITICAL_SECTION), |me, at| me.acquire(section(me, at));
    try_enter: TryEnterCriticalSection(CRITICAL_SECTION) -> Bool, |me, at|
        Bool::from(me.try_acquire(section(me, at), 0));
    leave: LeaveCriticalSection(CRITICAL_SECTION), |me, at| me.unlock(section(me, at));
    exclusive: AcquireSRWLockExclusive(SRWLOCK), |me, at| me.acquire(slim(me, at));
    try_exclusive: TryAcquireSRWLockExclusive(SRWLOCK) -> bool, |me, at|
        me.try_acquire(slim(me, at), 0);
    release_exclusive: ReleaseSRWLockExclusive(SRWLOCK), |me, at| me.unlock(slim(me, at));
    shared: AcquireSRWLockShared(SRWLOCK), |me, at| me.share(slim(me, at));
    try_shared: TryAcquireSRWLockShared(SRWLOCK) -> bool, |me, at| me.try_share(slim(me, at), 0);
    release_shared: ReleaseSRWLockShared(SRWLOCK), |me, at| me.unlock(slim(me, at));
    wake: WakeConditionVariable(CONDITION_VARIABLE), |me, at|
        me.notify_one(objects::condition(me, at));
    wake_all: WakeAllConditionVariable(CONDITION_VARIABLE), |me, at|
        me.notify_all(objects::condition(me, at));
}

/// Waits on a condition variable. Returns false if the limit is over.
fn wait(
    me: &CurrentThread<'_, '_>,
    condition: usize,
    lock: ProfilerLock,
    milliseconds: u32,
) -> bool {
    let limit = limit_of(milliseconds);
    me.wait_on(objects::condition(me, condition), lock, limit) || limit.is_none()
}

unsafe extern "system" fn wait_with_section(
    condition: *mut CONDITION_VARIABLE,
    section_: *mut CRITICAL_SECTION,
    milliseconds: u32,
) -> Bool {
    let Some(carrier) = current() else {
        // SAFETY: the guest's arguments.
        return unsafe { SleepConditionVariableCS(condition, section_, milliseconds) };
    };
    let (at, lock) = (condition as usize, section_ as usize);
    let woken = carrier.ask(move |me| wait(me, at, section(me, lock), milliseconds));
    succeeds(woken == Some(true), ERROR_TIMEOUT)
}

unsafe extern "system" fn wait_with_slim(
    condition: *mut CONDITION_VARIABLE,
    lock: *mut SRWLOCK,
    milliseconds: u32,
    flags: u32,
) -> Bool {
    let Some(carrier) = current() else {
        // SAFETY: the guest's arguments.
        return unsafe { SleepConditionVariableSRW(condition, lock, milliseconds, flags) };
    };
    let (at, lock) = (condition as usize, lock as usize);
    let woken = carrier.ask(move |me| {
        if flags & CONDITION_VARIABLE_LOCKMODE_SHARED != 0 {
            me.fail("the profiler has left the simulation: it waits with a lock that it shares");
        }
        wait(me, at, slim(me, lock), milliseconds)
    });
    succeeds(woken == Some(true), ERROR_TIMEOUT)
}

/// Returns true if an initialisation is over: bit 1 of the system's word says it (`RTL_RUN_ONCE_COMPLETE` of wine and ReactOS,
/// assumed of Windows).
///
/// # Safety
/// The variable is one.
unsafe fn is_over(once: *mut INIT_ONCE) -> bool {
    // SAFETY: the caller's promise: the union has a pointer.
    unsafe { (*once).Ptr as usize & 2 != 0 }
}

/// The system keeps the state, of which no thread waits for another one there.
unsafe extern "system" fn once(
    once: *mut INIT_ONCE,
    initialise: PINIT_ONCE_FN,
    argument: *mut c_void,
    context: *mut *mut c_void,
) -> Bool {
    let at = once as usize;
    // SAFETY: the guest's variable.
    let over = unsafe { is_over(once) };
    let first = current()
        .and_then(|carrier| carrier.ask(move |me| objects::begin_initialisation(me, at, over)));
    // SAFETY: the guest's arguments.
    let done = unsafe { InitOnceExecuteOnce(once, initialise, argument, context) };
    if first == Some(true) {
        let error = last_error();
        current().and_then(|carrier| {
            carrier.ask(move |me| objects::end_initialisation(me, at, done != 0))
        });
        set_last_error(error);
    }
    done
}

unsafe extern "system" fn begin_once(
    once: *mut INIT_ONCE,
    flags: u32,
    pending: *mut Bool,
    context: *mut *mut c_void,
) -> Bool {
    let at = once as usize;
    let mut first = None;
    if flags & (INIT_ONCE_CHECK_ONLY | INIT_ONCE_ASYNC) == 0 {
        // SAFETY: the guest's variable.
        let over = unsafe { is_over(once) };
        first = current()
            .and_then(|carrier| carrier.ask(move |me| objects::begin_initialisation(me, at, over)));
    }
    // SAFETY: the guest's arguments.
    let begun = unsafe { InitOnceBeginInitialize(once, flags, pending, context) };
    // SAFETY: the guest's room for an answer.
    if first == Some(true) && (begun == 0 || unsafe { pending.read() } == 0) {
        // An initialiser of the library has done it before the interleaving.
        current()
            .and_then(|carrier| carrier.ask(move |me| objects::end_initialisation(me, at, true)));
    }
    begun
}

unsafe extern "system" fn complete_once(
    once: *mut INIT_ONCE,
    flags: u32,
    context: *mut c_void,
) -> Bool {
    let at = once as usize;
    // SAFETY: the guest's arguments.
    let completed = unsafe { InitOnceComplete(once, flags, context) };
    if flags & INIT_ONCE_ASYNC == 0 {
        let done = flags & INIT_ONCE_INIT_FAILED == 0;
        current()
            .and_then(|carrier| carrier.ask(move |me| objects::end_initialisation(me, at, done)));
    }
    completed
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 17] {
    replacements! {
        "EnterCriticalSection" => enter,
        "TryEnterCriticalSection" => try_enter,
        "LeaveCriticalSection" => leave,
        "DeleteCriticalSection" => delete,
        "AcquireSRWLockExclusive" => exclusive,
        "TryAcquireSRWLockExclusive" => try_exclusive,
        "ReleaseSRWLockExclusive" => release_exclusive,
        "AcquireSRWLockShared" => shared,
        "TryAcquireSRWLockShared" => try_shared,
        "ReleaseSRWLockShared" => release_shared,
        "SleepConditionVariableCS" => wait_with_section,
        "SleepConditionVariableSRW" => wait_with_slim,
        "WakeConditionVariable" => wake,
        "WakeAllConditionVariable" => wake_all,
        "InitOnceExecuteOnce" => once,
        "InitOnceBeginInitialize" => begin_once,
        "InitOnceComplete" => complete_once,
    }
}
