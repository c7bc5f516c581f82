//! Decoder of instructions on xmm registers: SSE, SSE2, and their VEX encodings.

use super::{bits, gpr, memory, with_memory, xmm};
use crate::cpu::slot;
use crate::op::{Extract, Kind, Op, Simd, SimdImm, Source, System};
use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind};

pub(super) fn decode(i: &Instruction) -> Option<Op> {
    full_move(i)
        .or_else(|| partial_move(i))
        .or_else(|| extract(i))
        .or_else(|| vector(Simd::of(i.mnemonic()).or_else(|| convert(i))?, i))
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

fn convert(i: &Instruction) -> Option<Simd> {
    let wide = bits(i, i.op_count().checked_sub(1)?)? == 64;
    Some(match i.mnemonic() {
        Mnemonic::Cvtsi2ss | Mnemonic::Vcvtsi2ss if wide => Simd::Int64ToS,
        Mnemonic::Cvtsi2ss | Mnemonic::Vcvtsi2ss => Simd::Int32ToS,
        Mnemonic::Cvtsi2sd | Mnemonic::Vcvtsi2sd if wide => Simd::Int64ToD,
        Mnemonic::Cvtsi2sd | Mnemonic::Vcvtsi2sd => Simd::Int32ToD,
        _ => return None,
    })
}
