//! The profiler.

use crate::error::InspectError;
use crate::runtime::Runtime;
use clr_unwind::Memory;

/// The words of the runtime's mask object before the mask itself: constants by which it takes the mask apart. They are in dumps of
/// 10.0.15 and 11.0.0, in which the word after them is what the profiler has asked for.
const BEFORE: [u64; 3] = [0xFFFF_FFFF, 32, 0xFFFF_FFFF_0000_0000];

impl Runtime {
    /// Reads which events profilers have asked for (`COR_PRF_MONITOR` and `COR_PRF_HIGH_MONITOR` in the high half), 0 without one.
    ///
    /// # Errors
    /// [`InspectError`] if that is unknown, or is not where it was in .NET 10 and 11: .NET 8 and 9 do not say
    /// where it is.
    pub fn event_mask<M: Memory + ?Sized>(&self, memory: &M) -> Result<u64, InspectError> {
        let block = self.descriptor().global("ProfilerControlBlock")?;
        let mask = self.descriptor().field("ProfControlBlock", "GlobalEventMask")?;
        let mut address = block.wrapping_add(mask.into());
        for expected in BEFORE {
            if memory.read_u64(address)? != expected {
                return Err(InspectError::EventMask { address });
            }
            address = address.wrapping_add(8);
        }
        Ok(memory.read_u64(address)?)
    }
}
