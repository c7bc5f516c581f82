//! Decoder of instructions on xmm registers: SSE, SSE2, and their VEX encodings.

use super::{bits, gpr, memory, with_memory, xmm};
use crate::cpu::slot;
use crate::op::{Extract, Kind, Op, Simd, SimdImm, Source, System};
use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind};

pub(super) fn decode(i: &Instruction) -> Option<Op> {
    full_move(i).or_else(|| partial_move(i)).or_else(|| extract(i)).or_else(|| {
        let operation = integer(i.mnemonic()).or_else(|| shuffle(i.mnemonic()));
        let operation = operation.or_else(|| float(i.mnemonic())).or_else(|| convert(i))?;
        vector(operation, i)
    })
}

pub(super) fn decode_vex(i: &Instruction) -> Option<Op> {
    match i.mnemonic() {
        // The machine has no upper halves.
        Mnemonic::Vzeroupper => Some(Op::new(Kind::Nop)),
        _ => decode(i),
    }
}

/// Decodes moves of 16 bytes.
fn full_move(i: &Instruction) -> Option<Op> {
    let aligned = match i.mnemonic() {
        Mnemonic::Movaps
        | Mnemonic::Movapd
        | Mnemonic::Movdqa
        | Mnemonic::Vmovaps
        | Mnemonic::Vmovapd
        | Mnemonic::Vmovdqa
        | Mnemonic::Movntps
        | Mnemonic::Movntpd
        | Mnemonic::Movntdq => true,
        Mnemonic::Movups
        | Mnemonic::Movupd
        | Mnemonic::Movdqu
        | Mnemonic::Lddqu
        | Mnemonic::Vmovups
        | Mnemonic::Vmovupd
        | Mnemonic::Vmovdqu => false,
        _ => return None,
    };
    match (i.op0_kind(), i.op1_kind()) {
        (OpKind::Register, OpKind::Register) => {
            let (reg, rm) = (xmm(i.op0_register())?, xmm(i.op1_register())?);
            Some(Op { reg, rm, ..Op::new(Kind::MovXX) })
        }
        (OpKind::Register, OpKind::Memory) => {
            let kind = if aligned { Kind::MovXM16Aligned } else { Kind::MovXM16 };
            memory(Op { reg: xmm(i.op0_register())?, ..Op::new(kind) }, i)
        }
        (OpKind::Memory, OpKind::Register) => {
            let kind = if aligned { Kind::MovMX16Aligned } else { Kind::MovMX16 };
            memory(Op { reg: xmm(i.op1_register())?, ..Op::new(kind) }, i)
        }
        _ => None,
    }
}

/// Decodes moves of 4 or 8 bytes.
fn partial_move(i: &Instruction) -> Option<Op> {
    let in_memory = |operand| i.op_kind(operand) == OpKind::Memory;
    let to_memory = |kind| Some(Op { reg: xmm(i.op1_register())?, ..with_memory(kind, i)? });
    match i.mnemonic() {
        Mnemonic::Movss | Mnemonic::Vmovss if in_memory(0) => {
            to_memory(Kind::System(System::StoreX4))
        }
        Mnemonic::Movss | Mnemonic::Vmovss if in_memory(1) => vector(Simd::Mov, i),
        Mnemonic::Movss | Mnemonic::Vmovss => vector(Simd::MovLow32, i),
        Mnemonic::Movsd
        | Mnemonic::Vmovsd
        | Mnemonic::Movlps
        | Mnemonic::Movlpd
        | Mnemonic::Vmovlps
        | Mnemonic::Vmovlpd
            if in_memory(0) =>
        {
            to_memory(Kind::MovMX8)
        }
        Mnemonic::Movsd | Mnemonic::Vmovsd if in_memory(1) => {
            memory(Op { reg: xmm(i.op0_register())?, ..Op::new(Kind::MovXM8) }, i)
        }
        Mnemonic::Movsd
        | Mnemonic::Vmovsd
        | Mnemonic::Movlps
        | Mnemonic::Movlpd
        | Mnemonic::Vmovlps
        | Mnemonic::Vmovlpd => vector(Simd::MovLow64, i),
        Mnemonic::Movhps | Mnemonic::Movhpd | Mnemonic::Vmovhps | Mnemonic::Vmovhpd
            if in_memory(0) =>
        {
            to_memory(Kind::System(System::StoreXHigh))
        }
        Mnemonic::Movhps
        | Mnemonic::Movhpd
        | Mnemonic::Vmovhps
        | Mnemonic::Vmovhpd
        | Mnemonic::Movlhps
        | Mnemonic::Vmovlhps => vector(Simd::MovHigh64, i),
        Mnemonic::Movhlps | Mnemonic::Vmovhlps => vector(Simd::MovHighToLow, i),
        Mnemonic::Movd | Mnemonic::Vmovd | Mnemonic::Movq | Mnemonic::Vmovq => move_integer(i),
        _ => None,
    }
}

/// Decodes movd and movq.
fn move_integer(i: &Instruction) -> Option<Op> {
    let wide = matches!(i.mnemonic(), Mnemonic::Movq | Mnemonic::Vmovq);
    if i.op0_kind() == OpKind::Memory {
        let kind = if wide { Kind::MovMX8 } else { Kind::System(System::StoreX4) };
        return Some(Op { reg: xmm(i.op1_register())?, ..with_memory(kind, i)? });
    }
    if let Some(reg) = gpr(i.op0_register()) {
        let rm = xmm(i.op1_register())?;
        let kind = if wide { Kind::Extract64 } else { Kind::Extract32 }(Extract::Low);
        let imm = SimdImm { imm8: 0, first: 0, source: Source::Xmm }.pack();
        return Some(Op { reg, rm, imm, ..Op::new(kind) });
    }
    if i.op1_kind() == OpKind::Memory && wide {
        return memory(Op { reg: xmm(i.op0_register())?, ..Op::new(Kind::MovXM8) }, i);
    }
    if xmm(i.op1_register()).is_some() {
        // movq between xmm registers clears the high half.
        return vector(Simd::MovZero64, i);
    }
    vector(Simd::Mov, i)
}

/// Decodes instructions from xmm registers to integer registers and flags.
fn extract(i: &Instruction) -> Option<Op> {
    let extract = match i.mnemonic() {
        Mnemonic::Cvtsd2si | Mnemonic::Vcvtsd2si => Extract::RoundD,
        Mnemonic::Cvttsd2si | Mnemonic::Vcvttsd2si => Extract::TruncateD,
        Mnemonic::Cvtss2si | Mnemonic::Vcvtss2si => Extract::RoundS,
        Mnemonic::Cvttss2si | Mnemonic::Vcvttss2si => Extract::TruncateS,
        Mnemonic::Pmovmskb | Mnemonic::Vpmovmskb => Extract::Signs8,
        Mnemonic::Movmskps | Mnemonic::Vmovmskps => Extract::SignsPs,
        Mnemonic::Movmskpd | Mnemonic::Vmovmskpd => Extract::SignsPd,
        Mnemonic::Pextrw | Mnemonic::Vpextrw => Extract::Word,
        Mnemonic::Comisd | Mnemonic::Ucomisd | Mnemonic::Vcomisd | Mnemonic::Vucomisd => {
            Extract::FlagsD
        }
        Mnemonic::Comiss | Mnemonic::Ucomiss | Mnemonic::Vcomiss | Mnemonic::Vucomiss => {
            Extract::FlagsS
        }
        _ => return None,
    };
    let (reg, kind) = match extract {
        Extract::FlagsD | Extract::FlagsS => (xmm(i.op0_register())?, Kind::Extract64(extract)),
        _ if bits(i, 0)? == 64 => (gpr(i.op0_register())?, Kind::Extract64(extract)),
        _ => (gpr(i.op0_register())?, Kind::Extract32(extract)),
    };
    source(Op { reg, ..Op::new(kind) }, i, 1, 0)
}

/// Decodes an operation whose result is a vector.
fn vector(simd: Simd, i: &Instruction) -> Option<Op> {
    let reg = xmm(i.op0_register())?;
    let op = Op { reg, ..Op::new(Kind::Simd(simd)) };
    let immediate = i.op_count().checked_sub(1)?;
    let operands =
        if i.op_kind(immediate) == OpKind::Immediate8 { immediate } else { i.op_count() };
    match operands {
        // A shift by an immediate.
        1 => source(op, i, 0, reg),
        2 if operands < i.op_count() && is_shift(simd) => {
            source(op, i, immediate, xmm(i.op1_register())?)
        }
        2 => source(op, i, 1, reg),
        3 => source(op, i, 2, xmm(i.op1_register())?),
        _ => None,
    }
}

fn is_shift(simd: Simd) -> bool {
    matches!(
        simd,
        Simd::ShiftLeft16
            | Simd::ShiftLeft32
            | Simd::ShiftLeft64
            | Simd::ShiftRight16
            | Simd::ShiftRight32
            | Simd::ShiftRight64
            | Simd::ShiftArithmetic16
            | Simd::ShiftArithmetic32
            | Simd::ShiftLeftBytes
            | Simd::ShiftRightBytes
    )
}

/// Completes an operation with its source operand, its first source and its immediate byte.
fn source(op: Op, i: &Instruction, operand: u32, first: u8) -> Option<Op> {
    let last = i.op_count().checked_sub(1)?;
    let imm8 = if i.op_kind(last) == OpKind::Immediate8 { i.immediate8() } else { 0 };
    let with = |op: Op, source| Op { imm: SimdImm { imm8, first, source }.pack(), ..op };
    match i.op_kind(operand) {
        OpKind::Register => {
            let register = i.op_register(operand);
            if let Some(rm) = xmm(register) {
                // A shift by an immediate has only one register.
                let by_imm = operand == 0;
                return Some(with(Op { rm, ..op }, if by_imm { Source::Imm } else { Source::Xmm }));
            }
            let rm = gpr(register)?;
            Some(with(
                Op { rm, ..op },
                if register.size() == 8 { Source::Gpr64 } else { Source::Gpr32 },
            ))
        }
        OpKind::Memory => {
            let source = match (i.memory_size().size(), i.code().encoding()) {
                (2, _) => Source::M2,
                (4, _) => Source::M4,
                (8, _) => Source::M8,
                (16, EncodingKind::Legacy) => Source::M16Aligned,
                (16, _) => Source::M16,
                _ => return None,
            };
            memory(with(op, source), i)
        }
        OpKind::Immediate8 => Some(with(Op { rm: slot::ZERO, ..op }, Source::Imm)),
        _ => None,
    }
}

fn integer(mnemonic: Mnemonic) -> Option<Simd> {
    Some(match mnemonic {
        Mnemonic::Pand
        | Mnemonic::Andps
        | Mnemonic::Andpd
        | Mnemonic::Vpand
        | Mnemonic::Vandps
        | Mnemonic::Vandpd => Simd::And,
        Mnemonic::Pandn
        | Mnemonic::Andnps
        | Mnemonic::Andnpd
        | Mnemonic::Vpandn
        | Mnemonic::Vandnps
        | Mnemonic::Vandnpd => Simd::AndNot,
        Mnemonic::Por
        | Mnemonic::Orps
        | Mnemonic::Orpd
        | Mnemonic::Vpor
        | Mnemonic::Vorps
        | Mnemonic::Vorpd => Simd::Or,
        Mnemonic::Pxor
        | Mnemonic::Xorps
        | Mnemonic::Xorpd
        | Mnemonic::Vpxor
        | Mnemonic::Vxorps
        | Mnemonic::Vxorpd => Simd::Xor,
        Mnemonic::Paddb | Mnemonic::Vpaddb => Simd::Add8,
        Mnemonic::Paddw | Mnemonic::Vpaddw => Simd::Add16,
        Mnemonic::Paddd | Mnemonic::Vpaddd => Simd::Add32,
        Mnemonic::Paddq | Mnemonic::Vpaddq => Simd::Add64,
        Mnemonic::Psubb | Mnemonic::Vpsubb => Simd::Sub8,
        Mnemonic::Psubw | Mnemonic::Vpsubw => Simd::Sub16,
        Mnemonic::Psubd | Mnemonic::Vpsubd => Simd::Sub32,
        Mnemonic::Psubq | Mnemonic::Vpsubq => Simd::Sub64,
        Mnemonic::Paddsb | Mnemonic::Vpaddsb => Simd::AddSigned8,
        Mnemonic::Paddsw | Mnemonic::Vpaddsw => Simd::AddSigned16,
        Mnemonic::Paddusb | Mnemonic::Vpaddusb => Simd::AddUnsigned8,
        Mnemonic::Paddusw | Mnemonic::Vpaddusw => Simd::AddUnsigned16,
        Mnemonic::Psubsb | Mnemonic::Vpsubsb => Simd::SubSigned8,
        Mnemonic::Psubsw | Mnemonic::Vpsubsw => Simd::SubSigned16,
        Mnemonic::Psubusb | Mnemonic::Vpsubusb => Simd::SubUnsigned8,
        Mnemonic::Psubusw | Mnemonic::Vpsubusw => Simd::SubUnsigned16,
        Mnemonic::Pmullw | Mnemonic::Vpmullw => Simd::MulLow16,
        Mnemonic::Pmulhw | Mnemonic::Vpmulhw => Simd::MulHigh16,
        Mnemonic::Pmulhuw | Mnemonic::Vpmulhuw => Simd::MulHighUnsigned16,
        Mnemonic::Pmuludq | Mnemonic::Vpmuludq => Simd::MulUnsigned32,
        Mnemonic::Pmaddwd | Mnemonic::Vpmaddwd => Simd::MulAdd16,
        Mnemonic::Pavgb | Mnemonic::Vpavgb => Simd::Average8,
        Mnemonic::Pavgw | Mnemonic::Vpavgw => Simd::Average16,
        Mnemonic::Pminub | Mnemonic::Vpminub => Simd::MinUnsigned8,
        Mnemonic::Pmaxub | Mnemonic::Vpmaxub => Simd::MaxUnsigned8,
        Mnemonic::Pminsw | Mnemonic::Vpminsw => Simd::MinSigned16,
        Mnemonic::Pmaxsw | Mnemonic::Vpmaxsw => Simd::MaxSigned16,
        Mnemonic::Psadbw | Mnemonic::Vpsadbw => Simd::SumAbsolute8,
        Mnemonic::Pcmpeqb | Mnemonic::Vpcmpeqb => Simd::Equal8,
        Mnemonic::Pcmpeqw | Mnemonic::Vpcmpeqw => Simd::Equal16,
        Mnemonic::Pcmpeqd | Mnemonic::Vpcmpeqd => Simd::Equal32,
        Mnemonic::Pcmpgtb | Mnemonic::Vpcmpgtb => Simd::Greater8,
        Mnemonic::Pcmpgtw | Mnemonic::Vpcmpgtw => Simd::Greater16,
        Mnemonic::Pcmpgtd | Mnemonic::Vpcmpgtd => Simd::Greater32,
        Mnemonic::Psllw | Mnemonic::Vpsllw => Simd::ShiftLeft16,
        Mnemonic::Pslld | Mnemonic::Vpslld => Simd::ShiftLeft32,
        Mnemonic::Psllq | Mnemonic::Vpsllq => Simd::ShiftLeft64,
        Mnemonic::Psrlw | Mnemonic::Vpsrlw => Simd::ShiftRight16,
        Mnemonic::Psrld | Mnemonic::Vpsrld => Simd::ShiftRight32,
        Mnemonic::Psrlq | Mnemonic::Vpsrlq => Simd::ShiftRight64,
        Mnemonic::Psraw | Mnemonic::Vpsraw => Simd::ShiftArithmetic16,
        Mnemonic::Psrad | Mnemonic::Vpsrad => Simd::ShiftArithmetic32,
        Mnemonic::Pslldq | Mnemonic::Vpslldq => Simd::ShiftLeftBytes,
        Mnemonic::Psrldq | Mnemonic::Vpsrldq => Simd::ShiftRightBytes,
        _ => return None,
    })
}

fn shuffle(mnemonic: Mnemonic) -> Option<Simd> {
    Some(match mnemonic {
        Mnemonic::Punpcklbw | Mnemonic::Vpunpcklbw => Simd::UnpackLow8,
        Mnemonic::Punpcklwd | Mnemonic::Vpunpcklwd => Simd::UnpackLow16,
        Mnemonic::Punpckldq | Mnemonic::Unpcklps | Mnemonic::Vpunpckldq | Mnemonic::Vunpcklps => {
            Simd::UnpackLow32
        }
        Mnemonic::Punpcklqdq | Mnemonic::Unpcklpd | Mnemonic::Vpunpcklqdq | Mnemonic::Vunpcklpd => {
            Simd::UnpackLow64
        }
        Mnemonic::Punpckhbw | Mnemonic::Vpunpckhbw => Simd::UnpackHigh8,
        Mnemonic::Punpckhwd | Mnemonic::Vpunpckhwd => Simd::UnpackHigh16,
        Mnemonic::Punpckhdq | Mnemonic::Unpckhps | Mnemonic::Vpunpckhdq | Mnemonic::Vunpckhps => {
            Simd::UnpackHigh32
        }
        Mnemonic::Punpckhqdq | Mnemonic::Unpckhpd | Mnemonic::Vpunpckhqdq | Mnemonic::Vunpckhpd => {
            Simd::UnpackHigh64
        }
        Mnemonic::Packsswb | Mnemonic::Vpacksswb => Simd::PackSigned16,
        Mnemonic::Packssdw | Mnemonic::Vpackssdw => Simd::PackSigned32,
        Mnemonic::Packuswb | Mnemonic::Vpackuswb => Simd::PackUnsigned16,
        Mnemonic::Pshufd | Mnemonic::Vpshufd => Simd::Shuffle32,
        Mnemonic::Pshuflw | Mnemonic::Vpshuflw => Simd::ShuffleLow16,
        Mnemonic::Pshufhw | Mnemonic::Vpshufhw => Simd::ShuffleHigh16,
        Mnemonic::Shufps | Mnemonic::Vshufps => Simd::ShufflePs,
        Mnemonic::Shufpd | Mnemonic::Vshufpd => Simd::ShufflePd,
        Mnemonic::Pinsrw | Mnemonic::Vpinsrw => Simd::Insert16,
        _ => return None,
    })
}

fn float(mnemonic: Mnemonic) -> Option<Simd> {
    Some(match mnemonic {
        Mnemonic::Addss | Mnemonic::Vaddss => Simd::AddS,
        Mnemonic::Addsd | Mnemonic::Vaddsd => Simd::AddD,
        Mnemonic::Addps | Mnemonic::Vaddps => Simd::AddPs,
        Mnemonic::Addpd | Mnemonic::Vaddpd => Simd::AddPd,
        Mnemonic::Subss | Mnemonic::Vsubss => Simd::SubS,
        Mnemonic::Subsd | Mnemonic::Vsubsd => Simd::SubD,
        Mnemonic::Subps | Mnemonic::Vsubps => Simd::SubPs,
        Mnemonic::Subpd | Mnemonic::Vsubpd => Simd::SubPd,
        Mnemonic::Mulss | Mnemonic::Vmulss => Simd::MulS,
        Mnemonic::Mulsd | Mnemonic::Vmulsd => Simd::MulD,
        Mnemonic::Mulps | Mnemonic::Vmulps => Simd::MulPs,
        Mnemonic::Mulpd | Mnemonic::Vmulpd => Simd::MulPd,
        Mnemonic::Divss | Mnemonic::Vdivss => Simd::DivS,
        Mnemonic::Divsd | Mnemonic::Vdivsd => Simd::DivD,
        Mnemonic::Divps | Mnemonic::Vdivps => Simd::DivPs,
        Mnemonic::Divpd | Mnemonic::Vdivpd => Simd::DivPd,
        Mnemonic::Minss | Mnemonic::Vminss => Simd::MinS,
        Mnemonic::Minsd | Mnemonic::Vminsd => Simd::MinD,
        Mnemonic::Minps | Mnemonic::Vminps => Simd::MinPs,
        Mnemonic::Minpd | Mnemonic::Vminpd => Simd::MinPd,
        Mnemonic::Maxss | Mnemonic::Vmaxss => Simd::MaxS,
        Mnemonic::Maxsd | Mnemonic::Vmaxsd => Simd::MaxD,
        Mnemonic::Maxps | Mnemonic::Vmaxps => Simd::MaxPs,
        Mnemonic::Maxpd | Mnemonic::Vmaxpd => Simd::MaxPd,
        Mnemonic::Sqrtss | Mnemonic::Vsqrtss => Simd::SqrtS,
        Mnemonic::Sqrtsd | Mnemonic::Vsqrtsd => Simd::SqrtD,
        Mnemonic::Sqrtps | Mnemonic::Vsqrtps => Simd::SqrtPs,
        Mnemonic::Sqrtpd | Mnemonic::Vsqrtpd => Simd::SqrtPd,
        Mnemonic::Cmpss => Simd::CompareS,
        Mnemonic::Cmpsd => Simd::CompareD,
        Mnemonic::Cmpps => Simd::ComparePs,
        Mnemonic::Cmppd => Simd::ComparePd,
        Mnemonic::Vfmadd132ss => Simd::Fma132S,
        Mnemonic::Vfmadd132sd => Simd::Fma132D,
        Mnemonic::Vfmadd213ss => Simd::Fma213S,
        Mnemonic::Vfmadd213sd => Simd::Fma213D,
        Mnemonic::Vfmadd231ss => Simd::Fma231S,
        Mnemonic::Vfmadd231sd => Simd::Fma231D,
        _ => return None,
    })
}

fn convert(i: &Instruction) -> Option<Simd> {
    let last = i.op_count().checked_sub(1)?;
    Some(match i.mnemonic() {
        Mnemonic::Cvtsi2ss | Mnemonic::Vcvtsi2ss => match bits(i, last)? {
            64 => Simd::Int64ToS,
            _ => Simd::Int32ToS,
        },
        Mnemonic::Cvtsi2sd | Mnemonic::Vcvtsi2sd => match bits(i, last)? {
            64 => Simd::Int64ToD,
            _ => Simd::Int32ToD,
        },
        Mnemonic::Cvtss2sd | Mnemonic::Vcvtss2sd => Simd::SToD,
        Mnemonic::Cvtsd2ss | Mnemonic::Vcvtsd2ss => Simd::DToS,
        Mnemonic::Cvtdq2pd | Mnemonic::Vcvtdq2pd => Simd::Int32ToPd,
        Mnemonic::Cvtdq2ps | Mnemonic::Vcvtdq2ps => Simd::Int32ToPs,
        Mnemonic::Cvtps2dq | Mnemonic::Vcvtps2dq => Simd::PsToInt32,
        Mnemonic::Cvttps2dq | Mnemonic::Vcvttps2dq => Simd::PsTruncateInt32,
        Mnemonic::Cvtpd2dq | Mnemonic::Vcvtpd2dq => Simd::PdToInt32,
        Mnemonic::Cvttpd2dq | Mnemonic::Vcvttpd2dq => Simd::PdTruncateInt32,
        Mnemonic::Cvtpd2ps | Mnemonic::Vcvtpd2ps => Simd::PdToPs,
        Mnemonic::Cvtps2pd | Mnemonic::Vcvtps2pd => Simd::PsToPd,
        _ => return None,
    })
}
