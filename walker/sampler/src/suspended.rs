//! A thread that the sampler suspends, as the walker sees it.

use crate::os::{SystemError, ThreadHandle};
use crate::threads::Thread;
use crate::used_stack::UsedStack;
use clr_unwind::{Memory, Unreadable};
use clr_walker::profiling::{StackBounds, TargetThread, ThreadContext, ThreadId};
use std::cell::Cell;

/// Another thread than the calling one.
#[derive(Debug)]
pub struct Suspended {
    id: ThreadId,
    stack: StackBounds,
    handle: ThreadHandle,
    /// Number of suspensions, of which the system sees the first alone.
    depth: Cell<u32>,
    /// The registers, while the thread is suspended.
    context: Cell<Option<ThreadContext>>,
    /// The stack, while the thread is suspended.
    used: Cell<UsedStack>,
}

impl Suspended {
    /// Opens a thread. It runs on.
    pub fn open(thread: &Thread) -> Option<Self> {
        let stack = thread.stack();
        let handle = ThreadHandle::open(thread.tid())?;
        let used = Cell::new(UsedStack::new(stack, stack.base));
        let (depth, context) = (Cell::new(0), Cell::new(None));
        Some(Self { id: thread.id(), stack, handle, depth, context, used })
    }

    /// Returns the lowest byte of the stack that is in use (VA) once the context was read, or the base.
    pub fn low(&self) -> u64 {
        self.used.get().low()
    }
}

impl Memory for Suspended {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        // SAFETY: a part is known only while the thread is suspended.
        unsafe { self.used.get().read(address, buffer) }
    }
}

impl TargetThread for Suspended {
    type Error = SystemError;

    fn id(&self) -> ThreadId {
        self.id
    }

    fn stack(&self) -> StackBounds {
        self.stack
    }

    fn suspend(&self) -> Result<(), SystemError> {
        if self.depth.get() == 0 {
            self.handle.suspend()?;
        }
        self.depth.set(self.depth.get() + 1);
        Ok(())
    }

    fn resume(&self) -> Result<(), SystemError> {
        self.depth.set(self.depth.get().saturating_sub(1));
        if self.depth.get() > 0 {
            return Ok(());
        }
        self.context.set(None);
        self.used.set(UsedStack::new(self.stack, self.stack.base));
        self.handle.resume()
    }

    fn context(&self) -> Result<ThreadContext, SystemError> {
        if let Some(context) = self.context.get() {
            return Ok(context);
        }
        let context = self.handle.context()?;
        if self.depth.get() > 0 {
            self.context.set(Some(context));
            self.used.set(UsedStack::new(self.stack, context.registers.rsp()));
        }
        Ok(context)
    }
}
