//! Threads and modules as seen by a profiler in the simulated process.

use super::policy::Policy;
use crate::profiler_rules::RuleViolation;
use crate::thread::ThreadObject;
use crate::{ContextSafety, OsThreadId, Runtime, TargetMemory};
use clr_codegen::{SERVICES, Service};
use clr_unwind::{
    CodeMap, CodeMapError, CodeRegion, Convention, FunctionTable, Memory, RegionKind, Unreadable,
};
use clr_walker::profiling::{StackBounds, StackRoot, TargetThread, ThreadContext, ThreadId};
use thiserror::Error;

/// Failure of an operation on a thread of the simulated system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The thread does not exist.
    #[error("there is no thread {}", .0.0)]
    NoThread(OsThreadId),
    /// The thread cannot be suspended: its handle is invalid, or another fiber runs on it (H-26).
    #[error("thread {} cannot be suspended", .0.0)]
    NotSuspended(OsThreadId),
    /// The thread was resumed more often than suspended.
    #[error("thread {} is not suspended", .0.0)]
    NotResumed(OsThreadId),
    /// The registers of the thread cannot be read.
    #[error("the registers of thread {} cannot be read", .0.0)]
    NoContext(OsThreadId),
}

/// A thread of the simulated process that the runtime knows, as seen by its profiler.
#[derive(Debug)]
pub struct SimulatedThread<'r, 'a, M> {
    runtime: &'r Runtime<'a, M>,
    os: OsThreadId,
    id: ThreadId,
    stack: StackBounds,
    /// Thread that asks for the registers, if it is known.
    calling_thread: Option<OsThreadId>,
}

impl<'r, 'a, M: TargetMemory> SimulatedThread<'r, 'a, M> {
    /// Creates the thread with this OS id, or returns `None` if the runtime does not know it. Its
    /// first function returns to `root` (VA). The registers are asked for by another thread.
    pub fn new(runtime: &'r Runtime<'a, M>, os: OsThreadId, root: u64) -> Option<Self> {
        let id = runtime.object_of(os)?;
        let (limit, base) = ThreadObject(id).stack(&*runtime.memory.try_borrow().ok()?).ok()?;
        Some(Self {
            runtime,
            os,
            id,
            stack: StackBounds { limit, base, root: StackRoot::ReturnAddress(root) },
            calling_thread: None,
        })
    }

    /// Returns the same thread, with `calling_thread` as the thread that asks: a thread need not be
    /// suspended to read its own registers.
    #[must_use]
    pub const fn called_by(mut self, calling_thread: OsThreadId) -> Self {
        self.calling_thread = Some(calling_thread);
        self
    }

    /// Returns the OS id of the thread.
    pub const fn os(&self) -> OsThreadId {
        self.os
    }
}

impl<M: TargetMemory> Memory for SimulatedThread<'_, '_, M> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address, len: buffer.len() as u32 };
        self.runtime.memory.try_borrow().map_err(|_| unreadable)?.read(address, buffer)
    }
}

impl<M: TargetMemory> TargetThread for SimulatedThread<'_, '_, M> {
    type Error = ThreadError;

    fn id(&self) -> ThreadId {
        self.id
    }

    fn stack(&self) -> StackBounds {
        self.stack
    }

    fn suspend(&self) -> Result<(), ThreadError> {
        let thread = self.runtime.thread(self.os, |thread| {
            let can_be = thread.handle != 0 && !thread.resists_suspension;
            can_be.then_some(()).ok_or(ThreadError::NotSuspended(self.os))
        });
        thread.ok_or(ThreadError::NoThread(self.os))??;
        self.runtime.change_thread(self.os, |thread| thread.suspended += 1);
        Ok(())
    }

    fn resume(&self) -> Result<(), ThreadError> {
        let suspended = self.runtime.thread(self.os, |thread| thread.suspended);
        let less = suspended.ok_or(ThreadError::NoThread(self.os))?.checked_sub(1);
        let less = less.ok_or(ThreadError::NotResumed(self.os))?;
        self.runtime.change_thread(self.os, |thread| thread.suspended = less);
        Ok(())
    }

    fn context(&self) -> Result<ThreadContext, ThreadError> {
        let thread = self
            .runtime
            .thread(self.os, |thread| (thread.current, thread.safety, thread.suspended));
        let (current, safety, suspended) = thread.ok_or(ThreadError::NoThread(self.os))?;
        if suspended == 0 && self.calling_thread != Some(self.os) {
            self.runtime.broke(RuleViolation::ContextOfRunning { thread: self.os });
        }
        let exception_flags = match safety {
            _ if self.runtime.generation.is_unix() => 0,
            ContextSafety::NotReported => 0,
            ContextSafety::Safe => ThreadContext::EXCEPTION_REPORTING,
            ContextSafety::InSystemCall => {
                ThreadContext::EXCEPTION_REPORTING | ThreadContext::SERVICE_ACTIVE
            }
            ContextSafety::InExceptionDispatch => {
                ThreadContext::EXCEPTION_REPORTING | ThreadContext::EXCEPTION_ACTIVE
            }
            ContextSafety::Unreadable => return Err(ThreadError::NoContext(self.os)),
        };
        let flags = ThreadContext::FULL | exception_flags;
        Ok(ThreadContext { registers: current.registers, flags })
    }
}

/// Bytes at the addresses where the world serves the runtime's code: a function that calls nothing.
static SERVICE_CODE: [u8; 16 * Service::ALL.len()] = [0xC3; 16 * Service::ALL.len()];

impl<'a, M: TargetMemory> Runtime<'a, M> {
    /// Returns the code map of a profiler that walks by `policy`: that of
    /// [`profilers_code_map`](Self::profilers_code_map), and if the walks ask the runtime nothing
    /// also the methods in the code heaps, each of which the profiler has added when it was
    /// compiled.
    ///
    /// # Errors
    /// Returns [`CodeMapError`] if two regions share an address.
    pub fn code_map_for(&self, policy: Policy) -> Result<CodeMap<'a>, CodeMapError> {
        let mut map = self.profilers_code_map()?;
        if policy == Policy::Signal && self.generation.is_unix() {
            let heaps = self.code.map().regions().filter(|it| it.kind() == RegionKind::CodeHeap);
            for heap in heaps {
                for function in heap.functions().iter() {
                    if let Some(method) = heap.part(function.begin..function.end) {
                        map.insert(method.with_convention(Convention::SystemV))?;
                    }
                }
            }
        }
        Ok(map)
    }

    /// Returns the code for which a profiler in the process has unwind data: native images; on
    /// Windows also the heaps and images that the runtime registers with the system; on Unix those
    /// of them that are image files.
    ///
    /// # Errors
    /// Returns [`CodeMapError`] if two regions share an address.
    pub fn profilers_code_map(&self) -> Result<CodeMap<'a>, CodeMapError> {
        let mut map = CodeMap::new();
        for region in self.native.map().regions() {
            map.insert(region.clone())?;
        }
        let unix = self.generation.is_unix();
        for region in self.code.map().regions() {
            if !unix || region.kind() == RegionKind::Image {
                map.insert(region.clone())?;
            }
        }
        map.insert(CodeRegion::heap(SERVICES, &SERVICE_CODE, FunctionTable::default())?)?;
        Ok(map)
    }
}
