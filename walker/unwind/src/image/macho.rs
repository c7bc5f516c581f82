//! Mach-O images for x86-64, read through `object`.

use super::symbols::NameBudget;
use super::{CfiSections, ImageError, Section, Sections, Symbols};
use crate::compact::{CompactSections, CompactTable, entries_of_object_file};
use alloc::vec::Vec;
use core::ops::Range;
use object::LittleEndian as LE;
use object::macho::{self, MachHeader64, Relocation, SegmentCommand64};
use object::read::ReadRef as _;
use object::read::macho::{
    LoadCommandIterator, LoadCommandVariant, MachHeader as _, Nlist as _, Section as _,
    Segment as _,
};
use thiserror::Error;

/// An error in reading a Mach-O image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MachoError {
    /// The file header is missing or cut off, or the image is not thin 64-bit little-endian Mach-O.
    #[error("not a thin 64-bit little-endian Mach-O image, or its header is cut off")]
    Header,
    /// The machine is not x86-64.
    #[error("the image is for machine {machine:#x}, not for x86-64 (0x1000007)")]
    Machine {
        /// `cputype`.
        machine: u32,
    },
    /// The load commands are cut off or contradict their lengths.
    #[error("the load commands are cut off")]
    LoadCommands,
    /// There is no segment except `__PAGEZERO`.
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

/// A thin 64-bit Mach-O image in the layout of its file.
#[derive(Clone, Debug)]
pub struct MachoImage<'a> {
    data: &'a [u8],
    preferred_base: u64,
    size: u32,
    commands: LoadCommandIterator<'a, LE>,
    segments: Sections<'a>,
    cfi: CfiSections<'a>,
    compact: CompactSections<'a>,
    /// `__LD,__compact_unwind` of an object file, with its relocations.
    compact_of_object: Option<(&'a [u8], &'a [Relocation<LE>])>,
}

impl<'a> MachoImage<'a> {
    /// Reads the headers of the image file `data`, and finds the segments and the call frame
    /// information without parsing the latter.
    ///
    /// # Errors
    /// [`MachoError`] if `data` is no thin x86-64 Mach-O image or is cut off, or if its segments
    /// contradict each other.
    pub fn parse(data: &'a [u8]) -> Result<Self, MachoError> {
        let header = MachHeader64::<LE>::parse(data, 0).map_err(|_| MachoError::Header)?;
        header.endian().map_err(|_| MachoError::Header)?;
        let machine = header.cputype(LE);
        if machine != macho::CPU_TYPE_X86_64 {
            return Err(MachoError::Machine { machine: machine.0 });
        }
        let cut_off = |_| MachoError::LoadCommands;
        let commands = header.load_commands(LE, data, 0).map_err(cut_off)?;
        let mut found = Vec::new();
        let mut iterator = commands;
        while let Some(command) = iterator.next().map_err(cut_off)? {
            if let Some((segment, sections)) = command.segment_64().map_err(cut_off)?
                && segment.vmsize(LE) != 0
                && segment.name() != b"__PAGEZERO"
            {
                found.push((segment, sections));
            }
        }
        // The header is at the start of __TEXT, the lowest segment.
        let preferred_base = found.iter().map(|(segment, _)| segment.vmaddr(LE)).min();
        let preferred_base = preferred_base.ok_or(MachoError::NothingToLoad)?;
        let (segments, size) = segments(data, found.iter().map(|it| it.0), preferred_base)?;
        let mut image = Self {
            data,
            preferred_base,
            size,
            commands,
            segments,
            cfi: CfiSections { preferred_base, ..CfiSections::default() },
            compact: CompactSections::default(),
            compact_of_object: None,
        };
        for (segment, bytes) in found {
            let sections = segment.sections(LE, bytes).map_err(cut_off)?;
            for section in sections {
                let at = || image.range(section.addr(LE), section.size(LE));
                match (section.segment_name(), section.name()) {
                    (b"__TEXT", b"__eh_frame") => image.cfi.eh_frame = at(),
                    (b"__TEXT", b"__unwind_info") => image.compact.unwind_info = at(),
                    (b"__TEXT", b"__stub_helper") => {
                        if let Some(Section { rva, bytes, .. }) = at() {
                            image.compact.stub_helper = rva..rva.saturating_add(bytes.len() as u32);
                        }
                    }
                    (b"__LD", b"__compact_unwind") => {
                        let bytes = section.data(LE, data, section.offset(LE).into()).ok();
                        let relocations = section.relocations(LE, data).unwrap_or_default();
                        image.compact_of_object = bytes.map(|bytes| (bytes, relocations));
                    }
                    (b"__TEXT", b"__text") => image.cfi.text = at().map(|it| it.rva),
                    (_, b"__got") => image.cfi.got = at().map(|it| it.rva),
                    (b"__DWARF", b"__debug_frame") => {
                        image.cfi.debug_frame =
                            section.data(LE, data, section.offset(LE).into()).ok();
                    }
                    _ => {}
                }
            }
        }
        Ok(image)
    }

    /// Returns the preferred load address (VA), which is that of the header. RVAs count from it.
    #[doc(alias = "image_base")]
    pub const fn preferred_base(&self) -> u64 {
        self.preferred_base
    }

    /// Returns the size of the loaded image in bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns the bytes of the file by RVA, one section for each segment.
    pub const fn sections(&self) -> &Sections<'a> {
        &self.segments
    }

    /// Returns the sections with call frame information. Most functions are not in them: the linker
    /// describes these only by [compact unwind information](Self::compact_unwind).
    pub const fn cfi(&self) -> CfiSections<'a> {
        self.cfi
    }

    /// Returns the table of compact unwind information, which is empty if the image has none. Only
    /// for an object file does this allocate.
    pub fn compact_unwind(&self) -> CompactTable<'a> {
        let Some((section, relocations)) = self.compact_of_object else {
            return CompactTable::new(&self.compact);
        };
        let mut commands = self.commands.map_while(Result::ok);
        let table = commands.find_map(|command| command.symtab().ok().flatten());
        let symbols = table.and_then(|it| it.symbols::<MachHeader64<LE>, _>(LE, self.data).ok());
        let value = |number: u32| {
            let symbol = symbols.as_ref()?.symbol(object::SymbolIndex(number as usize)).ok()?;
            Some(symbol.n_value(LE))
        };
        let entries = entries_of_object_file(section, relocations, self.preferred_base, value);
        CompactTable::of_object(entries)
    }

    /// Returns the ranges of code (RVAs), ascending: the sections that have instructions.
    pub fn code(&self) -> Vec<Range<u32>> {
        let instructions = macho::S_ATTR_PURE_INSTRUCTIONS | macho::S_ATTR_SOME_INSTRUCTIONS;
        let mut code = Vec::new();
        for command in self.commands.map_while(Result::ok) {
            let Ok(Some((segment, bytes))) = command.segment_64() else { continue };
            for section in segment.sections(LE, bytes).unwrap_or_default() {
                if section.flags(LE).0 & instructions.0 != 0
                    && let Some(section) = self.range(section.addr(LE), section.size(LE))
                {
                    code.push(section.range());
                }
            }
        }
        code.sort_unstable_by_key(|range| range.start);
        code
    }

    /// Returns the RVAs at which functions start by `LC_FUNCTION_STARTS`, ascending: none if the image
    /// lacks it, and those before a fault in it.
    pub fn function_starts(&self) -> Vec<u32> {
        let mut commands = self.commands.map_while(Result::ok);
        let starts = commands.find_map(|command| match command.variant() {
            Ok(LoadCommandVariant::LinkeditData(linkedit)) => {
                linkedit.function_starts(LE, self.data, self.preferred_base).ok()
            }
            _ => None,
        });
        let addresses = starts.into_iter().flatten().map_while(Result::ok);
        let rva = |address: u64| u32::try_from(address.checked_sub(self.preferred_base)?).ok();
        addresses.map_while(rva).collect()
    }

    /// Returns the names of the code. Symbols that cannot be read are left out.
    pub fn symbols(&self) -> Symbols<'a> {
        let mut names: Vec<(u32, &'a str)> = Vec::new();
        let mut budget = NameBudget::new(self.data);
        let mut commands = self.commands.map_while(Result::ok);
        let table = commands.find_map(|command| command.symtab().ok().flatten());
        let symbols = table.and_then(|it| it.symbols::<MachHeader64<LE>, _>(LE, self.data).ok());
        let Some(symbols) = symbols else { return Symbols::default() };
        for symbol in symbols.iter() {
            let of_debugger = symbol.n_type().is_stab();
            if of_debugger || symbol.n_type().typ() != macho::N_SECT {
                continue;
            }
            let strings = symbols.strings();
            let name = symbol.name(LE, strings);
            if !budget.pay_for(name.ok()) {
                break;
            }
            let address = symbol.n_value(LE).checked_sub(self.preferred_base);
            let rva = address.and_then(|rva| u32::try_from(rva).ok());
            if let (Some(rva), Ok(name)) = (rva, name)
                && self.segments.find(rva).is_some_and(|segment| segment.executable)
                && let Ok(name) = core::str::from_utf8(name)
                && !name.is_empty()
            {
                // The platform adds the underscore; it is not part of the function's name.
                names.push((rva, name.strip_prefix('_').unwrap_or(name)));
            }
        }
        names.sort_unstable();
        names.dedup_by_key(|(rva, _)| *rva);
        Symbols::ascending(names)
    }

    /// Returns the part of a segment at `address`, of at most `size` bytes.
    fn range(&self, address: u64, size: u64) -> Option<Section<'a>> {
        let rva = u32::try_from(address.checked_sub(self.preferred_base)?).ok()?;
        let bytes = self.segments.bytes_from(rva)?;
        let bytes = bytes.get(..usize::try_from(size).ok()?).unwrap_or(bytes);
        Some(Section { rva, bytes, executable: false })
    }
}

/// Returns the segments by RVA, and the RVA of their end.
fn segments<'a, 's>(
    data: &'a [u8],
    commands: impl Iterator<Item = &'s SegmentCommand64<LE>>,
    base: u64,
) -> Result<(Sections<'a>, u32), MachoError> {
    let (mut sections, mut size) = (Vec::new(), 0);
    for segment in commands {
        let address = segment.vmaddr(LE);
        let range = MachoError::SegmentRange { address };
        let file_size = segment.filesize(LE).min(segment.vmsize(LE));
        let bytes = data.read_bytes_at(segment.fileoff(LE), file_size);
        let bytes = bytes.map_err(|()| MachoError::SegmentData { address })?;
        let rva = u32::try_from(address - base).map_err(|_| range)?;
        let end = u64::from(rva).checked_add(segment.vmsize(LE)).ok_or(range)?;
        size = size.max(u32::try_from(end).map_err(|_| range)?);
        let executable = segment.initprot(LE).contains(macho::VM_PROT_EXECUTE);
        sections.push(Section { rva, bytes, executable });
    }
    let sections = Sections::new(sections).map_err(|error| match error {
        ImageError::SectionOverlap { rva } => {
            MachoError::SegmentRange { address: base.wrapping_add(u64::from(rva)) }
        }
        _ => MachoError::LoadCommands,
    })?;
    Ok((sections, size))
}
