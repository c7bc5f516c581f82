//! The fields of an instruction's bytes, and their lengths.

use crate::registers::Gpr;

/// A register that addresses a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// rsp.
    Rsp,
    /// rbp.
    Rbp,
}

/// The length of an operand in the code, after opcode and ModRM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Immediate {
    Nothing,
    Byte,
    Word,
    /// 4 bytes, or 2 after an operand-size prefix.
    Full,
    /// 4 bytes, always.
    Distance,
    /// A register's width: 8 bytes with REX.W, else as `Full`.
    Wide,
    /// An address: 8 bytes.
    Address,
    /// A word and a byte.
    Enter,
}

impl Immediate {
    /// Returns the length in bytes, in two parts of up to 4. `full` is the length of `Full`.
    #[inline]
    const fn lengths(self, full: usize, is_wide: bool, short_address: bool) -> (usize, usize) {
        match self {
            Self::Nothing => (0, 0),
            Self::Byte => (1, 0),
            Self::Word => (2, 0),
            Self::Distance => (4, 0),
            Self::Wide if is_wide => (4, 4),
            Self::Full | Self::Wide => (full, 0),
            Self::Address if short_address => (4, 0),
            Self::Address => (4, 4),
            Self::Enter => (2, 1),
        }
    }
}

/// The opcode's form.
#[derive(Clone, Copy)]
struct Form {
    modrm: bool,
    immediate: Immediate,
}

impl Form {
    const fn new(modrm: bool, immediate: Immediate) -> Self {
        Self { modrm, immediate }
    }
}

/// The map that an opcode is from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Map {
    One,
    /// After `0F`.
    Two,
    /// After `0F 38`.
    Three38,
    /// After `0F 3A`.
    Three3A,
}

/// An instruction, cut into its fields.
pub struct Fields {
    pub map: Map,
    pub opcode: u8,
    /// True for VEX and EVEX.
    pub vector: bool,
    /// True after `66`, which VEX has in itself.
    pub operand_size: bool,
    /// Nonzero after `F2` or `F3`, and for the vector instructions that have these in VEX.
    pub repeat: u8,
    /// The low four bits of REX, or the last three of VEX.
    pub rex: u8,
    pub has_rex: bool,
    /// The register that VEX names beside ModRM.
    pub second: Gpr,
    pub modrm: u8,
    sib: u8,
    pub displacement: i32,
    pub immediate: i32,
    pub len: u8,
}

/// A position in the code.
struct Reader<'c> {
    code: &'c [u8],
    at: usize,
}

impl Reader<'_> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let byte = self.code.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn peek(&self) -> Option<u8> {
        self.code.get(self.at).copied()
    }

    /// Reads ModRM, SIB and the displacement.
    #[inline]
    fn operand(&mut self) -> Option<(u8, u8, i32)> {
        let modrm = self.byte()?;
        let (mode, mut base, mut sib) = (modrm >> 6, modrm & 7, 0);
        if mode != 3 && base == 4 {
            sib = self.byte()?;
            base = sib & 7;
        }
        let len = match mode {
            0 if base == 5 => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        Some((modrm, sib, self.number(len)?))
    }

    /// Reads a number of 0, 1, 2 or 4 bytes with its sign.
    #[inline]
    fn number(&mut self, len: usize) -> Option<i32> {
        let rest = self.code.get(self.at..)?;
        self.at += len;
        Some(match len {
            0 => 0,
            1 => rest.first()?.cast_signed().into(),
            2 => i16::from_le_bytes(*rest.first_chunk()?).into(),
            _ => i32::from_le_bytes(*rest.first_chunk()?),
        })
    }
}

/// Longest instruction in bytes.
const LONGEST: usize = 15;

impl Fields {
    #[inline]
    pub fn read(code: &[u8]) -> Option<Self> {
        let mut reader = Reader { code: code.get(..LONGEST).unwrap_or(code), at: 0 };
        let (mut operand_size, mut address_size, mut repeat) = (false, false, 0);
        let mut byte = reader.byte()?;
        loop {
            match byte {
                0x66 => operand_size = true,
                0x67 => address_size = true,
                0xF2 | 0xF3 => repeat = byte,
                0xF0 | 0x2E | 0x36 | 0x3E | 0x26 | 0x64 | 0x65 => {}
                _ => break,
            }
            byte = reader.byte()?;
        }
        let has_rex = byte & 0xF0 == 0x40;
        let mut rex = 0;
        if has_rex {
            rex = byte & 0xF;
            byte = reader.byte()?;
        }
        let (mut map, mut second_register) = (Map::One, 0);
        let vector = matches!(byte, 0xC4 | 0xC5 | 0x62);
        if vector {
            if has_rex {
                return None;
            }
            let first = reader.byte()?;
            // R, X and B are inverted.
            rex = !first >> 5 & 7;
            let (number, last) = if byte == 0xC5 {
                rex &= 4;
                (1, first)
            } else {
                let second = reader.byte()?;
                (first & 0x1F, second)
            };
            second_register = !last >> 3 & 0xF;
            repeat = last & 2;
            let number = if byte == 0x62 {
                reader.byte()?;
                number & 7
            } else {
                number
            };
            map = match number {
                1 => Map::Two,
                2 => Map::Three38,
                3 => Map::Three3A,
                // Half precision has the forms of the first and second map.
                5 if byte == 0x62 => Map::Two,
                6 if byte == 0x62 => Map::Three38,
                _ => return None,
            };
            byte = reader.byte()?;
        } else if byte == 0x0F {
            byte = reader.byte()?;
            map = match byte {
                0x38 => Map::Three38,
                0x3A => Map::Three3A,
                _ => Map::Two,
            };
            if map != Map::Two {
                byte = reader.byte()?;
            }
        }
        let Form { modrm: has_modrm, immediate } = match map {
            Map::One => one_byte(byte, reader.peek().unwrap_or(0))?,
            Map::Two => two_bytes(byte, vector)?,
            Map::Three38 => Form { modrm: true, immediate: Immediate::Nothing },
            Map::Three3A => Form { modrm: true, immediate: Immediate::Byte },
        };
        let (modrm, sib, displacement) = if has_modrm { reader.operand()? } else { (0, 0, 0) };
        let full = if operand_size && rex & 8 == 0 { 2 } else { 4 };
        let (first, second) = immediate.lengths(full, rex & 8 != 0, address_size);
        let immediate = reader.number(first)?;
        reader.number(second)?;
        let second = Gpr::from_number(second_register);
        let len = reader.at as u8;
        // All fields are written at once: to read several of them that were written one by one takes longer than all else.
        Some(Self {
            map,
            opcode: byte,
            vector,
            operand_size,
            repeat,
            rex,
            has_rex,
            second,
            modrm,
            sib,
            displacement,
            immediate,
            len,
        })
    }

    pub const fn is_wide(&self) -> bool {
        self.rex & 8 != 0
    }

    /// Returns true if operands have 2 bytes.
    pub const fn is_short(&self) -> bool {
        self.operand_size && !self.is_wide()
    }

    /// Returns true if the operand is a register.
    const fn is_register(&self) -> bool {
        self.modrm >> 6 == 3
    }

    /// Returns the field `reg` of ModRM without its extension, which may continue the opcode.
    pub const fn extension(&self) -> u8 {
        self.modrm >> 3 & 7
    }

    pub fn register(&self) -> Gpr {
        Gpr::from_number(self.extension() | self.rex << 1 & 8)
    }

    /// Returns the register that the operand is, if it is one.
    pub fn operand(&self) -> Option<Gpr> {
        self.is_register().then(|| Gpr::from_number(self.modrm & 7 | self.rex << 3 & 8))
    }

    /// Returns the register that the opcode's low bits name.
    pub fn opcode_register(&self) -> Gpr {
        Gpr::from_number(self.opcode & 7 | self.rex << 3 & 8)
    }

    /// Returns the register that a byte is in: without REX, 4 to 7 are ah to bh.
    pub fn byte_register(&self, register: Gpr) -> Gpr {
        let number = register.number();
        let high = !self.has_rex && (4..8).contains(&number);
        Gpr::from_number(if high { number - 4 } else { number })
    }

    /// Returns true if the operand is in memory, at a distance from the instruction's end.
    pub const fn is_relative(&self) -> bool {
        self.modrm & 0xC7 == 5
    }

    /// Returns true if the operand's address has an index.
    pub const fn has_index(&self) -> bool {
        self.modrm & 7 == 4 && (self.sib >> 3 & 7 != 4 || self.rex & 2 != 0)
    }

    /// Returns rsp or rbp and the displacement, if that is the operand's address.
    pub fn in_frame(&self) -> Option<(Base, i32)> {
        let (mode, rm) = (self.modrm >> 6, self.modrm & 7);
        if mode == 3 || self.rex & 1 != 0 {
            return None;
        }
        let base = if rm == 4 { self.sib & 7 } else { rm };
        match base {
            4 if !self.has_index() => Some((Base::Rsp, self.displacement)),
            5 if mode != 0 && !self.has_index() => Some((Base::Rbp, self.displacement)),
            _ => None,
        }
    }
}

/// Returns the form of an opcode without a prefix; `None` if it does not exist in 64-bit code.
fn one_byte(opcode: u8, modrm: u8) -> Option<Form> {
    use Immediate::{Address, Byte, Distance, Enter, Full, Nothing, Wide, Word};
    Some(match opcode {
        0x00..=0x3F => match opcode & 7 {
            0..=3 => Form::new(true, Nothing),
            4 => Form::new(false, Byte),
            5 => Form::new(false, Full),
            _ => return None,
        },
        0x8F if modrm >> 3 & 7 != 0 => return None,
        0x63 | 0x84..=0x8F | 0xD0..=0xD3 | 0xD8..=0xDF | 0xFE | 0xFF => Form::new(true, Nothing),
        0x50..=0x5F
        | 0x6C..=0x6F
        | 0x90..=0x99
        | 0x9B..=0x9F
        | 0xA4..=0xA7
        | 0xAA..=0xAF
        | 0xC3
        | 0xC9
        | 0xCB
        | 0xCC
        | 0xCF
        | 0xD7
        | 0xEC..=0xEF
        | 0xF1
        | 0xF4
        | 0xF5
        | 0xF8..=0xFD => Form::new(false, Nothing),
        0x68 | 0xA9 => Form::new(false, Full),
        0x69 | 0x81 | 0xC7 => Form::new(true, Full),
        0x6A | 0x70..=0x7F | 0xA8 | 0xB0..=0xB7 | 0xCD | 0xE0..=0xE7 | 0xEB => {
            Form::new(false, Byte)
        }
        0x6B | 0x80 | 0x83 | 0xC0 | 0xC1 | 0xC6 => Form::new(true, Byte),
        0xA0..=0xA3 => Form::new(false, Address),
        0xB8..=0xBF => Form::new(false, Wide),
        0xC2 | 0xCA => Form::new(false, Word),
        0xC8 => Form::new(false, Enter),
        0xE8 | 0xE9 => Form::new(false, Distance),
        // Only `test` has an immediate.
        0xF6 => Form::new(true, if modrm >> 3 & 7 < 2 { Byte } else { Nothing }),
        0xF7 => Form::new(true, if modrm >> 3 & 7 < 2 { Full } else { Nothing }),
        _ => return None,
    })
}

/// Returns the form of an opcode after `0F`, or of the vector instruction with this opcode.
fn two_bytes(opcode: u8, vector: bool) -> Option<Form> {
    use Immediate::{Byte, Distance, Nothing};
    Some(match opcode {
        0x77 => Form::new(false, Nothing),
        0x70..=0x73 | 0xC2 | 0xC4..=0xC6 => Form::new(true, Byte),
        _ if vector => Form::new(true, Nothing),
        0x05..=0x09
        | 0x0B
        | 0x0E
        | 0x30..=0x35
        | 0x37
        | 0xA0..=0xA2
        | 0xA8..=0xAA
        | 0xC8..=0xCF => Form::new(false, Nothing),
        0x0F | 0xA4 | 0xAC | 0xBA => Form::new(true, Byte),
        0x80..=0x8F => Form::new(false, Distance),
        0x04 | 0x0A | 0x0C | 0x24..=0x27 | 0x36 | 0x39 | 0x3B..=0x3F | 0x7A | 0x7B => return None,
        _ => Form::new(true, Nothing),
    })
}
