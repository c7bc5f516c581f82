//! The recorded memory of a target, as memory of the emulated machine.

use super::{RecordingLoadError, StackLine};
use clr_machine::{Machine, PAGE_SIZE, Protection};
use clr_runtime::TargetMemory;
use clr_unwind::{Memory, Unreadable};
use core::cell::{Cell, RefCell};

/// The recorded memory of a target.
///
/// The machine has whole pages. Bytes beside the recorded ones are unknown and cannot be read.
#[derive(Debug, Default)]
pub struct RecordedMemory {
    machine: Machine,
    /// Known ranges: first address and end (exclusive). Ascending, not touching.
    known: Vec<(u64, u64)>,
    /// First address that was read and is unknown, though the process may have memory there.
    missing: Cell<Option<u64>>,
    /// Reads with address and size in bytes, if they are recorded.
    reads: RefCell<Option<Vec<(u64, u32)>>>,
}

impl RecordedMemory {
    /// Creates the memory of a walk.
    ///
    /// # Errors
    /// Returns [`RecordingLoadError::Memory`] if the memory exceeds the limit of a machine.
    pub fn new(stack: Option<&StackLine>) -> Result<Self, RecordingLoadError> {
        let mut memory = Self::default();
        let Some(stack) = stack else { return Ok(memory) };
        for (address, size, what) in &stack.regions {
            if what == "zero" {
                memory.make_known(address.0, *size)?;
            }
        }
        for (address, bytes) in &stack.parts {
            memory.insert(address.0, &bytes.0)?;
        }
        Ok(memory)
    }

    /// Adds bytes at `address` (VA), replacing previous ones.
    ///
    /// # Errors
    /// Returns [`RecordingLoadError::Memory`] if the memory exceeds the limit of a machine.
    pub(super) fn insert(&mut self, address: u64, bytes: &[u8]) -> Result<(), RecordingLoadError> {
        self.make_known(address, bytes.len() as u64)?;
        self.machine.write(address, bytes).map_err(|_| RecordingLoadError::Memory { address })
    }

    /// Makes memory known. Bytes that were unknown are zero.
    fn make_known(&mut self, address: u64, size: u64) -> Result<(), RecordingLoadError> {
        let error = RecordingLoadError::Memory { address };
        let end = address.checked_add(size).ok_or(error)?;
        if size == 0 || self.is_known(address, size) {
            return Ok(());
        }
        let mut page = address / PAGE_SIZE * PAGE_SIZE;
        while page < end {
            if self.machine.read(page, &mut [0]).is_err() {
                self.machine.map(page, 1, Protection::READ_WRITE).map_err(|_| error)?;
            }
            let Some(next) = page.checked_add(PAGE_SIZE) else { break };
            page = next;
        }
        self.known.push((address, end));
        self.known.sort_unstable();
        self.known.dedup_by(|next, before| {
            let joins = next.0 <= before.1;
            if joins {
                before.1 = before.1.max(next.1);
            }
            joins
        });
        Ok(())
    }

    /// Returns true if all of these bytes are known.
    pub(super) fn is_known(&self, address: u64, size: u64) -> bool {
        let after = self.known.partition_point(|(start, _)| *start <= address);
        let range = after.checked_sub(1).and_then(|index| self.known.get(index));
        range.is_some_and(|(_, end)| address.checked_add(size).is_some_and(|last| last <= *end))
    }

    /// Returns the first address that was read and is unknown, though the process may have memory
    /// there. The result of the walk is meaningless then.
    pub const fn missing(&self) -> Option<u64> {
        self.missing.get()
    }

    /// Begins to record reads.
    pub fn note_reads(&self) {
        self.reads.replace(Some(Vec::new()));
    }

    /// Takes the recorded reads: address (VA) and size in bytes, in order.
    pub fn take_reads(&self) -> Vec<(u64, u32)> {
        self.reads.take().unwrap_or_default()
    }
}

/// Returns true if no process has memory at `address`.
const fn is_surely_unreadable(address: u64) -> bool {
    let canonical = (address << 16).cast_signed() >> 16 == address.cast_signed();
    address < 0x1_0000 || !canonical || address >= 0x8000_0000_0000
}

impl Memory for RecordedMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        if !self.is_known(address, buffer.len() as u64) {
            if !is_surely_unreadable(address) && self.missing.get().is_none() {
                self.missing.set(Some(address));
            }
            return Err(unreadable);
        }
        if let Some(reads) = &mut *self.reads.borrow_mut() {
            reads.push((address, buffer.len() as u32));
        }
        self.machine.read(address, buffer)
    }
}

impl TargetMemory for RecordedMemory {
    fn write_u64(&mut self, address: u64, value: u64) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: 8 };
        // Written bytes are known from now on.
        self.insert(address, &value.to_le_bytes()).map_err(|_| unreadable)
    }
}
