//! The part of a stack that a stopped thread uses.

use crate::os::{self, OwnProcess};
use clr_unwind::{Memory, Unreadable};
use clr_walker::profiling::StackBounds;

/// The used part of a thread's stack, while the thread stays where it is: an interrupted one that the
/// calling handler runs on, or a suspended one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedStack {
    /// The lowest byte that is in use (VA), or the base.
    low: u64,
    base: u64,
}

impl UsedStack {
    /// Returns the part from `low` (VA) to the base. On another stack, a handler's own for example, no
    /// part is: every read is guarded.
    pub fn new(bounds: StackBounds, low: u64) -> Self {
        Self { low: if bounds.contain(low) { low } else { bounds.base }, base: bounds.base }
    }

    /// Returns the lowest byte of the stack that is in use (VA), or the base.
    pub const fn low(&self) -> u64 {
        self.low
    }

    /// Reads the stack directly, and other memory with care.
    ///
    /// # Errors
    /// The range, if it is not mapped.
    ///
    /// # Safety
    /// The thread stays where it is, as the type says.
    #[inline]
    pub unsafe fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let room = self.base.saturating_sub(address);
        if address < self.low || room < buffer.len() as u64 {
            return OwnProcess.read(address, buffer);
        }
        // SAFETY: the range is within the used part of the stack.
        unsafe { os::copy_stack(address, buffer) };
        Ok(())
    }
}
