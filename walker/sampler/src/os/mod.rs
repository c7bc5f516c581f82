//! The operating system. Each file has what one system offers, under the same names where two systems
//! offer the same.

use clr_unwind::{Convention, Gpr, Registers};
use std::ops::Range;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;

/// A loaded native image, as the loader describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The address of the page with the lowest segment (VA).
    pub base: u64,
    /// The path of its file.
    pub path: String,
    /// The addresses of its segments (VA).
    pub code: Range<u64>,
    /// Address of `.eh_frame_hdr`, or of the exception directory (VA).
    pub unwind_table: u64,
}

/// A part of a loaded library in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Addresses (VA).
    pub range: Range<u64>,
    /// True if it can be written to.
    pub is_writable: bool,
    /// True if it has code.
    pub is_executable: bool,
}

/// Copies bytes of a stack from `address` (VA) on: of the calling thread's own, or of a suspended one's.
///
/// # Safety
/// The bytes lie between the stack pointer, less the red zone, and the stack's base.
pub unsafe fn copy_stack(address: u64, to: &mut [u8]) {
    // SAFETY: such bytes are mapped for as long as the thread lives. Other threads may write to
    // them through pointers, so the copy is one of a moment, as every sample is.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) }
}

/// The registers that calls preserve, and the stack pointer; the last two on Windows alone.
const PRESERVED: [Gpr; 9] =
    [Gpr::Rbx, Gpr::Rbp, Gpr::Rsp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15, Gpr::Rsi, Gpr::Rdi];

/// Returns the registers of the calling function that calls preserve, its stack pointer and an
/// address in it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the registers are those of the function that calls this")]
pub fn own_registers() -> Registers {
    let mut saved = [0_u64; PRESERVED.len()];
    let rip: u64;
    // SAFETY: the code writes to the array and to `rip` alone.
    unsafe {
        std::arch::asm!(
            "mov [{to}], rbx",
            "mov [{to} + 8], rbp",
            "mov [{to} + 16], rsp",
            "mov [{to} + 24], r12",
            "mov [{to} + 32], r13",
            "mov [{to} + 40], r14",
            "mov [{to} + 48], r15",
            "mov [{to} + 56], rsi",
            "mov [{to} + 64], rdi",
            "lea {rip}, [rip]",
            to = in(reg) &raw mut saved,
            rip = lateout(reg) rip,
            options(nostack, preserves_flags),
        );
    }
    let mut registers = Registers { rip, ..Registers::default() };
    let count = if CONVENTION == Convention::WindowsX64 { 9 } else { 7 };
    for (register, value) in PRESERVED.into_iter().zip(saved).take(count) {
        registers.set(register, value);
    }
    registers
}
