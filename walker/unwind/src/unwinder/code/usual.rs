//! Decoding of the most frequent instructions without taking all their fields apart. Most of the time of a
//! step by compact unwind information goes into decoding.

use super::instruction::{Effect, Instruction};
use crate::registers::Gpr;

/// Number of bytes that suffice for every instruction here.
const ENOUGH: usize = 16;

/// A REX prefix, an opcode and ModRM, with the length of SIB and displacement.
struct Operands {
    rex: u8,
    modrm: u8,
    /// The register that the address counts from, without its extension; 5 in mode 0 is none.
    base: u8,
    /// Length in bytes up to the displacement's end.
    len: u8,
}

impl Operands {
    fn read(bytes: &[u8; ENOUGH], rex: u8, opcode_end: u8) -> Option<Self> {
        let at = usize::from(opcode_end);
        let modrm = *bytes.get(at)?;
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let has_sib = mode != 3 && rm == 4;
        let base = if has_sib { *bytes.get(at + 1)? & 7 } else { rm };
        let displacement = match mode {
            0 if base == 5 => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        let len = opcode_end + 1 + u8::from(has_sib) + displacement;
        Some(Self { rex, modrm, base, len })
    }

    const fn is_register(&self) -> bool {
        self.modrm >> 6 == 3
    }

    /// Returns true if the operand is in memory, at a place that may be in the frame or relative to the
    /// instruction.
    const fn may_be_in_frame(&self) -> bool {
        !self.is_register() && matches!(self.base, 4 | 5)
    }

    const fn extension(&self) -> u8 {
        self.modrm >> 3 & 7
    }

    fn register(&self) -> Gpr {
        Gpr::from_number(self.extension() | self.rex << 1 & 8)
    }

    /// Returns the register that the operand is.
    fn operand(&self) -> Gpr {
        Gpr::from_number(self.modrm & 7 | self.rex << 3 & 8)
    }

    /// Returns the effect of writing to the operand.
    fn written(&self) -> Effect {
        if self.is_register() { Effect::Write(self.operand()) } else { Effect::None }
    }
}

/// Decodes an instruction of a frequent form. `None` says nothing.
#[inline]
pub(super) fn decode(code: &[u8]) -> Option<Instruction> {
    let bytes: &[u8; ENOUGH] = code.first_chunk()?;
    let [first, second, ..] = *bytes;
    let has_rex = first & 0xF0 == 0x40;
    let (rex, opcode, end) = if has_rex { (first, second, 2) } else { (0, first, 1) };
    let number = |at: u8| {
        let bytes = bytes.get(usize::from(at)..)?.first_chunk()?;
        Some(i32::from_le_bytes(*bytes))
    };
    let byte = |at: u8| Some(i32::from(bytes.get(usize::from(at))?.cast_signed()));
    let operands = || Operands::read(bytes, rex, end);
    let is_frame_register = |register: Gpr| matches!(register, Gpr::Rsp | Gpr::Rbp);
    let with = |len: u8, effect| Some(Instruction { len, effect });
    match opcode {
        0x0F => two_bytes(bytes, rex, end),
        // cmp, test
        0x39 | 0x3B | 0x85 => with(operands()?.len, Effect::None),
        // add, or, adc, sbb, and, sub, xor
        0x01 | 0x09 | 0x11 | 0x19 | 0x21 | 0x29 | 0x31 => {
            let operands = operands()?;
            with(operands.len, operands.written())
        }
        0x03 | 0x0B | 0x13 | 0x1B | 0x23 | 0x2B | 0x33 => {
            let operands = operands()?;
            with(operands.len, Effect::Write(operands.register()))
        }
        // mov, lea
        0x89 => {
            let operands = operands()?;
            if operands.may_be_in_frame() || is_frame_register(operands.register()) {
                return None;
            }
            with(operands.len, operands.written())
        }
        0x8B => {
            let operands = operands()?;
            let from_frame = operands.is_register() && is_frame_register(operands.operand());
            if operands.may_be_in_frame() || from_frame {
                return None;
            }
            with(operands.len, Effect::Write(operands.register()))
        }
        0x8D => {
            let operands = operands()?;
            if operands.may_be_in_frame() || operands.is_register() {
                return None;
            }
            with(operands.len, Effect::Write(operands.register()))
        }
        // Arithmetic with a number, which may move rsp.
        0x81 | 0x83 => {
            let operands = operands()?;
            if operands.is_register() && operands.operand() == Gpr::Rsp {
                return None;
            }
            let len = operands.len + if opcode == 0x81 { 4 } else { 1 };
            let is_comparison = operands.extension() == 7;
            with(len, if is_comparison { Effect::None } else { operands.written() })
        }
        0x70..=0x7F if !has_rex => with(2, Effect::Branch(byte(1)?)),
        0xEB if !has_rex => with(2, Effect::Jump(byte(1)?)),
        0xE9 if !has_rex => with(5, Effect::Jump(number(1)?)),
        0xE8 if !has_rex => with(5, Effect::Call),
        0x50..=0x5F => {
            let register = Some(Gpr::from_number(opcode & 7 | rex << 3 & 8));
            with(end, if opcode < 0x58 { Effect::Push(register) } else { Effect::Pop(register) })
        }
        0xC7 => {
            let operands = operands()?;
            with(operands.len + 4, operands.written())
        }
        _ => None,
    }
}

/// Decodes an instruction of a frequent form whose opcode has two bytes, the first at `end - 1`.
fn two_bytes(bytes: &[u8; ENOUGH], rex: u8, end: u8) -> Option<Instruction> {
    let opcode = *bytes.get(usize::from(end))?;
    let end = end + 1;
    let operands = || Operands::read(bytes, rex, end);
    match opcode {
        0x80..=0x8F => {
            let distance = bytes.get(usize::from(end)..)?.first_chunk()?;
            let effect = Effect::Branch(i32::from_le_bytes(*distance));
            Some(Instruction { len: end + 4, effect })
        }
        // movups, movaps, nop; xorps and others between vector registers
        0x10 | 0x11 | 0x1F | 0x28 | 0x29 | 0x57 => {
            Some(Instruction { len: operands()?.len, effect: Effect::None })
        }
        // cmov, imul, movzx, movsx
        0x40..=0x4F | 0xAF | 0xB6 | 0xB7 | 0xBE | 0xBF => {
            let operands = operands()?;
            Some(Instruction { len: operands.len, effect: Effect::Write(operands.register()) })
        }
        _ => None,
    }
}
