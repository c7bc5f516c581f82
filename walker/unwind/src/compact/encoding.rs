//! Encodings: the description of one function's frame in 32 bits.

use super::error::CompactProblem;
use crate::registers::Gpr;

/// A compact unwind encoding for x86-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encoding(pub u32);

/// The meaning of an encoding: the frame of a function outside its prologue and its epilogues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// There is no unwind information: compilers leave out functions that move neither rsp nor a
    /// register that callees preserve, and assemblers leave out what has no directives.
    Nothing,
    /// The caller's rbp is at \[rbp\], and the return address above it.
    FramePointer(SavedRegisters),
    /// The frame has a fixed size.
    Frameless {
        /// Size of the frame in bytes, with the return address.
        size: u32,
        /// The saved registers.
        saved: SavedRegisters,
    },
    /// The frame has a fixed size, which is in the code.
    FramelessIndirect {
        /// Offset from the function's start to the immediate of `sub rsp, imm32`, in bytes.
        size_at: u8,
        /// Number of bytes that the immediate does not count.
        adjustment: u8,
        /// The saved registers.
        saved: SavedRegisters,
    },
    /// The function has an FDE in `__eh_frame`.
    Dwarf {
        /// Offset of the FDE in bytes; linkers write 0 if it does not fit into 24 bits.
        fde: u32,
    },
}

/// Registers in neighbouring slots of 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedRegisters {
    /// By address, ascending. A slot without a register holds something else.
    slots: [Option<Gpr>; 6],
    /// Distance of the first slot below the canonical frame address, in bytes.
    below: u16,
}

impl SavedRegisters {
    /// Returns the registers with the distances of their slots below the canonical frame address
    /// (rsp before the call), in bytes.
    pub fn iter(&self) -> impl Iterator<Item = (Gpr, u16)> + '_ {
        let slots = (0_u16..).zip(&self.slots);
        slots.filter_map(|(n, slot)| Some(((*slot)?, self.below.checked_sub(8 * n)?)))
    }

    /// Returns the distance of the lowest slot below the canonical frame address, in bytes.
    pub(crate) const fn extent(self) -> u32 {
        self.below as u32
    }
}

/// Returns the register with a number of encodings, in which 0 is none.
const fn register(number: u32) -> Option<Gpr> {
    match number {
        1 => Some(Gpr::Rbx),
        2 => Some(Gpr::R12),
        3 => Some(Gpr::R13),
        4 => Some(Gpr::R14),
        5 => Some(Gpr::R15),
        6 => Some(Gpr::Rbp),
        _ => None,
    }
}

impl Encoding {
    /// Returns true if the entry does not begin a function.
    pub const fn is_not_function_start(self) -> bool {
        self.0 >> 31 != 0
    }

    /// Returns true if the function has language-specific data.
    pub const fn has_lsda(self) -> bool {
        self.0 >> 30 & 1 != 0
    }

    /// Returns the number of the personality routine, counted from 1; 0 if there is none.
    pub const fn personality(self) -> u8 {
        (self.0 >> 28 & 3) as u8
    }

    /// Decodes the layout of the frame.
    ///
    /// # Errors
    /// [`CompactProblem`] if the mode is unknown, a register is impossible or named twice, or the
    /// frame is too small for its registers.
    pub fn layout(self) -> Result<Layout, CompactProblem> {
        match self.0 >> 24 & 0xF {
            // Flags may be set without a mode.
            0 if self.field(0, 24) == 0 => Ok(Layout::Nothing),
            1 => Ok(Layout::FramePointer(self.below_frame_pointer()?)),
            2 => {
                let (size, saved) = (self.field(16, 8) * 8, self.permuted()?);
                if size < saved.extent().max(8) {
                    return Err(CompactProblem::FrameSize(self.0));
                }
                Ok(Layout::Frameless { size, saved })
            }
            3 => Ok(Layout::FramelessIndirect {
                size_at: self.field(16, 8) as u8,
                adjustment: (self.field(13, 3) * 8) as u8,
                saved: self.permuted()?,
            }),
            4 => Ok(Layout::Dwarf { fde: self.field(0, 24) }),
            _ => Err(CompactProblem::Mode(self.0)),
        }
    }

    const fn field(self, low: u32, bits: u32) -> u32 {
        self.0 >> low & ((1 << bits) - 1)
    }

    /// Returns the registers of a frame with rbp: five slots, the first of them at the encoded
    /// offset below rbp.
    fn below_frame_pointer(self) -> Result<SavedRegisters, CompactProblem> {
        let problem = CompactProblem::Registers(self.0);
        let (mut slots, mut seen) = ([None; 6], 0_u32);
        for (n, slot) in (0..5).zip(&mut slots) {
            let number = self.field(3 * n, 3);
            if number == 0 {
                continue;
            }
            // rbp has a slot of its own, and the slots of the others are below it.
            if number > 5 || seen & 1 << number != 0 || n >= self.field(16, 8) {
                return Err(problem);
            }
            seen |= 1 << number;
            *slot = register(number);
        }
        // The canonical frame address is 16 above rbp.
        Ok(SavedRegisters { slots, below: self.field(16, 8) as u16 * 8 + 16 })
    }

    /// Returns the registers of a frame without rbp, which are pushed right below the return
    /// address. Their order is one of the permutations of N of six registers.
    fn permuted(self) -> Result<SavedRegisters, CompactProblem> {
        let problem = CompactProblem::Registers(self.0);
        let count = self.field(10, 3);
        if count > 6 {
            return Err(problem);
        }
        let mut rest = self.field(0, 10);
        let mut slots = [None; 6];
        let mut free = 0b111_1110_u32;
        for n in 0..count {
            // The number of ways to choose the registers after this one.
            let mut ways = 1;
            for left in 6 - count + 1..6 - n {
                ways *= left;
            }
            let mut choice = rest / ways;
            rest %= ways;
            // The choice counts the registers that are not taken yet.
            let number = (1..=6).find(|number| {
                let is_it = free & 1 << number != 0 && choice == 0;
                choice = choice.wrapping_sub(free >> number & 1);
                is_it
            });
            let number = number.ok_or(problem)?;
            free &= !(1 << number);
            *slots.get_mut(n as usize).ok_or(problem)? = register(number);
        }
        Ok(SavedRegisters { slots, below: (count * 8 + 8) as u16 })
    }
}
