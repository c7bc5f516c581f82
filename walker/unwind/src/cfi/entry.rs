//! The entries of a section: CIEs and FDEs.

use super::bytes::{Bases, Bytes};
use super::error::{CfiProblem, FrameSection};
use super::program::{Emitted, Remembered, State, Terms};
use super::row::Column;
use super::rule::Place;
use crate::image::{CfiSections, Section, Sections};
use alloc::boxed::Box;
use core::ops::{ControlFlow, Range};
use gimli::{DwEhPe, constants};

/// Size of an address in bytes.
const ADDRESS_SIZE: u8 = 8;

/// An offset at which there is no CIE.
const NOWHERE: usize = usize::MAX;

/// A section of call frame information.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) kind: FrameSection,
    pub(super) bases: Bases,
    /// The address that RVAs count from (VA).
    pub(super) preferred_base: u64,
}

/// An entry of a section, with its content unread.
pub(super) struct Entry<'a> {
    /// The bytes after the entry's id.
    content: Bytes<'a>,
    /// Offset of the next entry.
    pub(super) end: usize,
    /// Offset of the CIE of an FDE; `None` for a CIE.
    pub(super) cie: Option<usize>,
}

/// The part of a CIE that its FDEs need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cie<'a> {
    pub(super) terms: Terms<'a>,
    pub(super) signal_frame: bool,
    has_augmentation_data: bool,
    /// The initial instructions.
    instructions: Bytes<'a>,
}

/// A function's entry.
pub(super) struct Fde<'a> {
    /// RVAs, within one executable range and not empty.
    pub(super) range: Range<u32>,
    pub(super) program: Bytes<'a>,
}

impl<'a> Frames<'a> {
    /// Returns `.eh_frame` and `.debug_frame`, empty ones if there are none.
    pub(super) fn both(sections: &CfiSections<'a>) -> [Self; 2] {
        let preferred_base = sections.preferred_base;
        let address = |rva: u32| preferred_base.wrapping_add(u64::from(rva));
        let bases = Bases {
            section: None,
            text: sections.text.map(address),
            data: sections.got.map(address),
        };
        let (rva, eh_frame) = match sections.eh_frame {
            Some(Section { rva, bytes, .. }) => (rva, bytes),
            None => (0, &[][..]),
        };
        let of = |bytes: &'a [u8], kind, bases| {
            // Offsets are kept in 32 bits.
            let bytes = bytes.get(..u32::MAX as usize).unwrap_or(bytes);
            Self { bytes, kind, bases, preferred_base }
        };
        let section = Some(address(rva));
        [
            of(eh_frame, FrameSection::EhFrame, Bases { section, ..bases }),
            of(sections.debug_frame.unwrap_or_default(), FrameSection::DebugFrame, bases),
        ]
    }

    /// Reads the entry at `offset`; `None` if its length is 0.
    #[inline]
    pub(super) fn entry(&self, offset: usize) -> Result<Option<Entry<'a>>, CfiProblem> {
        let mut bytes = Bytes::new(self.bytes, offset, self.bytes.len())?;
        let short = bytes.u32()?;
        let length = match short {
            0 => return Ok(None),
            u32::MAX => bytes.u64()?,
            length => length.into(),
        };
        let start = bytes.offset();
        let length = usize::try_from(length).map_err(|_| CfiProblem::CutOff)?;
        let end = start.checked_add(length).ok_or(CfiProblem::CutOff)?;
        let mut content = Bytes::new(self.bytes, start, end)?;
        let cie = match self.kind {
            FrameSection::EhFrame => match content.u32()? {
                0 => None,
                back => Some(start.checked_sub(back as usize).unwrap_or(NOWHERE)),
            },
            FrameSection::DebugFrame => {
                let long = short == u32::MAX;
                let id = if long { content.u64()? } else { content.u32()?.into() };
                let cie = if long { u64::MAX } else { u32::MAX.into() };
                (id != cie).then_some(usize::try_from(id).unwrap_or(NOWHERE))
            }
        };
        Ok(Some(Entry { content, end, cie }))
    }

    /// Reads the CIE at `offset`.
    pub(super) fn cie(&'a self, offset: usize) -> Result<Cie<'a>, CfiProblem> {
        let entry = self.entry(offset)?.filter(|entry| entry.cie.is_none());
        self.read_cie(entry.ok_or(CfiProblem::Cie)?.content).map_err(|_| CfiProblem::Cie)
    }

    fn read_cie(&'a self, mut bytes: Bytes<'a>) -> Result<Cie<'a>, CfiProblem> {
        let version = bytes.u8()?;
        if !matches!(version, 1 | 3 | 4) {
            return Err(CfiProblem::Cie);
        }
        let augmentation = bytes.string()?;
        if version == 4 && self.kind == FrameSection::DebugFrame {
            let [address_size, _segment_selector_size] = [bytes.u8()?, bytes.u8()?];
            if address_size != ADDRESS_SIZE {
                return Err(CfiProblem::Cie);
            }
        }
        let (code_alignment, data_alignment) = (bytes.uleb()?, bytes.sleb()?);
        let return_address = if version == 1 { u64::from(bytes.u8()?) } else { bytes.uleb()? };
        let return_address = u16::try_from(return_address).map_err(|_| CfiProblem::Cie)?;
        let (mut encoding, mut signal_frame) = (constants::DW_EH_PE_absptr, false);
        let kinds = match augmentation {
            [] => None,
            [b'z', kinds @ ..] => Some(kinds),
            // What follows has an unknown length.
            _ => return Err(CfiProblem::Cie),
        };
        if let Some(kinds) = kinds {
            let len = bytes.uleb()?;
            let mut data = bytes;
            bytes.skip(len)?;
            for kind in kinds {
                match kind {
                    b'R' => encoding = DwEhPe(data.u8()?),
                    // The encoding of the language's data, which is not needed here.
                    b'L' => drop(data.u8()?),
                    b'P' => {
                        let encoding = DwEhPe(data.u8()?);
                        data.encoded_value(encoding)?;
                    }
                    b'S' => signal_frame = true,
                    // Of another processor: the key of return addresses, and tagged memory.
                    b'B' | b'G' => {}
                    _ => return Err(CfiProblem::Cie),
                }
            }
        }
        let return_address = Column(return_address);
        let frames = self;
        Ok(Cie {
            terms: Terms { frames, code_alignment, data_alignment, return_address, encoding },
            signal_frame,
            has_augmentation_data: kinds.is_some(),
            instructions: bytes,
        })
    }

    pub(super) const fn place(&self, offset: usize) -> Place {
        Place { section: self.kind, offset: offset as u32 }
    }
}

impl Cie<'_> {
    /// Runs the initial instructions.
    pub(super) fn initial(&self, remembered: &mut Remembered) -> Result<State, CfiProblem> {
        let mut initial = State::NEW;
        let (terms, all) = (&self.terms, 0..1);
        let mut go_on = |_: Emitted<'_>| ControlFlow::Continue(());
        let run = remembered.run_on(&mut initial, self.instructions, terms, None, all, &mut go_on);
        run.map_err(|fault| fault.problem)?;
        Ok(initial)
    }
}

impl<'a> Entry<'a> {
    /// Reads the entry as an FDE of `cie`; `None` if its function is not in `code`: linkers leave
    /// entries of functions that they dropped.
    #[inline]
    pub(super) fn fde(
        &self,
        cie: &Cie<'_>,
        code: &mut Code<'_>,
    ) -> Result<Option<Fde<'a>>, CfiProblem> {
        let mut bytes = self.content;
        let encoding = cie.terms.encoding;
        let address = cie.terms.frames.bases.pointer(&mut bytes, encoding)?;
        let len = bytes.encoded_value(encoding)?;
        if cie.has_augmentation_data {
            let len = bytes.uleb()?;
            bytes.skip(len)?;
        }
        let address = address.checked_sub(cie.terms.frames.preferred_base);
        let range = address.and_then(|address| code.function(address, len));
        Ok(range.map(|range| Fde { range, program: bytes }))
    }
}

/// The executable ranges of an image (RVAs).
#[derive(Clone, Debug)]
pub(super) struct CodeRanges(Box<[Range<u32>]>);

impl CodeRanges {
    pub(super) fn new(sections: &Sections<'_>) -> Self {
        let executable = sections.as_slice().iter().filter(|section| section.executable);
        let range = |section: &Section<'_>| {
            let end = u64::from(section.rva) + section.bytes.len() as u64;
            section.rva..u32::try_from(end).unwrap_or(u32::MAX)
        };
        Self(executable.map(range).collect())
    }

    pub(super) const fn search(&self) -> Code<'_> {
        Code { ranges: &self.0, last: 0..0 }
    }
}

/// A search of executable ranges, which remembers the last one.
pub(super) struct Code<'c> {
    ranges: &'c [Range<u32>],
    last: Range<u32>,
}

impl Code<'_> {
    /// Returns the RVAs of a function, if its start is in code and it is not empty.
    #[inline]
    fn function(&mut self, begin: u64, len: u64) -> Option<Range<u32>> {
        let begin = u32::try_from(begin).ok()?;
        if !self.last.contains(&begin) {
            let after = self.ranges.partition_point(|range| range.start <= begin);
            let range = self.ranges.get(after.checked_sub(1)?)?;
            self.last = range.contains(&begin).then(|| range.clone())?;
        }
        let end = u64::from(begin).saturating_add(len).min(self.last.end.into());
        (u64::from(begin) < end).then_some(begin..end as u32)
    }
}
