//! This thread of the system: its number, and its errors.

use std::ffi::c_int;

/// Returns -1, with an error of the system in `errno`.
pub(super) fn refuse(error: c_int) -> c_int {
    // SAFETY: the variable of this thread.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Returns the number of this thread of the system.
pub(crate) fn thread_id() -> c_int {
    // SAFETY: no pointers.
    unsafe { libc::gettid() }
}
