//! Threads of the guest that are stopped: by a fault, or to look at their stacks when the interleaving is over.
//!
//! A thread that is stopped stays where it is until its process ends.

use crate::scheduled::guest_thread::{self, GuestThread};
use clr_unwind::Registers;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;
use windows_sys::Win32::Foundation::{
    EXCEPTION_ACCESS_VIOLATION, EXCEPTION_BREAKPOINT, EXCEPTION_ILLEGAL_INSTRUCTION,
    EXCEPTION_INT_DIVIDE_BY_ZERO, EXCEPTION_STACK_OVERFLOW, NTSTATUS,
};
use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, CONTEXT_FULL_AMD64, EXCEPTION_POINTERS, GetThreadContext, RtlCaptureContext,
    SetUnhandledExceptionFilter,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, INFINITE, OpenThread, SetThreadStackGuarantee, Sleep, SuspendThread,
    THREAD_GET_CONTEXT, THREAD_SUSPEND_RESUME, TerminateProcess,
};

/// The number of `abort` among faults: no exception has it.
const ABORT: c_int = 0;

/// Stack that a thread has after it has exhausted its own, in bytes.
const STACK: u32 = 64 << 10;

/// Real time that a process has after a fault, and its exit code if that is over: `WAIT_TIMEOUT`.
const AFTER_FAULT: Duration = Duration::from_secs(10);
const HUNG: u32 = 258;

/// A context as the system wants it.
#[repr(align(16))]
struct Aligned(CONTEXT);

impl Aligned {
    fn new() -> Self {
        // SAFETY: plain data.
        let mut context: CONTEXT = unsafe { std::mem::zeroed() };
        context.ContextFlags = CONTEXT_FULL_AMD64;
        Self(context)
    }
}

fn read(context: &CONTEXT) -> Option<Registers> {
    // SAFETY: plain data, as bytes.
    let bytes = unsafe {
        std::slice::from_raw_parts((&raw const *context).cast::<u8>(), size_of::<CONTEXT>())
    };
    Registers::from_context(bytes).ok()
}

/// Returns the name of a fault.
pub(crate) fn name(fault: c_int) -> &'static str {
    const STACK_BUFFER_OVERRUN: NTSTATUS = 0xC000_0409_u32.cast_signed();
    match fault {
        ABORT => "abort",
        EXCEPTION_ACCESS_VIOLATION => "EXCEPTION_ACCESS_VIOLATION",
        EXCEPTION_BREAKPOINT => "EXCEPTION_BREAKPOINT",
        EXCEPTION_ILLEGAL_INSTRUCTION => "EXCEPTION_ILLEGAL_INSTRUCTION",
        EXCEPTION_INT_DIVIDE_BY_ZERO => "EXCEPTION_INT_DIVIDE_BY_ZERO",
        EXCEPTION_STACK_OVERFLOW => "EXCEPTION_STACK_OVERFLOW",
        STACK_BUFFER_OVERRUN => "STATUS_STACK_BUFFER_OVERRUN",
        _ => "an unhandled exception",
    }
}

/// Returns nothing: the library of C says nothing of a fault.
pub(crate) const fn remark(_: c_int) -> Option<&'static str> {
    None
}

/// The thread that ends the process some time after a fault.
static WATCHDOG: OnceLock<Thread> = OnceLock::new();
static HAS_FAULTED: AtomicBool = AtomicBool::new(false);

/// Has exceptions that nothing handles handled in this process.
pub(crate) fn handle_faults() {
    let watchdog = std::thread::spawn(|| {
        while !HAS_FAULTED.load(Ordering::Relaxed) {
            std::thread::park();
        }
        std::thread::sleep(AFTER_FAULT);
        // SAFETY: no pointers.
        unsafe { TerminateProcess(GetCurrentProcess(), HUNG) };
    });
    WATCHDOG.get_or_init(|| watchdog.thread().clone());
    // SAFETY: a function of the documented type.
    unsafe { SetUnhandledExceptionFilter(Some(filter)) };
}

/// Gives this thread stack for the filter, for as long as it lives: it may have exhausted its own.
pub(crate) fn add_stack() {
    let mut size = STACK;
    // SAFETY: a size. Without success an exhausted stack ends the process.
    unsafe { SetThreadStackGuarantee(&raw mut size) };
}

unsafe extern "system" fn filter(pointers: *const EXCEPTION_POINTERS) -> i32 {
    /// `EXCEPTION_CONTINUE_SEARCH`: the process ends, as without a filter.
    const GO_ON: i32 = 0;
    let Some(carrier) = guest_thread::current() else { return GO_ON };
    // SAFETY: the system passes a record and a context.
    let (code, registers) = unsafe {
        let EXCEPTION_POINTERS { ExceptionRecord, ContextRecord } = *pointers;
        ((*ExceptionRecord).ExceptionCode, read(&*ContextRecord))
    };
    let Some(registers) = registers else { return GO_ON };
    stop(&carrier, &registers, code)
}

/// Notes that a thread has stopped by a fault, and stops it.
fn stop(carrier: &GuestThread, registers: &Registers, fault: c_int) -> ! {
    // The thread may own a lock, of the heap for example, that the end of the interleaving needs.
    HAS_FAULTED.store(true, Ordering::Relaxed);
    if let Some(watchdog) = WATCHDOG.get() {
        watchdog.unpark();
    }
    carrier.stops(registers, Some(fault));
    loop {
        // SAFETY: no pointers.
        unsafe { Sleep(INFINITE) };
    }
}

/// Stops this thread of an interleaving, which wants to end the process as after a fault.
pub(super) fn abort(carrier: &GuestThread) -> ! {
    let mut context = Aligned::new();
    // SAFETY: room for a context.
    unsafe { RtlCaptureContext(&raw mut context.0) };
    stop(carrier, &read(&context.0).unwrap_or_default(), ABORT)
}

/// Stops a thread, and returns its registers. `None` if it does not stop, or has ended.
pub(crate) fn registers(carrier: &GuestThread) -> Option<Registers> {
    if let Some(registers) = carrier.stopped() {
        return Some(registers);
    }
    let rights = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT;
    let mut context = Aligned::new();
    // SAFETY: no pointers but that of a context; the thread stays suspended.
    unsafe {
        let thread = OpenThread(rights, 0, carrier.id()?.cast_unsigned());
        let is_stopped = !thread.is_null()
            && SuspendThread(thread) != u32::MAX
            && GetThreadContext(thread, &raw mut context.0) != 0;
        is_stopped.then(|| read(&context.0)).flatten()
    }
}

/// Returns no name: the system tells none.
pub(crate) const fn waits_in(_: c_int) -> Option<String> {
    None
}
