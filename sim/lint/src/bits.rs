//! Sets of addresses.

use core::ops::Range;

/// A bit for each byte of a region.
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(size: u32) -> Self {
        Self(vec![0; size as usize / 64 + 1])
    }

    /// Sets a bit; returns true if it was not set before.
    pub(crate) fn set(&mut self, at: u32) -> bool {
        let Some(word) = self.0.get_mut(at as usize / 64) else { return false };
        let bit = 1 << (at % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(crate) fn get(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Returns true if a bit in the range is set.
    pub(crate) fn any(&self, range: Range<u32>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let Some(word) = self.0.get(at as usize / 64) else { return false };
            let next = (at - at % 64).saturating_add(64);
            let below_end =
                if range.end < next { u64::MAX >> (next - range.end) } else { u64::MAX };
            if word & below_end & u64::MAX << (at % 64) != 0 {
                return true;
            }
            at = next;
        }
        false
    }
}
