//! Instructions in the form in which the machine executes them.

mod kind;
mod simd;

pub(super) use kind::{Alu, Compare, Kind, Other, Shift, StringOp, System, repeat};
pub(super) use simd::{Extract, Simd, SimdImm, Source};

use super::cpu::slot;

/// Value of [`Op::rm`] for an operand in memory.
pub(super) const IN_MEMORY: u8 = 0x40;
/// Value of [`Op::imm`] if cl or a register is used instead.
pub(super) const BY_REGISTER: i32 = -1;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    /// Length of the instruction in bytes.
    pub(super) len: u8,
    /// A register: the destination if there is one.
    pub(super) reg: u8,
    /// Another register, or [`IN_MEMORY`].
    pub(super) rm: u8,
    /// Address of the operand in memory: `base + (index << scale) + disp`, by [`slot`].
    pub(super) base: u8,
    pub(super) index: u8,
    pub(super) scale: u8,
    pub(super) disp: i32,
    /// Immediate operand, distance of a jump, or another value, by kind.
    pub(super) imm: i32,
}

impl Op {
    pub(super) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            len: 0,
            reg: slot::ZERO,
            rm: slot::ZERO,
            base: slot::ZERO,
            index: slot::ZERO,
            scale: 0,
            disp: 0,
            imm: 0,
        }
    }

    pub(super) const fn pack(self) -> PackedOp {
        let scaled_index = self.index | self.scale << SCALE_SHIFT;
        PackedOp {
            kind: self.kind.frequent(),
            len: self.len,
            followed: false,
            registers: u32::from_le_bytes([self.reg, self.rm, self.base, scaled_index]),
            disp: self.disp,
            imm: self.imm,
        }
    }
}

/// Bit position of the scale above the index.
const SCALE_SHIFT: u32 = 6;

/// An [`Op`] in the form in which it is stored and executed. Few loads bring it into registers, and
/// fields that an instruction does not need stay packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedOp {
    pub(super) kind: Kind,
    pub(super) len: u8,
    /// The operation with the next index belongs to the next instruction.
    pub(super) followed: bool,
    registers: u32,
    disp: i32,
    pub(super) imm: i32,
}

impl PackedOp {
    /// Returns the index of the operation at the target of a direct jump or call, 0 if not yet
    /// known.
    #[inline(always)]
    pub(super) const fn link(self) -> u32 {
        self.disp.cast_unsigned()
    }

    pub(super) const fn set_link(&mut self, index: u32) {
        self.disp = index.cast_signed();
    }

    /// Returns [`Op::reg`].
    #[inline(always)]
    pub(super) const fn reg(self) -> u8 {
        self.registers as u8
    }

    /// Returns [`Op::rm`].
    #[inline(always)]
    pub(super) const fn rm(self) -> u8 {
        (self.registers >> 8) as u8
    }

    /// Returns [`Op::base`].
    #[inline(always)]
    pub(super) const fn base(self) -> u8 {
        (self.registers >> 16) as u8
    }

    /// Returns [`Op::index`].
    #[inline(always)]
    pub(super) const fn index(self) -> u8 {
        (self.registers >> 24 & 31) as u8
    }

    /// Returns [`Op::scale`].
    #[inline(always)]
    pub(super) const fn scale(self) -> u8 {
        (self.registers >> (24 + SCALE_SHIFT)) as u8
    }

    /// Returns [`Op::disp`], sign-extended.
    #[inline(always)]
    pub(super) const fn disp(self) -> u64 {
        (self.disp as i64).cast_unsigned()
    }

    /// Returns the 64-bit immediate of a kind without an operand in memory.
    #[inline(always)]
    pub(super) const fn wide_imm(self) -> u64 {
        (self.disp.cast_unsigned() as u64) << 32 | self.imm.cast_unsigned() as u64
    }

    /// Returns the low byte of the immediate: a condition, or the number of a register.
    #[inline(always)]
    pub(super) const fn imm8(self) -> u8 {
        self.imm.to_le_bytes()[0]
    }

    /// Returns the immediate operand, sign-extended.
    #[inline(always)]
    pub(super) const fn imm(self) -> u64 {
        (self.imm as i64).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_small_and_keep_all_fields() {
        assert_eq!(size_of::<PackedOp>(), 16);
        let op = Op {
            len: 15,
            reg: slot::HIGH | 3,
            rm: IN_MEMORY,
            base: slot::RIP,
            index: slot::GS,
            scale: 3,
            disp: i32::MIN,
            imm: -5,
            ..Op::new(Kind::Nop)
        };
        let packed = op.pack();
        assert_eq!((packed.len, packed.reg(), packed.rm()), (op.len, op.reg, op.rm));
        assert_eq!((packed.base(), packed.index(), packed.scale()), (op.base, op.index, op.scale));
        assert_eq!((packed.disp(), packed.imm()), (u64::MAX << 31, u64::MAX - 4));
    }

    #[test]
    fn wide_immediates_keep_their_halves() {
        let op = Op { disp: -2, imm: -1, ..Op::new(Kind::MovRI) }.pack();
        assert_eq!(op.wide_imm(), 0xFFFF_FFFE_FFFF_FFFF);
        assert_eq!(op.imm(), u64::MAX);
    }
}
