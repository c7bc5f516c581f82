//! A recorded thread as a profiler's target.

use super::{RecordedMemory, SyntheticNative};
use clr_runtime::Runtime;
use clr_runtime::profiling::{SimulatedThread, ThreadError};
use clr_unwind::{Memory, Registers, Unreadable};
use clr_walker::profiling::{StackBounds, TargetThread, ThreadContext, ThreadId};

/// The target of a recorded walk. Its memory is the recorded one, and synthesised native code where
/// nothing was recorded.
#[derive(Debug)]
pub struct RecordedThread<'r, 'a, 'p> {
    pub(super) runtime: &'r Runtime<'a, RecordedMemory>,
    pub(super) inner: SimulatedThread<'r, 'a, RecordedMemory>,
    pub(super) registers: Option<Registers>,
    pub(super) native: &'p SyntheticNative,
}

impl Memory for RecordedThread<'_, '_, '_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        if self.native.read(address, buffer) {
            return Ok(());
        }
        // Unknown memory is reported as missing only for the runtime: a profiler expects that reads
        // fail.
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        let memory = self.runtime.memory.try_borrow().map_err(|_| unreadable)?;
        if !memory.is_known(address, buffer.len() as u64) {
            return Err(unreadable);
        }
        memory.read(address, buffer)
    }
}

impl TargetThread for RecordedThread<'_, '_, '_> {
    type Error = ThreadError;

    fn id(&self) -> ThreadId {
        self.inner.id()
    }

    fn stack(&self) -> StackBounds {
        let stack = self.inner.stack();
        StackBounds { base: self.native.end().unwrap_or(stack.base), ..stack }
    }

    fn suspend(&self) -> Result<(), ThreadError> {
        self.inner.suspend()
    }

    fn resume(&self) -> Result<(), ThreadError> {
        self.inner.resume()
    }

    fn context(&self) -> Result<ThreadContext, ThreadError> {
        let context = self.inner.context()?;
        let registers = self.registers.or(self.native.leaf().copied());
        let registers = registers.ok_or(ThreadError::NoContext(self.inner.os()))?;
        Ok(ThreadContext { registers, ..context })
    }
}
