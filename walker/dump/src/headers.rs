//! ELF headers, in files and in memory.

use clr_unwind::Memory;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::ops::Range;

/// Page size in bytes.
pub(crate) const PAGE: u64 = 0x1000;
/// Program headers at most; images have about a dozen.
const HEADER_LIMIT: u16 = 256;

/// A part of an image that is loaded. Addresses are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) flags: elf::ProgramFlags,
}

impl Load {
    /// Returns the addresses whose bytes are in the file.
    pub(crate) const fn in_file(&self) -> Range<u64> {
        self.address..self.address + self.file_size
    }

    pub(crate) const fn in_memory(&self) -> Range<u64> {
        self.address..self.address + self.memory_size
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.flags.contains(elf::PF_W)
    }
}

/// The headers of an image for x86-64.
#[derive(Clone, Debug)]
pub(crate) struct ImageHeaders {
    /// Ascending by address, without overlaps; not empty.
    pub(crate) loads: Vec<Load>,
    /// What is read-only after relocation, by address.
    pub(crate) relro: Vec<Range<u64>>,
    /// The dynamic section, by address.
    pub(crate) dynamic: Option<Range<u64>>,
}

impl ImageHeaders {
    /// Reads the headers of an image whose bytes at `base` are the first ones of its file.
    pub(crate) fn read<M: Memory>(memory: &M, base: u64) -> Option<Self> {
        let mut bytes = [0; size_of::<FileHeader64<LE>>()];
        memory.read(base, &mut bytes).ok()?;
        let (header, _) = object::from_bytes::<FileHeader64<LE>>(&bytes).ok()?;
        let is_image = matches!(header.e_type(LE), elf::ET_DYN | elf::ET_EXEC);
        let is_elf64 = header.is_supported() && header.e_machine(LE) == elf::EM_X86_64;
        let size = usize::from(header.e_phentsize(LE)) == size_of::<ProgramHeader64<LE>>();
        let count = header.e_phnum(LE);
        if !is_elf64 || !is_image || !size || count > HEADER_LIMIT {
            return None;
        }
        let mut bytes = vec![0; usize::from(count) * size_of::<ProgramHeader64<LE>>()];
        memory.read(base.checked_add(header.e_phoff(LE))?, &mut bytes).ok()?;
        let headers = object::slice_from_all_bytes::<ProgramHeader64<LE>>(&bytes).ok()?;
        Self::from_headers(headers)
    }

    fn from_headers(headers: &[ProgramHeader64<LE>]) -> Option<Self> {
        let of_kind = |kind| headers.iter().filter(move |header| header.p_type(LE) == kind);
        let range = |header: &ProgramHeader64<LE>, size: u64| {
            let start = header.p_vaddr(LE);
            Some(start..start.checked_add(size)?)
        };
        let mut loads: Vec<Load> = Vec::new();
        for header in of_kind(elf::PT_LOAD) {
            let memory = range(header, header.p_memsz(LE))?;
            let file_size = header.p_filesz(LE).min(header.p_memsz(LE));
            header.p_offset(LE).checked_add(file_size)?;
            if loads.last().is_some_and(|last| memory.start < last.in_memory().end) {
                return None;
            }
            loads.push(Load {
                address: memory.start,
                offset: header.p_offset(LE),
                file_size,
                memory_size: header.p_memsz(LE),
                flags: header.p_flags(LE),
            });
        }
        let relro = of_kind(elf::PT_GNU_RELRO).map(|it| range(it, it.p_memsz(LE)));
        let dynamic = of_kind(elf::PT_DYNAMIC).next();
        loads.first()?;
        Some(Self {
            relro: relro.collect::<Option<_>>()?,
            dynamic: dynamic.map(|it| range(it, it.p_memsz(LE)).ok_or(())).transpose().ok()?,
            loads,
        })
    }

    /// Returns the addresses of the whole image, by page.
    pub(crate) fn range(&self) -> Range<u64> {
        let start = self.loads.first().map_or(0, |load| load.address);
        let end = self.loads.last().map_or(0, |load| load.in_memory().end);
        page(start)..end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
    }

    /// Returns the offsets of the dynamic section in the image's file.
    pub(crate) fn dynamic_in_file(&self) -> Option<Range<usize>> {
        let dynamic = self.dynamic.as_ref()?;
        let start = usize::try_from(self.offset_of(dynamic.start)?).ok()?;
        let size = usize::try_from(dynamic.end - dynamic.start).ok()?;
        Some(start..start.checked_add(size)?)
    }

    /// Returns the offset in the file of an address whose byte is in the file.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        let load = self.loads.iter().find(|load| load.in_file().contains(&address))?;
        Some(load.offset + (address - load.address))
    }
}

/// Returns the start of the page.
pub(crate) const fn page(address: u64) -> u64 {
    address & !(PAGE - 1)
}
