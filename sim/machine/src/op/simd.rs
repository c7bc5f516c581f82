//! Operations on vectors.

use iced_x86::Mnemonic;

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

/// Declares the operations, each with the mnemonics that always mean it.
macro_rules! operations {
    ($($(#[$doc:meta])* $simd:ident $(: $($mnemonic:ident)+)?;)*) => {
        /// The operations on the elements of vectors: `S` and `D` are single and double precision of the
        /// lowest element, `Ps` and `Pd` of all; numbers are sizes of integer elements in bits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Simd {
            $($(#[$doc])* $simd,)*
        }

        impl Simd {
            /// Returns the operation of a mnemonic that needs no look at the operands.
            pub(crate) const fn of(mnemonic: Mnemonic) -> Option<Self> {
                Some(match mnemonic {
                    $($($(Mnemonic::$mnemonic)|+ => Self::$simd,)?)*
                    _ => return None,
                })
            }
        }
    };
}

operations! {
    /// All of the source.
    Mov;
    /// The low 32 bits of the source, with the rest of the first source.
    MovLow32;
    MovLow64;
    /// The low half of the source, and zeroes.
    MovZero64;
    /// The source's low half becomes the high half.
    MovHigh64;
    /// movhlps.
    MovHighToLow;
    And: Pand Andps Andpd Vpand Vandps Vandpd;
    AndNot: Pandn Andnps Andnpd Vpandn Vandnps Vandnpd;
    Or: Por Orps Orpd Vpor Vorps Vorpd;
    Xor: Pxor Xorps Xorpd Vpxor Vxorps Vxorpd;
    Add8: Paddb Vpaddb; Add16: Paddw Vpaddw; Add32: Paddd Vpaddd; Add64: Paddq Vpaddq;
    Sub8: Psubb Vpsubb; Sub16: Psubw Vpsubw; Sub32: Psubd Vpsubd; Sub64: Psubq Vpsubq;
    AddSigned8: Paddsb Vpaddsb; AddSigned16: Paddsw Vpaddsw;
    AddUnsigned8: Paddusb Vpaddusb; AddUnsigned16: Paddusw Vpaddusw;
    SubSigned8: Psubsb Vpsubsb; SubSigned16: Psubsw Vpsubsw;
    SubUnsigned8: Psubusb Vpsubusb; SubUnsigned16: Psubusw Vpsubusw;
    MulLow16: Pmullw Vpmullw;
    MulHigh16: Pmulhw Vpmulhw;
    MulHighUnsigned16: Pmulhuw Vpmulhuw;
    MulUnsigned32: Pmuludq Vpmuludq;
    MulAdd16: Pmaddwd Vpmaddwd;
    Average8: Pavgb Vpavgb; Average16: Pavgw Vpavgw;
    MinUnsigned8: Pminub Vpminub;
    MaxUnsigned8: Pmaxub Vpmaxub;
    MinSigned16: Pminsw Vpminsw;
    MaxSigned16: Pmaxsw Vpmaxsw;
    SumAbsolute8: Psadbw Vpsadbw;
    Equal8: Pcmpeqb Vpcmpeqb; Equal16: Pcmpeqw Vpcmpeqw; Equal32: Pcmpeqd Vpcmpeqd;
    Greater8: Pcmpgtb Vpcmpgtb; Greater16: Pcmpgtw Vpcmpgtw; Greater32: Pcmpgtd Vpcmpgtd;
    ShiftLeft16: Psllw Vpsllw; ShiftLeft32: Pslld Vpslld; ShiftLeft64: Psllq Vpsllq;
    ShiftRight16: Psrlw Vpsrlw; ShiftRight32: Psrld Vpsrld; ShiftRight64: Psrlq Vpsrlq;
    ShiftArithmetic16: Psraw Vpsraw; ShiftArithmetic32: Psrad Vpsrad;
    ShiftLeftBytes: Pslldq Vpslldq;
    ShiftRightBytes: Psrldq Vpsrldq;
    UnpackLow8: Punpcklbw Vpunpcklbw; UnpackLow16: Punpcklwd Vpunpcklwd;
    UnpackLow32: Punpckldq Unpcklps Vpunpckldq Vunpcklps;
    UnpackLow64: Punpcklqdq Unpcklpd Vpunpcklqdq Vunpcklpd;
    UnpackHigh8: Punpckhbw Vpunpckhbw; UnpackHigh16: Punpckhwd Vpunpckhwd;
    UnpackHigh32: Punpckhdq Unpckhps Vpunpckhdq Vunpckhps;
    UnpackHigh64: Punpckhqdq Unpckhpd Vpunpckhqdq Vunpckhpd;
    PackSigned16: Packsswb Vpacksswb; PackSigned32: Packssdw Vpackssdw;
    PackUnsigned16: Packuswb Vpackuswb;
    /// Shuffles by the immediate byte, like the variants that follow.
    Shuffle32: Pshufd Vpshufd;
    ShuffleLow16: Pshuflw Vpshuflw;
    ShuffleHigh16: Pshufhw Vpshufhw;
    ShufflePs: Shufps Vshufps; ShufflePd: Shufpd Vshufpd;
    Insert16: Pinsrw Vpinsrw;
    AddS: Addss Vaddss; AddD: Addsd Vaddsd; AddPs: Addps Vaddps; AddPd: Addpd Vaddpd;
    SubS: Subss Vsubss; SubD: Subsd Vsubsd; SubPs: Subps Vsubps; SubPd: Subpd Vsubpd;
    MulS: Mulss Vmulss; MulD: Mulsd Vmulsd; MulPs: Mulps Vmulps; MulPd: Mulpd Vmulpd;
    DivS: Divss Vdivss; DivD: Divsd Vdivsd; DivPs: Divps Vdivps; DivPd: Divpd Vdivpd;
    MinS: Minss Vminss; MinD: Minsd Vminsd; MinPs: Minps Vminps; MinPd: Minpd Vminpd;
    MaxS: Maxss Vmaxss; MaxD: Maxsd Vmaxsd; MaxPs: Maxps Vmaxps; MaxPd: Maxpd Vmaxpd;
    SqrtS: Sqrtss Vsqrtss; SqrtD: Sqrtsd Vsqrtsd; SqrtPs: Sqrtps Vsqrtps; SqrtPd: Sqrtpd Vsqrtpd;
    CompareS: Cmpss; CompareD: Cmpsd; ComparePs: Cmpps; ComparePd: Cmppd;
    Int32ToS;
    Int64ToS;
    Int32ToD;
    Int64ToD;
    SToD: Cvtss2sd Vcvtss2sd;
    DToS: Cvtsd2ss Vcvtsd2ss;
    Int32ToPd: Cvtdq2pd Vcvtdq2pd; Int32ToPs: Cvtdq2ps Vcvtdq2ps;
    PsToInt32: Cvtps2dq Vcvtps2dq;
    PsTruncateInt32: Cvttps2dq Vcvttps2dq;
    PdToInt32: Cvtpd2dq Vcvtpd2dq;
    PdTruncateInt32: Cvttpd2dq Vcvttpd2dq;
    PdToPs: Cvtpd2ps Vcvtpd2ps;
    PsToPd: Cvtps2pd Vcvtps2pd;
    /// Destination · source + first.
    Fma132S: Vfmadd132ss;
    Fma132D: Vfmadd132sd;
    /// First · destination + source.
    Fma213S: Vfmadd213ss;
    Fma213D: Vfmadd213sd;
    /// First · source + destination.
    Fma231S: Vfmadd231ss;
    Fma231D: Vfmadd231sd;
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
