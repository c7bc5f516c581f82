//! The memory that a recording holds of a target.

use super::StackLine;
use clr_walker::memory::{Memory, Unreadable};

/// What a recording holds of its target's memory.
#[derive(Clone, Debug, Default)]
pub struct RecordedMemory<'a> {
    /// Ascending by address, not overlapping.
    parts: Vec<(u64, &'a [u8])>,
    /// Readable memory of zeroes: address and size.
    zeroes: Vec<(u64, u64)>,
}

impl<'a> RecordedMemory<'a> {
    /// The memory of a walk.
    #[must_use]
    pub fn new(stack: Option<&'a StackLine>) -> Self {
        let Some(stack) = stack else { return Self::default() };
        let mut parts: Vec<_> =
            stack.parts.iter().map(|(address, bytes)| (address.0, bytes.0.as_slice())).collect();
        parts.sort_by_key(|(address, _)| *address);
        let zeroes = stack.regions.iter().filter(|(.., what)| what == "zero");
        let zeroes = zeroes.map(|(address, size, _)| (address.0, *size)).collect();
        Self { parts, zeroes }
    }

    fn byte(&self, address: u64) -> Option<u8> {
        let after = self.parts.partition_point(|(start, _)| *start <= address);
        let recorded = after.checked_sub(1).and_then(|index| {
            let (start, bytes) = self.parts.get(index)?;
            bytes.get(usize::try_from(address - start).ok()?).copied()
        });
        let is_zero = |(start, size): &(u64, u64)| address.wrapping_sub(*start) < *size;
        recorded.or_else(|| self.zeroes.iter().any(is_zero).then_some(0))
    }
}

impl Memory for RecordedMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let len = buffer.len() as u32;
        for (byte, at) in buffer.iter_mut().zip(0..) {
            let address = address.wrapping_add(at);
            *byte = self.byte(address).ok_or(Unreadable { address, len })?;
        }
        Ok(())
    }
}
