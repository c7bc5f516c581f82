//! Pools of threads: calls that the guest has them make, one after the other or side by side.
//!
//! Each call that is handed over starts a thread, which takes calls until none is left, and ends: a pool has as many threads as
//! it needs, and may end each of them at any time (assumed: a real one keeps them for some seconds).

use super::threads::Code;
use super::{Bool, Current, current, handles, threads};
use crate::scheduled::{Replacement, objects};
use clr_explore::{ConditionVariable, CurrentThread, LockKind, ProfilerLock};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem::transmute;
use windows_sys::Win32::Foundation::HANDLE;

/// Bits of what the guest gets for an object of a pool, which no address has, and of the place of its condition variable.
const OBJECTS: usize = 1 << 60;

/// A function of the guest, and what it is called with.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) form: Form,
    pub(super) function: usize,
    pub(super) argument: usize,
}

/// The form of a function that a pool calls.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// One of a thread: with its argument.
    Thread,
    /// With the call itself and its argument.
    Simple,
    /// With its object, too.
    OfObject,
    /// With its object and the result of a wait, too.
    OfWait(u32),
    /// With its argument, and true if a time is over.
    Timed(bool),
}

/// An object that calls come from: work, a timer, a wait.
#[derive(Default)]
pub(super) struct Source {
    pub(super) call: Option<Call>,
    /// Numbers of calls that are handed over, and that are being made.
    pub(super) handed: u32,
    pub(super) made: u32,
    /// The time (µs) at which a timer expires next, and the time between two times; 0 if it expires once.
    pub(super) due: Option<u64>,
    pub(super) period: u64,
    /// Number of times that a timer or a wait was set or cancelled: what looks after it ends with the next one.
    pub(super) version: u32,
    /// The handle that a wait is for, its limit (ms), and the event that ends it early.
    pub(super) waits: Option<(usize, u32)>,
    pub(super) cancelled: usize,
    pub(super) flags: u32,
    /// The queue that a timer is of.
    pub(super) queue: usize,
    /// The event that is set once no call is left.
    pub(super) completion: usize,
}

impl Source {
    const fn is_idle(&self) -> bool {
        self.handed == 0 && self.made == 0
    }
}

/// The objects and the calls of an interleaving.
#[derive(Default)]
pub(super) struct Pool {
    sources: Vec<Source>,
    calls: VecDeque<(Option<usize>, Call)>,
}

/// Returns what the guest gets for the object of a number.
pub(super) const fn marked(number: usize) -> usize {
    OBJECTS | number
}

impl Pool {
    /// Returns the timers of a queue.
    pub(super) fn of_queue(&self, queue: usize) -> Vec<usize> {
        let all = self.sources.iter().enumerate().filter(|(_, source)| source.queue == queue);
        all.map(|(number, _)| marked(number)).collect()
    }

    pub(super) fn source(&mut self, of: usize) -> Option<&mut Source> {
        self.sources.get_mut(of & !OBJECTS)
    }

    /// Hands a call over.
    pub(super) fn hand_over(&mut self, of: Option<usize>, call: Call) {
        if let Some(source) = of.and_then(|of| self.source(of)) {
            source.handed += 1;
        }
        self.calls.push_back((of, call));
    }
}

thread_local! {
    /// The pool, on the scheduler's thread.
    static POOL: RefCell<Pool> = RefCell::default();
}

pub(super) fn lock(me: &CurrentThread<'_, '_>) -> ProfilerLock {
    objects::lock(me, objects::place::POOL, LockKind::Plain, "pool of threads")
}

/// Returns the condition variable of an object's changes.
pub(super) fn changed(me: &CurrentThread<'_, '_>, of: usize) -> ConditionVariable {
    objects::condition(me, of)
}

/// Looks at the pool, whose lock this thread owns.
pub(super) fn look<T>(act: impl FnOnce(&mut Pool) -> T) -> T {
    POOL.with_borrow_mut(act)
}

/// Changes the pool.
pub(super) fn change<T>(me: &CurrentThread<'_, '_>, act: impl FnOnce(&mut Pool) -> T) -> T {
    let lock = lock(me);
    me.acquire(lock);
    let done = look(act);
    me.unlock(lock);
    done
}

/// Makes an object known. Returns what the guest gets for it.
pub(super) fn add(mine: &Current, source: Source) -> usize {
    let added = mine.ask(|me| {
        change(me, |pool| {
            pool.sources.push(source);
            pool.sources.len() - 1
        })
    });
    marked(added.unwrap_or_default())
}

/// Changes an object of the pool, and lets those look again who wait for its changes. An object that is none ends the
/// interleaving: it was made outside of it.
pub(super) fn change_source<T>(
    me: &CurrentThread<'_, '_>,
    of: usize,
    act: impl FnOnce(&mut Source) -> T,
) -> Option<T> {
    let lock = lock(me);
    me.acquire(lock);
    let done = look(|pool| pool.source(of).filter(|_| of & OBJECTS != 0).map(act));
    me.wake(changed(me, of), true);
    me.unlock(lock);
    if done.is_none() {
        me.fail("the profiler has left the simulation: it uses an object of a pool that was made outside");
    }
    done
}

/// Starts a thread that makes calls.
pub(super) fn start(mine: &Current) {
    threads::start(mine, "a thread of the pool", work, std::ptr::null_mut());
}

/// Hands a call over to a thread of the pool.
pub(super) fn submit(mine: &Current, of: Option<usize>, call: Call) {
    mine.ask(|me| change(me, |pool| pool.hand_over(of, call)));
    start(mine);
}

/// What a function of the guest knows of its call: an event that is to be set after it.
struct Instance {
    event: HANDLE,
}

/// Makes a call.
///
/// # Safety
/// The function has the form.
pub(super) unsafe fn make(of: Option<usize>, call: Call) {
    let Call { form, function, argument } = call;
    let (argument, object) = (argument as *mut c_void, of.unwrap_or_default() as *mut c_void);
    let mut instance = Instance { event: std::ptr::null_mut() };
    let own: *mut c_void = (&raw mut instance).cast();
    // SAFETY: the caller's promise.
    unsafe {
        match form {
            Form::Thread => _ = transmute::<usize, Code>(function)(argument),
            Form::Simple => {
                type Simple = unsafe extern "system" fn(*mut c_void, *mut c_void);
                transmute::<usize, Simple>(function)(own, argument);
            }
            Form::OfObject => {
                type OfObject = unsafe extern "system" fn(*mut c_void, *mut c_void, *mut c_void);
                transmute::<usize, OfObject>(function)(own, argument, object);
            }
            Form::OfWait(result) => {
                type OfWait = unsafe extern "system" fn(*mut c_void, *mut c_void, *mut c_void, u32);
                transmute::<usize, OfWait>(function)(own, argument, object, result);
            }
            Form::Timed(is_over) => {
                type Timed = unsafe extern "system" fn(*mut c_void, u8);
                transmute::<usize, Timed>(function)(argument, is_over.into());
            }
        }
        if !instance.event.is_null() {
            handles::set_event(instance.event);
        }
    }
}

/// Notes that a call was made, of the object `before` if it has one, and takes the next one.
fn next(me: &CurrentThread<'_, '_>, before: Option<usize>) -> Option<(Option<usize>, Call)> {
    let lock = lock(me);
    me.acquire(lock);
    let mut completed = 0;
    if let Some(of) = before {
        look(|pool| {
            if let Some(source) = pool.source(of) {
                source.made -= 1;
                if source.is_idle() {
                    completed = std::mem::take(&mut source.completion);
                }
            }
        });
        me.wake(changed(me, of), true);
    }
    let taken = look(|pool| {
        let taken = pool.calls.pop_front()?;
        if let Some(source) = taken.0.and_then(|of| pool.source(of)) {
            source.handed -= 1;
            source.made += 1;
        }
        Some(taken)
    });
    me.unlock(lock);
    if completed != 0 {
        handles::change_and_notify(me, completed, |event| event.count = 1);
    }
    taken
}

/// Makes calls until none is left: a thread of the pool.
unsafe extern "system" fn work(_: *mut c_void) -> u32 {
    let Some(mine) = current() else { return 0 };
    let mut before = None;
    while let Some((of, call)) = mine.ask(|me| next(me, before)).flatten() {
        // SAFETY: the guest's function, in the form in which it was handed over.
        unsafe { make(of, call) };
        before = of;
    }
    0
}

/// Waits until no call of an object is left. With `cancels` those that no thread has taken are not made.
pub(super) fn wait(mine: &Current, of: usize, cancels: bool) {
    mine.ask(|me| {
        let (lock, changed) = (lock(me), changed(me, of));
        me.acquire(lock);
        if cancels {
            look(|pool| {
                pool.calls.retain(|(from, _)| *from != Some(of));
                if let Some(source) = pool.source(of) {
                    source.handed = 0;
                }
            });
        }
        while !me.is_over() && look(|pool| pool.source(of).is_some_and(|it| !it.is_idle())) {
            me.wait_on(changed, lock, None);
        }
        me.unlock(lock);
    });
}

/// Returns true if no call of an object is left. Otherwise the event, unless it is 0, is set once none is.
pub(super) fn completes(me: &CurrentThread<'_, '_>, of: usize, event: usize) -> bool {
    let is_idle = change(me, |pool| {
        let source = pool.source(of)?;
        if !source.is_idle() {
            source.completion = event;
        }
        Some(source.is_idle())
    });
    if is_idle == Some(true) && event != 0 {
        handles::change_and_notify(me, event, |event| event.count = 1);
    }
    is_idle != Some(false)
}

/// Returns this thread of an interleaving. A pool outside of one is not simulated, and nobody there needs it: the call fails.
pub(super) fn caller() -> Option<Current> {
    let mine = current();
    if mine.is_none() {
        super::set_last_error(windows_sys::Win32::Foundation::ERROR_NOT_SUPPORTED);
    }
    mine
}

unsafe extern "system" fn create_work(function: usize, argument: usize, _: *const c_void) -> usize {
    let call = Some(Call { form: Form::OfObject, function, argument });
    caller().map_or(0, |mine| add(&mine, Source { call, ..Source::default() }))
}

unsafe extern "system" fn submit_work(of: usize) {
    let Some(mine) = caller() else { return };
    let call = mine.ask(|me| change_source(me, of, |source| source.call)).flatten().flatten();
    if let Some(call) = call {
        submit(&mine, Some(of), call);
    }
}

/// Waits for the calls of work, a timer or a wait.
unsafe extern "system" fn wait_for_calls(of: usize, cancels: Bool) {
    if let Some(mine) = caller() {
        wait(&mine, of, cancels != 0);
    }
}

/// Nothing uses the object any more: its number is not given again.
unsafe extern "system" fn close_work(_: usize) {}

unsafe extern "system" fn try_submit(function: usize, argument: usize, _: *const c_void) -> Bool {
    caller().map_or(0, |mine| {
        submit(&mine, None, Call { form: Form::Simple, function, argument });
        1
    })
}

unsafe extern "system" fn queue_item(function: usize, argument: usize, _: u32) -> Bool {
    caller().map_or(0, |mine| {
        submit(&mine, None, Call { form: Form::Thread, function, argument });
        1
    })
}

/// The pool starts a thread for each call anyway.
unsafe extern "system" fn may_run_long(_: *mut c_void) -> Bool {
    1
}

unsafe extern "system" fn set_event_after(instance: *mut c_void, event: HANDLE) {
    // SAFETY: what `make` passes to the function that calls this.
    unsafe { (*instance.cast::<Instance>()).event = event };
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> Vec<Replacement> {
    let all = replacements! {
        "CreateThreadpoolWork" => create_work,
        "SubmitThreadpoolWork" => submit_work,
        "CloseThreadpoolWork" => close_work,
        "WaitForThreadpoolWorkCallbacks" => wait_for_calls,
        "WaitForThreadpoolTimerCallbacks" => wait_for_calls,
        "WaitForThreadpoolWaitCallbacks" => wait_for_calls,
        "TrySubmitThreadpoolCallback" => try_submit,
        "QueueUserWorkItem" => queue_item,
        "CallbackMayRunLong" => may_run_long,
        "SetEventWhenCallbackReturns" => set_event_after,
    };
    all.to_vec()
}
