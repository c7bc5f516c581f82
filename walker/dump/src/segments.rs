//! The segments of a core.

use crate::bytes::{DumpBytes, Source};
use crate::error::DumpError;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

/// The number of program headers that says that there are more: the first section's header has their number (`PN_XNUM`).
const MANY: u16 = 0xFFFF;

/// A segment of a core.
pub(crate) struct Segment {
    pub(crate) kind: elf::ProgramType,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    /// In the dump.
    pub(crate) size: u64,
}

/// Reads a part of a dump that has it.
pub(crate) fn read_part(source: &Source<'_>, offset: u64, size: u64) -> Result<Vec<u8>, DumpError> {
    let unread = DumpError::Unread { offset, size };
    let mut part = vec![0; usize::try_from(size).map_err(|_| unread)?];
    source.read_at(offset, &mut part).ok_or(unread)?;
    Ok(part)
}

/// Reads the program headers of a core.
pub(crate) fn segments(source: &Source<'_>) -> Result<Vec<Segment>, DumpError> {
    let mut bytes = [0; size_of::<FileHeader64<LE>>()];
    source.read_at(0, &mut bytes).ok_or(DumpError::NotACore)?;
    let header = FileHeader64::<LE>::parse(bytes.as_slice()).map_err(|_| DumpError::NotACore)?;
    header.endian().map_err(|_| DumpError::NotACore)?;
    if header.e_type(LE) != elf::ET_CORE || header.e_machine(LE) != elf::EM_X86_64 {
        return Err(DumpError::NotACore);
    }
    let offset = header.e_phoff(LE);
    let cut = DumpError::ProgramHeaders { offset };
    let mut count = u64::from(header.e_phnum(LE));
    if header.e_phnum(LE) == MANY {
        let mut bytes = [0; size_of::<SectionHeader64<LE>>()];
        source.read_at(header.e_shoff(LE), &mut bytes).ok_or(cut)?;
        let (first, _) = object::from_bytes::<SectionHeader64<LE>>(&bytes).map_err(|()| cut)?;
        count = first.sh_info(LE).into();
    }
    let size = count * size_of::<ProgramHeader64<LE>>() as u64;
    let is_right = usize::from(header.e_phentsize(LE)) == size_of::<ProgramHeader64<LE>>();
    let end = offset.checked_add(size).filter(|end| is_right && *end <= source.size());
    end.ok_or(cut)?;
    let table = read_part(source, offset, size)?;
    let headers = object::slice_from_all_bytes::<ProgramHeader64<LE>>(&table).map_err(|()| cut)?;
    let segments = headers.iter().map(|header| Segment {
        kind: header.p_type(LE),
        address: header.p_vaddr(LE),
        offset: header.p_offset(LE),
        size: header.p_filesz(LE),
    });
    Ok(segments.collect())
}
