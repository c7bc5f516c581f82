//! Decoding of single instructions: their length, and what they do to the stack and to the registers
//! that callees preserve.
//!
//! Lengths are right for everything that compilers emit for x86-64, up to AVX-512. Effects are known
//! for the instructions that compilers use in prologues, epilogues and jumps; of all others it is
//! known which integer register they write.

use super::state::PRESERVED;
use super::usual;
use crate::registers::Gpr;
use crate::x64::{Base, Fields, Map};

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::unwinder) struct Instruction {
    /// Length in bytes.
    pub(in crate::unwinder) len: u8,
    pub(in crate::unwinder) effect: Effect,
}

/// The effect of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::unwinder) enum Effect {
    /// Neither the stack pointer nor a register that matters changes.
    None,
    /// 8 bytes are pushed: a register, or something else.
    Push(Option<Gpr>),
    /// 8 bytes are popped, into a register or somewhere else.
    Pop(Option<Gpr>),
    /// rsp grows by N bytes.
    AddRsp(i32),
    /// rsp is rounded down by a mask.
    AndRsp(i32),
    /// A register becomes rsp or rbp plus N bytes.
    Lea(Gpr, Base, i32),
    /// A register becomes an address N bytes from the instruction's end.
    LeaRip(Gpr, i32),
    /// A register is loaded from rsp or rbp plus N bytes.
    Load(Gpr, Base, i32),
    /// A register is stored at rsp or rbp plus N bytes.
    Store(Gpr, Base, i32),
    /// A register is overwritten.
    Write(Gpr),
    /// `leave`.
    Leave,
    /// Any call.
    Call,
    /// `jmp`, by a distance from the instruction's end.
    Jump(i32),
    /// A conditional jump, by a distance from the instruction's end.
    Branch(i32),
    /// A jump through a pointer: another function is entered.
    JumpOut,
    /// A jump through a register or a table: a `switch`, or another function is entered.
    JumpAnywhere,
    /// A return.
    Return,
    /// Execution does not go on here.
    DeadEnd,
    /// The stack changes in a way that is not followed.
    Unknown,
}

/// Decodes the instruction that `code` begins with; `None` if it is unknown or cut off.
pub(in crate::unwinder) fn decode(code: &[u8]) -> Option<Instruction> {
    if let Some(instruction) = usual::decode(code) {
        return Some(instruction);
    }
    let fields = Fields::read(code)?;
    Some(Instruction { len: fields.len, effect: fields.effect() })
}

impl Fields {
    fn effect(&self) -> Effect {
        match self.map {
            _ if self.vector => self.vector_effect(),
            Map::One => self.one_byte_effect(),
            Map::Two => self.two_byte_effect(),
            // `movbe`, which may store, and `crc32`.
            Map::Three38 if self.opcode == 0xF0 || self.opcode == 0xF1 && self.repeat == 0xF2 => {
                Effect::Write(self.register())
            }
            // `adcx` and `adox`.
            Map::Three38 if self.opcode == 0xF6 && (self.operand_size || self.repeat == 0xF3) => {
                Effect::Write(self.register())
            }
            Map::Three3A if matches!(self.opcode, 0x14..=0x17) => written(self.operand()),
            _ => Effect::None,
        }
    }

    fn one_byte_effect(&self) -> Effect {
        let byte_register = |register| self.byte_register(register);
        let (register, operand) = (self.register(), self.operand());
        let opcode_register = self.opcode_register();
        match self.opcode {
            // 90 is `nop`, `pause`, or an exchange of r8 and rax, which callees need not preserve.
            0x38..=0x3F | 0x84 | 0x85 | 0x90 => Effect::None,
            0x00..=0x3F => match self.opcode & 7 {
                0 => written(operand.map(byte_register)),
                1 => written(operand),
                2 => Effect::Write(byte_register(register)),
                3 => Effect::Write(register),
                _ => Effect::None,
            },
            0x50..=0x5F | 0x68 | 0x6A | 0x8F | 0x9C | 0x9D | 0xC9 if self.is_short() => {
                Effect::Unknown
            }
            0x50..=0x57 => Effect::Push(Some(opcode_register)),
            0x58..=0x5F => Effect::Pop(Some(opcode_register)),
            0x68 | 0x6A | 0x9C => Effect::Push(None),
            0x8F => match operand {
                Some(register) => Effect::Pop(Some(register)),
                None => Effect::Pop(None),
            },
            0x9D => Effect::Pop(None),
            0x63 | 0x69 | 0x6B => Effect::Write(register),
            0x86 => both_written(operand.map(byte_register), byte_register(register)),
            0x87 => both_written(operand, register),
            0x70..=0x7F | 0xE0..=0xE3 => Effect::Branch(self.immediate),
            0x80 if self.extension() != 7 => written(operand.map(byte_register)),
            0x81 | 0x83 => self.arithmetic(),
            0x8A => Effect::Write(byte_register(register)),
            0x88 | 0xC0 | 0xC6 | 0xD0 | 0xD2 | 0xFE => written(operand.map(byte_register)),
            0x89 => match (operand, self.in_frame()) {
                (Some(to), _) => self.moved(to, register),
                (None, Some((base, by))) if self.is_wide() => Effect::Store(register, base, by),
                _ => Effect::None,
            },
            0x8B => match (operand, self.in_frame()) {
                (Some(from), _) => self.moved(register, from),
                (None, Some((base, by))) if self.is_wide() => Effect::Load(register, base, by),
                _ => Effect::Write(register),
            },
            0x8D => match self.in_frame() {
                Some((base, by)) if self.is_wide() => Effect::Lea(register, base, by),
                None if self.is_wide() && self.is_relative() => {
                    Effect::LeaRip(register, self.displacement)
                }
                _ => Effect::Write(register),
            },
            0x8C | 0xC1 | 0xC7 | 0xD1 | 0xD3 => written(operand),
            0x91..=0x97 | 0xB8..=0xBF => Effect::Write(opcode_register),
            0xB0..=0xB7 => Effect::Write(byte_register(opcode_register)),
            0xC3 => Effect::Return,
            0xC9 => Effect::Leave,
            0xC2 | 0xC8 | 0xCA | 0xCB | 0xCF => Effect::Unknown,
            0xCC | 0xF4 => Effect::DeadEnd,
            0xE8 => Effect::Call,
            0xE9 | 0xEB => Effect::Jump(self.immediate),
            0xF6 if matches!(self.extension(), 2 | 3) => written(operand.map(byte_register)),
            0xF7 if matches!(self.extension(), 2 | 3) => written(operand),
            0xFF => self.group_five(),
            _ => Effect::None,
        }
    }

    /// Returns the effect of `add`, `or`, `adc`, `sbb`, `and`, `sub`, `xor` or `cmp` with a number.
    fn arithmetic(&self) -> Effect {
        let Some(register) = self.operand() else { return Effect::None };
        match (self.extension(), register) {
            (7, _) => Effect::None,
            (0, Gpr::Rsp) if self.is_wide() => Effect::AddRsp(self.immediate),
            (5, Gpr::Rsp) if self.is_wide() => match self.immediate.checked_neg() {
                Some(by) => Effect::AddRsp(by),
                None => Effect::Write(register),
            },
            (4, Gpr::Rsp) if self.is_wide() => Effect::AndRsp(self.immediate),
            _ => Effect::Write(register),
        }
    }

    /// Returns the effect of `mov` between registers.
    fn moved(&self, to: Gpr, from: Gpr) -> Effect {
        match from {
            Gpr::Rsp if self.is_wide() => Effect::Lea(to, Base::Rsp, 0),
            Gpr::Rbp if self.is_wide() => Effect::Lea(to, Base::Rbp, 0),
            _ => Effect::Write(to),
        }
    }

    /// Returns the effect of `FF`.
    fn group_five(&self) -> Effect {
        match self.extension() {
            0 | 1 => written(self.operand()),
            2 | 3 => Effect::Call,
            4 => match (self.modrm >> 6, self.modrm & 7) {
                (0, 5) => Effect::JumpOut,
                // A method of an object: a table would be indexed, and a label is in a variable.
                (1 | 2, _) if !self.has_index() && self.in_frame().is_none() => Effect::JumpOut,
                _ => Effect::JumpAnywhere,
            },
            6 if self.is_short() => Effect::Unknown,
            6 => Effect::Push(self.operand()),
            _ => Effect::Unknown,
        }
    }

    fn two_byte_effect(&self) -> Effect {
        let byte_register = |register| self.byte_register(register);
        let (register, operand) = (self.register(), self.operand());
        match self.opcode {
            0x0B | 0xB9 | 0xFF => Effect::DeadEnd,
            0x02
            | 0x03
            | 0x40..=0x4F
            | 0x50
            | 0xAF
            | 0xB2
            | 0xB4..=0xB8
            | 0xBC..=0xBF
            | 0xC5
            | 0xD7 => Effect::Write(register),
            0x2C | 0x2D if self.repeat != 0 => Effect::Write(register),
            0x7E if self.repeat == 0 => written(operand),
            0x80..=0x8F => Effect::Branch(self.immediate),
            0x90..=0x9F | 0xB0 => written(operand.map(byte_register)),
            0xA0 | 0xA1 | 0xA8 | 0xA9 if self.is_short() => Effect::Unknown,
            0xA0 | 0xA8 => Effect::Push(None),
            0xA1 | 0xA9 => Effect::Pop(None),
            // `cpuid`.
            0xA2 => Effect::Write(Gpr::Rbx),
            // Of C7 only `rdrand`, `rdseed` and `rdpid` have a register.
            0xA4 | 0xA5 | 0xAB | 0xAC | 0xAD | 0xB1 | 0xB3 | 0xBB | 0xC7 => written(operand),
            0xBA if self.extension() != 4 => written(operand),
            0xC0 => both_written(operand.map(byte_register), byte_register(register)),
            0xC1 => both_written(operand, register),
            0xC8..=0xCF => Effect::Write(self.opcode_register()),
            0x07 | 0x35 => Effect::Unknown,
            _ => Effect::None,
        }
    }

    /// Returns the effect of an instruction with a VEX or EVEX prefix: a few have integer results.
    fn vector_effect(&self) -> Effect {
        match (self.map, self.opcode) {
            // `blsr`, `blsmsk` and `blsi`; and `mulx`, which has two results.
            (Map::Three38, 0xF3) => Effect::Write(self.second),
            (Map::Three38, 0xF6) => both_written(Some(self.register()), self.second),
            // Conversions to integers without a sign.
            (Map::Two, 0x78 | 0x79) if self.repeat == 0 => Effect::None,
            (Map::Two, 0x2C | 0x2D | 0x50 | 0x78 | 0x79 | 0xC5 | 0xD7 | 0x93)
            | (Map::Three38, 0xF2 | 0xF5 | 0xF7)
            | (Map::Three3A, 0xF0) => Effect::Write(self.register()),
            (Map::Two, 0x7E) if self.repeat == 0 => written(self.operand()),
            (Map::Three3A, 0x14..=0x17) => written(self.operand()),
            _ => Effect::None,
        }
    }
}

/// Returns the effect of overwriting two registers; what one of them is does not matter, if the other one is
/// preserved and it is not.
fn both_written(one: Option<Gpr>, other: Gpr) -> Effect {
    let matters = |register| register == Gpr::Rsp || PRESERVED.contains(&register);
    match one {
        Some(one) if one == other || !matters(other) => Effect::Write(one),
        Some(one) if matters(one) => Effect::Unknown,
        _ => Effect::Write(other),
    }
}

fn written(register: Option<Gpr>) -> Effect {
    register.map_or(Effect::None, Effect::Write)
}
