//! The operating system. Each file has what one system offers, under the same names where two systems
//! offer the same.

use std::ops::Range;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;

/// A loaded native image, as the loader describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The address where the lowest segment is (VA).
    pub(crate) base: u64,
    pub(crate) path: String,
    /// The addresses of its segments (VA).
    pub(crate) code: Range<u64>,
    /// Address of `.eh_frame_hdr`, or of the exception directory (VA).
    pub(crate) unwind_table: u64,
}

/// Copies bytes of a stack from `address` (VA) on: of the calling thread's own, or of a suspended one's.
///
/// # Safety
/// The bytes lie between the stack pointer, less the red zone, and the stack's base.
pub(crate) unsafe fn copy_stack(address: u64, to: &mut [u8]) {
    // SAFETY: such bytes are mapped for as long as the thread lives. Other threads may write to
    // them through pointers, so the copy is one of a moment, as every sample is.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) }
}
