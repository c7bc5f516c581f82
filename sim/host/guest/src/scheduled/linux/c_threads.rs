//! Threads of C11 (`threads.h`), which glibc makes of POSIX threads without imports of its own. The objects are those of POSIX
//! threads, too.

use super::{Replacement, once, signals, sync, threads, time};
use libc::{c_int, c_void, pthread_cond_t, pthread_mutex_t, pthread_t, timespec};
use std::ptr::null;

/// Results of these functions (threads.h of glibc 2.36).
const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

type Code = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

const fn result(error: c_int) -> c_int {
    match error {
        0 => SUCCESS,
        libc::EBUSY => BUSY,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

/// The code returns a number, which is in a register like a pointer.
unsafe extern "C" fn create(thread: *mut pthread_t, code: Code, argument: *mut c_void) -> c_int {
    // SAFETY: the guest's arguments, here and below.
    result(unsafe { threads::create(thread, null(), code, argument) })
}

unsafe extern "C" fn join(thread: pthread_t, number: *mut c_int) -> c_int {
    let mut found = std::ptr::null_mut();
    // SAFETY: as above, and a local.
    let error = unsafe { threads::join(thread, &raw mut found) };
    if !number.is_null() {
        // SAFETY: as above.
        unsafe { number.write((found as usize as u32).cast_signed()) };
    }
    result(error)
}

unsafe extern "C-unwind" fn exit(number: c_int) -> ! {
    // SAFETY: as above.
    unsafe { threads::exit(number.cast_unsigned() as usize as *mut c_void) }
}

unsafe extern "C-unwind" fn call_once(flag: *mut c_int, initialise: extern "C-unwind" fn()) {
    // SAFETY: as above.
    unsafe { once::once(flag, initialise) };
}

/// Declares functions whose results are those of functions of POSIX threads, in other numbers.
macro_rules! results {
    ($($name:ident: $path:path, ($($argument:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: as above.
            result(unsafe { $path($($argument),*) })
        }
    )*};
}

results! {
    detach: threads::detach, (thread: pthread_t);
    lock: sync::mutex_acquire, (mutex: *mut pthread_mutex_t);
    try_lock: sync::mutex_try, (mutex: *mut pthread_mutex_t);
    timed_lock: sync::mutex_timed, (mutex: *mut pthread_mutex_t, until: *const timespec);
    unlock: sync::mutex_release, (mutex: *mut pthread_mutex_t);
    signal: sync::condition_signal, (condition: *mut pthread_cond_t);
    broadcast: sync::condition_broadcast, (condition: *mut pthread_cond_t);
    wait: sync::condition_wait, (condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    timed_wait: sync::condition_timed, (condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec);
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 18] {
    replacements! {
        "thrd_create" => create,
        "thrd_join" => join,
        "thrd_detach" => detach,
        "thrd_exit" => exit,
        "thrd_current" => signals::thread_self,
        "thrd_sleep" => time::nanosleep,
        "thrd_yield" => time::sched_yield,
        "call_once" => call_once,
        "mtx_lock" => lock,
        "mtx_trylock" => try_lock,
        "mtx_timedlock" => timed_lock,
        "mtx_unlock" => unlock,
        "mtx_destroy" => sync::mutex_destroy,
        "cnd_signal" => signal,
        "cnd_broadcast" => broadcast,
        "cnd_wait" => wait,
        "cnd_timedwait" => timed_wait,
        "cnd_destroy" => sync::condition_destroy,
    }
}
