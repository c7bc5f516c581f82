//! The lock of the process's heap (H-13).
//!
//! A thread that is in the heap goes on whatever others do, unless another thread suspends it there: until the guest has
//! suspended a thread these calls are no switch points.

use super::c_heap::{CALLOC, FREE, MALLOC, REALLOC};
use super::{Bool, suspension};
use crate::scheduled::{Replacement, guest_thread};
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Memory::{HeapAlloc, HeapFree, HeapReAlloc};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

/// Takes the lock of the heap, and releases it.
fn takes() {
    if suspension::has_begun()
        && let Some(carrier) = guest_thread::current()
    {
        carrier.ask(|me| me.allocate());
    }
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    takes();
    // SAFETY: what an import of this name led to, and the guest's arguments, here and below.
    unsafe {
        let real = std::mem::transmute::<usize, Malloc>(MALLOC.load(Ordering::Relaxed));
        real(size)
    }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    takes();
    // SAFETY: as above.
    unsafe {
        let real = std::mem::transmute::<usize, Calloc>(CALLOC.load(Ordering::Relaxed));
        real(count, size)
    }
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    takes();
    // SAFETY: as above.
    unsafe {
        let real = std::mem::transmute::<usize, Realloc>(REALLOC.load(Ordering::Relaxed));
        real(block, size)
    }
}

unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        takes();
    }
    // SAFETY: as above.
    unsafe {
        let real = std::mem::transmute::<usize, Free>(FREE.load(Ordering::Relaxed));
        real(block);
    }
}

unsafe extern "system" fn heap_alloc(heap: HANDLE, flags: u32, size: usize) -> *mut c_void {
    takes();
    // SAFETY: as above.
    unsafe { HeapAlloc(heap, flags, size) }
}

unsafe extern "system" fn heap_realloc(
    heap: HANDLE,
    flags: u32,
    block: *mut c_void,
    size: usize,
) -> *mut c_void {
    takes();
    // SAFETY: as above.
    unsafe { HeapReAlloc(heap, flags, block, size) }
}

unsafe extern "system" fn heap_free(heap: HANDLE, flags: u32, block: *mut c_void) -> Bool {
    takes();
    // SAFETY: as above.
    unsafe { HeapFree(heap, flags, block) }
}

/// Returns the functions that imports of the guest are to lead to. `operator new` is one of the library of C++, which
/// calls `malloc`.
pub(super) fn replaced() -> [Replacement; 7] {
    replacements! {
        "malloc" => malloc,
        "calloc" => calloc,
        "realloc" => realloc,
        "free" => free,
        "HeapAlloc" => heap_alloc,
        "HeapReAlloc" => heap_realloc,
        "HeapFree" => heap_free,
    }
}
