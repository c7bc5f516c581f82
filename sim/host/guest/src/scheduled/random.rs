//! Random numbers of an interleaving: the same ones in each.

use super::{guest_thread, objects};
use clr_machine::SplitMix64;
use std::ffi::c_void;

/// Returns the word with this number.
const fn word(number: u64) -> u64 {
    SplitMix64::mixed(number.wrapping_mul(SplitMix64::STEP))
}

/// Fills a buffer. Returns false if this is no thread of an interleaving.
///
/// # Safety
/// The buffer has this length, in bytes.
pub(super) unsafe fn fill(buffer: *mut c_void, len: usize) -> bool {
    let Some(carrier) = guest_thread::current() else { return false };
    let count = len.div_ceil(8);
    let words =
        carrier.ask(move |me| (0..count).map(|_| objects::next_random(me)).collect::<Vec<_>>());
    let Some(words) = words else { return false };
    let bytes: Vec<u8> = words.into_iter().flat_map(|number| word(number).to_le_bytes()).collect();
    // SAFETY: the caller's promise; there are at least `len` bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), len) };
    true
}
