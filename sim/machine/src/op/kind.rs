//! The kinds of operations.

use super::{Extract, Simd};

/// The kind of an operation. In the names, `R` is a register, `M` memory, `I` an immediate; the
/// first one is the destination; the number is the size of the operation in bits. Kinds without
/// letters have their second operand in [`Op::rm`](super::Op::rm), in a register or in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The instruction must be decoded first.
    Undecoded,
    Breakpoint,
    /// The immediate is the id.
    Trap,
    Nop,

    MovRR64,
    MovRR32,
    /// Any size from 32 bits up; the value is [`PackedOp::wide_imm`](super::PackedOp::wide_imm).
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
    /// The condition is encoded as for [`Flags::condition`](crate::flags::Flags::condition).
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
    /// An operation with an xmm register as destination. The immediate is a [`SimdImm`](super::SimdImm).
    Simd(Simd),
    /// An operation from an xmm register to an integer register.
    Extract32(Extract),
    /// An operation from an xmm register to an integer register.
    Extract64(Extract),

    // The frequent cases of the kinds above, which need no second choice: see [`Kind::frequent`].
    AddRR64,
    SubRR64,
    AndRR64,
    OrRR64,
    XorRR64,
    AddRI64,
    SubRI64,
    AndRI64,
    CmpRR64,
    CmpRI64,
    TestRR64,
    TestRI64,
    ShlRI64,
    ShrRI64,
    AddRR32,
    SubRR32,
    AndRR32,
    OrRR32,
    XorRR32,
    AddRI32,
    SubRI32,
    AndRI32,
    CmpRR32,
    CmpRI32,
    TestRR32,
    TestRI32,
    ShlRI32,
    ShrRI32,
    AddRM64,
    Jb,
    Jae,
    Je,
    Jne,
    Jbe,
    Ja,
    Js,
    Jns,
    Jl,
    Jge,
    Jle,
    Jg,
}

impl Kind {
    /// Returns the kind that a frequent operation has for itself, or else the kind as it is.
    pub(super) const fn frequent(self) -> Self {
        match self {
            Self::AluRR64(Alu::Add) => Self::AddRR64,
            Self::AluRR64(Alu::Sub) => Self::SubRR64,
            Self::AluRR64(Alu::And) => Self::AndRR64,
            Self::AluRR64(Alu::Or) => Self::OrRR64,
            Self::AluRR64(Alu::Xor) => Self::XorRR64,
            Self::AluRI64(Alu::Add) => Self::AddRI64,
            Self::AluRI64(Alu::Sub) => Self::SubRI64,
            Self::AluRI64(Alu::And) => Self::AndRI64,
            Self::CompareRR64(Compare::Cmp) => Self::CmpRR64,
            Self::CompareRI64(Compare::Cmp) => Self::CmpRI64,
            Self::CompareRR64(Compare::Test) => Self::TestRR64,
            Self::CompareRI64(Compare::Test) => Self::TestRI64,
            Self::ShiftRI64(Shift::Shl) => Self::ShlRI64,
            Self::ShiftRI64(Shift::Shr) => Self::ShrRI64,
            Self::AluRR32(Alu::Add) => Self::AddRR32,
            Self::AluRR32(Alu::Sub) => Self::SubRR32,
            Self::AluRR32(Alu::And) => Self::AndRR32,
            Self::AluRR32(Alu::Or) => Self::OrRR32,
            Self::AluRR32(Alu::Xor) => Self::XorRR32,
            Self::AluRI32(Alu::Add) => Self::AddRI32,
            Self::AluRI32(Alu::Sub) => Self::SubRI32,
            Self::AluRI32(Alu::And) => Self::AndRI32,
            Self::CompareRR32(Compare::Cmp) => Self::CmpRR32,
            Self::CompareRI32(Compare::Cmp) => Self::CmpRI32,
            Self::CompareRR32(Compare::Test) => Self::TestRR32,
            Self::CompareRI32(Compare::Test) => Self::TestRI32,
            Self::ShiftRI32(Shift::Shl) => Self::ShlRI32,
            Self::ShiftRI32(Shift::Shr) => Self::ShrRI32,
            Self::AluRM64(Alu::Add) => Self::AddRM64,
            Self::Jcc(2) => Self::Jb,
            Self::Jcc(3) => Self::Jae,
            Self::Jcc(4) => Self::Je,
            Self::Jcc(5) => Self::Jne,
            Self::Jcc(6) => Self::Jbe,
            Self::Jcc(7) => Self::Ja,
            Self::Jcc(8) => Self::Js,
            Self::Jcc(9) => Self::Jns,
            Self::Jcc(12) => Self::Jl,
            Self::Jcc(13) => Self::Jge,
            Self::Jcc(14) => Self::Jle,
            Self::Jcc(15) => Self::Jg,
            other => other,
        }
    }
}

/// The integer operations with two operands that change the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
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
pub(crate) enum Compare {
    Cmp,
    Test,
}

/// The shifts by the immediate, or by cl if the immediate is [`BY_REGISTER`](super::BY_REGISTER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
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
pub(crate) enum Other {
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
    /// Double shifts by the immediate, or by cl if it is [`BY_REGISTER`](super::BY_REGISTER).
    Shld,
    Shrd,
    /// The bit of rm selected by the immediate, or by reg if it is [`BY_REGISTER`](super::BY_REGISTER).
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
pub(crate) enum StringOp {
    Movs,
    Stos,
    Lods,
    Scas,
    Cmps,
}

/// The prefixes of string instructions.
pub(crate) mod repeat {
    pub(crate) const NONE: i32 = 0;
    /// rep, repe.
    pub(crate) const EQUAL: i32 = 1;
    pub(crate) const NOT_EQUAL: i32 = 2;
}

/// The instructions on flags as a whole, traps and system instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
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
