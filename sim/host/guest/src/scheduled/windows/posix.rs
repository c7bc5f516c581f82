//! winpthreads locks (libstdc++ on mingw is built on them), when winpthreads is a separate DLL.
//!
//! Their code waits by events, which have no owner: here each one is a lock of the scheduler's. Linked into the guest they
//! are not imported, and are seen as their events.

use super::time::{BEGIN, SINCE_START};
use super::{current, time};
use crate::scheduled::Replacement;
use crate::scheduled::objects::{self, done, tried};
use clr_explore::{CurrentThread, LockKind, ProfilerLock};
use std::ffi::{c_int, c_long, c_uint, c_void};

/// A `pthread_mutex_t`, `pthread_cond_t` or `pthread_rwlock_t`: a pointer, or a negative number that stands for an object
/// with a static initialiser (pthread.h of mingw-w64).
type Object = *mut isize;

/// `PTHREAD_MUTEX_INITIALIZER` and `PTHREAD_RECURSIVE_MUTEX_INITIALIZER` (pthread.h of mingw-w64).
const STATIC: isize = -1;
const STATIC_RECURSIVE: isize = -3;
/// Bits of the type in `pthread_mutexattr_t`, and `PTHREAD_MUTEX_RECURSIVE`.
const TYPE: c_uint = 3;
const RECURSIVE: c_uint = 2;

/// Errors of mingw's errno.h.
const EPERM: c_int = 1;
const EINVAL: c_int = 22;
const ETIMEDOUT: c_int = 138;

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

impl Timespec {
    /// Returns the time in µs; a part of one counts as one.
    fn micros(self) -> u64 {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        let nanoseconds = u64::try_from(self.nanoseconds).unwrap_or_default();
        seconds.saturating_mul(1_000_000).saturating_add(nanoseconds.div_ceil(1_000))
    }

    /// Returns the time (µs) from now to this one of one of the clocks, or 0.
    fn micros_left(self, me: &CurrentThread<'_, '_>) -> u64 {
        let until = self.micros();
        let begin = if until < BEGIN { SINCE_START } else { BEGIN };
        until.saturating_sub(begin + me.now())
    }
}

/// Asks the scheduler. A thread that it does not know has none of these objects.
fn ask(what: impl FnOnce(&CurrentThread<'_, '_>) -> c_int) -> c_int {
    current().and_then(|carrier| carrier.ask(what)).unwrap_or(EINVAL)
}

fn mutex_of(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    // SAFETY: the guest's mutex, which is initialised; a known lock stays what it is.
    let is_recursive = unsafe { (at as Object).read() } == STATIC_RECURSIVE;
    let kind = if is_recursive { LockKind::Reentrant } else { LockKind::Plain };
    objects::lock(me, at, kind, "mutex")
}

unsafe extern "C" fn mutex_init(mutex: Object, attributes: *const c_uint) -> c_int {
    // SAFETY: NULL, or the guest's attributes.
    let kind = unsafe { attributes.as_ref() }.map_or(0, |attributes| attributes & TYPE);
    // SAFETY: the guest's room for a mutex.
    unsafe { mutex.write(if kind == RECURSIVE { STATIC_RECURSIVE } else { STATIC }) };
    forget(mutex);
    0
}

unsafe extern "C" fn mutex_timed(mutex: Object, until: *const Timespec) -> c_int {
    // SAFETY: the guest's time.
    let until = unsafe { until.read() };
    let at = mutex as usize;
    ask(|me| {
        // A limit of 0 is another call's.
        let limit = until.micros_left(me).max(1);
        if me.try_acquire(mutex_of(me, at), limit) { 0 } else { ETIMEDOUT }
    })
}

/// Forgets what was at a place before.
fn forget(object: Object) {
    let at = object as usize;
    ask(|me| {
        objects::forget(me, at);
        0
    });
}

unsafe extern "C" fn destroy(object: Object) -> c_int {
    forget(object);
    // SAFETY: the guest's object.
    unsafe { object.write(0) };
    0
}

unsafe extern "C" fn condition_init(object: Object, _: *const c_void) -> c_int {
    // SAFETY: the guest's room for an object.
    unsafe { object.write(STATIC) };
    forget(object);
    0
}

fn wait(
    me: &CurrentThread<'_, '_>,
    [condition, mutex]: [usize; 2],
    until: Option<Timespec>,
) -> c_int {
    let limit = until.map(|until| until.micros_left(me));
    let woken = me.wait_on(objects::condition(me, condition), mutex_of(me, mutex), limit);
    if woken || limit.is_none() { 0 } else { ETIMEDOUT }
}

unsafe extern "C" fn condition_wait(condition: Object, mutex: Object) -> c_int {
    let at = [condition as usize, mutex as usize];
    ask(|me| wait(me, at, None))
}

unsafe extern "C" fn condition_timed(
    condition: Object,
    mutex: Object,
    until: *const Timespec,
) -> c_int {
    // SAFETY: the guest's time.
    let until = unsafe { until.read() };
    let at = [condition as usize, mutex as usize];
    ask(|me| wait(me, at, Some(until)))
}

fn shared_lock(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Plain, "read-write lock")
}

/// Declares functions with an object as their only argument, and what the scheduler does for each.
macro_rules! of_objects {
    ($($(#[$doc:meta])* $name:ident: |$me:ident, $at:ident| $act:expr;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::unit_arg, reason = "calls that cannot fail return nothing")]
        unsafe extern "C" fn $name(object: Object) -> c_int {
            let $at = object as usize;
            ask(|$me| $act)
        }
    )*};
}

of_objects! {
    mutex_lock: |me, at| done(me.acquire(mutex_of(me, at)));
    mutex_try: |me, at| tried(me.try_acquire(mutex_of(me, at), 0));
    mutex_unlock: |me, at| {
        let lock = mutex_of(me, at);
        if !me.owns(lock) {
            return EPERM;
        }
        me.unlock(lock);
        0
    };
    condition_signal: |me, at| done(me.notify_one(objects::condition(me, at)));
    condition_broadcast: |me, at| done(me.notify_all(objects::condition(me, at)));
    read_lock: |me, at| done(me.share(shared_lock(me, at)));
    try_read_lock: |me, at| tried(me.try_share(shared_lock(me, at), 0));
    write_lock: |me, at| done(me.acquire(shared_lock(me, at)));
    try_write_lock: |me, at| tried(me.try_acquire(shared_lock(me, at), 0));
    unlock_shared: |me, at| done(me.unlock(shared_lock(me, at)));
}

/// In winpthreads the variable is 1 when the initialisation is over (assumed).
unsafe extern "C" fn once(control: *mut c_int, initialise: extern "C" fn()) -> c_int {
    let at = control as usize;
    // SAFETY: the guest's variable.
    let is_over = unsafe { control.read() } == 1;
    let mut first = false;
    let is_first = &mut first;
    ask(|me| {
        *is_first = objects::begin_initialisation(me, at, is_over);
        0
    });
    if first {
        initialise();
        // SAFETY: as above.
        unsafe { control.write(1) };
        ask(|me| {
            objects::end_initialisation(me, at, true);
            0
        });
    }
    0
}

unsafe extern "C" fn nanosleep(wanted: *const Timespec, _: *mut Timespec) -> c_int {
    // SAFETY: the guest's time.
    time::sleep_micros(unsafe { wanted.read() }.micros());
    0
}

unsafe extern "C" fn usleep(micros: c_uint) -> c_int {
    time::sleep_micros(micros.into());
    0
}

unsafe extern "C" fn yields() -> c_int {
    time::sleep_micros(0);
    0
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> Vec<Replacement> {
    let all = replacements! {
        "pthread_mutex_init" => mutex_init,
        "pthread_mutex_lock" => mutex_lock,
        "pthread_mutex_trylock" => mutex_try,
        "pthread_mutex_timedlock" => mutex_timed,
        "pthread_mutex_unlock" => mutex_unlock,
        "pthread_mutex_destroy" => destroy,
        "pthread_cond_init" => condition_init,
        "pthread_cond_wait" => condition_wait,
        "pthread_cond_timedwait" => condition_timed,
        "pthread_cond_signal" => condition_signal,
        "pthread_cond_broadcast" => condition_broadcast,
        "pthread_cond_destroy" => destroy,
        "pthread_rwlock_init" => condition_init,
        "pthread_rwlock_rdlock" => read_lock,
        "pthread_rwlock_tryrdlock" => try_read_lock,
        "pthread_rwlock_wrlock" => write_lock,
        "pthread_rwlock_trywrlock" => try_write_lock,
        "pthread_rwlock_unlock" => unlock_shared,
        "pthread_rwlock_destroy" => destroy,
        "pthread_once" => once,
        "nanosleep" => nanosleep,
        "usleep" => usleep,
        "sched_yield" => yields,
    };
    all.to_vec()
}
