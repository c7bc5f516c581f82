//! The pages of the dump.

use crate::bytes::DumpBytes;
use crate::error::DumpError;
use clr_unwind::{Memory, Unreadable};

/// A run of pages of the dump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The pages of the dump, by address.
#[derive(Clone, Debug)]
pub(crate) struct DumpedPages<B> {
    bytes: B,
    /// Ascending by address, without overlaps; none is empty.
    runs: Vec<Run>,
}

impl<B: DumpBytes> DumpedPages<B> {
    /// Creates the pages from segments, of which the dump has all bytes.
    pub(crate) fn new(bytes: B, mut runs: Vec<Run>) -> Result<Self, DumpError> {
        runs.retain(|run| run.size != 0);
        runs.sort_by_key(|run| run.address);
        let mut last = None;
        for Run { address, offset, size } in runs.iter().copied() {
            let damaged = DumpError::Segment { address, offset };
            if last.is_some_and(|last| address <= last) {
                return Err(damaged);
            }
            last = Some(address.checked_add(size - 1).ok_or(damaged)?);
        }
        Ok(Self { bytes, runs })
    }

    /// Returns the offset in the dump of the byte at `address`, and the number of bytes from there to the end of its run.
    pub(crate) fn place(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.runs.partition_point(|run| run.address <= address);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let at = address - run.address;
        (at < run.size).then(|| (run.offset + at, run.size - at))
    }

    /// Returns the number of bytes from `address` on, `limit` at most, that the dump lacks.
    pub(crate) fn gap(&self, address: u64, limit: usize) -> usize {
        let after = self.runs.partition_point(|run| run.address <= address);
        let next = self.runs.get(after).map_or(u64::MAX, |run| run.address);
        usize::try_from(next - address).map_or(limit, |gap| gap.min(limit))
    }

    /// Copies the bytes from `address` on to the end of their run. Returns their number: 0 if the dump lacks the first. `None` if
    /// the dump cannot be read there.
    pub(crate) fn copy(&self, address: u64, buffer: &mut [u8]) -> Option<usize> {
        let Some((offset, size)) = self.place(address) else { return Some(0) };
        let len = usize::try_from(size).unwrap_or(usize::MAX).min(buffer.len());
        self.bytes.read_at(offset, buffer.get_mut(..len)?)?;
        Some(len)
    }

    /// Returns `len` bytes at `address`, if the dump has them, and is in memory.
    pub(crate) fn slice(&self, address: u64, len: usize) -> Option<&[u8]> {
        let (offset, size) = self.place(address)?;
        if len as u64 > size { None } else { self.bytes.slice(offset, len) }
    }

    /// Returns the bytes from `address` on to the end of their run, `limit` at most.
    pub(crate) fn start(&self, address: u64, limit: usize) -> Vec<u8> {
        let size = self.place(address).map_or(0, |(_, size)| size.min(limit as u64));
        let mut bytes = vec![0; size as usize];
        let len = self.copy(address, &mut bytes).unwrap_or(0);
        bytes.truncate(len);
        bytes
    }
}

impl<B: DumpBytes> Memory for DumpedPages<B> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        let len = self.copy(address, buffer);
        if len == Some(buffer.len()) { Ok(()) } else { Err(unreadable) }
    }
}
