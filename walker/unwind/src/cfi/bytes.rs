//! A reader of the bytes of a section.

use super::error::CfiProblem;
use gimli::{DwEhPe, constants};

/// A range of bytes of a section that have not been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    /// Offset of the end of `rest` in the section.
    end: usize,
}

impl<'a> Bytes<'a> {
    /// Creates a reader of the bytes of `section` from `start` to `end`.
    pub(super) fn new(section: &'a [u8], start: usize, end: usize) -> Result<Self, CfiProblem> {
        let rest = section.get(start..end).ok_or(CfiProblem::CutOff)?;
        Ok(Self { rest, end })
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the offset of the next byte in the section.
    #[inline]
    pub(super) const fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], CfiProblem> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(CfiProblem::CutOff)?;
        self.rest = rest;
        Ok(*array)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, CfiProblem> {
        self.array().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, CfiProblem> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, CfiProblem> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, CfiProblem> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn skip(&mut self, len: u64) -> Result<(), CfiProblem> {
        let len = usize::try_from(len).map_err(|_| CfiProblem::CutOff)?;
        self.rest = self.rest.get(len..).ok_or(CfiProblem::CutOff)?;
        Ok(())
    }

    /// Reads a string, and skips its terminating 0.
    pub(super) fn string(&mut self) -> Result<&'a [u8], CfiProblem> {
        let len = self.rest.iter().position(|byte| *byte == 0).ok_or(CfiProblem::CutOff)?;
        let (string, rest) = self.rest.split_at_checked(len).ok_or(CfiProblem::CutOff)?;
        self.rest = rest.get(1..).ok_or(CfiProblem::CutOff)?;
        Ok(string)
    }

    #[inline]
    pub(super) fn uleb(&mut self) -> Result<u64, CfiProblem> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok((*byte).into())
            }
            _ => self.leb([0, 1]).map(|(value, _)| value),
        }
    }

    pub(super) fn sleb(&mut self) -> Result<i64, CfiProblem> {
        let (value, bits) = self.leb([0, 0x7F])?;
        let unused = u64::BITS.saturating_sub(bits);
        Ok((value << unused).cast_signed() >> unused)
    }

    /// Reads a number in LEB128, and returns it with the number of its bits. The tenth byte, which
    /// has the last bit, must be one of `last`.
    fn leb(&mut self, last: [u8; 2]) -> Result<(u64, u32), CfiProblem> {
        let (mut value, mut bits) = (0, 0);
        loop {
            let byte = self.u8()?;
            if bits == 63 && !last.contains(&byte) {
                return Err(CfiProblem::Number);
            }
            value |= u64::from(byte & 0x7F) << bits;
            bits += 7;
            if byte < 0x80 {
                return Ok((value, bits));
            }
        }
    }

    /// Reads a number in the format of a pointer encoding.
    #[inline]
    pub(super) fn encoded_value(&mut self, encoding: DwEhPe) -> Result<u64, CfiProblem> {
        Ok(match encoding.format() {
            constants::DW_EH_PE_sdata4 => i64::from(self.u32()?.cast_signed()).cast_unsigned(),
            constants::DW_EH_PE_absptr
            | constants::DW_EH_PE_udata8
            | constants::DW_EH_PE_sdata8 => self.u64()?,
            constants::DW_EH_PE_udata4 => self.u32()?.into(),
            constants::DW_EH_PE_udata2 => self.u16()?.into(),
            constants::DW_EH_PE_sdata2 => i64::from(self.u16()?.cast_signed()).cast_unsigned(),
            constants::DW_EH_PE_uleb128 => self.uleb()?,
            constants::DW_EH_PE_sleb128 => self.sleb()?.cast_unsigned(),
            _ => return Err(CfiProblem::Encoding),
        })
    }
}

/// The bases of encoded pointers (VAs of the image at its preferred base).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bases {
    pub(super) section: Option<u64>,
    pub(super) text: Option<u64>,
    pub(super) data: Option<u64>,
}

impl Bases {
    /// Reads an encoded pointer.
    #[inline]
    pub(super) fn pointer(
        &self,
        bytes: &mut Bytes<'_>,
        encoding: DwEhPe,
    ) -> Result<u64, CfiProblem> {
        let base = match encoding.application() {
            constants::DW_EH_PE_absptr => Some(0),
            constants::DW_EH_PE_pcrel => {
                self.section.map(|section| section.wrapping_add(bytes.offset() as u64))
            }
            constants::DW_EH_PE_textrel => self.text,
            constants::DW_EH_PE_datarel => self.data,
            // Only the pointers of an FDE to its language's data, which are not read, count from its function.
            _ => None,
        };
        let base = base.filter(|_| !encoding.is_indirect()).ok_or(CfiProblem::Encoding)?;
        Ok(base.wrapping_add(bytes.encoded_value(encoding)?))
    }
}
