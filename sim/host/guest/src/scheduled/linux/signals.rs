//! Signals that the guest's threads send to threads, and the guest's handlers.
//!
//! No real signal is sent. A handler is executed on the thread that gets the signal, when that thread is at a switch
//! point and is chosen. A wait goes on afterwards, or ends with `EINTR` where that of Linux does: sleeps, and waits for
//! descriptors, always, `sem_wait`, futexes, reads and writes unless the handler restarts them. Handlers do not interrupt each other. The
//! registers that a handler gets are simulated numbers, as for any walk: on a thread of the profiler they are 0. To the guest
//! a thread is what `pthread_self` returns on it, and, by number, what the runtime calls it in `ThreadAssignedToOSThread` and
//! `GetThreadInfo`, which is what `gettid` returns.

use super::{guest_thread, masks, refuse, threads};
use clr_explore::{CurrentThread, EventObject, ThreadIndex};
use clr_runtime::OsThreadId;
use clr_unwind::Gpr;
use clr_walker::profiling::TargetThread as _;
use libc::{c_int, c_void, pid_t, pthread_t, sighandler_t, siginfo_t, ucontext_t};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

/// `SI_TKILL`: the code of a signal that was sent to a thread.
const TO_THREAD: c_int = -6;

/// Signals whose default action is none.
const HARMLESS: [c_int; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

/// The registers of a `ucontext_t`, and their names in walks.
const REGISTERS: [(c_int, Gpr); 16] = [
    (libc::REG_RAX, Gpr::Rax),
    (libc::REG_RBX, Gpr::Rbx),
    (libc::REG_RCX, Gpr::Rcx),
    (libc::REG_RDX, Gpr::Rdx),
    (libc::REG_RSI, Gpr::Rsi),
    (libc::REG_RDI, Gpr::Rdi),
    (libc::REG_RBP, Gpr::Rbp),
    (libc::REG_RSP, Gpr::Rsp),
    (libc::REG_R8, Gpr::R8),
    (libc::REG_R9, Gpr::R9),
    (libc::REG_R10, Gpr::R10),
    (libc::REG_R11, Gpr::R11),
    (libc::REG_R12, Gpr::R12),
    (libc::REG_R13, Gpr::R13),
    (libc::REG_R14, Gpr::R14),
    (libc::REG_R15, Gpr::R15),
];

/// A signal that was sent, and what its handler learns of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) number: c_int,
    pub(super) code: c_int,
    /// The value of a timer.
    pub(super) value: usize,
}

impl Sent {
    /// Returns one that a thread sends.
    const fn by_thread(number: c_int) -> Self {
        Self { number, code: TO_THREAD, value: 0 }
    }
}

/// The signals of an interleaving.
#[derive(Default)]
pub(super) struct Signals {
    actions: BTreeMap<c_int, libc::sigaction>,
    /// Signals that were sent, and not handled yet.
    pending: BTreeMap<ThreadIndex, VecDeque<Sent>>,
    /// The same, for whichever thread takes them first.
    pub(super) shared: VecDeque<Sent>,
    /// Threads, by what `pthread_self` has returned on them.
    known: BTreeMap<pthread_t, ThreadIndex>,
    /// Signals that threads do not take: sets of 64 bits.
    pub(super) masks: BTreeMap<ThreadIndex, u64>,
    /// Threads that wait for a signal of a set, and the events that tell them.
    pub(super) waiting: BTreeMap<ThreadIndex, (u64, EventObject)>,
}

impl Signals {
    /// Returns the signals that a thread does not take.
    pub(super) fn mask_of(&self, thread: ThreadIndex) -> u64 {
        self.masks.get(&thread).copied().unwrap_or_default()
    }

    /// Takes the oldest of a thread's pending signals for which `is_wanted` holds, or one of the process.
    pub(super) fn take(
        &mut self,
        thread: ThreadIndex,
        is_wanted: impl Fn(c_int) -> bool,
    ) -> Option<Sent> {
        let own = self.pending.get_mut(&thread);
        [own, Some(&mut self.shared)].into_iter().flatten().find_map(|pending| {
            let at = pending.iter().position(|sent| is_wanted(sent.number))?;
            pending.remove(at)
        })
    }

    /// Returns true if a signal is pending somewhere.
    pub(super) fn has_pending(&self, number: c_int) -> bool {
        let mut all = self.pending.values().chain([&self.shared]).flatten();
        all.any(|sent| sent.number == number)
    }
}

thread_local! {
    /// The signals, on the scheduler's thread.
    static SIGNALS: RefCell<Signals> = RefCell::default();
}

/// True if the guest has set a handler in this interleaving.
static HANDLED: AtomicBool = AtomicBool::new(false);

/// Returns true if a thread may be interrupted by a handler, so while it owns a lock of the process.
pub(super) fn may_interrupt() -> bool {
    HANDLED.load(Ordering::Relaxed)
}

pub(super) fn with<T>(act: impl FnOnce(&mut Signals) -> T) -> T {
    SIGNALS.with(|signals| act(&mut signals.borrow_mut()))
}

/// Returns the action of a signal that the guest has not changed: the default one.
fn default_action() -> libc::sigaction {
    // SAFETY: plain data, of which an empty one is the default.
    unsafe { std::mem::zeroed() }
}

fn action_of(number: c_int) -> libc::sigaction {
    with(|signals| signals.actions.get(&number).copied()).unwrap_or_else(default_action)
}

/// Executes the handler of the oldest signal that this thread of the interleaving has got.
pub(super) fn handle(me: &CurrentThread<'_, '_>) {
    let taken = with(|signals| {
        let mask = signals.mask_of(me.index());
        signals.take(me.index(), |number| !masks::has(mask, number))
    });
    let Some(taken) = taken else { return };
    let number = taken.number;
    let action = action_of(number);
    if matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) {
        return;
    }
    // SAFETY: plain data.
    let mut context: ucontext_t = unsafe { std::mem::zeroed() };
    let mut info = information(taken);
    if let Some(found) = me.target(me.index()).and_then(|own| own.context().ok()) {
        let registers = &mut context.uc_mcontext.gregs;
        let mut set = |name: c_int, value: u64| {
            if let Some(register) = usize::try_from(name).ok().and_then(|at| registers.get_mut(at))
            {
                *register = value.cast_signed();
            }
        };
        set(libc::REG_RIP, found.registers.rip);
        for (name, register) in REGISTERS {
            set(name, found.registers.get(register));
        }
    }
    guest_thread::of(me).execute(me, || {
        // SAFETY: the guest's handler, with the arguments of its kind; one without information ignores the others.
        unsafe {
            let handler = std::mem::transmute::<
                usize,
                extern "C" fn(c_int, *mut siginfo_t, *mut c_void),
            >(action.sa_sigaction);
            handler(number, &raw mut info, (&raw mut context).cast());
        }
    });
    me.ends_interrupted_wait(action.sa_flags & libc::SA_RESTART != 0);
}

/// Gives a new thread the mask of the one that starts it, whichever of the two is first.
pub(super) fn begin(thread: ThreadIndex, mask: u64) {
    with(|signals| _ = signals.masks.entry(thread).or_insert(mask));
}

/// Returns what a thread learns of a signal.
pub(super) fn information(sent: Sent) -> siginfo_t {
    /// Place of the value of a timer, in words: `si_value` of bits/types/siginfo_t.h.
    const VALUE: usize = 3;
    // SAFETY: plain data.
    let mut info: siginfo_t = unsafe { std::mem::zeroed() };
    info.si_signo = sent.number;
    info.si_code = sent.code;
    if sent.value != 0 {
        // SAFETY: a word of the information, which has 16.
        unsafe { (&raw mut info).cast::<usize>().add(VALUE).write(sent.value) };
    }
    info
}

/// Delivers pending signals that this thread takes again. Returns their number.
pub(super) fn deliver(me: &CurrentThread<'_, '_>, unblocked: u64) -> usize {
    let take = || with(|signals| signals.take(me.index(), |it| masks::has(unblocked, it)));
    let mine: Vec<_> = std::iter::from_fn(take).collect();
    let count = mine.len();
    for sent in mine {
        send(me, Some(me.index()), sent);
    }
    count
}

/// Sends a signal. Returns an error of the system, or 0.
pub(super) fn send(me: &CurrentThread<'_, '_>, to: Option<ThreadIndex>, sent: Sent) -> c_int {
    let number = sent.number;
    let Some(to) = to.filter(|to| !me.has_ended(*to)) else { return libc::ESRCH };
    let action = action_of(number);
    let (mask, waits) = with(|signals| (signals.mask_of(to), signals.waiting.get(&to).copied()));
    let waits = waits.filter(|(set, _)| masks::has(*set, number));
    match action.sa_sigaction {
        _ if number == 0 => {}
        // It stays pending until the thread takes it, or waits for it.
        _ if masks::has(mask, number) || waits.is_some() => {
            with(|signals| signals.pending.entry(to).or_default().push_back(sent));
            if let Some((_, event)) = waits {
                me.set(event);
            }
        }
        _ if !me.has_signals() => {
            me.fail("the profiler sends a signal, which threads on Windows do not take");
        }
        libc::SIG_IGN => {}
        libc::SIG_DFL if HARMLESS.contains(&number) => {}
        libc::SIG_DFL => me.fail(format!(
            "the profiler sends signal {number}, for which it has no handler: it ends the process"
        )),
        _ => {
            with(|signals| signals.pending.entry(to).or_default().push_back(sent));
            me.signal(to);
            if to == me.index() {
                // The handler is executed before the call returns.
                me.point();
            }
        }
    }
    0
}

/// Sends a signal to a thread that is known by what `pthread_create` or `pthread_self` has returned. One that has ended and was not
/// joined takes none, which is no error since version 2.34 of glibc (`__pthread_kill_implementation` of nptl/pthread_kill.c).
pub(super) unsafe extern "C" fn thread_kill(thread: pthread_t, number: c_int) -> c_int {
    let Some(carrier) = guest_thread::current() else {
        // SAFETY: the guest's arguments.
        return unsafe { libc::pthread_kill(thread, number) };
    };
    let sent = carrier.ask(move |me| {
        let known = with(|signals| signals.known.get(&thread).copied());
        let to = threads::known(thread).or(known);
        if to.is_some_and(|to| me.has_ended(to)) {
            return 0;
        }
        send(me, to, Sent::by_thread(number))
    });
    sent.unwrap_or(libc::ESRCH)
}

/// Sends a signal to a thread, by number. Returns an error of the system, or 0; `None` if this is no thread of an
/// interleaving.
pub(super) fn kill_by_number(thread: u32, number: c_int) -> Option<c_int> {
    guest_thread::current()?
        .ask(move |me| send(me, me.thread_with(OsThreadId(thread)), Sent::by_thread(number)))
}

pub(super) unsafe extern "C" fn tgkill(group: pid_t, thread: pid_t, number: c_int) -> c_int {
    match kill_by_number(thread.cast_unsigned(), number) {
        Some(0) => 0,
        Some(error) => refuse(error),
        // SAFETY: no pointers.
        None => unsafe { libc::syscall(libc::SYS_tgkill, group, thread, number) as c_int },
    }
}

pub(super) unsafe extern "C" fn raise(number: c_int) -> c_int {
    let sent = guest_thread::current().and_then(|carrier| {
        carrier.ask(move |me| send(me, Some(me.index()), Sent::by_thread(number)))
    });
    match sent {
        Some(0) => 0,
        Some(error) => refuse(error),
        // SAFETY: no pointers.
        None => unsafe { libc::raise(number) },
    }
}

pub(super) unsafe extern "C" fn thread_self() -> pthread_t {
    // SAFETY: no pointers.
    let id = unsafe { libc::pthread_self() };
    if let Some(carrier) = guest_thread::current() {
        carrier.ask(move |me| with(|signals| signals.known.insert(id, me.index())));
    }
    id
}

/// Returns the number of this thread, if it is one of an interleaving.
pub(super) fn own_number() -> Option<u32> {
    guest_thread::current()?.ask(|me| me.os().0)
}

pub(super) unsafe extern "C" fn gettid() -> pid_t {
    // SAFETY: no pointers.
    own_number().map_or_else(|| unsafe { libc::gettid() }, u32::cast_signed)
}

pub(super) unsafe extern "C" fn sigaction(
    number: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let Some(carrier) = guest_thread::current() else {
        // SAFETY: the guest's arguments.
        return unsafe { libc::sigaction(number, new, old) };
    };
    if number <= 0 || number > libc::SIGRTMAX() {
        return refuse(libc::EINVAL);
    }
    // SAFETY: NULL, or the guest's action.
    let new = unsafe { new.as_ref() }.copied();
    let before = carrier.ask(move |_| {
        let before = action_of(number);
        if let Some(new) = new {
            with(|signals| signals.actions.insert(number, new));
        }
        before
    });
    if new.is_some_and(|new| !matches!(new.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)) {
        HANDLED.store(true, Ordering::Relaxed);
    }
    if let (Some(before), false) = (before, old.is_null()) {
        // SAFETY: the guest's room for an action.
        unsafe { old.write(before) };
    }
    0
}

pub(super) unsafe extern "C" fn signal(number: c_int, handler: sighandler_t) -> sighandler_t {
    if guest_thread::current().is_none() {
        // SAFETY: the guest's arguments.
        return unsafe { libc::signal(number, handler) };
    }
    let new = libc::sigaction { sa_sigaction: handler, ..default_action() };
    let mut old = default_action();
    // SAFETY: two locals.
    match unsafe { sigaction(number, &raw const new, &raw mut old) } {
        0 => old.sa_sigaction,
        _ => libc::SIG_ERR,
    }
}

/// The kernel's `sigaction`, as its calls take it.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Sets an action as the kernel's call does.
///
/// # Safety
/// The actions are NULL, or the kernel's.
unsafe fn set_action(number: c_int, new: *const KernelAction, old: *mut KernelAction) -> c_int {
    // SAFETY: the caller's promise, and locals.
    unsafe {
        let new = new.as_ref().map(|new| libc::sigaction {
            sa_sigaction: new.handler,
            sa_flags: (new.flags as u32).cast_signed(),
            ..default_action()
        });
        let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let mut before = default_action();
        let set = sigaction(number, new, &raw mut before);
        if set != 0 {
            return libc::EINVAL;
        }
        if !old.is_null() {
            let (handler, flags) = (before.sa_sigaction, before.sa_flags.cast_unsigned().into());
            old.write(KernelAction { handler, flags, restorer: 0, mask: 0 });
        }
    }
    0
}

/// Makes a call of the system by its number, if it is one of these. Returns an error of the system, or 0.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn by_number(number: i64, arguments: [usize; 4]) -> Option<c_int> {
    let [first, second, third, _] = arguments.map(|argument| argument as u32);
    let [_, new, old, _] = arguments;
    match number {
        libc::SYS_tgkill => kill_by_number(second, third.cast_signed()),
        libc::SYS_tkill => kill_by_number(first, second.cast_signed()),
        libc::SYS_rt_sigaction if guest_thread::current().is_some() => {
            let (new, old) = (new as *const KernelAction, old as *mut KernelAction);
            // SAFETY: the caller's promise.
            Some(unsafe { set_action(first.cast_signed(), new, old) })
        }
        _ => None,
    }
}
