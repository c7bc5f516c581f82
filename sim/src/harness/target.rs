//! A stopped thread as a profiler sees it.

use clr_machine::Machine;
use clr_runtime::Outcome;
use clr_runtime::generation::Generation;
use clr_runtime::{OsThreadId, Runtime};
use clr_walker::code_map::CodeMap;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::profiling::{FunctionId, ProfilerInfo, ThreadId};
use clr_walker::registers::Registers;
use core::cell::RefCell;

/// A stopped thread, and the access that a profiler in the process has to it.
#[derive(Debug)]
pub struct StoppedThread<'t, 'b> {
    runtime: &'t Runtime<'b>,
    walker: OsThreadId,
    /// ThreadID of the stopped thread.
    pub thread: ThreadId,
    /// Register values as the operating system reports them.
    pub registers: Registers,
}

impl<'t, 'b> StoppedThread<'t, 'b> {
    pub(super) const fn new(
        runtime: &'t Runtime<'b>,
        walker: OsThreadId,
        thread: ThreadId,
        registers: &Registers,
    ) -> Self {
        Self { runtime, walker, thread, registers: *registers }
    }

    /// Returns the profiling methods, called on a profiler thread that the runtime does not know.
    #[must_use]
    pub const fn info(&self) -> impl ProfilerInfo<Fatal = Outcome> + use<'t, 'b> {
        self.runtime.on(self.walker)
    }

    /// Returns the memory of the process.
    #[must_use]
    pub const fn memory(&self) -> ProcessMemory<'_> {
        ProcessMemory(&self.runtime.memory)
    }

    /// Returns the native images with their unwind data. Managed code is not included: the
    /// operating system does not know it.
    #[must_use]
    pub const fn native(&self) -> &'t CodeMap<'b> {
        self.runtime.native.map()
    }

    /// Returns the method whose code contains an address (VA).
    pub(super) fn method_at(&self, ip: u64) -> Option<FunctionId> {
        Some(self.runtime.code.find(ip)?.method.id)
    }

    /// Returns the runtime, for walkers that depend on it.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.runtime.generation
    }
}

/// The memory of a process, read from another of its threads.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory<'t>(&'t RefCell<Machine>);

impl Memory for ProcessMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        self.0.try_borrow().map_err(|_| unreadable)?.read(address, buffer)
    }
}
