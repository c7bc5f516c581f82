//! A thread that the sampler suspends, as the walker sees it.

use crate::os::{self, OwnProcess, SystemError, ThreadHandle};
use crate::threads::Thread;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::profiling::{StackBounds, TargetThread, ThreadContext, ThreadId};
use std::cell::Cell;

/// Another thread than the calling one.
#[derive(Debug)]
pub(crate) struct Suspended {
    id: ThreadId,
    stack: StackBounds,
    handle: ThreadHandle,
    /// Number of suspensions, of which the system sees the first alone.
    depth: Cell<u32>,
    /// The registers, while the thread is suspended.
    context: Cell<Option<ThreadContext>>,
    /// The lowest byte that is in use (VA) while the thread is suspended, else the stack's base.
    low: Cell<u64>,
}

impl Suspended {
    /// Opens a thread. It runs on.
    pub(crate) fn open(thread: &Thread) -> Option<Self> {
        let stack = thread.stack();
        let handle = ThreadHandle::open(thread.tid())?;
        let (depth, context, low) = (Cell::new(0), Cell::new(None), Cell::new(stack.base));
        Some(Self { id: thread.id(), stack, handle, depth, context, low })
    }
}

impl Memory for Suspended {
    #[inline]
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let room = self.stack.base.saturating_sub(address);
        if address < self.low.get() || room < buffer.len() as u64 {
            return OwnProcess.read(address, buffer);
        }
        // SAFETY: the range is within the used part of the suspended thread's stack.
        unsafe { os::copy_stack(address, buffer) };
        Ok(())
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
        self.low.set(self.stack.base);
        self.handle.resume()
    }

    fn context(&self) -> Result<ThreadContext, SystemError> {
        if let Some(context) = self.context.get() {
            return Ok(context);
        }
        let context = self.handle.context()?;
        if self.depth.get() > 0 {
            self.context.set(Some(context));
            let sp = context.registers.rsp();
            // On another stack, every read is guarded.
            self.low.set(if self.stack.contain(sp) { sp } else { self.stack.base });
        }
        Ok(context)
    }
}
