//! Instructions in the form in which the machine executes them.

mod simd;

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
            kind: self.kind,
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

/// The kind of an operation. In the names, `R` is a register, `M` memory, `I` an immediate; the
/// first one is the destination; the number is the size of the operation in bits. Kinds without
/// letters have their second operand in [`Op::rm`], in a register or in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The instruction must be decoded first.
    Undecoded,
    Breakpoint,
    /// The immediate is the id.
    Trap,
    Nop,

    MovRR64,
    MovRR32,
    /// Any size from 32 bits up; the value is [`PackedOp::wide_imm`].
    MovRI,
    MovRM64,
    MovRM32,
    MovRM8,
    MovMR64,
    MovMR32,
    MovMR8,
    MovMI64,
    MovMI32,
    MovMI8,
    Lea64,
    Lea32,
    /// movzx; the number is the size of the source, the destination being 32 or 64.
    ZeroRR8,
    ZeroRM8,
    ZeroRR16,
    ZeroRM16,
    /// movsxd.
    SignRR32,
    SignRM32,
    PushR,
    PushI,
    PopR,
    Leave,

    Call,
    CallR,
    CallM,
    /// The immediate is the number of argument bytes to remove.
    Ret,
    Jmp,
    JmpR,
    JmpM,
    /// The condition is encoded as for [`Flags::condition`](super::flags::Flags::condition).
    Jcc(u8),
    /// The condition is encoded as for `Jcc`.
    SetR(u8),
    /// The condition is encoded as for `Jcc`.
    CmovRR64(u8),
    /// The condition is encoded as for `Jcc`.
    CmovRR32(u8),

    AluRR8(Alu),
    AluRR16(Alu),
    AluRR32(Alu),
    AluRR64(Alu),
    AluRI8(Alu),
    AluRI16(Alu),
    AluRI32(Alu),
    AluRI64(Alu),
    AluRM8(Alu),
    AluRM16(Alu),
    AluRM32(Alu),
    AluRM64(Alu),
    AluMR8(Alu),
    AluMR16(Alu),
    AluMR32(Alu),
    AluMR64(Alu),
    AluMI8(Alu),
    AluMI16(Alu),
    AluMI32(Alu),
    AluMI64(Alu),

    CompareRR8(Compare),
    CompareRR16(Compare),
    CompareRR32(Compare),
    CompareRR64(Compare),
    CompareRI8(Compare),
    CompareRI16(Compare),
    CompareRI32(Compare),
    CompareRI64(Compare),
    CompareRM8(Compare),
    CompareRM16(Compare),
    CompareRM32(Compare),
    CompareRM64(Compare),
    CompareMR8(Compare),
    CompareMR16(Compare),
    CompareMR32(Compare),
    CompareMR64(Compare),
    CompareMI8(Compare),
    CompareMI16(Compare),
    CompareMI32(Compare),
    CompareMI64(Compare),

    ShiftRI32(Shift),
    ShiftRI64(Shift),
    Shift8(Shift),
    Shift16(Shift),
    Shift32(Shift),
    Shift64(Shift),
    ImulRR64,
    ImulRR32,

    Other8(Other),
    Other16(Other),
    Other32(Other),
    Other64(Other),
    String8(StringOp),
    String16(StringOp),
    String32(StringOp),
    String64(StringOp),
    System(System),
    Iretq,

    MovXX,
    MovXM8,
    MovXM16,
    MovXM16Aligned,
    MovMX8,
    MovMX16,
    MovMX16Aligned,
    /// An operation with an xmm register as destination. The immediate is a [`SimdImm`].
    Simd(Simd),
    /// An operation from an xmm register to an integer register.
    Extract32(Extract),
    /// An operation from an xmm register to an integer register.
    Extract64(Extract),
}

/// The integer operations with two operands that change the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alu {
    Add,
    Or,
    Adc,
    Sbb,
    And,
    Sub,
    Xor,
}

/// The integer operations with two operands that change only the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Cmp,
    Test,
}

/// The shifts by the immediate, or by cl if the immediate is [`BY_REGISTER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    Rol,
    Ror,
    Rcl,
    Rcr,
    Shl,
    Shr,
    Sar,
}

/// The less frequent integer instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// reg ← rm.
    Load,
    /// rm ← reg.
    Store,
    /// rm ← immediate.
    StoreImm,
    /// reg ← the address itself.
    Lea,
    Push,
    Pop,
    Inc,
    Dec,
    Neg,
    Not,
    /// reg ← reg · rm.
    ImulReg,
    /// reg ← rm · immediate.
    ImulImm,
    /// a, d ← a · rm.
    Mul,
    Imul,
    Div,
    Idiv,
    /// Double shifts by the immediate, or by cl if it is [`BY_REGISTER`].
    Shld,
    Shrd,
    /// The bit of rm selected by the immediate, or by reg if it is [`BY_REGISTER`].
    Bt,
    Bts,
    Btr,
    Btc,
    Bsf,
    Bsr,
    Tzcnt,
    Lzcnt,
    Popcnt,
    Bswap,
    /// The condition is the immediate.
    Cmov,
    /// The condition is the immediate.
    Set,
    /// reg ← rm of 8, 16 or 32 bits.
    Sign8,
    Sign16,
    Sign32,
    Zero8,
    Xchg,
    Xadd,
    Cmpxchg,
    /// cmpxchg8b or cmpxchg16b: twice the size.
    CmpxchgPair,
    /// cbw, cwde, cdqe, by the size of the result.
    ExtendA,
    /// cwd, cdq, cqo.
    ExtendIntoD,
    /// BMI instructions with a second register, whose number is the immediate.
    Andn,
    Bextr,
    Bzhi,
    Shlx,
    Shrx,
    Sarx,
    Mulx,
    Pdep,
    Pext,
    /// A rotation by the immediate.
    Rorx,
    /// reg ← function of rm.
    Blsi,
    Blsr,
    Blsmsk,
}

/// The string instructions. The immediate is one of [`repeat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringOp {
    Movs,
    Stos,
    Lods,
    Scas,
    Cmps,
}

/// The prefixes of string instructions.
pub(super) mod repeat {
    pub(crate) const NONE: i32 = 0;
    /// rep, repe.
    pub(crate) const EQUAL: i32 = 1;
    pub(crate) const NOT_EQUAL: i32 = 2;
}

/// The instructions on flags as a whole, traps and system instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Pushfq,
    Popfq,
    Lahf,
    Sahf,
    Clc,
    Stc,
    Cmc,
    Cld,
    Std,
    Ldmxcsr,
    Stmxcsr,
    /// jrcxz.
    JumpZero64,
    /// jecxz.
    JumpZero32,
    Loop,
    LoopEqual,
    LoopNotEqual,
    /// 4 bytes to memory (movss, movd).
    StoreX4,
    /// The high 8 bytes to memory (movhps, movhpd).
    StoreXHigh,
    Int3,
    Interrupt,
    Privileged,
    Invalid,
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
