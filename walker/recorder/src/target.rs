//! An interrupted thread, as the walker sees it in the signal handler.

use crate::os::{self, OwnProcess};
use crate::threads::Thread;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::profiling::{StackBounds, TargetThread, ThreadContext, ThreadId};
use clr_walker::registers::Registers;
use std::convert::Infallible;

/// Bytes below the stack pointer that belong to the interrupted function.
pub(crate) const RED_ZONE: u64 = 128;

/// The calling thread, interrupted.
#[derive(Debug)]
pub(crate) struct Interrupted<'s> {
    id: ThreadId,
    stack: StackBounds,
    registers: &'s Registers,
    /// The lowest byte that is in use (VA).
    low: u64,
}

impl<'s> Interrupted<'s> {
    /// Wraps the calling thread, in the handler that has interrupted it with these registers.
    pub(crate) fn new(thread: &Thread, registers: &'s Registers) -> Self {
        let stack = thread.stack();
        let low = registers.rsp().saturating_sub(RED_ZONE);
        // On another stack, a handler's own for example, every read is guarded.
        let low = if stack.contain(low) { low } else { stack.base };
        Self { id: thread.id(), stack, registers, low }
    }

    /// Returns the lowest byte of the stack that is in use (VA), or the base on another stack.
    pub(crate) const fn low(&self) -> u64 {
        self.low
    }
}

impl Memory for Interrupted<'_> {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let room = self.stack.base.saturating_sub(address);
        if address < self.low || room < buffer.len() as u64 {
            return OwnProcess.read(address, buffer);
        }
        // SAFETY: the range is within the used part of the calling thread's stack.
        unsafe { os::copy_stack(address, buffer) };
        Ok(())
    }
}

impl TargetThread for Interrupted<'_> {
    type Error = Infallible;

    fn id(&self) -> ThreadId {
        self.id
    }

    fn stack(&self) -> StackBounds {
        self.stack
    }

    fn suspend(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn resume(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn context(&self) -> Result<ThreadContext, Infallible> {
        Ok(ThreadContext { registers: *self.registers, flags: ThreadContext::FULL })
    }
}
