//! Builds of images. An update may replace a file while programs run that have loaded the old one.

use super::OwnProcess;
use clr_unwind::Memory as _;

/// Longest note and longest list of headers that are read, in bytes.
const MOST: u64 = 0x1_0000;
/// Kind of a program header: PT_LOAD, PT_NOTE.
const LOAD: u32 = 1;
const NOTE: u32 = 4;
/// Kind of a note: NT_GNU_BUILD_ID.
const BUILD_ID: u32 = 3;

/// What tells one build of an image from another: of an ELF image its build id, or its program headers if it has none;
/// of a PE image its time stamp, size and checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build(Vec<u8>);

impl Build {
    /// Returns the build of the image that is loaded at `base` (VA). `None` if it does not begin with its headers.
    pub fn loaded(base: u64) -> Option<Self> {
        let read = |at: u64, len: u64| {
            let mut bytes = vec![0; usize::try_from(len).ok()?];
            OwnProcess.read(base.checked_add(at)?, &mut bytes).ok()?;
            Some(bytes)
        };
        pe(&read).or_else(|| elf(&read, Header::place_in_memory))
    }

    /// Returns the build of an image as a file has it.
    pub fn of_file(file: &[u8]) -> Option<Self> {
        let read = |at: u64, len: u64| {
            let (at, len) = (usize::try_from(at).ok()?, usize::try_from(len).ok()?);
            Some(file.get(at..)?.get(..len)?.to_vec())
        };
        pe(&read).or_else(|| elf(&read, Header::place_in_file))
    }
}

/// Reads bytes: offset from the image's start, and length.
type Read<'r> = &'r dyn Fn(u64, u64) -> Option<Vec<u8>>;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..N)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn pe(read: Read<'_>) -> Option<Build> {
    if read(0, 2)? != b"MZ" {
        return None;
    }
    let at = number::<4>(&read(0x3C, 4)?, 0)?;
    if read(at, 4)? != b"PE\0\0" {
        return None;
    }
    // Others, as the preferred base, change in memory.
    let parts = [(8, 4), (24 + 56, 4), (24 + 64, 4)];
    let parts: Option<Vec<_>> = parts.iter().map(|(offset, len)| read(at + offset, *len)).collect();
    Some(Build(parts?.concat()))
}

/// A program header.
struct Header {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
    align: u64,
}

impl Header {
    const SIZE: usize = 56;

    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            kind: number::<4>(bytes, 0)? as u32,
            offset: number::<8>(bytes, 8)?,
            address: number::<8>(bytes, 16)?,
            size: number::<8>(bytes, 32)?,
            align: number::<8>(bytes, 48)?,
        })
    }

    /// Returns the offset in a file. `lowest`: address of the first segment.
    const fn place_in_file(&self, _lowest: u64) -> u64 {
        self.offset
    }

    /// Returns the offset from the first segment in memory.
    const fn place_in_memory(&self, lowest: u64) -> u64 {
        self.address.wrapping_sub(lowest)
    }
}

fn elf(read: Read<'_>, place: fn(&Header, u64) -> u64) -> Option<Build> {
    let header = read(0, 64)?;
    let is_64_bit = header.starts_with(b"\x7FELF\x02");
    let (at, len) = (number::<8>(&header, 32)?, number::<2>(&header, 54)?);
    if !is_64_bit || len != Header::SIZE as u64 {
        return None;
    }
    let table = read(at, number::<2>(&header, 56)? * len)?;
    let headers: Vec<Header> = table.chunks_exact(Header::SIZE).filter_map(Header::parse).collect();
    let of_kind = |kind| headers.iter().filter(move |header| header.kind == kind);
    // The base is the start of the page.
    let lowest = of_kind(LOAD).map(|header| header.address & !0xFFF).min()?;
    let id = of_kind(NOTE).find_map(|header| {
        let notes = read(place(header, lowest), header.size.min(MOST))?;
        build_id(&notes, if header.align == 8 { 8 } else { 4 })
    });
    Some(Build(id.unwrap_or(table)))
}

/// Finds the build id among notes.
fn build_id(mut notes: &[u8], align: usize) -> Option<Vec<u8>> {
    loop {
        let [name, description, kind] = [0, 4, 8].map(|at| number::<4>(notes, at));
        let (name, description) = (name? as usize, description? as usize);
        let from = (12 + name).next_multiple_of(align);
        if kind? as u32 == BUILD_ID && notes.get(12..)?.get(..name)? == b"GNU\0" {
            return Some(notes.get(from..)?.get(..description)?.to_vec());
        }
        notes = notes.get((from + description).next_multiple_of(align)..)?;
    }
}
