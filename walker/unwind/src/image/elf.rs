//! ELF images for x86-64, read through `object`.

use super::symbols::NameBudget;
use super::{CfiSections, ImageError, Section, Sections, Symbols};
use alloc::vec::Vec;
use core::ops::Range;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::ReadRef as _;
use object::read::elf::{
    FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable, Sym as _,
};
use thiserror::Error;

/// Page size in bytes: images are loaded at multiples of it.
const PAGE: u64 = 0x1000;

/// An error in reading an ELF image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ElfError {
    /// The file header is missing or cut off, or the image is not 64-bit little-endian ELF.
    #[error("not a 64-bit little-endian ELF image, or its header is cut off")]
    Header,
    /// The machine is not x86-64.
    #[error("the image is for machine {machine}, not for x86-64 (62)")]
    Machine {
        /// `e_machine`.
        machine: u16,
    },
    /// The program headers are cut off.
    #[error("the program headers go beyond the end of the file")]
    ProgramHeaders,
    /// There is no loadable segment.
    #[error("there is no loadable segment")]
    NothingToLoad,
    /// A segment's bytes go beyond the end of the file.
    #[error("the bytes of the segment at {address:#x} go beyond the end of the file")]
    SegmentData {
        /// Address of the segment (VA).
        address: u64,
    },
    /// A segment overlaps another one, wraps, or lies 4 GiB or more from the first.
    #[error(
        "the segment at {address:#x} overlaps another one, wraps, or is too far from the first"
    )]
    SegmentRange {
        /// Address of the segment (VA).
        address: u64,
    },
}

/// A 64-bit ELF image in the layout of its file: an executable or a shared object.
///
/// Section headers are used if present; an image stripped of them is accepted too.
#[derive(Clone, Debug)]
pub struct ElfImage<'a> {
    data: &'a [u8],
    preferred_base: u64,
    size: u32,
    section_table: SectionTable<'a, FileHeader64<LE>>,
    segments: Sections<'a>,
    cfi: CfiSections<'a>,
}

impl<'a> ElfImage<'a> {
    /// Reads the headers of the image file `data`, and finds the segments and the call frame
    /// information without parsing the latter.
    ///
    /// # Errors
    /// [`ElfError`] if `data` is no x86-64 ELF image or is cut off, or if its segments contradict
    /// each other.
    pub fn parse(data: &'a [u8]) -> Result<Self, ElfError> {
        let header = FileHeader64::<LE>::parse(data).map_err(|_| ElfError::Header)?;
        header.endian().map_err(|_| ElfError::Header)?;
        let machine = header.e_machine(LE);
        if machine != elf::EM_X86_64 {
            return Err(ElfError::Machine { machine: machine.0 });
        }
        let headers = header.program_headers(LE, data).map_err(|_| ElfError::ProgramHeaders)?;
        // Section headers are not loaded, so their absence is no fault.
        let section_table = header.sections(LE, data).unwrap_or_default();
        let preferred_base = preferred_base(headers).ok_or(ElfError::NothingToLoad)?;
        let (segments, size) = segments(data, headers, preferred_base)?;
        let mut image = Self {
            data,
            preferred_base,
            size,
            section_table,
            segments,
            cfi: CfiSections::default(),
        };
        image.cfi = image.find_cfi(headers);
        Ok(image)
    }

    /// Returns the preferred load address (VA), which is 0 for shared objects. RVAs count from it.
    #[doc(alias = "image_base")]
    pub const fn preferred_base(&self) -> u64 {
        self.preferred_base
    }

    /// Returns the size of the loaded image in bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns the bytes of the file by RVA, one section for each loadable segment.
    pub const fn sections(&self) -> &Sections<'a> {
        &self.segments
    }

    /// Returns the sections with call frame information.
    pub const fn cfi(&self) -> CfiSections<'a> {
        self.cfi
    }

    /// Returns the names of the functions, from the symbol table and the dynamic symbols. Symbols
    /// that cannot be read are left out.
    pub fn symbols(&self) -> Symbols<'a> {
        let mut names: Vec<(u32, bool, &'a str)> = Vec::new();
        for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
            let mut budget = NameBudget::new(self.data);
            let Ok(symbols) = self.section_table.symbols(LE, self.data, kind) else { continue };
            for symbol in symbols.iter() {
                let function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
                if !function || symbol.is_undefined(LE) {
                    continue;
                }
                let name = symbol.name(LE, symbols.strings());
                if !budget.pay_for(name.ok()) {
                    break;
                }
                let rva = self.rva(symbol.st_value(LE));
                if let (Some(rva), Ok(name)) = (rva, name)
                    && let Ok(name) = core::str::from_utf8(name)
                    && !name.is_empty()
                {
                    // Other modules see the dynamic name.
                    names.push((rva, kind == elf::SHT_SYMTAB, name));
                }
            }
        }
        names.sort_unstable();
        names.dedup_by_key(|(rva, ..)| *rva);
        Symbols::ascending(names.into_iter().map(|(rva, _, name)| (rva, name)).collect())
    }

    /// Returns the ranges of code (RVAs), ascending: the executable sections with bytes, or, if there are
    /// no section headers, the executable segments.
    pub fn code(&self) -> Vec<Range<u32>> {
        let is_code = |it: &&SectionHeader64<LE>| {
            it.sh_type(LE) == elf::SHT_PROGBITS && it.sh_flags(LE).contains(elf::SHF_EXECINSTR)
        };
        let sections = self.section_table.iter().filter(is_code);
        let ranges = sections.filter_map(|it| Some(self.loaded(it)?.range()));
        let mut code: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
        if code.is_empty() {
            code.extend(self.segments.code());
        }
        code.sort_unstable_by_key(|range| range.start);
        code
    }

    /// Returns the RVA at which the system enters the image; `None` if it does not.
    pub fn entry(&self) -> Option<u32> {
        let header = FileHeader64::<LE>::parse(self.data).ok()?;
        self.rva(header.e_entry(LE)).filter(|entry| *entry != 0)
    }

    /// Returns the section with this name; `None` if there is none that is loaded.
    pub fn section(&self, name: &str) -> Option<Section<'a>> {
        let (_, header) = self.section_table.section_by_name(LE, name.as_bytes())?;
        self.loaded(header)
    }

    /// Returns the RVA of an address in the file's own terms.
    fn rva(&self, address: u64) -> Option<u32> {
        let rva = u32::try_from(address.checked_sub(self.preferred_base)?).ok()?;
        (rva < self.size).then_some(rva)
    }

    fn find_cfi(&self, headers: &[ProgramHeader64<LE>]) -> CfiSections<'a> {
        let named = |name: &[u8]| self.section_table.section_by_name(LE, name).map(|(_, it)| it);
        let loaded = |name: &[u8]| self.loaded(named(name)?);
        let eh_frame_hdr = loaded(b".eh_frame_hdr").or_else(|| {
            let header = headers.iter().find(|it| it.p_type(LE) == elf::PT_GNU_EH_FRAME)?;
            let rva = self.rva(header.p_vaddr(LE))?;
            let bytes = self.segments.bytes_from(rva)?;
            let bytes = bytes.get(..header.p_filesz(LE) as usize).unwrap_or(bytes);
            Some(Section { rva, bytes, executable: false })
        });
        let eh_frame = loaded(b".eh_frame").or_else(|| self.eh_frame_of(eh_frame_hdr?));
        CfiSections {
            preferred_base: self.preferred_base,
            eh_frame,
            eh_frame_hdr,
            debug_frame: named(b".debug_frame").and_then(|header| self.unloaded(header)),
            text: loaded(b".text").map(|section| section.rva),
            got: loaded(b".got").map(|section| section.rva),
        }
    }

    /// Returns a section that is part of a segment.
    fn loaded(&self, header: &SectionHeader64<LE>) -> Option<Section<'a>> {
        let rva = self.rva(header.sh_addr(LE))?;
        let bytes = self.segments.bytes_from(rva)?;
        let size = usize::try_from(header.sh_size(LE)).ok()?;
        // If a section claims to be longer than its segment, the part in the segment counts.
        let bytes = bytes.get(..size).unwrap_or(bytes);
        Some(Section { rva, bytes, executable: false })
    }

    fn unloaded(&self, header: &SectionHeader64<LE>) -> Option<&'a [u8]> {
        if header.sh_flags(LE).contains(elf::SHF_COMPRESSED) {
            return None;
        }
        header.data(LE, self.data).ok().filter(|bytes| !bytes.is_empty())
    }

    /// Finds `.eh_frame` of an image without section headers by the pointer in `.eh_frame_hdr`.
    fn eh_frame_of(&self, header: Section<'a>) -> Option<Section<'a>> {
        let address = self.preferred_base.wrapping_add(u64::from(header.rva));
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(address);
        let parsed = gimli::EhFrameHdr::new(header.bytes, gimli::LittleEndian);
        let pointer = parsed.parse(&bases, 8).ok()?.eh_frame_ptr().direct().ok()?;
        let rva = self.rva(pointer)?;
        let bytes = self.segments.bytes_from(rva)?;
        Some(Section { rva, bytes, executable: false })
    }
}

fn loads(headers: &[ProgramHeader64<LE>]) -> impl Iterator<Item = &ProgramHeader64<LE>> {
    headers.iter().filter(|header| header.p_type(LE) == elf::PT_LOAD && header.p_memsz(LE) != 0)
}

fn preferred_base(headers: &[ProgramHeader64<LE>]) -> Option<u64> {
    loads(headers).map(|header| header.p_vaddr(LE) & !(PAGE - 1)).min()
}

/// Returns the segments by RVA, and the RVA of their end.
fn segments<'a>(
    data: &'a [u8],
    headers: &[ProgramHeader64<LE>],
    base: u64,
) -> Result<(Sections<'a>, u32), ElfError> {
    let (mut sections, mut size) = (Vec::new(), 0);
    for header in loads(headers) {
        let address = header.p_vaddr(LE);
        let range = ElfError::SegmentRange { address };
        let file_size = header.p_filesz(LE).min(header.p_memsz(LE));
        let bytes = data.read_bytes_at(header.p_offset(LE), file_size);
        let bytes = bytes.map_err(|()| ElfError::SegmentData { address })?;
        let rva = u32::try_from(address - base).map_err(|_| range)?;
        let end = u64::from(rva).checked_add(header.p_memsz(LE)).ok_or(range)?;
        size = size.max(u32::try_from(end).map_err(|_| range)?);
        let executable = header.p_flags(LE).contains(elf::PF_X);
        sections.push(Section { rva, bytes, executable });
    }
    let sections = Sections::new(sections).map_err(|error| match error {
        ImageError::SectionOverlap { rva } => {
            ElfError::SegmentRange { address: base.wrapping_add(u64::from(rva)) }
        }
        _ => ElfError::ProgramHeaders,
    })?;
    Ok((sections, size))
}
