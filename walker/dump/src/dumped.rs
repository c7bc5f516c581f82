//! The pages of the dump.

use crate::error::DumpError;
use clr_unwind::{Memory, Unreadable};

/// A run of pages of the dump.
#[derive(Clone, Copy, Debug)]
struct Run<'d> {
    address: u64,
    bytes: &'d [u8],
}

/// The pages of the dump, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct DumpedPages<'d> {
    /// Ascending by address, without overlaps; none is empty.
    runs: Vec<Run<'d>>,
}

impl<'d> DumpedPages<'d> {
    /// Creates the pages from segments: address, offset in the dump, bytes.
    pub(crate) fn new(mut segments: Vec<(u64, u64, &'d [u8])>) -> Result<Self, DumpError> {
        segments.retain(|(_, _, bytes)| !bytes.is_empty());
        segments.sort_by_key(|(address, ..)| *address);
        let mut last = None;
        let mut runs = Vec::with_capacity(segments.len());
        for (address, offset, bytes) in segments {
            let end = address.checked_add(bytes.len() as u64 - 1);
            let damaged = DumpError::Segment { address, offset };
            if last.is_some_and(|last| address <= last) {
                return Err(damaged);
            }
            last = Some(end.ok_or(damaged)?);
            runs.push(Run { address, bytes });
        }
        Ok(Self { runs })
    }

    /// Returns the bytes of the dump from `address` on to the end of their run; they are empty if the dump lacks the first.
    pub(crate) fn from(&self, address: u64) -> &'d [u8] {
        let after = self.runs.partition_point(|run| run.address <= address);
        let Some(run) = after.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return &[];
        };
        let at = usize::try_from(address - run.address).unwrap_or(usize::MAX);
        run.bytes.get(at..).unwrap_or_default()
    }

    /// Returns the number of bytes from `address` on, `limit` at most, that the dump lacks.
    pub(crate) fn gap(&self, address: u64, limit: usize) -> usize {
        let after = self.runs.partition_point(|run| run.address <= address);
        let next = self.runs.get(after).map_or(u64::MAX, |run| run.address);
        usize::try_from(next - address).map_or(limit, |gap| gap.min(limit))
    }
}

impl Memory for DumpedPages<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        buffer.copy_from_slice(self.from(address).get(..buffer.len()).ok_or(unreadable)?);
        Ok(())
    }
}
