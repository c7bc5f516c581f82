//! Calls of the system by instructions of the guest's own, as Go's runtime and code in assembly make them: they have no
//! import. The kernel hands them to a handler (Syscall User Dispatch, Linux 5.11 and later), from where they go the way of
//! those by `syscall`. Without it a thread that waits in one has left the simulation.

use super::imports::{LoadedObject, loaded_objects};
use super::{futex, guest_thread, sanitizer};
use crate::scheduled::replacement::Importer as _;
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `PR_SET_SYSCALL_USER_DISPATCH` and `PR_SYS_DISPATCH_ON` of linux/prctl.h.
const DISPATCH: c_int = 59;
const ON: usize = 1;

/// `SYSCALL_DISPATCH_FILTER_BLOCK`: calls from outside of the C library go to the handler.
static SELECTOR: u8 = 1;

/// The addresses (VA) of the C library, and of all objects whose calls stay.
struct Kept {
    library: Range<u64>,
    all: Vec<Range<u64>>,
}

/// The present list: NULL, or one that stays. A handler of signals reads it.
static KEPT: AtomicPtr<Kept> = AtomicPtr::new(null_mut());

/// Notes the objects whose calls stay: for all interleavings of a library, once it has been loaded, or before the first of those
/// that load it.
pub(in crate::scheduled) fn note_own_calls() {
    let objects = loaded_objects();
    let kept = || objects.iter().filter(|it| !it.is_replaced() || it.is_of_kernel());
    let library = kept().find(|it| it.path().to_string_lossy().contains("/libc.so"));
    let kept = Kept {
        library: library.map(LoadedObject::code).unwrap_or_default(),
        all: kept().map(LoadedObject::code).collect(),
    };
    KEPT.store(Box::leak(Box::new(kept)), Ordering::Release);
}

fn kept() -> Option<&'static Kept> {
    // SAFETY: NULL, or a list that stays, and is complete where its address is seen.
    unsafe { KEPT.load(Ordering::Acquire).as_ref() }
}

/// Has the kernel hand over the calls of this process's threads, once each [asks](take_calls) for it.
pub(super) fn handle() {
    // SAFETY: all zero is a valid sigaction; the handler has the type that SA_SIGINFO demands. What the guest executes within
    // the handler may make such a call again.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = answer;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGSYS, &raw const action, null_mut());
    }
}

/// Has the kernel hand over the calls of this thread. A sanitizer's library makes its own.
pub(super) fn take_calls() {
    let Range { start, end } = kept().map(|kept| kept.library.clone()).unwrap_or_default();
    if start < end && !sanitizer::is_there() {
        // SAFETY: a range of addresses, and a byte that stays. An older kernel refuses.
        unsafe { libc::prctl(DISPATCH, ON, start, end - start, &raw const SELECTOR) };
    }
}

/// Answers a call of the system with these registers.
unsafe extern "C" fn answer(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a ucontext_t.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    let index = |name: c_int| usize::try_from(name).unwrap_or_default();
    let read = |name| registers.get(index(name)).map_or(0, |it| *it);
    let place = read(libc::REG_RIP).cast_unsigned();
    let number = read(libc::REG_RAX);
    let names =
        [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9];
    let [one, two, three, four, five, six] = names.map(|name| read(name).cast_unsigned() as usize);
    let is_kept = kept().is_some_and(|kept| kept.all.iter().any(|it| it.contains(&place)));
    // SAFETY: the variable of this thread, which such a call does not change; the arguments are those of the call.
    let result = unsafe {
        let error = libc::__errno_location();
        let before = *error;
        let result = if is_kept || guest_thread::current().is_none() {
            libc::syscall(number, one, two, three, four, five, six)
        } else {
            futex::syscall(number, one, two, three, four, five, six)
        };
        let result = if result == -1 { -i64::from(*error) } else { result };
        *error = before;
        result
    };
    if let Some(register) = registers.get_mut(index(libc::REG_RAX)) {
        *register = result;
    }
}
