//! Bytes of image files, copied: a file that is cut off later changes nothing.
//!
//! Reading a mapped file that has become shorter ends the process with SIGBUS, in a signal handler too. Compilers and `cp`
//! cut off the files that they write, and a profiler must not die of pages that its program never touches.

use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHF_EXECINSTR, SHT_PROGBITS, SectionHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::ptr::null_mut;

/// The sections that unwinding reads beside code, of the kind that read-only data are of.
const UNWIND_DATA: [&[u8]; 3] = [b".eh_frame", b".eh_frame_hdr", b".debug_frame"];

/// Returns the bytes of an image file for as long as the process lives, or `None` if it cannot be read.
///
/// They are a copy. Of ELF files that is what unwinding and names of functions need: data that code works on and what
/// debuggers read is zero, as it can be gigabytes.
///
/// The copy is not a mapped part of the file, of which dumps have a list: a debugger takes the one with the header of the
/// runtime's library for the library itself.
pub fn file_bytes(path: &str) -> Option<&'static [u8]> {
    let file = File::open(path).ok()?;
    let size = usize::try_from(file.metadata().ok()?.len()).ok().filter(|size| *size > 0)?;
    let bytes = reserve(size)?;
    if fill(&file, bytes).is_none() {
        // SAFETY: a whole mapping of this length, to which no reference is left.
        unsafe { libc::munmap(bytes.as_mut_ptr().cast(), size) };
        return None;
    }
    Some(bytes)
}

/// Returns new memory that is zero. Pages that nobody writes cost nothing.
fn reserve(size: usize) -> Option<&'static mut [u8]> {
    let (rights, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping of this length, which nobody else knows.
    unsafe {
        let start = libc::mmap(null_mut(), size, rights, flags, -1, 0);
        (start != libc::MAP_FAILED).then(|| std::slice::from_raw_parts_mut(start.cast(), size))
    }
}

/// Reads a file: of ELF what is needed, of others all.
fn fill(file: &File, bytes: &mut [u8]) -> Option<()> {
    let Some(parts) = needed(file, bytes) else {
        return file.read_exact_at(bytes, 0).ok();
    };
    for part in parts {
        read(file, bytes, part.start as u64, part.len() as u64)?;
    }
    Some(())
}

/// Returns the parts of an ELF file that are needed, or `None` if it has no sections, or is none. Its header and those of its
/// sections are read.
fn needed(file: &File, bytes: &mut [u8]) -> Option<Vec<Range<usize>>> {
    let header = read(file, bytes, 0, size_of::<FileHeader64<LE>>() as u64)?;
    let header = *FileHeader64::<LE>::parse(header).ok()?;
    let table = u64::from(header.e_shentsize(LE)) * u64::from(header.e_shnum(LE));
    let table = read(file, bytes, header.e_shoff(LE), table)?;
    let sections = header.section_headers(LE, table).ok()?.to_vec();
    let names = sections.get(usize::from(header.e_shstrndx(LE).0))?;
    let read = read(file, bytes, names.sh_offset(LE), names.sh_size(LE))?;
    let names = names.strings(LE, read).ok()??;
    let is_needed = |it: &&SectionHeader64<LE>| {
        it.sh_type(LE) != SHT_PROGBITS
            || it.sh_flags(LE).contains(SHF_EXECINSTR)
            || it.name(LE, names).is_ok_and(|name| UNWIND_DATA.contains(&name))
    };
    // The headers of segments are where the linker put them.
    let segments = u64::from(header.e_phentsize(LE)) * u64::from(header.e_phnum(LE));
    let mut parts = vec![range(header.e_phoff(LE), segments)?];
    let in_file = sections.iter().filter(is_needed).filter_map(|it| it.file_range(LE));
    for (start, len) in in_file {
        parts.push(range(start, len)?);
    }
    Some(parts)
}

/// Reads a part of a file into its place, and returns the whole.
fn read<'b>(file: &File, bytes: &'b mut [u8], start: u64, len: u64) -> Option<&'b [u8]> {
    file.read_exact_at(bytes.get_mut(range(start, len)?)?, start).ok()?;
    Some(bytes)
}

/// Returns a range of bytes in a file.
fn range(start: u64, len: u64) -> Option<Range<usize>> {
    let end = start.checked_add(len)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}
