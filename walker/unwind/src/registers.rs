//! The registers that a stack walk reads and restores, and the Win32 x64 `CONTEXT` that carries
//! them.

mod set;
mod ucontext;

pub use set::{Convention, RegisterSet};

use core::array;
use thiserror::Error;

/// Size in bytes of the Win32 x64 `CONTEXT` (contract §1.7).
pub const CONTEXT_SIZE: usize = 0x4D0;

const CONTEXT_RAX: usize = 0x78;
const CONTEXT_RIP: usize = 0xF8;
const CONTEXT_XMM6: usize = 0x1A0 + 6 * 16;

/// A general-purpose x64 register, numbered as in instruction encodings and UNWIND_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Gpr {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl Gpr {
    /// All sixteen, in encoding order.
    pub const ALL: [Self; 16] = {
        use Gpr::{R8, R9, R10, R11, R12, R13, R14, R15, Rax, Rbp, Rbx, Rcx, Rdi, Rdx, Rsi, Rsp};
        [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15]
    };

    /// The integer registers, rsp apart, that a callee must preserve under the Windows x64
    /// calling convention.
    pub const NONVOLATILE: [Self; 8] =
        [Self::Rbx, Self::Rbp, Self::Rsi, Self::Rdi, Self::R12, Self::R13, Self::R14, Self::R15];

    /// Returns the register whose encoding is the low four bits of `number`.
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        // Unlike an index into `ALL`, this compiles to the number itself.
        match number & 15 {
            0 => Self::Rax,
            1 => Self::Rcx,
            2 => Self::Rdx,
            3 => Self::Rbx,
            4 => Self::Rsp,
            5 => Self::Rbp,
            6 => Self::Rsi,
            7 => Self::Rdi,
            8 => Self::R8,
            9 => Self::R9,
            10 => Self::R10,
            11 => Self::R11,
            12 => Self::R12,
            13 => Self::R13,
            14 => Self::R14,
            _ => Self::R15,
        }
    }

    /// Returns the encoding, 0 to 15.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the name in assembly language.
    pub const fn name(self) -> &'static str {
        [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
            "r12", "r13", "r14", "r15",
        ][self as usize]
    }
}

/// The sixteen integer registers, rip, and the nonvolatile vector registers xmm6 to xmm15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers {
    /// The instruction pointer (VA).
    pub rip: u64,
    /// rax to r15, by encoding ([`Gpr`]).
    pub gpr: [u64; 16],
    /// xmm6 to xmm15: the low quadword in the low half, as in memory on x64.
    pub xmm: [u128; 10],
}

/// An error in reading or writing the bytes of a `CONTEXT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The buffer is shorter than [`CONTEXT_SIZE`].
    #[error("a CONTEXT takes {CONTEXT_SIZE:#x} bytes, the buffer has {len:#x}")]
    TooShort {
        /// Length of the buffer in bytes.
        len: usize,
    },
}

impl Registers {
    /// Returns the stack pointer (VA).
    #[inline]
    pub const fn rsp(&self) -> u64 {
        self.gpr[Gpr::Rsp as usize]
    }

    /// Returns the frame pointer, rbp: of functions that have one, an address in their frame (VA).
    #[inline]
    pub const fn rbp(&self) -> u64 {
        self.gpr[Gpr::Rbp as usize]
    }

    /// Returns the value of an integer register.
    #[inline]
    pub const fn get(&self, register: Gpr) -> u64 {
        self.gpr[register as usize]
    }

    /// Sets an integer register.
    #[inline]
    pub const fn set(&mut self, register: Gpr, value: u64) {
        self.gpr[register as usize] = value;
    }

    /// Reads the registers from the bytes of a Win32 x64 `CONTEXT` (contract §1.7) at any
    /// alignment. `ContextFlags` is ignored, as `DoStackSnapshot` ignores it (C-023), and so are
    /// bytes beyond [`CONTEXT_SIZE`].
    ///
    /// # Errors
    /// [`ContextError::TooShort`] if there are fewer than [`CONTEXT_SIZE`] bytes.
    #[inline]
    pub fn from_context(context: &[u8]) -> Result<Self, ContextError> {
        let short = ContextError::TooShort { len: context.len() };
        let context: &[u8; CONTEXT_SIZE] = context.first_chunk().ok_or(short)?;
        let (words, _) = context.as_chunks();
        let (pairs, _) = context.as_chunks();
        Ok(Self {
            rip: u64::from_le_bytes(words[CONTEXT_RIP / 8]),
            gpr: array::from_fn(|i| u64::from_le_bytes(words[CONTEXT_RAX / 8 + i])),
            xmm: array::from_fn(|i| u128::from_le_bytes(pairs[CONTEXT_XMM6 / 16 + i])),
        })
    }

    /// Writes the registers into the bytes of a Win32 x64 `CONTEXT` (contract §1.7) at any
    /// alignment. All other bytes, including `ContextFlags`, stay as they were.
    ///
    /// # Errors
    /// [`ContextError::TooShort`] if there are fewer than [`CONTEXT_SIZE`] bytes; then nothing is
    /// written.
    #[inline]
    pub fn write_context(&self, context: &mut [u8]) -> Result<(), ContextError> {
        let short = ContextError::TooShort { len: context.len() };
        let context: &mut [u8; CONTEXT_SIZE] = context.first_chunk_mut().ok_or(short)?;
        for (i, value) in self.gpr.iter().enumerate() {
            let at = CONTEXT_RAX + 8 * i;
            context[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        context[CONTEXT_RIP..CONTEXT_RIP + 8].copy_from_slice(&self.rip.to_le_bytes());
        for (i, value) in self.xmm.iter().enumerate() {
            let at = CONTEXT_XMM6 + 16 * i;
            context[at..at + 16].copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a CONTEXT in which every byte encodes its offset.
    fn patterned() -> [u8; CONTEXT_SIZE] {
        core::array::from_fn(|i| (i % 251) as u8)
    }

    fn pattern_u64(at: usize) -> u64 {
        u64::from_le_bytes(core::array::from_fn(|i| ((at + i) % 251) as u8))
    }

    #[test]
    fn context_offsets_are_those_of_the_contract() {
        let registers = Registers::from_context(&patterned()).unwrap();
        let offsets = [
            0x78, 0x80, 0x88, 0x90, 0x98, 0xA0, 0xA8, 0xB0, 0xB8, 0xC0, 0xC8, 0xD0, 0xD8, 0xE0,
            0xE8, 0xF0,
        ];
        for (register, at) in Gpr::ALL.into_iter().zip(offsets) {
            assert_eq!(registers.get(register), pattern_u64(at), "{}", register.name());
        }
        assert_eq!(registers.rip, pattern_u64(0xF8));
        for (i, value) in registers.xmm.iter().enumerate() {
            let at = 0x1A0 + 0x10 * (i + 6);
            assert_eq!(*value as u64, pattern_u64(at), "xmm{} low", i + 6);
            assert_eq!((value >> 64) as u64, pattern_u64(at + 8), "xmm{} high", i + 6);
        }
    }

    #[test]
    fn writing_touches_only_the_registers() {
        let registers = Registers::from_context(&patterned()).unwrap();
        let mut zeroes = [0; CONTEXT_SIZE];
        registers.write_context(&mut zeroes).unwrap();
        for (at, byte) in zeroes.iter().enumerate() {
            let ours = (0x78..0x100).contains(&at) || (0x200..0x2A0).contains(&at);
            assert_eq!(*byte, if ours { patterned()[at] } else { 0 }, "offset {at:#x}");
        }
        let mut same = patterned();
        registers.write_context(&mut same).unwrap();
        assert_eq!(same, patterned());
    }

    #[test]
    fn unaligned_and_longer_buffers_are_read() {
        let mut shifted = vec![0xEE];
        shifted.extend_from_slice(&patterned());
        shifted.push(0xEE);
        assert_eq!(
            Registers::from_context(&shifted[1..]).unwrap(),
            Registers::from_context(&patterned()).unwrap(),
        );
    }

    #[test]
    fn a_short_buffer_is_refused_and_left_alone() {
        let registers = Registers { rip: 1, ..Registers::default() };
        for len in [0, 1, CONTEXT_SIZE - 1] {
            let mut short = vec![7; len];
            let error = Err(ContextError::TooShort { len });
            assert_eq!(Registers::from_context(&short).map(|_| ()), error);
            assert_eq!(registers.write_context(&mut short), error);
            assert!(short.iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn numbers_and_names_go_together() {
        for (number, register) in Gpr::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(register.number()), number);
            assert_eq!(Gpr::from_number(number as u8), register);
        }
        assert_eq!(Gpr::from_number(0x15), Gpr::Rbp);
        assert_eq!(Gpr::from_number(12).name(), "r12");
    }
}
