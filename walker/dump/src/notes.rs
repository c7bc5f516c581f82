//! The notes of a core: threads, mapped files, the auxiliary vector.

use crate::error::DumpError;
use crate::fields::Fields;
use crate::threads::Thread;
use object::elf;
use std::ops::Range;

/// A file that the process had mapped, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping {
    /// Addresses of the mapping (VA).
    pub range: Range<u64>,
    /// Offset in the file of its first byte.
    pub offset: u64,
    /// Path on the machine of the process.
    pub path: String,
}

/// What the notes of a core say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) threads: Vec<Thread>,
    /// Ascending by address; empty ones are left out.
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) auxiliary: Vec<(u64, u64)>,
}

/// Size of a note's header: the sizes of its name and of its contents, and its kind.
const HEADER: usize = 12;

impl Notes {
    /// Adds the notes of a segment of kind PT_NOTE.
    pub(crate) fn add(&mut self, segment: Fields<'_>) -> Result<(), DumpError> {
        let mut at = 0;
        while at + HEADER <= segment.len() {
            let (name, size) = (segment.u32(at)? as usize, segment.u32(at + 4)? as usize);
            let kind = segment.u32(at + 8)?;
            let name = segment.part(at + HEADER, name)?.bytes();
            let start = at + HEADER + name.len().next_multiple_of(4);
            let contents = segment.part(start, size)?;
            if name.strip_suffix(b"\0").unwrap_or(name) == b"CORE" {
                self.add_note(kind, contents)?;
            }
            at = start + size.next_multiple_of(4);
        }
        Ok(())
    }

    fn add_note(&mut self, kind: u32, contents: Fields<'_>) -> Result<(), DumpError> {
        match elf::NoteType(kind) {
            elf::NT_PRSTATUS => self.threads.push(Thread::read(contents)?),
            // It follows the NT_PRSTATUS of its thread.
            elf::NT_PRFPREG => {
                if let Some(thread) = self.threads.last_mut() {
                    thread.add_vectors(contents)?;
                }
            }
            elf::NT_AUXV => {
                let (words, _) = contents.bytes().as_chunks::<16>();
                for index in 0..words.len() {
                    let pair = (contents.u64(index * 16)?, contents.u64(index * 16 + 8)?);
                    self.auxiliary.push(pair);
                }
            }
            elf::NT_FILE => self.mappings.extend(mappings(contents)?),
            _ => {}
        }
        Ok(())
    }

    /// Puts threads and mappings in order, and checks that there are threads.
    pub(crate) fn finish(&mut self) -> Result<(), DumpError> {
        self.threads.sort_by_key(|thread| thread.id);
        self.mappings.sort_by_key(|mapping| mapping.range.start);
        if self.threads.is_empty() { Err(DumpError::NoThreads) } else { Ok(()) }
    }

    pub(crate) fn auxiliary(&self, key: u64) -> Option<u64> {
        let found = self.auxiliary.iter().find(|(found, _)| *found == key)?;
        Some(found.1)
    }
}

/// Reads a note of kind NT_FILE: the number of mappings, the unit of their offsets, then their numbers, then their
/// paths (`fill_files_note` in fs/binfmt_elf.c of Linux).
fn mappings(note: Fields<'_>) -> Result<Vec<Mapping>, DumpError> {
    let (count, unit) = (note.u64(0)?, note.u64(8)?);
    let size = usize::try_from(count).ok().and_then(|count| count.checked_mul(24));
    let numbers = note.part(16, size.ok_or(note.damaged(0))?)?;
    let mut paths = note.rest(16 + numbers.len());
    let mut mappings = Vec::with_capacity(numbers.len() / 24);
    for at in (0..numbers.len()).step_by(24) {
        let range = numbers.u64(at)?..numbers.u64(at + 8)?;
        let offset = numbers.u64(at + 16)?.checked_mul(unit).ok_or(numbers.damaged(at + 16))?;
        let len = paths.bytes().iter().position(|byte| *byte == 0).ok_or(paths.damaged(0))?;
        let path = String::from_utf8_lossy(paths.part(0, len)?.bytes()).into_owned();
        paths = paths.rest(len + 1);
        if offset.checked_add(range.end.wrapping_sub(range.start)).is_none() {
            return Err(numbers.damaged(at + 16));
        }
        if !range.is_empty() {
            mappings.push(Mapping { range, offset, path });
        }
    }
    Ok(mappings)
}
