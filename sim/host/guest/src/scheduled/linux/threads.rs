//! Threads that the guest starts.

use super::{guest_thread, objects, sanitizer, signals, time};
use crate::scheduled::guest_thread::GuestThread;
use clr_explore::{CurrentThread, ThreadIndex};
use libc::{c_int, c_void, clockid_t, pthread_attr_t, pthread_join, pthread_t, timespec};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::Arc;

/// Number of rounds in which destructors of thread-local values are called (`PTHREAD_DESTRUCTOR_ITERATIONS`).
const ROUNDS: usize = 4;

/// The code of a thread, which may leave by `pthread_exit`.
type Code = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

unsafe extern "C" {
    fn pthread_create(
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        code: Code,
        argument: *mut c_void,
    ) -> c_int;
    fn pthread_tryjoin_np(thread: pthread_t, result: *mut *mut c_void) -> c_int;
    fn pthread_timedjoin_np(
        thread: pthread_t,
        result: *mut *mut c_void,
        until: *const timespec,
    ) -> c_int;
    fn pthread_clockjoin_np(
        thread: pthread_t,
        result: *mut *mut c_void,
        clock: clockid_t,
        until: *const timespec,
    ) -> c_int;
}

/// Starts a thread of the system for one of the interleaving. It needs no lock that others may own.
pub(in crate::scheduled) fn starting<T>(_: &CurrentThread<'_, '_>, start: impl FnOnce() -> T) -> T {
    start()
}

/// The code of a thread, and its argument.
struct Start {
    carrier: Arc<GuestThread>,
    code: Code,
    argument: *mut c_void,
}

// SAFETY: the guest gives the argument to another thread itself.
unsafe impl Send for Start {}

/// The threads that the guest has started, by what `pthread_create` has returned.
#[derive(Default)]
struct Started {
    threads: BTreeMap<u64, ThreadIndex>,
    results: BTreeMap<u64, usize>,
}

thread_local! {
    /// The started threads, on the scheduler's thread.
    static STARTED: RefCell<Started> = RefCell::default();
    /// Rounds of destructors that are left.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Returns the thread that `pthread_create` has returned this for.
pub(super) fn known(thread: pthread_t) -> Option<ThreadIndex> {
    STARTED.with_borrow(|started| started.threads.get(&thread).copied())
}

/// Returns the key whose destructor ends a carrier in the last round. Destructors are called in the order of the keys
/// (`__nptl_deallocate_tsd` of glibc 2.36, nptl/nptl_deallocate_tsd.c), and this is the last key that there can be.
pub(in crate::scheduled) fn last_key() -> libc::pthread_key_t {
    static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();
    unsafe extern "C" fn destructor(value: *mut c_void) {
        // SAFETY: the value is that of `end_with_thread`: a reference to a carrier.
        let carrier = unsafe { Arc::from_raw(value.cast::<GuestThread>()) };
        let left = LEFT.get().saturating_sub(1);
        LEFT.set(left);
        // SAFETY: no pointers.
        sanitizer::releases(unsafe { libc::pthread_self() } as usize);
        if left > 0 {
            // SAFETY: the key is one.
            unsafe { libc::pthread_setspecific(last_key(), Arc::into_raw(carrier).cast()) };
        } else {
            carrier.end();
        }
    }
    *KEY.get_or_init(|| {
        let mut keys = Vec::new();
        let mut key = 0;
        // SAFETY: room for a key, and a destructor.
        while unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) } == 0 {
            keys.push(key);
        }
        let last = keys.pop().unwrap_or_default();
        for other in keys {
            // SAFETY: a key that nothing has used.
            unsafe { libc::pthread_key_delete(other) };
        }
        last
    })
}

/// Makes the end of this thread of the system that of its carrier, after all destructors of the guest's thread-local values.
pub(in crate::scheduled) fn end_with_thread(carrier: &Arc<GuestThread>) {
    LEFT.set(ROUNDS);
    // SAFETY: the key is one; its destructor takes the reference.
    unsafe { libc::pthread_setspecific(last_key(), Arc::into_raw(Arc::clone(carrier)).cast()) };
}

/// Executes the code of a thread, once the scheduler has chosen it. What leaves by `pthread_exit` unwinds this function, too,
/// which owns nothing meanwhile.
extern "C-unwind" fn run(start: *mut c_void) -> *mut c_void {
    let (code, argument) = begin(start);
    // It is executed here, not as a task.
    let result = code(argument);
    note_result(result);
    result
}

fn begin(start: *mut c_void) -> (Code, *mut c_void) {
    // SAFETY: `start` is the box of `create`.
    let Start { carrier, code, argument } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    end_with_thread(&carrier);
    carrier.begin();
    (code, argument)
}

fn note_result(result: *mut c_void) {
    let Some(carrier) = guest_thread::current() else { return };
    // SAFETY: no pointers.
    let id = unsafe { libc::pthread_self() };
    let result = result as usize;
    carrier.ask(move |_| STARTED.with_borrow_mut(|started| started.results.insert(id, result)));
}

pub(super) unsafe extern "C" fn create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    code: Code,
    argument: *mut c_void,
) -> c_int {
    let Some(mine) = guest_thread::current() else {
        // SAFETY: the guest's arguments.
        return unsafe { pthread_create(thread, attributes, code, argument) };
    };
    mine.ask(guest_thread::check_room);
    let carrier = GuestThread::new();
    let start = Box::new(Start { carrier: Arc::clone(&carrier), code, argument });
    // It is joined when it has ended, whatever the guest does: the attributes do not matter.
    let mut id: pthread_t = 0;
    // SAFETY: room for an id; `run` takes the box.
    let made =
        unsafe { pthread_create(&raw mut id, std::ptr::null(), run, Box::into_raw(start).cast()) };
    if made != 0 {
        return made;
    }
    // SAFETY: the guest's room for an id.
    unsafe { thread.write(id) };
    mine.ask(move |me| {
        let mask = signals::with(|signals| signals.mask_of(me.index()));
        let index = me.spawn(&objects::thread_name(), move |me| {
            signals::begin(me.index(), mask);
            guest_thread::register(me.index(), &carrier);
            carrier.serve_to_end(me);
            // SAFETY: a thread that was started above, and is joined once.
            unsafe { pthread_join(id, null_mut()) };
        });
        signals::begin(index, mask);
        STARTED.with_borrow_mut(|started| started.threads.insert(id, index));
    });
    0
}

/// Ends the thread with a result: what is on its stack is unwound.
pub(super) unsafe extern "C-unwind" fn exit(result: *mut c_void) -> ! {
    note_result(result);
    // SAFETY: the guest's own end.
    unsafe { libc::pthread_exit(result) }
}

/// Waits for a thread, and writes its result. `limit` returns the longest time (µs) to wait. `None` if this is no thread of an interleaving.
///
/// # Safety
/// There is room for a result, or its address is NULL.
unsafe fn wait(
    thread: pthread_t,
    result: *mut *mut c_void,
    limit: impl FnOnce(&CurrentThread<'_, '_>) -> Option<u64>,
) -> Option<c_int> {
    let mine = guest_thread::current()?;
    let found = mine.ask(move |me| {
        let index = known(thread).ok_or(libc::ESRCH)?;
        let limit = limit(me);
        if !me.join_within(index, limit) {
            return Err(if limit == Some(0) { libc::EBUSY } else { libc::ETIMEDOUT });
        }
        let results = |started: &Started| started.results.get(&thread).copied();
        Ok(STARTED.with_borrow(results).unwrap_or_default())
    });
    sanitizer::acquires(thread as usize);
    Some(match found.unwrap_or(Err(libc::ESRCH)) {
        Ok(found) => {
            if !result.is_null() {
                // SAFETY: the caller's promise.
                unsafe { result.write(found as *mut c_void) };
            }
            0
        }
        Err(error) => error,
    })
}

/// Declares functions that wait for the end of a thread.
macro_rules! joins {
    ($($name:ident: $function:ident($($argument:ident: $type:ty),*), $limit:expr;)*) => {$(
        pub(super) unsafe extern "C" fn $name(
            thread: pthread_t,
            result: *mut *mut c_void
            $(, $argument: $type)*
        ) -> c_int {
            // SAFETY: the guest's arguments.
            unsafe {
                wait(thread, result, $limit)
                    .unwrap_or_else(|| $function(thread, result $(, $argument)*))
            }
        }
    )*};
}

joins! {
    join: pthread_join(), |_| None;
    try_join: pthread_tryjoin_np(), |_| Some(0);
    timed_join: pthread_timedjoin_np(until: *const timespec), |me| {
        Some(time::micros_until(me, time::read(until)).max(1))
    };
    // All clocks are the same one.
    clock_join: pthread_clockjoin_np(clock: clockid_t, until: *const timespec), |me| {
        Some(time::micros_until(me, time::read(until)).max(1))
    };
}

pub(super) unsafe extern "C" fn detach(thread: pthread_t) -> c_int {
    if guest_thread::current().is_some() {
        return 0;
    }
    // SAFETY: the guest's argument.
    unsafe { libc::pthread_detach(thread) }
}
