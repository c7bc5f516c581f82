//! Little-endian fields of a part of a dump.

use crate::error::DumpError;

/// Bytes of the dump that know their offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'d> {
    bytes: &'d [u8],
    offset: u64,
    /// True of a minidump.
    is_stream: bool,
}

impl<'d> Fields<'d> {
    /// Creates the fields of a core's notes at this offset of the dump.
    pub(crate) const fn new(bytes: &'d [u8], offset: u64) -> Self {
        Self { bytes, offset, is_stream: false }
    }

    /// Creates the fields of a part of a minidump.
    pub(crate) const fn of_stream(bytes: &'d [u8], offset: u64) -> Self {
        Self { bytes, offset, is_stream: true }
    }

    pub(crate) const fn len(self) -> usize {
        self.bytes.len()
    }

    /// Returns the error of a field at `at`.
    pub(crate) const fn damaged(self, at: usize) -> DumpError {
        let offset = self.offset + at as u64;
        if self.is_stream { DumpError::Stream { offset } } else { DumpError::Note { offset } }
    }

    /// Returns `len` bytes at `at`.
    pub(crate) fn part(self, at: usize, len: usize) -> Result<Self, DumpError> {
        let end = at.checked_add(len);
        let bytes = end.and_then(|end| self.bytes.get(at..end)).ok_or(self.damaged(at))?;
        Ok(Self { bytes, offset: self.offset + at as u64, ..self })
    }

    /// Returns the bytes from `at` on.
    pub(crate) fn rest(self, at: usize) -> Self {
        let bytes = self.bytes.get(at..).unwrap_or_default();
        Self { bytes, offset: self.offset + at as u64, ..self }
    }

    pub(crate) const fn bytes(self) -> &'d [u8] {
        self.bytes
    }

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], DumpError> {
        let found = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        found.copied().ok_or(self.damaged(at))
    }

    pub(crate) fn u16(self, at: usize) -> Result<u16, DumpError> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(self, at: usize) -> Result<u32, DumpError> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> Result<u64, DumpError> {
        self.array(at).map(u64::from_le_bytes)
    }

    pub(crate) fn u128(self, at: usize) -> Result<u128, DumpError> {
        self.array(at).map(u128::from_le_bytes)
    }
}
