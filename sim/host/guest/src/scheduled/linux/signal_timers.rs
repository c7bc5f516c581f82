//! Timers that send signals (`timer_create`, `setitimer`, `alarm`), or start threads (`SIGEV_THREAD`). They expire by the
//! simulation's time, as the limit of a wait passes, so perhaps late: a thread without code of the guest waits for each that is
//! set.
//!
//! A signal of the process goes to a thread that waits for it, or that takes it: to the one that ran last if the timer counts the
//! time of processors (`check_cpu_itimer` of the kernel's kernel/time/posix-cpu-timers.c), otherwise to the first one
//! (`complete_signal` of kernel/signal.c). One that is still pending is not sent again.

use super::signals::{self, Sent, with as with_signals};
use super::{Replacement, guest_thread, masks, objects, refuse, time};
use clr_explore::{ConditionVariable, CurrentThread, LockKind, ProfilerLock, ThreadIndex};
use clr_runtime::OsThreadId;
use libc::{c_int, c_uint, c_void, clockid_t, itimerspec, itimerval, sigevent, timespec, timeval};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// `SI_TIMER` and `SI_KERNEL`: the codes of signals of timers.
const BY_TIMER: c_int = -2;
const BY_KERNEL: c_int = 0x80;

/// `SIGEV_NONE`.
const NOTHING: c_int = 1;

/// Bits of the places of timers, which no address has, and of those that each process has, by the number of `setitimer`.
const PLACES: usize = 1 << 62;
const OF_PROCESS: usize = 1 << 32;

/// Signals of the timers that each process has, by number.
const SIGNALS: [c_int; 3] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF];

/// What a timer does when it expires.
#[derive(Clone, Copy)]
enum Notice {
    Nothing,
    /// It sends a signal to the process, or to a thread.
    Signal {
        sent: Sent,
        to: Option<ThreadIndex>,
        counts_processors: bool,
    },
    /// A new thread calls a function with a value.
    Calls {
        function: extern "C" fn(usize),
        value: usize,
    },
}

#[derive(Clone, Copy)]
struct Timer {
    notice: Notice,
    /// Time at which it expires next, and the time between two times (µs); 0 if it expires once.
    due: Option<u64>,
    interval: u64,
    /// Number of times that it was set: what waits for an earlier one ends.
    version: u64,
    /// Number of times that it has expired while its signal was pending.
    overrun: u32,
}

thread_local! {
    /// The timers of an interleaving, by number, on the scheduler's thread.
    static TIMERS: RefCell<BTreeMap<usize, Timer>> = RefCell::default();
}

fn with<T>(timer: usize, act: impl FnOnce(&mut Timer) -> T) -> Option<T> {
    TIMERS.with_borrow_mut(|timers| timers.get_mut(&timer).map(act))
}

fn shared(me: &CurrentThread<'_, '_>, timer: usize) -> (ProfilerLock, ConditionVariable) {
    let place = PLACES | timer;
    (objects::lock(me, place, LockKind::Plain, "timer"), objects::condition(me, place))
}

/// Returns the thread that takes a signal of the process, if there is one.
fn target(
    me: &CurrentThread<'_, '_>,
    number: c_int,
    counts_processors: bool,
) -> Option<ThreadIndex> {
    let waits = with_signals(|signals| {
        let mut waiting = signals.waiting.iter();
        waiting.find(|(_, (set, _))| masks::has(*set, number)).map(|(thread, _)| *thread)
    });
    let takes = |thread| !masks::has(with_signals(|signals| signals.mask_of(thread)), number);
    let first = ThreadIndex(0);
    let is_first = || !counts_processors && takes(first) && !me.has_ended(first);
    waits.or_else(|| is_first().then_some(first)).or_else(|| me.ran_last(takes))
}

/// Does what a timer does when it expires.
fn expire(me: &CurrentThread<'_, '_>, timer: usize, notice: Notice) {
    match notice {
        Notice::Nothing => {}
        Notice::Signal { sent, to, counts_processors } => {
            if with_signals(|signals| signals.has_pending(sent.number)) {
                with(timer, |timer| timer.overrun += 1);
                return;
            }
            with(timer, |timer| timer.overrun = 0);
            let to = to.or_else(|| target(me, sent.number, counts_processors));
            if to.is_some() {
                signals::send(me, to, sent);
            } else {
                with_signals(|signals| signals.shared.push_back(sent));
            }
        }
        Notice::Calls { function, value } => {
            guest_thread::check_room(me);
            me.spawn("a thread of a timer", move |me| {
                let carrier = guest_thread::of(me);
                carrier.execute(me, || function(value));
                carrier.finish(me);
            });
        }
    }
}

/// Waits for a timer that was set, and lets it expire.
fn keep(me: &CurrentThread<'_, '_>, timer: usize, version: u64) {
    // It is no thread that the system could choose.
    signals::begin(me.index(), u64::MAX);
    let (lock, changed) = shared(me, timer);
    me.acquire(lock);
    loop {
        let set = with(timer, |it| (it.version == version).then_some(*it)).flatten();
        let Some((set, due)) = set.and_then(|set| Some((set, set.due?))) else { break };
        let now = me.now();
        if me.is_over() {
            break;
        }
        if due > now {
            me.wait_on(changed, lock, Some(due - now));
            continue;
        }
        let next = (set.interval > 0).then(|| now + set.interval);
        with(timer, |timer| timer.due = next);
        me.unlock(lock);
        expire(me, timer, set.notice);
        me.acquire(lock);
    }
    me.unlock(lock);
}

/// Returns the time that is left (µs), or 0, and the time between two times.
fn left(me: &CurrentThread<'_, '_>, timer: usize) -> Option<[u64; 2]> {
    let now = me.now();
    with(timer, |timer| {
        let left = timer.due.map(|due| due.saturating_sub(now).max(1));
        [left.unwrap_or_default(), timer.interval]
    })
}

/// Sets a timer to a time from now, or to none, and to a time between two times (µs). Returns what was left; `None` if there is no
/// such timer.
fn set(
    me: &CurrentThread<'_, '_>,
    timer: usize,
    due: Option<u64>,
    interval: u64,
) -> Option<[u64; 2]> {
    let (lock, changed) = shared(me, timer);
    me.acquire(lock);
    let before = left(me, timer);
    let due = due.map(|due| me.now().saturating_add(due));
    let version = with(timer, |timer| {
        (timer.due, timer.interval, timer.version) = (due, interval, timer.version + 1);
        timer.version
    });
    me.wake(changed, true);
    me.unlock(lock);
    if let Some(version) = version.filter(|_| due.is_some()) {
        me.spawn("a timer of the process", move |me| keep(me, timer, version));
    }
    before
}

/// Makes a timer known. Returns its number.
fn add(notice: Notice) -> usize {
    TIMERS.with_borrow_mut(|timers| {
        let number = timers.keys().rfind(|it| **it < OF_PROCESS).map_or(1, |last| last + 1);
        let timer = Timer { notice, due: None, interval: 0, version: 0, overrun: 0 };
        timers.insert(number, timer);
        number
    })
}

/// The memory of a `sigevent` (bits/types/sigevent_t.h): a value, a signal, a kind, and a thread or a function.
#[repr(C)]
#[derive(Clone, Copy)]
struct Event {
    value: usize,
    signal: c_int,
    kind: c_int,
    function: usize,
}

/// Makes a timer. Returns its number; `None` if this is no thread of an interleaving.
///
/// # Safety
/// The event is NULL, or one.
unsafe fn create(clock: clockid_t, event: *const sigevent) -> Option<Result<usize, c_int>> {
    let carrier = guest_thread::current()?;
    // SAFETY: the caller's promise.
    let event = unsafe { event.cast::<Event>().as_ref() }.copied();
    let counts = matches!(clock, libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID);
    carrier.ask(move |me| {
        me.changes_objects();
        let signal = |number, value, to| Notice::Signal {
            sent: Sent { number, code: BY_TIMER, value },
            to,
            counts_processors: counts,
        };
        let notice = match event {
            // The value would be the timer's number, which nobody knows yet.
            None => signal(libc::SIGALRM, 0, None),
            Some(Event { kind: NOTHING, .. }) => Notice::Nothing,
            Some(Event { kind: libc::SIGEV_SIGNAL, signal: number, value, .. }) => {
                signal(number, value, None)
            }
            Some(Event { kind: libc::SIGEV_THREAD_ID, signal: number, value, function }) => {
                let to = me.thread_with(OsThreadId(function as u32)).ok_or(libc::EINVAL)?;
                signal(number, value, Some(to))
            }
            Some(Event { kind: libc::SIGEV_THREAD, function, value, .. }) if function != 0 => {
                // SAFETY: the guest's function.
                let function =
                    unsafe { std::mem::transmute::<usize, extern "C" fn(usize)>(function) };
                Notice::Calls { function, value }
            }
            Some(_) => return Err(libc::EINVAL),
        };
        Ok(add(notice))
    })
}

/// Sets a timer of the guest's. Returns what was left.
fn set_own(
    timer: usize,
    is_absolute: bool,
    [due, interval]: [u64; 2],
) -> Option<Result<[u64; 2], c_int>> {
    guest_thread::current()?.ask(move |me| {
        let from_now = if is_absolute { time::micros_until(me, due) } else { due };
        let due = (due > 0).then_some(from_now);
        me.uninterrupted(|| set(me, timer, due, interval)).ok_or(libc::EINVAL)
    })
}

/// Sets one of the timers that each process has.
fn set_of_process(which: c_int, [due, interval]: [u64; 2]) -> Option<Result<[u64; 2], c_int>> {
    let carrier = guest_thread::current()?;
    let Some((number, signal)) = usize::try_from(which)
        .ok()
        .and_then(|number| Some((OF_PROCESS | number, *SIGNALS.get(number)?)))
    else {
        return Some(Err(libc::EINVAL));
    };
    carrier.ask(move |me| {
        let sent = Sent { number: signal, code: BY_KERNEL, value: 0 };
        let counts_processors = which != libc::ITIMER_REAL;
        let notice = Notice::Signal { sent, to: None, counts_processors };
        TIMERS.with_borrow_mut(|timers| {
            let new = Timer { notice, due: None, interval: 0, version: 0, overrun: 0 };
            timers.entry(number).or_insert(new);
        });
        let due = (due > 0).then_some(due);
        me.uninterrupted(|| set(me, number, due, interval)).ok_or(libc::EINVAL)
    })
}

const fn spec(of: u64) -> timespec {
    timespec {
        tv_sec: (of / 1_000_000).cast_signed(),
        tv_nsec: (of % 1_000_000 * 1_000).cast_signed(),
    }
}

const fn value(of: u64) -> timeval {
    timeval { tv_sec: (of / 1_000_000).cast_signed(), tv_usec: (of % 1_000_000).cast_signed() }
}

fn micros(of: timeval) -> u64 {
    let seconds = u64::try_from(of.tv_sec).unwrap_or_default();
    seconds.saturating_mul(1_000_000).saturating_add(u64::try_from(of.tv_usec).unwrap_or_default())
}

/// Returns 0, or -1 with an error, and hands a result over.
fn finish<T>(done: Result<T, c_int>, hand_over: impl FnOnce(T)) -> c_int {
    match done {
        Ok(done) => {
            hand_over(done);
            0
        }
        Err(error) => refuse(error),
    }
}

unsafe extern "C" fn timer_create(
    clock: clockid_t,
    event: *mut sigevent,
    timer: *mut *mut c_void,
) -> c_int {
    // SAFETY: the guest's arguments, here and below.
    unsafe {
        match create(clock, event) {
            Some(made) => finish(made, |made| timer.write(made as *mut c_void)),
            None => libc::timer_create(clock, event, timer),
        }
    }
}

unsafe extern "C" fn timer_settime(
    timer: *mut c_void,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let is_absolute = flags & libc::TIMER_ABSTIME != 0;
        let wanted = [&raw const (*new).it_value, &raw const (*new).it_interval];
        match set_own(timer as usize, is_absolute, wanted.map(|it| time::read(it))) {
            Some(done) => finish(done, |[left, interval]| {
                if !old.is_null() {
                    old.write(itimerspec { it_interval: spec(interval), it_value: spec(left) });
                }
            }),
            None => libc::timer_settime(timer, flags, new, old),
        }
    }
}

unsafe extern "C" fn timer_gettime(timer: *mut c_void, room: *mut itimerspec) -> c_int {
    let at = timer as usize;
    let known = guest_thread::current().and_then(|carrier| carrier.ask(move |me| left(me, at)));
    // SAFETY: as above.
    unsafe {
        match known {
            Some(known) => finish(known.ok_or(libc::EINVAL), |[left, interval]| {
                room.write(itimerspec { it_interval: spec(interval), it_value: spec(left) });
            }),
            None => libc::timer_gettime(timer, room),
        }
    }
}

unsafe extern "C" fn timer_getoverrun(timer: *mut c_void) -> c_int {
    let at = timer as usize;
    let known = guest_thread::current()
        .and_then(|carrier| carrier.ask(move |_| with(at, |timer| timer.overrun)));
    match known {
        Some(Some(overrun)) => overrun.cast_signed(),
        Some(None) => refuse(libc::EINVAL),
        // SAFETY: as above.
        None => unsafe { libc::timer_getoverrun(timer) },
    }
}

unsafe extern "C" fn timer_delete(timer: *mut c_void) -> c_int {
    let at = timer as usize;
    let known = guest_thread::current().and_then(|carrier| {
        carrier.ask(move |me| {
            let known = me.uninterrupted(|| set(me, at, None, 0));
            TIMERS.with_borrow_mut(|timers| timers.remove(&at));
            known
        })
    });
    match known {
        Some(known) => finish(known.ok_or(libc::EINVAL), |_| ()),
        // SAFETY: as above.
        None => unsafe { libc::timer_delete(timer) },
    }
}

unsafe extern "C" {
    #[link_name = "setitimer"]
    fn real_setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int;
    #[link_name = "getitimer"]
    fn real_getitimer(which: c_int, times: *mut itimerval) -> c_int;
    #[link_name = "ualarm"]
    fn real_ualarm(micros: c_uint, interval: c_uint) -> c_uint;
}

unsafe extern "C" fn setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int {
    // SAFETY: as above.
    unsafe {
        let times = new.as_ref().map(|new| [micros(new.it_value), micros(new.it_interval)]);
        match set_of_process(which, times.unwrap_or_default()) {
            Some(done) => finish(done, |[left, interval]| {
                if !old.is_null() {
                    old.write(itimerval { it_interval: value(interval), it_value: value(left) });
                }
            }),
            None => real_setitimer(which, new, old),
        }
    }
}

unsafe extern "C" fn getitimer(which: c_int, times: *mut itimerval) -> c_int {
    let at = OF_PROCESS | which.cast_unsigned() as usize;
    let known = guest_thread::current().and_then(|carrier| carrier.ask(move |me| left(me, at)));
    // SAFETY: as above.
    unsafe {
        match known {
            Some(known) => {
                let [left, interval] = known.unwrap_or_default();
                times.write(itimerval { it_interval: value(interval), it_value: value(left) });
                0
            }
            None => real_getitimer(which, times),
        }
    }
}

unsafe extern "C" fn alarm(seconds: c_uint) -> c_uint {
    match set_of_process(libc::ITIMER_REAL, [u64::from(seconds) * 1_000_000, 0]) {
        // A part of a second counts as one.
        Some(left) => left.map_or(0, |[left, _]| left.div_ceil(1_000_000)) as c_uint,
        // SAFETY: no pointers.
        None => unsafe { libc::alarm(seconds) },
    }
}

unsafe extern "C" fn ualarm(micros: c_uint, interval: c_uint) -> c_uint {
    match set_of_process(libc::ITIMER_REAL, [micros.into(), interval.into()]) {
        Some(left) => left.map_or(0, |[left, _]| left) as c_uint,
        // SAFETY: no pointers.
        None => unsafe { real_ualarm(micros, interval) },
    }
}

/// Makes a call of the system by its number, if it is one of these. Returns an error of the system, or 0.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 4]) -> Option<c_int> {
    guest_thread::current()?;
    let [first, second, third, fourth] = arguments;
    let (word, timer) = ((first as u32).cast_signed(), first as *mut c_void);
    // The kernel's timers are numbers of 32 bits.
    // SAFETY: the caller's promise.
    let done = unsafe {
        match number {
            libc::SYS_timer_create => {
                let mut made = std::ptr::null_mut();
                let done = timer_create(word, second as *mut sigevent, &raw mut made);
                if done == 0 {
                    (third as *mut c_int).write(made as c_int);
                }
                done
            }
            libc::SYS_timer_settime => {
                let (new, old) = (third as *const itimerspec, fourth as *mut itimerspec);
                timer_settime(timer, (second as u32).cast_signed(), new, old)
            }
            libc::SYS_timer_gettime => timer_gettime(timer, second as *mut itimerspec),
            libc::SYS_timer_delete => timer_delete(timer),
            libc::SYS_setitimer => {
                setitimer(word, second as *const itimerval, third as *mut itimerval)
            }
            libc::SYS_getitimer => getitimer(word, second as *mut itimerval),
            _ => return None,
        }
    };
    // SAFETY: the variable of this thread.
    Some(if done == 0 { 0 } else { unsafe { *libc::__errno_location() } })
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 9] {
    replacements! {
        "timer_create" => timer_create,
        "timer_settime" => timer_settime,
        "timer_gettime" => timer_gettime,
        "timer_getoverrun" => timer_getoverrun,
        "timer_delete" => timer_delete,
        "setitimer" => setitimer,
        "getitimer" => getitimer,
        "alarm" => alarm,
        "ualarm" => ualarm,
    }
}
