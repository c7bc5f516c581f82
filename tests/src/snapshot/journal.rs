//! Memory that records writes and can revert them.

use clr_machine::Machine;
use clr_runtime::TargetMemory;
use clr_unwind::{Memory, Unreadable};

/// A machine's memory, with all words written since the last revert.
#[derive(Debug)]
pub(super) struct Journal {
    machine: Machine,
    /// Addresses (VA), with the previous values.
    writes: Vec<(u64, u64)>,
}

impl Journal {
    pub(super) const fn new(machine: Machine) -> Self {
        Self { machine, writes: Vec::new() }
    }

    /// Reverts all writes. Returns the addresses (VA) of the bytes that they changed, with the new
    /// values.
    pub(super) fn take_back(&mut self) -> Vec<(u64, u8)> {
        let mut changed: Vec<(u64, u8)> = Vec::new();
        for (address, before) in &self.writes {
            let now = self.machine.read_u64(*address).unwrap_or(*before);
            for (n, (now, before)) in (0..).zip(now.to_le_bytes().iter().zip(before.to_le_bytes()))
            {
                if *now != before {
                    changed.push((address.wrapping_add(n), *now));
                }
            }
        }
        while let Some((address, before)) = self.writes.pop() {
            // This word has been written to before, so the write succeeds.
            let _ = self.machine.write(address, &before.to_le_bytes());
        }
        // A byte that was written more than once may have its old value again.
        changed.retain(|(address, now)| {
            let mut byte = [0];
            self.machine.read(*address, &mut byte).is_ok() && byte[0] != *now
        });
        changed
    }
}

impl Memory for Journal {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        self.machine.read(address, buffer)
    }

    #[inline]
    fn read_u64(&self, address: u64) -> Result<u64, Unreadable> {
        self.machine.read_u64(address)
    }

    #[inline]
    fn window(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.machine.window(address, len)
    }
}

impl TargetMemory for Journal {
    fn write_u64(&mut self, address: u64, value: u64) -> Result<(), Unreadable> {
        let before = self.machine.read_u64(address)?;
        self.machine.write_u64(address, value)?;
        self.writes.push((address, before));
        Ok(())
    }
}
