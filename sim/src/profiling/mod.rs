//! `ICorProfilerInfo2::DoStackSnapshot` as the runtimes implement it.

mod entry;
mod iterator;

use crate::generation::Generation;
use crate::runtime::{CodeManager, FunctionId, Process, Thread};
use clr_walker::memory::Memory;
pub use clr_walker::profiling::HResult;
use clr_walker::registers::Registers;

/// A CONTEXT as far as walks use it: the integer registers, rip, and ContextFlags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The registers.
    pub registers: Registers,
    /// `ContextFlags`, which nothing in a walk depends on.
    pub flags: u32,
}

/// A call of `DoStackSnapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Whether the target is the calling thread.
    pub own_thread: bool,
    /// Whether the calling thread has a Thread object.
    pub caller_is_managed: bool,
    /// `infoFlags`: COR_PRF_SNAPSHOT_REGISTER_CONTEXT is 1.
    pub flags: u32,
    /// The seed.
    pub seed: Option<Context>,
    /// The target's current context, as the runtime can get it by suspending it.
    pub current: Option<Context>,
    /// A NULL callback was passed.
    pub null_callback: bool,
}

/// What a StackSnapshotCallback is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callback {
    /// `funcId`; `None` for 0, the marker of an unmanaged run.
    pub function: Option<FunctionId>,
    /// `ip`.
    pub ip: u64,
    /// `contextSize`.
    pub context_size: u32,
    /// `context`, if it is wanted.
    pub context: Option<Context>,
}

/// What the callback says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `S_OK`.
    Continue,
    /// Anything else.
    Abort,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Returned(HResult),
    /// The process is dead.
    Killed(Death),
    /// The walk needs memory that nobody knows: only where memory is a part of a recording.
    Unknown {
        /// The address (VA).
        address: u64,
    },
}

/// What kills a process in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Death {
    /// A fault in the walk, on Unix: SIGSEGV.
    AccessViolation,
    /// The fatal error `CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD`.
    InvalidTargetThread,
}

/// Everything that a walk is made over.
#[derive(Debug)]
pub struct Runtime<'a, M: ?Sized> {
    /// Which runtime it is.
    pub generation: Generation,
    /// The state of the process.
    pub process: Process,
    /// Managed code.
    pub code: &'a CodeManager<'a>,
    /// The target's memory.
    pub memory: &'a M,
}

impl<M: Memory + ?Sized> Runtime<'_, M> {
    /// Walks the stack of `target`.
    pub fn do_stack_snapshot(
        &self,
        target: &Thread,
        call: &Call,
        mut callback: impl FnMut(&Callback) -> Answer,
    ) -> Outcome {
        match self.start(target, call) {
            Ok(seed) => self.walk(target, call, seed.as_ref(), &mut callback),
            Err(outcome) => outcome,
        }
    }
}
