//! Libraries and functions that the guest asks the system for.

use super::suspension::has_begun;
use super::threads::{exit, in_loader};
use super::{loaded_objects, replacements};
use crate::scheduled::Replacement;
use crate::scheduled::replacement::{Importer as _, replace_imports};
use std::ffi::{CStr, c_void};
use std::os::raw::c_char;
use windows_sys::Win32::Foundation::{FARPROC, FreeLibrary, HANDLE, HMODULE};
use windows_sys::Win32::System::LibraryLoader::{
    GetProcAddress, LoadLibraryA, LoadLibraryExA, LoadLibraryExW, LoadLibraryW,
};

/// Loads a library, whose imports lead to the scheduler from then on.
fn load(load: impl FnOnce() -> HMODULE) -> HMODULE {
    if has_begun()
        && let Some(carrier) = super::current()
    {
        // A thread that is suspended in the loader keeps its lock (H-12).
        carrier.ask(|me| {
            me.load_library();
        });
    }
    in_loader(|| {
        let before = loaded_objects();
        let library = load();
        let error = super::last_error();
        // A page that stays read-only leaves the imports as they are.
        let _ = replace_imports(loaded_objects().difference(&before), &replacements());
        super::set_last_error(error);
        library
    })
}

unsafe extern "system" fn load_a(name: *const u8) -> HMODULE {
    // SAFETY: the guest's arguments, here and below.
    load(|| unsafe { LoadLibraryA(name) })
}

unsafe extern "system" fn load_w(name: *const u16) -> HMODULE {
    // SAFETY: as above.
    load(|| unsafe { LoadLibraryW(name) })
}

unsafe extern "system" fn load_ex_a(name: *const u8, file: HANDLE, flags: u32) -> HMODULE {
    // SAFETY: as above.
    load(|| unsafe { LoadLibraryExA(name, file, flags) })
}

unsafe extern "system" fn load_ex_w(name: *const u16, file: HANDLE, flags: u32) -> HMODULE {
    // SAFETY: as above.
    load(|| unsafe { LoadLibraryExW(name, file, flags) })
}

unsafe extern "system" fn free(library: HMODULE) -> super::Bool {
    // SAFETY: as above.
    in_loader(|| unsafe { FreeLibrary(library) })
}

/// Unloads a library that was loaded once before interleavings, and once by the runtime.
pub(crate) fn unload(library: *mut c_void) {
    in_loader(|| {
        for _ in 0..2 {
            // SAFETY: a handle of the library.
            unsafe { FreeLibrary(library) };
        }
    });
}

/// The library stays loaded, as nothing else can free it after the thread has ended.
pub(super) unsafe extern "system" fn free_and_exit(_: HMODULE, code: u32) -> ! {
    // SAFETY: no pointers.
    unsafe { exit(code) }
}

/// Returns an export of a library: of the system's functions the one that imports lead to.
unsafe extern "system" fn export(library: HMODULE, name: *const u8) -> FARPROC {
    /// Numbers of exports are below this.
    const NUMBERS: usize = 0x1_0000;
    // SAFETY: as above.
    let found = unsafe { GetProcAddress(library, name) }?;
    if (name as usize) < NUMBERS {
        return Some(found);
    }
    // SAFETY: a text with a final NUL.
    let name = unsafe { CStr::from_ptr(name.cast::<c_char>()) };
    let replacement = replacements().into_iter().find(|it| it.name.as_bytes() == name.to_bytes());
    let Some(replacement) = replacement else { return Some(found) };
    let is_of_system = loaded_objects()
        .iter()
        .any(|object| object.code().contains(&(found as usize as u64)) && !object.is_replaced());
    if !is_of_system {
        return Some(found);
    }
    // SAFETY: a function of the same type.
    Some(unsafe {
        std::mem::transmute::<*const c_void, unsafe extern "system" fn() -> isize>(replacement.with)
    })
}

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 6] {
    replacements! {
        "LoadLibraryA" => load_a,
        "LoadLibraryW" => load_w,
        "LoadLibraryExA" => load_ex_a,
        "LoadLibraryExW" => load_ex_w,
        "FreeLibrary" => free,
        "GetProcAddress" => export,
    }
}
