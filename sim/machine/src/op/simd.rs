//! Operations on vectors.

/// The location of the source of a vector operation or extraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// xmm number `Op::rm`.
    Xmm,
    /// Integer register `Op::rm`.
    Gpr32,
    Gpr64,
    M2,
    M4,
    M8,
    M16,
    M16Aligned,
    /// The immediate byte.
    Imm,
}

/// The parts of the immediate of a vector operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimdImm {
    pub(crate) imm8: u8,
    /// Number of the first source, which is the destination in all but VEX instructions.
    pub(crate) first: u8,
    pub(crate) source: Source,
}

impl SimdImm {
    pub(crate) const fn pack(self) -> i32 {
        i32::from_le_bytes([self.imm8, self.first, self.source as u8, 0])
    }

    pub(crate) const fn unpack(imm: i32) -> Self {
        let [imm8, first, source, _] = imm.to_le_bytes();
        let source = match source {
            0 => Source::Xmm,
            1 => Source::Gpr32,
            2 => Source::Gpr64,
            3 => Source::M2,
            4 => Source::M4,
            5 => Source::M8,
            6 => Source::M16,
            7 => Source::M16Aligned,
            _ => Source::Imm,
        };
        Self { imm8, first: first & 15, source }
    }
}

/// The operations on the elements of vectors: `S` and `D` are single and double precision of the
/// lowest element, `Ps` and `Pd` of all; numbers are sizes of integer elements in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simd {
    /// All of the source.
    Mov,
    /// The low 32 bits of the source, with the rest of the first source.
    MovLow32,
    MovLow64,
    /// The low half of the source, and zeroes.
    MovZero64,
    /// The source's low half becomes the high half.
    MovHigh64,
    /// movhlps.
    MovHighToLow,
    And,
    AndNot,
    Or,
    Xor,
    Add8,
    Add16,
    Add32,
    Add64,
    Sub8,
    Sub16,
    Sub32,
    Sub64,
    AddSigned8,
    AddSigned16,
    AddUnsigned8,
    AddUnsigned16,
    SubSigned8,
    SubSigned16,
    SubUnsigned8,
    SubUnsigned16,
    MulLow16,
    MulHigh16,
    MulHighUnsigned16,
    MulUnsigned32,
    MulAdd16,
    Average8,
    Average16,
    MinUnsigned8,
    MaxUnsigned8,
    MinSigned16,
    MaxSigned16,
    SumAbsolute8,
    Equal8,
    Equal16,
    Equal32,
    Greater8,
    Greater16,
    Greater32,
    ShiftLeft16,
    ShiftLeft32,
    ShiftLeft64,
    ShiftRight16,
    ShiftRight32,
    ShiftRight64,
    ShiftArithmetic16,
    ShiftArithmetic32,
    ShiftLeftBytes,
    ShiftRightBytes,
    UnpackLow8,
    UnpackLow16,
    UnpackLow32,
    UnpackLow64,
    UnpackHigh8,
    UnpackHigh16,
    UnpackHigh32,
    UnpackHigh64,
    PackSigned16,
    PackSigned32,
    PackUnsigned16,
    /// Shuffles by the immediate byte, like the variants that follow.
    Shuffle32,
    ShuffleLow16,
    ShuffleHigh16,
    ShufflePs,
    ShufflePd,
    Insert16,

    AddS,
    AddD,
    AddPs,
    AddPd,
    SubS,
    SubD,
    SubPs,
    SubPd,
    MulS,
    MulD,
    MulPs,
    MulPd,
    DivS,
    DivD,
    DivPs,
    DivPd,
    MinS,
    MinD,
    MinPs,
    MinPd,
    MaxS,
    MaxD,
    MaxPs,
    MaxPd,
    SqrtS,
    SqrtD,
    SqrtPs,
    SqrtPd,
    CompareS,
    CompareD,
    ComparePs,
    ComparePd,
    Int32ToS,
    Int64ToS,
    Int32ToD,
    Int64ToD,
    SToD,
    DToS,
    Int32ToPd,
    Int32ToPs,
    PsToInt32,
    PsTruncateInt32,
    PdToInt32,
    PdTruncateInt32,
    PdToPs,
    PsToPd,
    /// Destination · source + first.
    Fma132S,
    Fma132D,
    /// First · destination + source.
    Fma213S,
    Fma213D,
    /// First · source + destination.
    Fma231S,
    Fma231D,
}

/// The operations from a vector to an integer register or to the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extract {
    /// movd, movq.
    Low,
    RoundD,
    TruncateD,
    RoundS,
    TruncateS,
    Signs8,
    SignsPs,
    SignsPd,
    Word,
    /// comisd, ucomisd: to the flags.
    FlagsD,
    /// comiss, ucomiss: to the flags.
    FlagsS,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simd_immediates_unpack() {
        for source in [
            Source::Xmm,
            Source::Gpr32,
            Source::Gpr64,
            Source::M2,
            Source::M4,
            Source::M8,
            Source::M16,
            Source::M16Aligned,
            Source::Imm,
        ] {
            let imm = SimdImm { imm8: 0xFE, first: 15, source };
            assert_eq!(SimdImm::unpack(imm.pack()), imm);
        }
    }
}
