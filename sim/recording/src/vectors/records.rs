//! Fallible reading of little-endian fields, and of records that begin with their length.

use super::FormatError;
use clr_unwind::Registers;

/// A position in a file, of which the bytes before `bytes.len()` may be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor after the signature of a file.
    pub(super) fn after_magic(bytes: &'a [u8], magic: [u8; 8]) -> Result<Self, FormatError> {
        if bytes.starts_with(&magic) {
            Ok(Self { bytes, at: magic.len() })
        } else {
            Err(FormatError::BadMagic)
        }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..len).ok_or(FormatError::TooShort { offset: self.at })?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let short = FormatError::TooShort { offset: self.at };
        self.take(N)?.first_chunk().copied().ok_or(short)
    }

    pub(super) fn u8(&mut self) -> Result<u8, FormatError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn u128(&mut self) -> Result<u128, FormatError> {
        self.array().map(u128::from_le_bytes)
    }

    pub(super) fn zeroes(&mut self, len: usize) -> Result<(), FormatError> {
        let offset = self.at;
        if self.take(len)?.iter().all(|&byte| byte == 0) {
            Ok(())
        } else {
            Err(FormatError::NotZero { offset })
        }
    }

    /// Reads rax to r15 and xmm6 to xmm15; rip is stored elsewhere.
    pub(super) fn registers(&mut self, rip: u64) -> Result<Registers, FormatError> {
        let mut registers = Registers { rip, ..Registers::default() };
        for value in &mut registers.gpr {
            *value = self.u64()?;
        }
        for value in &mut registers.xmm {
            *value = self.u128()?;
        }
        Ok(registers)
    }

    /// Skips the record that begins here with its length, and returns a cursor over the record
    /// after its length.
    fn record(&mut self) -> Result<Self, FormatError> {
        let mut record = *self;
        let len = record.u32()? as usize;
        if !len.is_multiple_of(4) || len < 4 {
            return Err(FormatError::BadLength { offset: self.at });
        }
        let start = self.at;
        self.take(len)?;
        Ok(Self { bytes: &self.bytes[..self.at], at: start + 4 })
    }

    /// Checks that only padding is left of the record that began at `start`.
    fn finish_record(&mut self, start: usize) -> Result<(), FormatError> {
        match self.bytes.len() - self.at {
            left @ 0..4 => self.zeroes(left),
            _ => Err(FormatError::BadLength { offset: start }),
        }
    }
}

/// Function that reads the content of a record.
pub(super) type Content<'a, T> = fn(&mut Cursor<'a>) -> Result<T, FormatError>;

/// The records of a file, each with its length as first field.
#[derive(Debug)]
pub struct Records<'a, T> {
    first: Cursor<'a>,
    count: u32,
    read: Content<'a, T>,
}

impl<T> Copy for Records<'_, T> {}

impl<T> Clone for Records<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, T> Records<'a, T> {
    /// Creates `count` records from `first` to the end of the file. Only their lengths are checked.
    pub(super) fn new(
        first: Cursor<'a>,
        count: u32,
        read: Content<'a, T>,
    ) -> Result<Self, FormatError> {
        let mut rest = first;
        for _ in 0..count {
            rest.record()?;
        }
        if rest.at < rest.bytes.len() {
            return Err(FormatError::TrailingBytes { offset: rest.at });
        }
        Ok(Self { first, count, read })
    }

    /// Returns the number of records.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true if there are no records.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn next(&self, rest: &mut Cursor<'a>) -> Result<T, FormatError> {
        let start = rest.at;
        let mut record = rest.record()?;
        let content = (self.read)(&mut record)?;
        record.finish_record(start)?;
        Ok(content)
    }

    /// Reads the records in the order of the file. The iteration ends after the first error.
    pub fn iter(&self) -> impl Iterator<Item = Result<T, FormatError>> + use<'a, T> {
        let records = *self;
        let Self { first: mut rest, count: mut left, .. } = records;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let record = records.next(&mut rest);
            if record.is_err() {
                left = 0;
            }
            Some(record)
        })
    }

    /// Reads record `n`, counted from 0, or returns `None` if there are at most `n` records. Skips
    /// the records before it by their lengths.
    pub fn get(&self, n: usize) -> Option<Result<T, FormatError>> {
        if n >= self.len() {
            return None;
        }
        let mut rest = self.first;
        for _ in 0..n {
            rest.record().ok()?;
        }
        Some(self.next(&mut rest))
    }
}
