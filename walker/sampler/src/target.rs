//! An interrupted thread, as the walker sees it in the signal handler.

use crate::threads::Thread;
use crate::used_stack::UsedStack;
use clr_unwind::{Memory, Registers, Unreadable};
use clr_walker::profiling::{StackBounds, TargetThread, ThreadContext, ThreadId};
use std::convert::Infallible;

/// Bytes below the stack pointer that belong to the interrupted function.
pub const RED_ZONE: u64 = 128;

/// The calling thread, interrupted.
#[derive(Debug)]
pub(crate) struct Interrupted<'s> {
    id: ThreadId,
    stack: StackBounds,
    registers: &'s Registers,
    used: UsedStack,
}

impl<'s> Interrupted<'s> {
    /// Wraps the calling thread, in the handler that has interrupted it with these registers.
    pub(crate) fn new(thread: &Thread, registers: &'s Registers) -> Self {
        let stack = thread.stack();
        let used = UsedStack::new(stack, registers.rsp().saturating_sub(RED_ZONE));
        Self { id: thread.id(), stack, registers, used }
    }

    /// Returns the lowest byte of the stack that is in use (VA), or the base on another stack.
    pub(crate) const fn low(&self) -> u64 {
        self.used.low()
    }
}

impl Memory for Interrupted<'_> {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        // SAFETY: the calling thread is in the handler.
        unsafe { self.used.read(address, buffer) }
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
