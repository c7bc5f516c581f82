//! An interrupted thread, as the walker sees it in the signal handler.

use crate::used_stack::UsedStack;
use clr_unwind::{Memory, Registers, Unreadable};
use clr_walker::profiling::{StackBounds, TargetThread, ThreadContext, ThreadId};
use std::convert::Infallible;

/// Bytes below the stack pointer that belong to the interrupted function.
pub const RED_ZONE: u64 = 128;

/// The calling thread, interrupted: what a walk by [`Policy::Signal`](clr_walker::mixed::Policy::Signal) needs of it. The used part
/// of its stack is read directly, all other memory by [`OwnProcess`](crate::os::OwnProcess).
#[derive(Debug)]
pub struct Interrupted<'s> {
    id: ThreadId,
    stack: StackBounds,
    registers: &'s Registers,
    used: UsedStack,
}

impl<'s> Interrupted<'s> {
    /// Wraps the calling thread. `id` is the runtime's, or any.
    ///
    /// # Safety
    /// A signal handler calls this that has interrupted the thread with these registers, and the result does not outlive
    /// it; `stack` are the bounds of the thread's stack. On another stack, an alternate one for example, no part is read
    /// directly.
    pub unsafe fn new(id: ThreadId, stack: StackBounds, registers: &'s Registers) -> Self {
        let used = UsedStack::new(stack, registers.rsp().saturating_sub(RED_ZONE));
        Self { id, stack, registers, used }
    }

    /// Returns the lowest byte of the stack that is in use (VA), or the base on another stack.
    pub const fn low(&self) -> u64 {
        self.used.low()
    }
}

impl Memory for Interrupted<'_> {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        // SAFETY: the calling thread is in the handler, as the maker of this has promised.
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
