//! Intercepts `syscall(2)`: futex calls go to the scheduler, signals to `signals`, some calls are refused, the rest
//! passes through. Waits on atomic variables of C++20 and locks of Rust are made of futexes.

use super::{
    ends, guest_thread, masks, objects, polls, random, refuse, refused, signal_timers, signals,
    time, transfers,
};
use clr_explore::{CurrentThread, Interruption, LockKind, ProfilerLock};
use libc::{c_int, c_long, timespec};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Operations without the bits that choose a clock, and processes.
const OPERATION: c_int = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);

/// A call that waits or wakes.
#[derive(Clone, Copy)]
enum Futex {
    /// Waits while the word has this value, until a time (µs since 1970), or for a time (µs).
    Wait { value: u32, until: Option<u64>, lasts: Option<u64> },
    /// Wakes at most this number of threads.
    Wake(u32),
    /// Another operation, or some bits of a set alone.
    Unknown,
}

thread_local! {
    /// Numbers of threads that wait for futexes and that nothing has woken, on the scheduler's thread.
    static SLEEPERS: RefCell<BTreeMap<usize, u32>> = RefCell::default();
}

/// Adds a thread to those that wait for a futex.
fn add_sleeper(at: usize) {
    SLEEPERS.with_borrow_mut(|sleepers| *sleepers.entry(at).or_default() += 1);
}

/// Removes at most this number of threads from those that wait for a futex. Returns their number.
fn wake_sleepers(at: usize, most: u32) -> u32 {
    SLEEPERS.with_borrow_mut(|sleepers| {
        let Some(count) = sleepers.get_mut(&at) else { return 0 };
        let woken = most.min(*count);
        *count -= woken;
        woken
    })
}

fn lock_of(me: &CurrentThread<'_, '_>, at: usize) -> ProfilerLock {
    objects::lock(me, at, LockKind::Plain, "futex")
}

/// Returns what a futex call asks for.
///
/// # Safety
/// `time` is NULL, a time, or not used by the operation.
unsafe fn parse(operation: c_int, value: u32, time: *const timespec, bits: u32) -> Futex {
    // SAFETY: the caller's promise.
    let time = || (!time.is_null()).then(|| unsafe { time::read(time) });
    match operation & OPERATION {
        libc::FUTEX_WAIT => Futex::Wait { value, until: None, lasts: time() },
        libc::FUTEX_WAIT_BITSET if bits == u32::MAX => {
            Futex::Wait { value, until: time(), lasts: None }
        }
        libc::FUTEX_WAKE => Futex::Wake(value),
        libc::FUTEX_WAKE_BITSET if bits == u32::MAX => Futex::Wake(value),
        _ => Futex::Unknown,
    }
}

/// Waits. Returns an error of the system, or 0.
fn wait(
    me: &CurrentThread<'_, '_>,
    at: usize,
    value: u32,
    until: Option<u64>,
    lasts: Option<u64>,
) -> c_int {
    let lock = lock_of(me, at);
    let changed = objects::condition(me, at);
    me.acquire(lock);
    let limit = until.map(|until| time::micros_until(me, until)).or(lasts);
    // A thread that changes the word after this cannot wake before this one waits: it needs the lock for that.
    // SAFETY: the guest's word, which no other thread changes meanwhile: one runs at a time.
    if unsafe { (at as *const u32).read_volatile() } != value {
        me.unlock(lock);
        return libc::EAGAIN;
    }
    add_sleeper(at);
    let woken = me.wait_on(changed, lock, limit);
    if !woken {
        wake_sleepers(at, 1);
    }
    me.unlock(lock);
    match limit {
        _ if woken => 0,
        _ if me.is_interrupted() => libc::EINTR,
        None => 0,
        Some(_) => libc::ETIMEDOUT,
    }
}

/// Wakes threads. Returns their number.
fn wake(me: &CurrentThread<'_, '_>, at: usize, most: u32) -> u32 {
    let lock = lock_of(me, at);
    let changed = objects::condition(me, at);
    me.acquire(lock);
    let woken = wake_sleepers(at, most);
    // One that wakes no thread may be a condition variable's, which is lost.
    for _ in 0..woken.max(1) {
        me.notify_one(changed);
    }
    me.unlock(lock);
    woken
}

/// `syscall`, with the six arguments that the widest call has: on x86-64 they are in registers, and those that
/// the caller did not set are not used.
pub(super) unsafe extern "C" fn syscall(
    number: c_long,
    word: usize,
    operation: usize,
    value: usize,
    time: usize,
    other: usize,
    bits: usize,
) -> c_long {
    if let Some(name) = refused::refused_number(number) {
        refused::refuse(name);
    }
    if number == libc::SYS_gettid
        && let Some(own) = signals::own_number()
    {
        return own.into();
    }
    // SAFETY: the guest's own call.
    let of_signals = unsafe {
        signals::by_number(number, [word, operation, value, time])
            .or_else(|| masks::by_number(number, [word, operation, value]))
            .or_else(|| signal_timers::by_number(number, [word, operation, value, time]))
    };
    match of_signals {
        None => {}
        Some(0) => return 0,
        Some(error) => return refuse(error).into(),
    }
    // SAFETY: the guest's own call.
    let others = unsafe {
        transfers::by_number(number, [word, operation, value])
            .or_else(|| polls::by_number(number, [word, operation, value, time, other]))
            .or_else(|| time::by_number(number, [word, operation, value, time]))
            .or_else(|| random::by_number(number, [word, operation, value]))
    };
    if let Some(result) = others {
        return result as c_long;
    }
    if number == libc::SYS_exit_group {
        // SAFETY: no pointers.
        unsafe { ends::_exit((word as u32).cast_signed()) };
    }
    let carrier = guest_thread::current().filter(|_| number == libc::SYS_futex);
    let Some(carrier) = carrier else {
        // SAFETY: the guest's own call.
        return unsafe { libc::syscall(number, word, operation, value, time, other, bits) };
    };
    // SAFETY: the arguments of `futex`.
    let asked = unsafe {
        parse((operation as u32).cast_signed(), value as u32, time as *const timespec, bits as u32)
    };
    let answer = carrier.ask(move |me| match asked {
        Futex::Wait { value, until, lasts } => {
            let wait = || wait(me, word, value, until, lasts);
            let by = Interruption::UnlessRestarted;
            match me.uninterrupted(|| me.interruptible(by, wait)) {
                0 => Ok(0),
                error => Err(error),
            }
        }
        Futex::Wake(most) => Ok(me.uninterrupted(|| wake(me, word, most))),
        Futex::Unknown => {
            me.fail(
                "the profiler has left the simulation: a futex call that waits or wakes otherwise",
            );
            Err(libc::ENOSYS)
        }
    });
    match answer {
        Some(Ok(count)) => c_long::from(count),
        Some(Err(error)) => refuse(error).into(),
        None => refuse(libc::EINTR).into(),
    }
}
