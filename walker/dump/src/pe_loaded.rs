//! A PE image as Windows has loaded it.

use crate::headers::{ImageHeaders, Load};
use crate::loaded::Loaded;
use crate::relocations::{Change, Relocation, Relocations};
use object::LittleEndian as LE;
use object::elf;
use object::pe;
use object::read::pe::{
    DataDirectories, ImageNtHeaders, ImageOptionalHeader as _, SectionTable, optional_header_magic,
};
use std::ops::Range;

/// Offsets in `IMAGE_LOAD_CONFIG_DIRECTORY64` (winnt.h of the Windows SDK), in bytes, of pointers (VA) to words that the loader fills in:
/// the cookie of stacks, and the functions that check calls.
const FILLED: [usize; 10] = [0x58, 0x70, 0x78, 0xD8, 0xE8, 0x118, 0x120, 0x128, 0x130, 0x138];
/// Offset of `ImageBase` in the optional header, in bytes: in memory, the address of the image.
const IMAGE_BASE: u64 = 24;

/// Reads the sections of a file by RVA, and what the loader changes in them: words with base relocations, and words that depend on other
/// images or on the process.
pub(crate) fn read(file: &[u8]) -> Option<Loaded> {
    match optional_header_magic(file).ok()? {
        pe::IMAGE_NT_OPTIONAL_HDR64_MAGIC => read_image::<pe::ImageNtHeaders64>(file),
        _ => read_image::<pe::ImageNtHeaders32>(file),
    }
}

fn read_image<H: ImageNtHeaders>(file: &[u8]) -> Option<Loaded> {
    let mut offset = pe::ImageDosHeader::parse(file).ok()?.nt_headers_offset().into();
    let signature = offset;
    let (headers, directories) = H::parse(file, &mut offset).ok()?;
    let sections = headers.sections(file, offset).ok()?;
    let preferred = headers.optional_header().image_base();
    let mut changes = Changes { file, sections, preferred, all: Vec::new() };
    changes.add_relocations(&directories)?;
    changes.add_unknown(signature + size_of::<pe::ImageFileHeader>() as u64 + 4 + IMAGE_BASE);
    if let Some(range) = directory(&directories, pe::IMAGE_DIRECTORY_ENTRY_IAT) {
        let words = range.step_by(8).take(file.len() / 8);
        words.for_each(|rva| changes.add_unknown(rva.into()));
    }
    // Of assemblies with headers of 32 bits, which have no code of their own, the loader makes others.
    let headers_size = if headers.is_type_64() {
        changes.add_filled(&directories);
        headers.optional_header().size_of_headers().into()
    } else {
        0
    };
    let loads = loads(headers_size, &sections)?;
    Some(Loaded {
        headers: ImageHeaders { loads, relro: Vec::new(), dynamic: None },
        relocations: Relocations::of(changes.all)?,
    })
}

/// Returns the RVAs of a directory.
fn directory(directories: &DataDirectories<'_>, number: usize) -> Option<Range<u32>> {
    let (start, size) = directories.get(number)?.address_range();
    (size != 0).then(|| start..start.saturating_add(size))
}

/// Returns the headers and the sections with bytes in the file, ascending by RVA.
fn loads(headers: u64, sections: &SectionTable<'_>) -> Option<Vec<Load>> {
    let first =
        Load { address: 0, offset: 0, file_size: headers, memory_size: headers, flags: elf::PF_R };
    let mut loads = vec![first];
    for section in sections.iter() {
        let (address, size) = section.pe_address_range();
        let (offset, file_size) = section.pe_file_range();
        let is_writable = section.characteristics.get(LE).contains(pe::IMAGE_SCN_MEM_WRITE);
        if loads.last().is_some_and(|last| u64::from(address) < last.in_file().end) {
            return None;
        }
        loads.push(Load {
            address: address.into(),
            offset: offset.into(),
            file_size: file_size.into(),
            memory_size: size.into(),
            flags: if is_writable { elf::PF_W } else { elf::PF_R },
        });
    }
    Some(loads)
}

/// The changes that the loader makes, by RVA.
struct Changes<'f> {
    file: &'f [u8],
    sections: SectionTable<'f>,
    preferred: u64,
    all: Vec<Relocation>,
}

impl Changes<'_> {
    fn add_unknown(&mut self, rva: u64) {
        self.all.push(Relocation { address: rva, change: Change::Unknown });
    }

    fn word(&self, rva: u32) -> Option<u64> {
        let bytes = self.sections.pe_data_at(self.file, rva)?;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    /// Adds the words with base relocations: in the file they are as at the preferred address.
    fn add_relocations(&mut self, directories: &DataDirectories<'_>) -> Option<()> {
        let Some(mut blocks) = directories.relocation_blocks(self.file, &self.sections).ok()?
        else {
            return Some(());
        };
        while let Some(block) = blocks.next().ok()? {
            for relocation in block {
                let rva = relocation.virtual_address;
                if relocation.typ == pe::IMAGE_REL_BASED_ABSOLUTE {
                    continue;
                }
                let word = (relocation.typ == pe::IMAGE_REL_BASED_DIR64).then(|| self.word(rva));
                let change = word.flatten().map_or(Change::Unknown, |word| {
                    Change::Moved(word.wrapping_sub(self.preferred))
                });
                self.all.push(Relocation { address: rva.into(), change });
            }
        }
        Some(())
    }

    /// Adds the words that the loader fills in.
    fn add_filled(&mut self, directories: &DataDirectories<'_>) {
        let config = directory(directories, pe::IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG);
        let Some(start) = config.map(|range| range.start) else { return };
        let config = self.sections.pe_data_at(self.file, start).unwrap_or_default();
        // It has as many fields as its linker knew.
        let size = config.first_chunk().map_or(0, |size| u32::from_le_bytes(*size) as usize);
        let config = config.get(..size).unwrap_or_default();
        for at in FILLED {
            let pointer = config.get(at..).and_then(|rest| rest.first_chunk());
            let pointer = pointer.map_or(0, |it| u64::from_le_bytes(*it));
            if let Some(rva) = pointer.checked_sub(self.preferred) {
                self.add_unknown(rva);
            }
        }
    }
}
