//! PE headers, of files and in memory.

use crate::headers::page;
use crate::modules::mapping_at;
use crate::notes::Mapping;
use object::LittleEndian as LE;
use object::pe;
use object::read::pe::{ImageNtHeaders as _, ImageOptionalHeader as _};
use std::ops::Range;

/// A section of a PE image.
#[derive(Clone, Debug)]
struct Section {
    rva: u32,
    /// Offsets in the file.
    file: Range<u64>,
    is_writable: bool,
}

/// The headers of a PE image for x86-64 or for any 64-bit machine: the field is different in images of .NET for each system.
#[derive(Clone, Debug)]
pub(crate) struct PeHeaders {
    /// Size of the loaded image in bytes.
    pub(crate) size: u64,
    sections: Vec<Section>,
}

/// Base relocations of an image at most.
const RELOCATION_LIMIT: usize = 1 << 20;

impl PeHeaders {
    /// Reads headers in the first bytes of an image.
    pub(crate) fn read(image: &[u8]) -> Option<Self> {
        let mut offset = pe::ImageDosHeader::parse(image).ok()?.nt_headers_offset().into();
        let (headers, _) = pe::ImageNtHeaders64::parse(image, &mut offset).ok()?;
        let sections = headers.sections(image, offset).ok()?;
        let sections = sections.iter().map(|section| {
            let (start, size) = section.pe_file_range();
            Section {
                rva: section.virtual_address.get(LE),
                file: u64::from(start)..u64::from(start) + u64::from(size),
                is_writable: section.characteristics.get(LE).contains(pe::IMAGE_SCN_MEM_WRITE),
            }
        });
        let size = headers.optional_header().size_of_image().into();
        Some(Self { size, sections: sections.collect() })
    }

    /// Returns true if each section with bytes in the file is mapped where the headers say. (There must be one: a file that is
    /// merely mapped has its headers, too.)
    pub(crate) fn are_mapped(&self, base: u64, path: &str, mappings: &[Mapping]) -> bool {
        let is_mapped = |section: &Section| {
            let address = base.wrapping_add(page(section.rva.into()));
            let mapping = mapping_at(mappings, address).filter(|mapping| mapping.path == path);
            mapping.is_some_and(|mapping| {
                mapping.offset + (address - mapping.range.start) == page(section.file.start)
            })
        };
        let mut sections = self.sections.iter().filter(|section| !section.file.is_empty());
        let mut is_flat = true;
        let all = sections.all(|section| {
            is_flat &= u64::from(section.rva) == section.file.start;
            is_mapped(section)
        });
        all && !is_flat
    }

    /// Returns the offsets in the file of writable sections and of words with base relocations, ascending.
    pub(crate) fn changed(&self, file: &[u8]) -> Option<Vec<Range<u64>>> {
        let writable = self.sections.iter().filter(|section| section.is_writable);
        let mut changed: Vec<_> = writable.map(|section| section.file.clone()).collect();
        let mut offset = pe::ImageDosHeader::parse(file).ok()?.nt_headers_offset().into();
        let (headers, directories) = pe::ImageNtHeaders64::parse(file, &mut offset).ok()?;
        let sections = headers.sections(file, offset).ok()?;
        if let Some(mut blocks) = directories.relocation_blocks(file, &sections).ok()? {
            while let Some(block) = blocks.next().ok()? {
                for relocation in block {
                    let place = sections.pe_file_range_at(relocation.virtual_address);
                    if let Some((start, _)) = place {
                        changed.push(start.into()..u64::from(start) + 8);
                    }
                }
                if changed.len() > RELOCATION_LIMIT {
                    return None;
                }
            }
        }
        changed.sort_unstable_by_key(|range| (range.start, range.end));
        // Ascending ends, too, for the search.
        changed.dedup_by(|next, last| {
            let joins = next.start <= last.end;
            if joins {
                last.end = last.end.max(next.end);
            }
            joins
        });
        Some(changed)
    }
}
