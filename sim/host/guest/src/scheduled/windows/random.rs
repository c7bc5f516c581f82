//! Random numbers of the system, the same ones in each interleaving.

use super::Bool;
use crate::scheduled::{Replacement, random};
use std::ffi::{c_int, c_void};

/// `BCRYPT_ALG_HANDLE` and flags are not looked at: all numbers are the same ones.
unsafe extern "system" fn bcrypt(_: *mut c_void, buffer: *mut u8, len: u32, _: u32) -> i32 {
    /// `STATUS_UNSUCCESSFUL`.
    const FAILED: i32 = 0xC000_0001_u32.cast_signed();
    // SAFETY: the guest's buffer.
    if unsafe { random::fill(buffer.cast(), len as usize) } { 0 } else { FAILED }
}

unsafe extern "system" fn process(buffer: *mut u8, len: usize) -> Bool {
    // SAFETY: the guest's buffer.
    Bool::from(unsafe { random::fill(buffer.cast(), len) })
}

unsafe extern "system" fn rtl(buffer: *mut c_void, len: u32) -> u8 {
    // SAFETY: the guest's buffer.
    u8::from(unsafe { random::fill(buffer, len as usize) })
}

unsafe extern "C" fn rand_s(number: *mut u32) -> c_int {
    /// `EINVAL`.
    const INVALID: c_int = 22;
    // SAFETY: the guest's number.
    if unsafe { random::fill(number.cast(), 4) } { 0 } else { INVALID }
}

/// Returns the functions that imports of the guest are to lead to. Outside of interleavings they have no numbers.
pub(super) fn replaced() -> [Replacement; 4] {
    replacements! {
        "BCryptGenRandom" => bcrypt,
        "ProcessPrng" => process,
        "SystemFunction036" => rtl,
        "rand_s" => rand_s,
    }
}
