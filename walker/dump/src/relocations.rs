//! What the loader has changed in an image.

use crate::headers::ImageHeaders;
use clr_unwind::{Memory as _, Segment};
use object::elf;

/// Relocations of a file at most. Chromium has 0.6 million, libcoreclr.so 19 thousand.
const LIMIT: usize = 1 << 20;
/// Size of a dynamic section at most, in bytes.
const DYNAMIC_LIMIT: u64 = 0x1_0000;

/// A change that the loader makes. Addresses are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Relocation {
    pub(crate) address: u64,
    pub(crate) change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// The word is this plus the distance by which the image was moved.
    Moved(u64),
    /// The word depends on other images.
    Unknown,
    /// This word and the next depend on other images, or on the process.
    UnknownPair,
}

impl Relocation {
    /// Returns the address after the last byte that changes.
    pub(crate) const fn end(&self) -> u64 {
        let size = if matches!(self.change, Change::UnknownPair) { 16 } else { 8 };
        self.address.saturating_add(size)
    }
}

/// Values of the dynamic section.
#[derive(Clone, Copy, Debug, Default)]
struct Tables {
    rela: u64,
    rela_size: u64,
    relr: u64,
    relr_size: u64,
    jump: u64,
    jump_size: u64,
}

/// The relocations of a file, ascending by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relocations {
    all: Vec<Relocation>,
}

impl Relocations {
    /// Reads the relocations of an image file: DT_RELA, DT_JMPREL and DT_RELR.
    pub(crate) fn read(file: &[u8], headers: &ImageHeaders) -> Option<Self> {
        let mut this = Self::default();
        let Some(dynamic) = &headers.dynamic else { return Some(this) };
        let size = (dynamic.end - dynamic.start).min(DYNAMIC_LIMIT);
        let table = |address: u64, size: u64| {
            if size == 0 {
                return Some(&[][..]);
            }
            let start = usize::try_from(headers.offset_of(address)?).ok()?;
            file.get(start..)?.get(..usize::try_from(size).ok()?)
        };
        let entries = table(dynamic.start, size)?;
        this.add_dynamic(dynamic.start, entries)?;
        let tables = Tables::read(entries);
        for (address, size) in [(tables.rela, tables.rela_size), (tables.jump, tables.jump_size)] {
            this.add_rela(table(address, size)?)?;
        }
        this.add_relr(table(tables.relr, tables.relr_size)?, file, headers)?;
        this.all.sort_unstable();
        Some(this)
    }

    /// Takes changes that were found elsewhere.
    pub(crate) fn of(mut all: Vec<Relocation>) -> Option<Self> {
        all.sort_unstable();
        (all.len() <= LIMIT).then_some(Self { all })
    }

    fn push(&mut self, address: u64, change: Change) -> Option<()> {
        self.all.push(Relocation { address, change });
        (self.all.len() <= LIMIT).then_some(())
    }

    /// Adds the values of the dynamic section that loaders change in place: glibc makes addresses of the process of these
    /// (`elf_get_dynamic_info` in elf/get-dynamic-info.h), musl does not; both set DT_DEBUG.
    fn add_dynamic(&mut self, start: u64, entries: &[u8]) -> Option<()> {
        let (entries, _) = entries.as_chunks::<16>();
        for (index, entry) in entries.iter().enumerate() {
            let (words, _) = entry.as_chunks();
            let [tag, value] = words else { return None };
            let tag = elf::DynamicTag(i64::from_le_bytes(*tag));
            if tag == elf::DT_PLTGOT {
                // The second and third word are for the loader's look-up of functions at their first call.
                self.push(u64::from_le_bytes(*value).wrapping_add(8), Change::UnknownPair)?;
            }
            let is_changed = match tag {
                elf::DT_NULL => break,
                elf::DT_HASH
                | elf::DT_PLTGOT
                | elf::DT_STRTAB
                | elf::DT_SYMTAB
                | elf::DT_RELA
                | elf::DT_REL
                | elf::DT_RELR
                | elf::DT_JMPREL
                | elf::DT_VERSYM
                | elf::DT_GNU_HASH
                | elf::DT_DEBUG => true,
                _ => false,
            };
            if is_changed {
                self.push(start + 16 * index as u64 + 8, Change::Unknown)?;
            }
        }
        Some(())
    }

    fn add_rela(&mut self, table: &[u8]) -> Option<()> {
        let (entries, _) = table.as_chunks::<24>();
        for entry in entries {
            let (words, _) = entry.as_chunks();
            let [address, kind, addend] = words else { return None };
            let kind = u64::from_le_bytes(*kind) as u32;
            let change = match elf::RelocationType(kind) {
                elf::R_X86_64_NONE => continue,
                elf::R_X86_64_RELATIVE => Change::Moved(u64::from_le_bytes(*addend)),
                elf::R_X86_64_TLSDESC => Change::UnknownPair,
                _ => Change::Unknown,
            };
            self.push(u64::from_le_bytes(*address), change)?;
        }
        Some(())
    }

    /// Reads compact relative relocations: an even entry is an address with a relocation; an odd one a bitmap of the 63 words
    /// after the last. The addend is in the file.
    fn add_relr(&mut self, table: &[u8], file: &[u8], headers: &ImageHeaders) -> Option<()> {
        let (entries, _) = table.as_chunks();
        let mut next = 0_u64;
        for entry in entries {
            let entry = u64::from_le_bytes(*entry);
            let (start, bitmap) = if entry & 1 == 0 { (entry, 1) } else { (next, entry >> 1) };
            for word in (0..63).filter(|word| bitmap >> word & 1 != 0) {
                let address = start.checked_add(8 * word)?;
                let addend = Segment::new(0, file).read_u64(headers.offset_of(address)?).ok()?;
                self.push(address, Change::Moved(addend))?;
            }
            next = start.checked_add(if entry & 1 == 0 { 8 } else { 8 * 63 })?;
        }
        Some(())
    }

    /// Returns the relocations that may change a byte from `address` on.
    pub(crate) fn from(&self, address: u64) -> &[Relocation] {
        let first = address.saturating_sub(15);
        let at = self.all.partition_point(|relocation| relocation.address < first);
        self.all.get(at..).unwrap_or_default()
    }
}

impl Tables {
    fn read(dynamic: &[u8]) -> Self {
        let mut tables = Self::default();
        let (entries, _) = dynamic.as_chunks::<16>();
        for entry in entries {
            let (words, _) = entry.as_chunks();
            let [tag, value] = words else { break };
            let value = u64::from_le_bytes(*value);
            let field = match elf::DynamicTag(i64::from_le_bytes(*tag)) {
                elf::DT_NULL => break,
                elf::DT_RELA => &mut tables.rela,
                elf::DT_RELASZ => &mut tables.rela_size,
                elf::DT_RELR => &mut tables.relr,
                elf::DT_RELRSZ => &mut tables.relr_size,
                elf::DT_JMPREL => &mut tables.jump,
                elf::DT_PLTRELSZ => &mut tables.jump_size,
                _ => continue,
            };
            *field = value;
        }
        tables
    }
}
