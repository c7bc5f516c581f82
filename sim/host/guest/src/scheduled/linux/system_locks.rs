//! The locks of the process's heap (H-13) and of its loader (H-12).
//!
//! A thread that is in the heap or the loader goes on whatever others do, unless a handler of a signal interrupts it
//! there: only then others wait for it. Until the guest has set a handler these calls are no switch points.

use super::{Replacement, guest_thread, initialisers, signals};
use clr_explore::CurrentThread;
use libc::{c_char, c_int, c_void, dl_phdr_info, size_t};

unsafe extern "C" {
    fn _Unwind_Backtrace(trace: *mut c_void, argument: *mut c_void) -> c_int;
    fn memalign(alignment: size_t, size: size_t) -> *mut c_void;
}

/// Takes a lock of the process, and releases it.
fn takes(lock: fn(&CurrentThread<'_, '_>)) {
    if signals::may_interrupt()
        && let Some(carrier) = guest_thread::current()
    {
        carrier.ask(lock);
    }
}

fn heap() {
    takes(|me| me.allocate());
}

fn loader(me: &CurrentThread<'_, '_>) {
    me.load_library();
}

fn objects_of_loader(me: &CurrentThread<'_, '_>) {
    me.look_up_function_entry();
}

unsafe extern "C" fn malloc(size: size_t) -> *mut c_void {
    heap();
    // SAFETY: the guest's arguments, here and below.
    unsafe { libc::malloc(size) }
}

unsafe extern "C" fn calloc(count: size_t, size: size_t) -> *mut c_void {
    heap();
    // SAFETY: as above.
    unsafe { libc::calloc(count, size) }
}

unsafe extern "C" fn realloc(block: *mut c_void, size: size_t) -> *mut c_void {
    heap();
    // SAFETY: as above.
    unsafe { libc::realloc(block, size) }
}

unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        heap();
    }
    // SAFETY: as above.
    unsafe { libc::free(block) }
}

unsafe extern "C" fn aligned(alignment: size_t, size: size_t) -> *mut c_void {
    heap();
    // SAFETY: as above.
    unsafe { memalign(alignment, size) }
}

unsafe extern "C" fn aligned_by_pointer(
    block: *mut *mut c_void,
    alignment: size_t,
    size: size_t,
) -> c_int {
    heap();
    // SAFETY: as above.
    unsafe { libc::posix_memalign(block, alignment, size) }
}

/// Loads a library, whose imports lead to the scheduler from then on.
unsafe extern "C" fn open(path: *const c_char, flags: c_int) -> *mut c_void {
    takes(loader);
    // SAFETY: as above.
    let (library, _) = unsafe { initialisers::open(path, flags) };
    initialisers::initialise();
    library
}

unsafe extern "C" fn close(library: *mut c_void) -> c_int {
    takes(loader);
    // SAFETY: as above.
    unsafe { libc::dlclose(library) }
}

unsafe extern "C" fn each_object(
    callback: Option<unsafe extern "C" fn(*mut dl_phdr_info, size_t, *mut c_void) -> c_int>,
    data: *mut c_void,
) -> c_int {
    takes(objects_of_loader);
    // SAFETY: as above.
    unsafe { libc::dl_iterate_phdr(callback, data) }
}

unsafe extern "C" fn trace(callback: *mut c_void, argument: *mut c_void) -> c_int {
    takes(objects_of_loader);
    // SAFETY: as above.
    unsafe { _Unwind_Backtrace(callback, argument) }
}

/// Returns the functions that imports of the guest are to lead to. `operator new` is one of the library of C++, which
/// calls `malloc`. `dlsym` stays: what it finds may depend on the library that calls it.
pub(super) fn replaced() -> [Replacement; 11] {
    replacements! {
        "malloc" => malloc,
        "calloc" => calloc,
        "realloc" => realloc,
        "free" => free,
        "memalign" => aligned,
        "aligned_alloc" => aligned,
        "posix_memalign" => aligned_by_pointer,
        "dlopen" => open,
        "dlclose" => close,
        "dl_iterate_phdr" => each_object,
        "_Unwind_Backtrace" => trace,
    }
}
