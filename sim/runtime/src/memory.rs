//! The target's memory as seen by the runtime itself, which reads it and sometimes writes to it.

use clr_machine::Machine;
use clr_unwind::{Memory, Unreadable};

/// Memory of a process whose runtime walks its own stacks.
pub trait TargetMemory: Memory {
    /// Writes a little-endian u64 at `address` (VA).
    ///
    /// # Errors
    /// Returns [`Unreadable`] if any of the bytes cannot be written.
    fn write_u64(&mut self, address: u64, value: u64) -> Result<(), Unreadable>;
}

impl TargetMemory for Machine {
    fn write_u64(&mut self, address: u64, value: u64) -> Result<(), Unreadable> {
        self.write(address, &value.to_le_bytes()).map_err(|_| Unreadable { address, len: 8 })
    }
}

/// Reads the little-endian u32 at `address` (VA).
pub(crate) fn read_u32<M: Memory + ?Sized>(memory: &M, address: u64) -> Result<u32, Unreadable> {
    if let Some(bytes) = memory.window(address, 4).and_then(<[u8]>::first_chunk) {
        return Ok(u32::from_le_bytes(*bytes));
    }
    let mut bytes = [0; 4];
    memory.read(address, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
