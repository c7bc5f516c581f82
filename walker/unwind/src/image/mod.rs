//! Images of code: bytes by RVA, and function tables or call frame information.

mod cfi;
mod elf;
mod function_table;
mod identity;
#[cfg(feature = "macho")]
mod macho;
mod pe;
mod symbols;
mod target_os;

pub use cfi::CfiSections;
pub use elf::{ElfError, ElfImage};
pub use function_table::{FunctionTable, RuntimeFunction, SIZE_OF_RUNTIME_FUNCTION};
pub use identity::{BuildId, ImageIdentity, PeIdentity};
#[cfg(feature = "macho")]
pub use macho::{MachoError, MachoImage};
pub use pe::PeImage;
pub use symbols::Symbols;
pub use target_os::TargetOs;

use alloc::vec::Vec;
use core::ops::Range;
use thiserror::Error;

/// The place of an image's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageLayout {
    /// Loaded: by address, from the page of its lowest segment on.
    Loaded,
    /// As in its file.
    File,
}

/// An error in reading a PE image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The DOS, NT or optional header is missing or cut off, or the image is not PE32+.
    #[error("not a PE32+ image, or its headers are cut off")]
    Headers,
    /// The machine is not x86-64.
    #[error("the image is for machine {machine:#06x}, not for x86-64 (0x8664)")]
    Machine {
        /// `IMAGE_FILE_HEADER.Machine`.
        machine: u16,
    },
    /// The section table is cut off.
    #[error("the section table goes beyond the end of the file")]
    SectionTable,
    /// A section's bytes go beyond the end of the file.
    #[error("the bytes of the section at RVA {rva:#x} go beyond the end of the file")]
    SectionData {
        /// RVA of the section.
        rva: u32,
    },
    /// Two sections share an RVA, or one goes beyond the 32-bit RVA space.
    #[error("the section at RVA {rva:#x} overlaps another one, or wraps")]
    SectionOverlap {
        /// RVA of the higher section.
        rva: u32,
    },
    /// The exception directory does not lie within the bytes of one section.
    #[error("the exception directory at RVA {rva:#x}, {size:#x} bytes, is in no section")]
    ExceptionDirectory {
        /// RVA of the directory.
        rva: u32,
        /// Size of the directory in bytes.
        size: u32,
    },
}

/// A run of bytes at an RVA.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// RVA of the first byte.
    pub rva: u32,
    /// The bytes in the file, without those that the loader fills with zeroes.
    pub bytes: &'a [u8],
    /// True if code here may be executed.
    pub executable: bool,
}

impl Section<'_> {
    /// Returns the range of the bytes (RVAs).
    pub const fn range(&self) -> Range<u32> {
        self.rva..self.rva.saturating_add(self.bytes.len() as u32)
    }
}

/// The bytes of an image, by RVA.
#[derive(Clone, Debug, Default)]
pub struct Sections<'a> {
    /// Ascending by RVA, not overlapping.
    sections: Vec<Section<'a>>,
}

impl<'a> Sections<'a> {
    /// Creates the sections, given in any order; empty ones are left out.
    ///
    /// # Errors
    /// [`ImageError::SectionOverlap`] if two of them share an RVA or one wraps.
    pub fn new(mut sections: Vec<Section<'a>>) -> Result<Self, ImageError> {
        sections.retain(|section| !section.bytes.is_empty());
        sections.sort_by_key(|section| section.rva);
        let mut end = 0;
        for section in &sections {
            let overlap = ImageError::SectionOverlap { rva: section.rva };
            if u64::from(section.rva) < end {
                return Err(overlap);
            }
            end = u64::from(section.rva) + section.bytes.len() as u64;
            if end > 1 << 32 {
                return Err(overlap);
            }
        }
        Ok(Self { sections })
    }

    /// Returns the sections, ascending by RVA.
    pub fn as_slice(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// Returns the ranges of executable bytes (RVAs), ascending.
    pub fn code(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.sections.iter().filter(|section| section.executable).map(Section::range)
    }

    /// Returns the section with a byte at `rva`.
    #[inline]
    pub fn find(&self, rva: u32) -> Option<&Section<'a>> {
        let after = self.sections.partition_point(|section| section.rva <= rva);
        let section = self.sections.get(after.checked_sub(1)?)?;
        ((rva - section.rva) as usize).lt(&section.bytes.len()).then_some(section)
    }

    /// Returns the bytes from `rva` to the end of its section.
    #[inline]
    pub fn bytes_from(&self, rva: u32) -> Option<&'a [u8]> {
        let section = self.find(rva)?;
        section.bytes.get((rva - section.rva) as usize..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(rva: u32, bytes: &[u8]) -> Section<'_> {
        Section { rva, bytes, executable: false }
    }

    #[test]
    fn bytes_are_found_up_to_the_end_of_their_section() {
        let sections =
            Sections::new(vec![section(0x2000, b"cd"), section(0x1000, b"ab"), section(5, b"")])
                .unwrap();
        assert_eq!(sections.as_slice().len(), 2, "an empty section is no section");
        assert_eq!(sections.bytes_from(0x1000), Some(&b"ab"[..]));
        assert_eq!(sections.bytes_from(0x1001), Some(&b"b"[..]));
        assert_eq!(sections.bytes_from(0x2001), Some(&b"d"[..]));
        for rva in [0, 5, 0xFFF, 0x1002, 0x1FFF, 0x2002, u32::MAX] {
            assert_eq!(sections.bytes_from(rva), None, "{rva:#x}");
        }
    }

    #[test]
    fn overlapping_and_wrapping_sections_are_refused() {
        let overlap = Sections::new(vec![section(0x1000, b"abc"), section(0x1002, b"d")]);
        assert_eq!(overlap.unwrap_err(), ImageError::SectionOverlap { rva: 0x1002 });
        let touching = Sections::new(vec![section(0x1000, b"ab"), section(0x1002, b"d")]);
        assert!(touching.is_ok());
        let wraps = Sections::new(vec![section(u32::MAX, b"ab")]);
        assert_eq!(wraps.unwrap_err(), ImageError::SectionOverlap { rva: u32::MAX });
        assert!(Sections::new(vec![section(u32::MAX, b"a")]).is_ok());
    }
}
