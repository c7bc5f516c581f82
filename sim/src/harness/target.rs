//! A stopped thread as a profiler sees it.

use clr_machine::Machine;
use clr_runtime::Outcome;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::SimulatedThread;
use clr_runtime::{OsThreadId, Runtime};
use clr_unwind::{CodeMap, CodeMapError, Memory, Registers, Unreadable};
use clr_walker::mixed::Policy;
use clr_walker::profiling::{FunctionId, ProfilerInfo, TargetThread, ThreadId};
use core::cell::RefCell;

/// A stopped thread, and the access that a profiler in the process has to it.
#[derive(Debug)]
pub struct StoppedThread<'t, 'b> {
    runtime: &'t Runtime<'b>,
    walker: OsThreadId,
    os: OsThreadId,
    root: u64,
    /// ThreadID of the stopped thread.
    pub thread: ThreadId,
    /// Register values as the operating system reports them.
    pub registers: Registers,
}

impl<'t, 'b> StoppedThread<'t, 'b> {
    /// Creates a thread that `walker` examines, and whose first function returns to `root` (VA).
    pub(super) const fn new(
        runtime: &'t Runtime<'b>,
        [os, walker]: [OsThreadId; 2],
        thread: ThreadId,
        registers: &Registers,
        root: u64,
    ) -> Self {
        Self { runtime, walker, os, root, thread, registers: *registers }
    }

    /// Returns the profiling methods, called on a profiler thread that the runtime does not know.
    pub const fn info(&self) -> impl ProfilerInfo<Fatal = Outcome> + use<'t, 'b> {
        self.runtime.on(self.walker)
    }

    /// Returns the memory of the process.
    pub const fn memory(&self) -> ProcessMemory<'_> {
        ProcessMemory(&self.runtime.memory)
    }

    /// Returns the native images with their unwind data. Managed code is not included: the
    /// operating system does not know it.
    pub const fn native(&self) -> &'t CodeMap<'b> {
        self.runtime.native.map()
    }

    /// Returns the code map of a profiler that has followed the process from its start, and walks by `policy`: images,
    /// and the methods that were compiled.
    ///
    /// # Errors
    /// Returns [`CodeMapError`] if two regions share an address.
    pub fn code_map(&self, policy: Policy) -> Result<CodeMap<'b>, CodeMapError> {
        self.runtime.code_map_for(policy.into())
    }

    /// Returns the thread in the form that `clr-walker` walks by `policy`, or `None` if the runtime does not know it.
    pub fn as_target(&self, policy: Policy) -> Option<impl TargetThread + use<'t, 'b>> {
        let thread = SimulatedThread::new(self.runtime, self.os, self.root)?;
        Some(thread.called_by(self.calling_thread(policy)))
    }

    /// Returns the profiling methods, called on the thread that walks by `policy`: some policies walk the calling
    /// thread.
    pub const fn info_for(
        &self,
        policy: Policy,
    ) -> impl ProfilerInfo<Fatal = Outcome> + use<'t, 'b> {
        self.runtime.on(self.calling_thread(policy))
    }

    const fn calling_thread(&self, policy: Policy) -> OsThreadId {
        if policy.is_for_itself() { self.os } else { self.walker }
    }

    /// Returns true if an ip is the return address of the thread's first function.
    pub const fn is_root(&self, ip: u64) -> bool {
        ip == self.root
    }

    /// Returns the method whose code contains an address (VA).
    pub(super) fn method_at(&self, ip: u64) -> Option<FunctionId> {
        Some(self.runtime.code.find(ip)?.method.id)
    }

    /// Returns the runtime, for walkers that depend on it.
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
