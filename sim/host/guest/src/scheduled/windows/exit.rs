//! The end of the process, as `ExitProcess` makes it (its documentation, and that of "Dynamic-Link Library Entry-Point Function"):
//! all other threads are ended at once, wherever they are, with whatever they own. Then the thread calls the functions of its
//! fiber-local values (assumed: before the libraries), and each library, the one that was initialised last first:
//! its TLS callbacks (PE format, "The .tls Section"), then its entry point, by which its library of C calls the functions
//! of `atexit` and destroys static objects.

use super::imports::in_order_of_initialisation;
use super::threads::loader;
use super::{Bool, LoadedObject};
use crate::scheduled::objects::{self, place};
use crate::scheduled::replacement::Importer as _;
use crate::scheduled::{Replacement, guest_thread};
use clr_explore::CurrentThread;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::null;
use std::sync::{Mutex, PoisonError};
use windows_sys::Win32::System::Threading::{
    FLS_OUT_OF_INDEXES, FlsAlloc, FlsFree, FlsGetValue, FlsSetValue,
};

/// `DLL_PROCESS_DETACH`, and the third argument if the process ends.
const DETACH: u32 = 0;
const AT_THE_END: *mut c_void = std::ptr::dangling_mut();

/// A function that is called with the address of its library, a reason and whether the process ends: a TLS callback, or an entry
/// point.
type OfLibrary = unsafe extern "system" fn(*mut c_void, u32, *mut c_void) -> Bool;
/// A function that is called with a value.
type OfValue = unsafe extern "system" fn(*const c_void);

/// The functions of fiber-local values, by index.
static OF_VALUES: Mutex<BTreeMap<u32, OfValue>> = Mutex::new(BTreeMap::new());

fn with<T>(act: impl FnOnce(&mut BTreeMap<u32, OfValue>) -> T) -> T {
    act(&mut OF_VALUES.lock().unwrap_or_else(PoisonError::into_inner))
}

unsafe extern "system" fn allocate(function: Option<OfValue>) -> u32 {
    // SAFETY: the guest's function.
    let index = unsafe { FlsAlloc(function) };
    if let Some(function) = function.filter(|_| index != FLS_OUT_OF_INDEXES) {
        with(|known| known.insert(index, function));
    }
    index
}

unsafe extern "system" fn free(index: u32) -> Bool {
    with(|known| known.remove(&index));
    // SAFETY: no pointers.
    unsafe { FlsFree(index) }
}

/// Calls the functions of this thread's fiber-local values.
fn end_values() {
    for (index, function) in with(|known| known.clone()) {
        // SAFETY: the guest's function, with the guest's value.
        unsafe {
            let value = FlsGetValue(index);
            if !value.is_null() {
                FlsSetValue(index, null());
                function(value);
            }
        }
    }
}

/// Calls the functions of a library at the end of the process.
fn end_library(library: &LoadedObject) {
    for function in library.thread_callbacks().into_iter().chain(library.entry_point()) {
        // SAFETY: the function of the loaded library, as the loader calls it.
        unsafe {
            let function = std::mem::transmute::<u64, OfLibrary>(function);
            function(library.start() as *mut c_void, DETACH, AT_THE_END);
        }
    }
}

/// Ends the process, on a thread of the program.
pub(in crate::scheduled) fn exit(me: &CurrentThread<'_, '_>) {
    // The loader's lock comes first: no thread ends within the loader.
    let loader = loader(me);
    me.acquire(loader);
    // Nor does one within the heap (assumed).
    me.in_heap(|| me.end_others());
    // Calls of the system are over, or were not begun.
    for place in [place::HANDLES, place::POOL] {
        objects::forget(me, place);
    }
    guest_thread::of(me).execute(me, || {
        end_values();
        for library in in_order_of_initialisation().iter().rev().filter(|it| it.is_replaced()) {
            end_library(library);
        }
    });
    me.unlock(loader);
    me.end_process();
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 2] {
    replacements! {
        "FlsAlloc" => allocate,
        "FlsFree" => free,
    }
}
