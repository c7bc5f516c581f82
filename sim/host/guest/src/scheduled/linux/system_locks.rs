//! The locks of the process's heap (H-13), of its loader (H-12), and of its streams.
//!
//! A thread that is in the heap or the loader goes on whatever others do, unless a handler of a signal interrupts it
//! there: only then others wait for it. Until the guest has set a handler these calls are no switch points. Locks that are kept
//! while code of the guest's executes are locks for all.

use super::{Replacement, guest_thread, initialisers, objects, signals};
use clr_explore::{CurrentThread, LockKind, ProfilerLock};
use libc::{c_char, c_int, c_void, dl_phdr_info, size_t};
use std::arch::naked_asm;

unsafe extern "C" {
    fn _Unwind_Backtrace(trace: *mut c_void, argument: *mut c_void) -> c_int;
    fn flockfile(stream: *mut libc::FILE);
    fn ftrylockfile(stream: *mut libc::FILE) -> c_int;
    fn funlockfile(stream: *mut libc::FILE);
}

/// Takes locks of the process, and releases them.
fn takes(locks: fn(&CurrentThread<'_, '_>)) {
    if signals::may_interrupt()
        && let Some(carrier) = guest_thread::current()
    {
        carrier.ask(locks);
    }
}

/// Defines functions that take the locks of a function before they go to it, with its arguments, however many. Each row names
/// the function, the operation that takes the locks, and the words for it.
macro_rules! before {
    ($($name:ident: $function:ident $locks:ident $words:literal;)*) => {
        unsafe extern "C" {
            $(fn $function();)*
        }
        $(#[unsafe(naked)]
        unsafe extern "C" fn $name() {
            extern "C" fn first() {
                takes(|me| me.$locks($words));
            }
            naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 192",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                // The number of vector registers with arguments.
                "mov [rsp + 48], rax",
                "movups [rsp + 64], xmm0",
                "movups [rsp + 80], xmm1",
                "movups [rsp + 96], xmm2",
                "movups [rsp + 112], xmm3",
                "movups [rsp + 128], xmm4",
                "movups [rsp + 144], xmm5",
                "movups [rsp + 160], xmm6",
                "movups [rsp + 176], xmm7",
                "call {first}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "mov rax, [rsp + 48]",
                "movups xmm0, [rsp + 64]",
                "movups xmm1, [rsp + 80]",
                "movups xmm2, [rsp + 96]",
                "movups xmm3, [rsp + 112]",
                "movups xmm4, [rsp + 128]",
                "movups xmm5, [rsp + 144]",
                "movups xmm6, [rsp + 160]",
                "movups xmm7, [rsp + 176]",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "jmp [rip + {function}@GOTPCREL]",
                ".cfi_endproc",
                first = sym first,
                function = sym $function,
            )
        })*
    };
}

// `dlsym` takes the loader's lock (dlfcn/dlsym.c of glibc 2.34 and later: `GL(dl_load_lock)`). The functions of stdio take the
// lock of their stream, whose owner may take it again, and allocate the stream or its buffer (libio/filedoalloc.c).
before! {
    allocate: malloc allocate_by "calls malloc";
    allocate_zeroed: calloc allocate_by "calls calloc";
    reallocate: realloc allocate_by "calls realloc";
    allocate_aligned: memalign allocate_by "calls aligned_alloc";
    allocate_by_pointer: posix_memalign allocate_by "calls posix_memalign";
    close: dlclose load_library_by "calls dlclose";
    open_stream: fopen log_by "calls fopen";
    print: printf log_by "calls printf";
    print_checked: __printf_chk log_by "calls printf";
    print_to: fprintf log_by "calls fprintf";
    print_to_checked: __fprintf_chk log_by "calls fprintf";
    print_list: vprintf log_by "calls vprintf";
    print_list_to: vfprintf log_by "calls vfprintf";
    print_list_to_checked: __vfprintf_chk log_by "calls vfprintf";
    put_line: puts log_by "calls puts";
    put_text: fputs log_by "calls fputs";
    put_byte: fputc log_by "calls fputc";
    put_blocks: fwrite log_by "calls fwrite";
}

/// Takes the locks of `dlsym`.
pub(super) fn looks_up_symbol() {
    takes(|me| me.look_up_by("calls dlsym"));
}

/// A function that is called with an object.
type Visit = unsafe extern "C" fn(*mut dl_phdr_info, size_t, *mut c_void) -> c_int;

/// Returns the objects, as the loader describes them.
fn descriptions() -> Vec<(dl_phdr_info, size_t)> {
    unsafe extern "C" fn collect(info: *mut dl_phdr_info, size: size_t, to: *mut c_void) -> c_int {
        // SAFETY: the loader's description, and the list from below.
        unsafe { (*to.cast::<Vec<(dl_phdr_info, size_t)>>()).push((info.read(), size)) };
        0
    }
    let mut found = Vec::new();
    // SAFETY: the function gets the list that it expects.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut found).cast()) };
    found
}

/// Calls a function with each object, until it returns another number than 0.
unsafe fn visit_all(visit: Visit, data: *mut c_void) -> c_int {
    let calls = descriptions().into_iter().map(|(mut info, size)| {
        // SAFETY: the guest's function, with its data.
        unsafe { visit(&raw mut info, size, data) }
    });
    calls.into_iter().find(|result| *result != 0).unwrap_or_default()
}

unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        takes(|me| me.allocate_by("calls free"));
    }
    // SAFETY: the guest's arguments, here and below.
    unsafe { libc::free(block) }
}

/// Loads a library, whose imports lead to the scheduler from then on.
unsafe extern "C" fn open(path: *const c_char, flags: c_int) -> *mut c_void {
    takes(|me| me.load_library_by("calls dlopen"));
    // SAFETY: as above.
    let (library, _) = unsafe { initialisers::open(path, flags) };
    initialisers::initialise();
    library
}

/// Calls a function with the loader lock: the real one would stay with a thread that waits in there.
unsafe extern "C" fn each_object(visit: Option<Visit>, data: *mut c_void) -> c_int {
    let Some((carrier, visit)) = guest_thread::current().zip(visit) else {
        // SAFETY: as above.
        return unsafe { libc::dl_iterate_phdr(visit, data) };
    };
    let result = carrier.ask(move |me| {
        let mut result = None;
        me.in_loader(|| {
            if signals::may_interrupt() {
                me.point();
            }
            // SAFETY: the guest's function, with its data.
            result = guest_thread::of(me).execute(me, || unsafe { visit_all(visit, data) });
        });
        result
    });
    result.flatten().unwrap_or_default()
}

fn of_stream<T>(
    stream: *mut libc::FILE,
    what: impl FnOnce(&CurrentThread<'_, '_>, ProfilerLock) -> T,
) -> Option<T> {
    let at = stream as usize;
    guest_thread::current()?
        .ask(move |me| what(me, objects::lock(me, at, LockKind::Reentrant, "stream")))
}

/// Takes the lock of a stream for the guest: the real one would stay with a thread that waits.
unsafe extern "C" fn lock_stream(stream: *mut libc::FILE) {
    if of_stream(stream, |me, lock| me.acquire(lock)).is_none() {
        // SAFETY: as above.
        unsafe { flockfile(stream) };
    }
}

unsafe extern "C" fn try_lock_stream(stream: *mut libc::FILE) -> c_int {
    let taken = of_stream(stream, |me, lock| c_int::from(!me.try_acquire(lock, 0)));
    // SAFETY: as above.
    taken.unwrap_or_else(|| unsafe { ftrylockfile(stream) })
}

unsafe extern "C" fn unlock_stream(stream: *mut libc::FILE) {
    if of_stream(stream, |me, lock| me.unlock(lock)).is_none() {
        // SAFETY: as above.
        unsafe { funlockfile(stream) };
    }
}

unsafe extern "C" fn trace(callback: *mut c_void, argument: *mut c_void) -> c_int {
    takes(|me| me.look_up_by("calls _Unwind_Backtrace"));
    // SAFETY: as above.
    unsafe { _Unwind_Backtrace(callback, argument) }
}

/// Returns the functions that imports of the guest are to lead to. `operator new` is one of the library of C++, which
/// calls `malloc`.
pub(super) fn replaced() -> [Replacement; 26] {
    replacements! {
        "malloc" => allocate,
        "calloc" => allocate_zeroed,
        "realloc" => reallocate,
        "free" => free,
        "memalign" => allocate_aligned,
        "aligned_alloc" => allocate_aligned,
        "posix_memalign" => allocate_by_pointer,
        "dlopen" => open,
        "dlclose" => close,
        "dl_iterate_phdr" => each_object,
        "flockfile" => lock_stream,
        "ftrylockfile" => try_lock_stream,
        "funlockfile" => unlock_stream,
        "_Unwind_Backtrace" => trace,
        "fopen" => open_stream,
        "printf" => print,
        "__printf_chk" => print_checked,
        "fprintf" => print_to,
        "__fprintf_chk" => print_to_checked,
        "vprintf" => print_list,
        "vfprintf" => print_list_to,
        "__vfprintf_chk" => print_list_to_checked,
        "puts" => put_line,
        "fputs" => put_text,
        "fputc" => put_byte,
        "fwrite" => put_blocks,
    }
}
