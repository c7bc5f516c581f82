//! Parsing of numbers from bytes.

use super::Error;

/// A reader of a part of an image's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    all: &'a [u8],
    at: usize,
    end: usize,
    /// Address of the image's first byte (VA).
    base: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(all: &'a [u8], offset: u64, base: u64) -> Result<Self, Error> {
        Self { all, at: 0, end: all.len(), base }.at(offset)
    }

    /// Returns a reader of the same bytes that starts at another offset.
    pub(super) fn at(self, offset: u64) -> Result<Self, Error> {
        let at = usize::try_from(offset).map_err(|_| Error::BadTable)?;
        if at <= self.all.len() { Ok(Self { at, ..self }) } else { Err(Error::BadTable) }
    }

    pub(super) fn offset(&self) -> u64 {
        self.at as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    pub(super) fn bytes(&mut self, count: u64) -> Result<&'a [u8], Error> {
        let count = usize::try_from(count).map_err(|_| Error::BadTable)?;
        let end = self.at.checked_add(count).filter(|end| *end <= self.end);
        let bytes = end.and_then(|end| self.all.get(self.at..end)).ok_or(Error::BadTable)?;
        self.at += count;
        Ok(bytes)
    }

    /// Splits off a reader of the next N bytes.
    pub(super) fn part(&mut self, count: u64) -> Result<Self, Error> {
        let at = self.at;
        self.bytes(count)?;
        Ok(Self { at, end: self.at, ..*self })
    }

    fn number(&mut self, size: u64) -> Result<u64, Error> {
        let bytes = self.bytes(size)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.number(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.number(4)? as u32)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.number(8)
    }

    /// Reads an unsigned LEB128 number.
    pub(super) fn unsigned(&mut self) -> Result<u64, Error> {
        Ok(self.leb128()?.0)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Error> {
        let (number, bits, last) = self.leb128()?;
        let negative = last & 0x40 != 0 && bits < 64;
        Ok((if negative { number | u64::MAX << bits } else { number }).cast_signed())
    }

    fn leb128(&mut self) -> Result<(u64, u32, u8), Error> {
        let (mut number, mut bits) = (0, 0);
        loop {
            let byte = self.u8()?;
            if bits >= 64 {
                return Err(Error::BadTable);
            }
            number |= u64::from(byte & 0x7F) << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                return Ok((number, bits, byte));
            }
        }
    }

    /// Reads a number in the format of a pointer encoding.
    pub(super) fn value(&mut self, encoding: u8) -> Result<u64, Error> {
        match encoding & 0xF {
            0x0 | 0x4 | 0xC => self.u64(),
            0x3 => Ok(self.u32()?.into()),
            0xB => Ok(i64::from(self.u32()?.cast_signed()).cast_unsigned()),
            _ => Err(Error::BadTable),
        }
    }

    /// Reads an encoded address (VA).
    pub(super) fn pointer(&mut self, encoding: u8) -> Result<u64, Error> {
        let from = match encoding & 0x70 {
            0x00 => 0,
            0x10 => self.base + self.offset(),
            _ => return Err(Error::BadTable),
        };
        Ok(self.value(encoding)?.wrapping_add(from))
    }
}
