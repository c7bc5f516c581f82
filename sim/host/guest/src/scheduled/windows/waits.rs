//! Waits for kernel objects by handle.

use super::handles::{Kind, Object, change, find, mutex_lock, shared, state};
use super::locks::limit_of;
use super::{Bool, current};
use crate::scheduled::{Replacement, guest_thread};
use clr_explore::CurrentThread;
use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{WaitForMultipleObjects, WaitForSingleObject};

impl Object {
    /// Returns true if a wait for the object is over.
    fn is_signalled(&self, me: &CurrentThread<'_, '_>) -> bool {
        match self.kind {
            Kind::Thread(thread) => self.count > 0 || me.has_ended(thread),
            Kind::Timer { .. } => self.due.is_some_and(|due| due <= me.now()),
            _ => self.count > 0,
        }
    }

    /// Does what the end of a wait does.
    const fn take(&mut self, now: u64) {
        match self.kind {
            Kind::Event { manual: false } | Kind::Semaphore(_) => self.count -= 1,
            // Times that nobody waited for are lost.
            Kind::Timer { manual: false } => {
                self.due = match (self.due, self.period) {
                    (None, _) | (_, 0) => None,
                    (Some(due), period) => Some(due + ((now - due) / period + 1) * period),
                }
            }
            _ => {}
        }
    }
}

/// Takes the first of the objects that can be taken, or all of them. Returns its place.
fn take(me: &CurrentThread<'_, '_>, wanted: &[usize], all: bool) -> Option<u32> {
    let is_ready = |at: &usize| state(*at).is_some_and(|it| it.is_signalled(me));
    if all {
        if !wanted.iter().all(is_ready) {
            return None;
        }
        for at in wanted {
            change(*at, |object| object.take(me.now()));
        }
        return Some(0);
    }
    let place = wanted.iter().position(is_ready)?;
    change(*wanted.get(place)?, |object| object.take(me.now()));
    Some(place as u32)
}

/// Waits. Returns what the system's function does; `None` if the scheduler does not know a handle.
pub(super) fn waits(
    me: &CurrentThread<'_, '_>,
    handles: &[usize],
    all: bool,
    milliseconds: u32,
) -> Option<u32> {
    let found: Option<Vec<_>> = handles.iter().map(|handle| find(me, *handle)).collect();
    let found = found?;
    let limit = limit_of(milliseconds);
    if let [(at, object)] = &found[..] {
        match (object.kind, limit) {
            (Kind::Mutex, None) => {
                me.acquire(mutex_lock(me, *at));
                return Some(WAIT_OBJECT_0);
            }
            (Kind::Mutex, Some(limit)) => {
                let taken = me.try_acquire(mutex_lock(me, *at), limit);
                return Some(if taken { WAIT_OBJECT_0 } else { WAIT_TIMEOUT });
            }
            (Kind::Thread(thread), None) => {
                me.join(thread);
                return Some(WAIT_OBJECT_0);
            }
            // It is a sleep, after which others may have done much or little.
            (Kind::Timer { .. }, limit) => {
                let left = object.due.map(|due| due.saturating_sub(me.now()));
                if let Some(shortest) = left.into_iter().chain(limit).min() {
                    me.sleep(shortest);
                }
            }
            _ => {}
        }
    }
    if found.iter().any(|(_, object)| object.kind == Kind::Mutex) {
        me.fail("the profiler has left the simulation: it waits for a mutex and something else");
    }
    let wanted: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
    let (lock, changed) = shared(me);
    me.acquire(lock);
    let until = limit.map(|limit| me.now().saturating_add(limit));
    let mut in_time = limit != Some(0);
    let taken = loop {
        let taken = take(me, &wanted, all);
        if taken.is_some() || !in_time || me.is_over() {
            break taken;
        }
        // A timer ends the wait as well.
        let dues = wanted.iter().filter_map(|at| state(*at)?.due).min();
        let next = until.into_iter().chain(dues).min();
        let woken = me.wait_on(changed, lock, next.map(|next| next.saturating_sub(me.now())));
        in_time = woken || until.is_none_or(|until| me.now() < until);
    };
    me.unlock(lock);
    Some(taken.map_or(WAIT_TIMEOUT, |place| WAIT_OBJECT_0 + place))
}

/// Waits for handles, as the scheduler has them, or calls the system.
fn wait(handles: Vec<usize>, all: bool, milliseconds: u32, real: impl FnOnce() -> u32) -> u32 {
    let Some(carrier) = current() else { return real() };
    let known = carrier.ask(move |me| {
        let ended = waits(me, &handles, all, milliseconds);
        if ended.is_none() && milliseconds != 0 {
            me.fail(
                "the profiler has left the simulation: it waits for a handle of something else",
            );
        }
        ended
    });
    match known {
        Some(Some(ended)) => ended,
        Some(None) => real(),
        None => WAIT_FAILED,
    }
}

unsafe extern "system" fn wait_single(handle: HANDLE, milliseconds: u32) -> u32 {
    wait(vec![handle as usize], false, milliseconds, || {
        // SAFETY: the guest's handle.
        unsafe { WaitForSingleObject(handle, milliseconds) }
    })
}

/// There are no asynchronous procedure calls that could end the wait.
unsafe extern "system" fn wait_single_ex(handle: HANDLE, milliseconds: u32, _: Bool) -> u32 {
    // SAFETY: the guest's handle.
    unsafe { wait_single(handle, milliseconds) }
}

unsafe extern "system" fn wait_multiple(
    count: u32,
    handles: *const HANDLE,
    all: Bool,
    milliseconds: u32,
) -> u32 {
    let list = if guest_thread::current().is_none() || handles.is_null() {
        Vec::new()
    } else {
        // SAFETY: the guest's array.
        let handles = unsafe { std::slice::from_raw_parts(handles, count as usize) };
        handles.iter().map(|handle| *handle as usize).collect()
    };
    wait(list, all != 0, milliseconds, || {
        // SAFETY: the guest's arguments.
        unsafe { WaitForMultipleObjects(count, handles, all, milliseconds) }
    })
}

unsafe extern "system" fn wait_multiple_ex(
    count: u32,
    handles: *const HANDLE,
    all: Bool,
    milliseconds: u32,
    _: Bool,
) -> u32 {
    // SAFETY: the guest's arguments.
    unsafe { wait_multiple(count, handles, all, milliseconds) }
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 4] {
    replacements! {
        "WaitForSingleObject" => wait_single,
        "WaitForSingleObjectEx" => wait_single_ex,
        "WaitForMultipleObjects" => wait_multiple,
        "WaitForMultipleObjectsEx" => wait_multiple_ex,
    }
}
