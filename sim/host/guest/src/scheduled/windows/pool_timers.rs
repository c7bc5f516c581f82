//! Timers and waits of pools of threads: each that is set has a thread that looks after it, and hands its calls over.
//!
//! A periodic timer hands its call over again and again, also while the call before is still being made, as the system does.

use super::pool::{self, Call, Form, Pool, Source};
use super::{Bool, Current, current, handles, succeeds, threads, time, waits};
use crate::scheduled::Replacement;
use clr_explore::CurrentThread;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{
    ERROR_IO_PENDING, HANDLE, INVALID_HANDLE_VALUE, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::Threading::{CreateEventW, INFINITE};

/// `WT_EXECUTEINWAITTHREAD`, `WT_EXECUTEONLYONCE` and `WT_EXECUTEINTIMERTHREAD`.
const IN_WAIT_THREAD: u32 = 4;
const ONCE: u32 = 8;
const IN_TIMER_THREAD: u32 = 0x20;

/// Bits of the version behind the number of an object, in the argument of the thread that looks after it.
const VERSIONS: u32 = 32;

fn argument(of: usize, version: u32) -> *mut c_void {
    // The number of an object is small, but for its mark, which is the same for all.
    ((of << VERSIONS) | version as usize) as *mut c_void
}

/// Returns the object and its version.
fn of_argument(argument: *mut c_void) -> (usize, u32) {
    let argument = argument as usize;
    (pool::marked(argument >> VERSIONS), argument as u32)
}

/// Waits until a timer expires, and hands its call over. Returns the call if it has to be made here, and whether one was handed
/// over; `None` if the timer is set no more, or to another time.
fn expire(me: &CurrentThread<'_, '_>, (of, version): (usize, u32)) -> Option<(Call, bool)> {
    let (lock, changed) = (pool::lock(me), pool::changed(me, of));
    me.acquire(lock);
    let due = |pool: &mut Pool| pool.source(of).filter(|it| it.version == version)?.due;
    let call = loop {
        let Some(due) = pool::look(due).filter(|_| !me.is_over()) else { break None };
        let now = me.now();
        if due > now {
            me.wait_on(changed, lock, Some(due - now));
            continue;
        }
        break pool::look(|pool| {
            let source = pool.source(of)?;
            source.due = (source.period > 0).then(|| now + source.period);
            let call = source.call?;
            let is_made_here = source.flags & IN_TIMER_THREAD != 0;
            if !is_made_here {
                pool.hand_over(Some(of), call);
            }
            Some((call, is_made_here))
        });
    };
    me.unlock(lock);
    call
}

/// Looks after a timer.
unsafe extern "system" fn keep_time(timer: *mut c_void) -> u32 {
    let (Some(mine), own) = (current(), of_argument(timer)) else { return 0 };
    while let Some((call, is_made_here)) = mine.ask(|me| expire(me, own)).flatten() {
        if is_made_here {
            // SAFETY: the guest's function, in its form.
            unsafe { pool::make(Some(own.0), call) };
        } else {
            pool::start(&mine);
        }
    }
    0
}

/// Sets a timer to a time from now (µs), or to none. Returns true if it was set before.
fn set(mine: &Current, of: usize, due: Option<u64>, period: u64) -> bool {
    let set = mine.ask(|me| {
        let due = due.map(|due| me.now().saturating_add(due));
        pool::change_source(me, of, |timer| {
            let was_set = timer.due.is_some();
            (timer.due, timer.period, timer.version) = (due, period, timer.version + 1);
            (was_set, timer.version)
        })
    });
    let (was_set, version) = set.flatten().unwrap_or_default();
    if due.is_some() {
        threads::start(mine, "a timer of the pool", keep_time, argument(of, version));
    }
    was_set
}

/// Returns the time (µs) from now to one in units of 100 ns: negative from now, or since 1601. `None` for NULL.
///
/// # Safety
/// The pointer is NULL, or to a time.
unsafe fn micros_until(mine: &Current, due: *const i64) -> Option<u64> {
    // SAFETY: the caller's promise; a FILETIME has the alignment of its halves.
    let due = (!due.is_null()).then(|| unsafe { due.read_unaligned() })?;
    mine.ask(|me| time::micros_until(me, due))
}

/// Waits for the handle of a wait, and hands its call over. Returns the call if it has to be made here, and false if it was
/// handed over; `None` if the wait is cancelled.
fn come(me: &CurrentThread<'_, '_>, (of, version): (usize, u32)) -> Option<(Call, bool)> {
    let known = pool::change(me, |pool| {
        let wait = pool.source(of).filter(|it| it.version == version)?;
        Some((wait.waits?, wait.cancelled, wait.flags, wait.call?))
    });
    let ((handle, limit), cancelled, flags, call) = known?;
    let result = waits::waits(me, &[handle, cancelled], false, limit);
    let is_over = match result {
        Some(WAIT_OBJECT_0) => false,
        Some(WAIT_TIMEOUT) => true,
        Some(_) => return None,
        None => {
            me.fail(
                "the profiler has left the simulation: a pool waits for a handle of something else",
            );
            return None;
        }
    };
    let form = match call.form {
        Form::OfWait(_) => Form::OfWait(if is_over { WAIT_TIMEOUT } else { WAIT_OBJECT_0 }),
        _ => Form::Timed(is_over),
    };
    let call = Call { form, ..call };
    pool::change(me, |pool| {
        let wait = pool.source(of).filter(|it| it.version == version)?;
        if flags & ONCE != 0 {
            wait.waits = None;
        }
        let is_made_here = flags & IN_WAIT_THREAD != 0;
        if !is_made_here {
            pool.hand_over(Some(of), call);
        }
        Some((call, is_made_here))
    })
}

/// Looks after a wait.
unsafe extern "system" fn keep_waiting(wait: *mut c_void) -> u32 {
    let (Some(mine), own) = (current(), of_argument(wait)) else { return 0 };
    while let Some((call, is_made_here)) = mine.ask(|me| come(me, own)).flatten() {
        if is_made_here {
            // SAFETY: the guest's function, in its form.
            unsafe { pool::make(Some(own.0), call) };
        } else {
            pool::start(&mine);
        }
    }
    0
}

/// Makes a wait wait for a handle, or for none. The one before is cancelled. Returns true if it has waited.
fn wait_for(mine: &Current, of: usize, wanted: Option<(usize, u32)>) -> bool {
    // SAFETY: no pointers. Only its unique handle is used.
    let event = unsafe { CreateEventW(null(), 1, 0, null()) } as usize;
    let set = mine.ask(|me| {
        handles::add(event, handles::Kind::Event { manual: true }, 0);
        let before = pool::change_source(me, of, |wait| {
            wait.version += 1;
            let before = (wait.waits.take(), wait.cancelled, wait.version);
            (wait.waits, wait.cancelled) = (wanted, event);
            before
        });
        let (earlier, cancelled, version) = before?;
        if cancelled != 0 {
            handles::change_and_notify(me, cancelled, |event| event.count = 1);
        }
        Some((earlier.is_some(), version))
    });
    let (had_one, version) = set.flatten().unwrap_or_default();
    if wanted.is_some() {
        threads::start(mine, "a wait of the pool", keep_waiting, argument(of, version));
    }
    had_one
}

/// Declares functions that make a timer or a wait of the newer kind.
macro_rules! creates {
    ($($name:ident: $form:expr, $flags:expr;)*) => {$(
        unsafe extern "system" fn $name(function: usize, argument: usize, _: *const c_void) -> usize {
            let call = Some(Call { form: $form, function, argument });
            pool::caller().map_or(0, |mine| pool::add(&mine, Source { call, flags: $flags, ..Source::default() }))
        }
    )*};
}

creates! {
    create_timer: Form::OfObject, 0;
    create_wait: Form::OfWait(0), ONCE;
}

unsafe extern "system" fn set_timer(of: usize, due: *const i64, period: u32, _: u32) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    // SAFETY: NULL, or the guest's time.
    let due = unsafe { micros_until(&mine, due) };
    set(&mine, of, due, u64::from(period) * 1_000).into()
}

unsafe extern "system" fn is_timer_set(of: usize) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    let is_set = mine.ask(|me| pool::change_source(me, of, |timer| timer.due.is_some()));
    (is_set.flatten() == Some(true)).into()
}

unsafe extern "system" fn close_timer(of: usize) {
    if let Some(mine) = pool::caller() {
        set(&mine, of, None, 0);
    }
}

unsafe extern "system" fn set_wait(of: usize, handle: HANDLE, limit: *const i64) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    // SAFETY: NULL, or the guest's time.
    let limit = unsafe { micros_until(&mine, limit) };
    let limit = limit.map_or(INFINITE, |micros| micros.div_ceil(1_000) as u32);
    let wanted = (!handle.is_null()).then_some((handle as usize, limit));
    wait_for(&mine, of, wanted).into()
}

unsafe extern "system" fn set_wait_ex(
    of: usize,
    handle: HANDLE,
    limit: *const i64,
    _: *mut c_void,
) -> Bool {
    // SAFETY: the guest's arguments.
    unsafe { set_wait(of, handle, limit) }
}

unsafe extern "system" fn close_wait(of: usize) {
    if let Some(mine) = pool::caller() {
        wait_for(&mine, of, None);
    }
}

/// Ends an object of the older kind: at once, after its calls, or with an event after them.
fn delete(mine: &Current, of: usize, completion: HANDLE) -> Bool {
    if completion == INVALID_HANDLE_VALUE {
        pool::wait(mine, of, false);
        return 1;
    }
    let event = completion as usize;
    let completes = mine.ask(move |me| pool::completes(me, of, event));
    succeeds(completes == Some(true), ERROR_IO_PENDING)
}

/// A queue is what its timers say: it need not be known.
unsafe extern "system" fn create_queue() -> HANDLE {
    pool::caller().map_or(null_mut(), |mine| pool::add(&mine, Source::default()) as HANDLE)
}

unsafe extern "system" fn create_queue_timer(
    timer: *mut HANDLE,
    queue: HANDLE,
    function: usize,
    argument: usize,
    due: u32,
    period: u32,
    flags: u32,
) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    let call = Some(Call { form: Form::Timed(true), function, argument });
    let queue = queue as usize;
    let of = pool::add(&mine, Source { call, flags, queue, ..Source::default() });
    // It may expire before this returns.
    // SAFETY: the guest's room for a handle.
    unsafe { timer.write(of as HANDLE) };
    let period = if flags & ONCE == 0 { period } else { 0 };
    set(&mine, of, Some(u64::from(due) * 1_000), u64::from(period) * 1_000);
    1
}

unsafe extern "system" fn change_queue_timer(
    _: HANDLE,
    timer: HANDLE,
    due: u32,
    period: u32,
) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    set(&mine, timer as usize, Some(u64::from(due) * 1_000), u64::from(period) * 1_000);
    1
}

unsafe extern "system" fn delete_queue_timer(_: HANDLE, timer: HANDLE, completion: HANDLE) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    set(&mine, timer as usize, None, 0);
    delete(&mine, timer as usize, completion)
}

/// Deletes the timers of a queue, and waits for the calls of one after the other if it waits.
unsafe extern "system" fn delete_queue(queue: HANDLE, completion: HANDLE) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    let of_queue = mine.ask(|me| pool::change(me, |pool| pool.of_queue(queue as usize)));
    let mut done = 1;
    for timer in of_queue.unwrap_or_default() {
        set(&mine, timer, None, 0);
        done &= delete(&mine, timer, completion);
    }
    done
}

unsafe extern "system" fn delete_queue_at_once(queue: HANDLE) -> Bool {
    // SAFETY: the guest's argument.
    unsafe { delete_queue(queue, null_mut()) }
}

unsafe extern "system" fn register_wait(
    wait: *mut HANDLE,
    handle: HANDLE,
    function: usize,
    argument: usize,
    limit: u32,
    flags: u32,
) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    let call = Some(Call { form: Form::Timed(false), function, argument });
    let of = pool::add(&mine, Source { call, flags, ..Source::default() });
    // SAFETY: the guest's room for a handle.
    unsafe { wait.write(of as HANDLE) };
    wait_for(&mine, of, Some((handle as usize, limit)));
    1
}

unsafe extern "system" fn unregister_wait_ex(wait: HANDLE, completion: HANDLE) -> Bool {
    let Some(mine) = pool::caller() else { return 0 };
    wait_for(&mine, wait as usize, None);
    delete(&mine, wait as usize, completion)
}

unsafe extern "system" fn unregister_wait(wait: HANDLE) -> Bool {
    // SAFETY: the guest's argument.
    unsafe { unregister_wait_ex(wait, null_mut()) }
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> Vec<Replacement> {
    let all = replacements! {
        "CreateThreadpoolTimer" => create_timer,
        "SetThreadpoolTimer" => set_timer,
        "SetThreadpoolTimerEx" => set_timer,
        "IsThreadpoolTimerSet" => is_timer_set,
        "CloseThreadpoolTimer" => close_timer,
        "CreateThreadpoolWait" => create_wait,
        "SetThreadpoolWait" => set_wait,
        "SetThreadpoolWaitEx" => set_wait_ex,
        "CloseThreadpoolWait" => close_wait,
        "CreateTimerQueue" => create_queue,
        "CreateTimerQueueTimer" => create_queue_timer,
        "ChangeTimerQueueTimer" => change_queue_timer,
        "DeleteTimerQueueTimer" => delete_queue_timer,
        "DeleteTimerQueue" => delete_queue_at_once,
        "DeleteTimerQueueEx" => delete_queue,
        "RegisterWaitForSingleObject" => register_wait,
        "UnregisterWait" => unregister_wait,
        "UnregisterWaitEx" => unregister_wait_ex,
    };
    all.to_vec()
}
