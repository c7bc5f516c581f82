//! What of a file is as it was in memory.

use crate::error::MappedFileError;
use crate::headers::ImageHeaders;
use crate::loaded::Loaded;
use crate::pe_headers::PeHeaders;
use crate::pe_loaded;
use crate::process::{Missing, System};
use crate::relocations::Relocations;
use clr_unwind::{ImageIdentity, Segment};
use std::ops::Range;

/// A file that was found, and is the one that the process had mapped.
#[derive(Clone, Debug)]
pub(crate) struct MappedFile<'f> {
    pub(crate) bytes: &'f [u8],
    contents: Contents,
}

/// What is known of segments that were writable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writable {
    /// Nothing.
    Unknown,
    /// What the loader made read-only after relocation.
    IfSealed,
    /// All: the caller wants what was there first.
    AsLoaded,
}

#[derive(Clone, Debug)]
enum Contents {
    Loaded(Loaded),
    /// Offsets that the loader of the runtime for Linux changes, or the process may change; ascending.
    Pe(Vec<Range<u64>>),
}

impl<'f> MappedFile<'f> {
    /// Reads the headers and relocations of a file that a process of this system had mapped. It must have this identity.
    pub(crate) fn read(
        bytes: &'f [u8],
        identity: &ImageIdentity,
        system: System,
    ) -> Result<Self, MappedFileError> {
        if ImageIdentity::of_file(bytes).as_ref() != Some(identity) {
            return Err(MappedFileError::Different);
        }
        let contents = match identity {
            ImageIdentity::BuildId(_) | ImageIdentity::ProgramHeaders(_) => {
                let headers = ImageHeaders::read(&Segment::new(0, bytes), 0)
                    .ok_or(MappedFileError::Damaged)?;
                let relocations = Relocations::read(bytes, &headers);
                let relocations = relocations.ok_or(MappedFileError::Damaged)?;
                Contents::Loaded(Loaded { headers, relocations })
            }
            ImageIdentity::Pe(_) if system == System::Windows => {
                Contents::Loaded(pe_loaded::read(bytes).ok_or(MappedFileError::Damaged)?)
            }
            ImageIdentity::Pe(_) => {
                let headers = PeHeaders::read(bytes).ok_or(MappedFileError::Damaged)?;
                Contents::Pe(headers.changed(bytes).ok_or(MappedFileError::Damaged)?)
            }
        };
        Ok(Self { bytes, contents })
    }

    /// Copies the bytes from `address` (in the file's terms) on of the image that was loaded `bias` bytes higher, as far as they
    /// are known. Returns their number, one at least.
    pub(crate) fn loaded(
        &self,
        bias: u64,
        writable: Writable,
        address: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Missing> {
        let Contents::Loaded(image) = &self.contents else { return Err(Missing::MayHaveChanged) };
        let load = image.headers.loads.iter().find(|load| load.in_file().contains(&address));
        let load = load.ok_or(Missing::MayHaveChanged)?;
        let mut end = load.in_file().end;
        if load.is_writable() && writable != Writable::AsLoaded {
            let is_known = writable == Writable::IfSealed;
            let contains = |range: &&Range<u64>| is_known && range.contains(&address);
            let relro = image.headers.relro.iter().find(contains);
            end = end.min(relro.ok_or(Missing::MayHaveChanged)?.end);
        }
        let offset = load.offset + (address - load.address);
        let len = self.copy(offset, end - address, buffer)?;
        let buffer = buffer.get_mut(..len).unwrap_or_default();
        image.relocate(bias, address, buffer)
    }

    /// Copies the bytes from `offset` on, as far as they are known. Returns their number, one at least.
    pub(crate) fn raw(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Missing> {
        let mut end = self.bytes.len() as u64;
        if let Contents::Pe(changed) = &self.contents {
            let at = changed.partition_point(|range| range.end <= offset);
            if let Some(next) = changed.get(at) {
                if next.contains(&offset) {
                    return Err(Missing::MayHaveChanged);
                }
                end = end.min(next.start);
            }
        }
        self.copy(offset, end.saturating_sub(offset), buffer)
    }

    /// Copies `limit` bytes at most.
    fn copy(&self, offset: u64, limit: u64, buffer: &mut [u8]) -> Result<usize, Missing> {
        let damaged = Missing::File(MappedFileError::Damaged);
        let start = usize::try_from(offset).map_err(|_| damaged)?;
        let bytes = self.bytes.get(start..).unwrap_or_default();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let len = bytes.len().min(limit).min(buffer.len());
        match (buffer.get_mut(..len), bytes.get(..len)) {
            (Some(buffer), Some(bytes)) if len != 0 => buffer.copy_from_slice(bytes),
            _ => return Err(damaged),
        }
        Ok(len)
    }
}
