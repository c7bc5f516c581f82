//! IL with its header (ECMA-335, II.25.4).

use crate::Token;

/// CorILMethod_TinyFormat.
const TINY: u8 = 2;
/// CorILMethod_FatFormat, with a header of three words of four bytes.
const FAT: u16 = 0x3003;
/// CorILMethod_MoreSects, of the header and of a section.
const MORE_SECTIONS: u16 = 8;
const MORE: u8 = 0x80;
/// CorILMethod_Sect_FatFormat.
const FAT_SECTION: u8 = 0x40;
/// The largest IL with a header of one byte.
const MOST_TINY: usize = 0x3F;
/// Depth of the stack that a header of one byte stands for.
const STACK: u16 = 8;

/// The IL of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Il(Vec<u8>);

impl Il {
    /// Adds `ldstr` and `pop`.
    #[must_use]
    pub fn string(mut self, text: Token) -> Self {
        self.0.push(0x72);
        self.0.extend(text.to_le_bytes());
        self.0.push(0x26);
        self
    }

    /// Adds `call`.
    #[must_use]
    pub fn call(mut self, method: Token) -> Self {
        self.0.push(0x28);
        self.0.extend(method.to_le_bytes());
        self
    }

    /// Adds `ret`, and returns the body with its header.
    pub fn end(mut self) -> Vec<u8> {
        self.0.push(0x2A);
        if self.0.len() <= MOST_TINY {
            return [&[(self.0.len() as u8) << 2 | TINY], &self.0[..]].concat();
        }
        let mut body = FAT.to_le_bytes().to_vec();
        body.extend(STACK.to_le_bytes());
        body.extend((self.0.len() as u32).to_le_bytes());
        body.extend(0_u32.to_le_bytes());
        body.extend(self.0);
        body
    }
}

/// Returns the size of the body at the start of `bytes`: header, IL and sections. `None` if it is not whole.
pub fn body_size(bytes: &[u8]) -> Option<usize> {
    let size = body_size_by(|at| bytes.get(at).copied())?;
    Some(size).filter(|size| *size <= bytes.len())
}

/// Returns the size of a body whose bytes `byte` reads. Only those of headers are read.
pub fn body_size_by(byte: impl Fn(usize) -> Option<u8>) -> Option<usize> {
    let head = byte(0)?;
    if head & 3 == TINY {
        return Some(1 + usize::from(head >> 2));
    }
    if head & 7 != 3 {
        return None;
    }
    let word = |at: usize| {
        let bytes = [byte(at)?, byte(at + 1)?, byte(at + 2)?, byte(at + 3)?];
        Some(u32::from_le_bytes(bytes))
    };
    let flags = u16::from_le_bytes([head, byte(1)?]);
    let mut size = (usize::from(flags >> 12) * 4).checked_add(word(4)? as usize)?;
    let mut more = flags & MORE_SECTIONS != 0;
    while more {
        size = size.checked_next_multiple_of(4)?;
        let section = word(size)?;
        let kind = section as u8;
        let length = section >> 8;
        let length = if kind & FAT_SECTION == 0 { length & 0xFF } else { length };
        if length < 4 {
            return None;
        }
        size = size.checked_add(length as usize)?;
        more = kind & MORE != 0;
    }
    Some(size)
}
