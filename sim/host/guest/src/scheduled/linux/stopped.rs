//! Threads of the guest that are stopped: by a fault, or to look at their stacks when the interleaving is over.
//!
//! A thread that is stopped waits in a signal handler until its process ends.

use super::{damage, guest_thread, instructions};
use crate::scheduled::guest_thread::GuestThread;
use clr_unwind::Registers;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Signals that end a process.
const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGTRAP];

/// Real time that a process has after a fault, in seconds.
const AFTER_FAULT: u32 = 10;

/// Size of a stack for handlers in bytes: the frame of a signal has the vector registers.
const STACK: usize = 64 << 10;

/// Returns the signal that stops a thread: one that profilers do not use.
fn stop_signal() -> c_int {
    libc::SIGRTMAX() - 3
}

/// Returns the name of a signal.
pub(crate) fn name(signal: c_int) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGABRT => "SIGABRT",
        libc::SIGTRAP => "SIGTRAP",
        _ => "a signal",
    }
}

/// Returns what the library of C has said of a fault.
pub(crate) fn remark(signal: c_int) -> Option<&'static str> {
    damage::refusal().filter(|_| signal == libc::SIGABRT)
}

/// Has faults of the guest's threads, and the signal that stops them, handled in this process.
pub(crate) fn handle_faults() {
    for signal in FAULTS.into_iter().chain([stop_signal()]) {
        // SAFETY: all zero is a valid sigaction; the handler has the type that SA_SIGINFO demands.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = stop;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, null_mut());
        }
    }
    instructions::handle();
}

/// Gives this thread a stack for handlers, for as long as the process lives: it may have exhausted its own. Its calls of the system
/// are handled from then on.
pub(crate) fn add_stack() {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which nobody unmaps, becomes the stack; a failed call leaves the thread as it is.
    unsafe {
        let start = libc::mmap(null_mut(), STACK, protection, flags, -1, 0);
        if start != libc::MAP_FAILED {
            let stack = libc::stack_t { ss_sp: start, ss_flags: 0, ss_size: STACK };
            libc::sigaltstack(&raw const stack, null_mut());
        }
    }
    instructions::take_calls();
}

unsafe extern "C" fn stop(signal: c_int, _: *mut libc::siginfo_t, ucontext: *mut c_void) {
    if signal == libc::SIGABRT {
        damage::report();
    }
    let Some(carrier) = guest_thread::current() else {
        // SAFETY: a fault of the scheduler's own thread ends the process, as without a handler.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    };
    // SAFETY: the kernel passes a ucontext_t, of which these are the first bytes.
    let registers = unsafe { &*ucontext.cast::<[u8; Registers::LINUX_UCONTEXT_SIZE]>() };
    let registers = Registers::from_linux_ucontext(registers);
    let fault = (signal != stop_signal()).then_some(signal);
    if fault.is_some() {
        // The thread may own a lock, of the heap for example, that the end of the interleaving needs.
        // SAFETY: no pointers.
        unsafe {
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::alarm(AFTER_FAULT);
        }
    }
    carrier.stops(&registers, fault);
    loop {
        // SAFETY: no pointers.
        unsafe { libc::pause() };
    }
}

/// Stops a thread, and returns its registers. `None` if it does not stop, or has ended.
pub(crate) fn registers(carrier: &GuestThread) -> Option<Registers> {
    if let Some(registers) = carrier.stopped() {
        return Some(registers);
    }
    // SAFETY: no pointers.
    let sent = unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), carrier.id()?, stop_signal()) == 0
    };
    if sent { carrier.wait_until_stopped() } else { None }
}

/// Calls of the system that a thread may wait in for ever, by number.
const CALLS: [(i64, &str); 8] = [
    (libc::SYS_futex, "futex"),
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_poll, "poll"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_wait4, "waitpid"),
    (libc::SYS_io_getevents, "io_getevents"),
];

/// Returns the name of the call of the system that a thread waits in.
pub(crate) fn waits_in(thread: c_int) -> Option<String> {
    let words = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    let number: i64 = words.split(' ').next()?.parse().ok()?;
    let known = CALLS.iter().find(|(call, _)| *call == number);
    Some(known.map_or_else(|| format!("system call {number}"), |(_, name)| (*name).to_owned()))
}
