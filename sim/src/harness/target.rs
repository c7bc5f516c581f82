//! A thread as a profiler sees it that has stopped it.

use clr_machine::Machine;
use clr_runtime::Outcome;
use clr_runtime::generation::Generation;
use clr_runtime::{OsThreadId, Runtime};
use clr_walker::code_map::CodeMap;
use clr_walker::memory::{Memory, Unreadable};
use clr_walker::profiling::{FunctionId, ProfilerInfo, ThreadId};
use clr_walker::registers::Registers;
use core::cell::RefCell;

/// A stopped thread, and what a profiler in the process has to look at it.
#[derive(Debug)]
pub struct Target<'t, 'b> {
    runtime: &'t Runtime<'b>,
    walker: OsThreadId,
    /// Its ThreadID.
    pub thread: ThreadId,
    /// Its registers, as the system gives them.
    pub registers: Registers,
}

impl<'t, 'b> Target<'t, 'b> {
    pub(super) const fn new(
        runtime: &'t Runtime<'b>,
        walker: OsThreadId,
        thread: ThreadId,
        registers: &Registers,
    ) -> Self {
        Self { runtime, walker, thread, registers: *registers }
    }

    /// The profiling methods, as called on a thread of the profiler that the runtime does not know.
    #[must_use]
    pub const fn info(&self) -> impl ProfilerInfo<Fatal = Outcome> + use<'t, 'b> {
        self.runtime.on(self.walker)
    }

    /// The process's memory.
    #[must_use]
    pub const fn memory(&self) -> ProcessMemory<'_> {
        ProcessMemory(&self.runtime.memory)
    }

    /// Native images with their unwind data. Managed code is not among them: the system knows nothing
    /// of it.
    #[must_use]
    pub const fn native(&self) -> &'t CodeMap<'b> {
        self.runtime.native.map()
    }

    /// The method whose code an address is in (VA).
    pub(super) fn method_at(&self, ip: u64) -> Option<FunctionId> {
        Some(self.runtime.code.find(ip)?.method.id)
    }

    /// Which runtime it is, for walkers that care.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.runtime.generation
    }
}

/// The memory of a process, as another thread of it reads it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory<'t>(&'t RefCell<Machine>);

impl Memory for ProcessMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        self.0.try_borrow().map_err(|_| unreadable)?.read(address, buffer)
    }
}
