//! Random numbers of the system, the same ones in each interleaving.

use crate::scheduled::random::fill;
use libc::{c_int, c_uint, c_void, ssize_t};

pub(super) unsafe extern "C" fn getrandom(
    buffer: *mut c_void,
    len: usize,
    flags: c_uint,
) -> ssize_t {
    // SAFETY: the guest's buffer.
    if unsafe { fill(buffer, len) } {
        return len.cast_signed();
    }
    // SAFETY: the guest's arguments.
    unsafe { libc::getrandom(buffer, len, flags) }
}

/// Makes a call of the system by its number, if it is one of these.
///
/// # Safety
/// The arguments are those of the call.
pub(super) unsafe fn by_number(number: i64, [first, second, third]: [usize; 3]) -> Option<ssize_t> {
    (number == libc::SYS_getrandom)
        // SAFETY: the caller's promise.
        .then(|| unsafe { getrandom(first as *mut c_void, second, third as c_uint) })
}

pub(super) unsafe extern "C" fn getentropy(buffer: *mut c_void, len: usize) -> c_int {
    // SAFETY: the guest's buffer. More than 256 bytes are an error, which the system reports.
    if len <= 256 && unsafe { fill(buffer, len) } {
        return 0;
    }
    // SAFETY: the guest's arguments.
    unsafe { libc::getentropy(buffer, len) }
}
