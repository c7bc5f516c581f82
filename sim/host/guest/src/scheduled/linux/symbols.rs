//! Functions that the guest looks up by name: those that imports would lead to elsewhere are those, too.

use super::imports::loaded_objects;
use super::replaced::replacements;
use super::{Replacement, guest_thread, system_locks};
use crate::scheduled::replacement::Importer as _;
use libc::{c_char, c_void};
use std::arch::naked_asm;
use std::ffi::CStr;

/// Returns the function that imports of this name lead to, if the guest asks for the system's; else NULL.
unsafe extern "C" fn replacement(library: *mut c_void, name: *const c_char) -> *const c_void {
    let none = std::ptr::null();
    if guest_thread::current().is_none() || name.is_null() {
        return none;
    }
    system_locks::looks_up_symbol();
    // SAFETY: the guest's text.
    let wanted = unsafe { CStr::from_ptr(name) };
    let all = replacements();
    let Some(found) = all.iter().find(|it| it.name.as_bytes() == wanted.to_bytes()) else {
        return none;
    };
    let is_any = library == libc::RTLD_DEFAULT || library == libc::RTLD_NEXT;
    // SAFETY: the guest's library and text. A library may export a function of the same name.
    if !is_any && !is_of_system(unsafe { libc::dlsym(library, name) }) {
        return none;
    }
    found.with
}

/// Returns true if an address is in the C library, or another one whose imports stay.
fn is_of_system(function: *mut c_void) -> bool {
    let at = function as u64;
    loaded_objects().iter().any(|object| !object.is_replaced() && object.code().contains(&at))
}

/// Declares a function that looks up a symbol. What the system finds may depend on the library that calls it, which it knows by
/// the return address: it is jumped to.
macro_rules! finds {
    ($name:ident: $real:path) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "call {replacement}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "test rax, rax",
                "jne 2f",
                "jmp {real}",
                "2:",
                "ret",
                replacement = sym replacement,
                real = sym $real,
            )
        }
    };
}

unsafe extern "C" {
    fn dlsym();
    fn dlvsym();
}

finds!(find: dlsym);
finds!(find_version: dlvsym);

/// Returns the functions that imports of the guest are to lead to.
pub(super) fn replaced() -> [Replacement; 2] {
    replacements! {
        "dlsym" => find,
        "dlvsym" => find_version,
    }
}
