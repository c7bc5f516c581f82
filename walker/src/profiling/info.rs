//! The values that methods of ICorProfilerInfo take and return, and the arguments of its callbacks.

use super::HResult;
use alloc::vec::Vec;
use core::marker::PhantomData;
use thiserror::Error;

/// A `FunctionID`: the same for every tier and version of a method's code (C-088).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(
    /// The number; never 0 for a function.
    pub u64,
);

/// A `ThreadID`: names a thread that the runtime knows.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(
    /// The number; 0 names the calling thread (C-009).
    pub u64,
);

/// A `ReJITID`: 0 for code that was not replaced.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReJitId(
    /// The number.
    pub u64,
);

/// `COR_PRF_SNAPSHOT_INFO` (contract §1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SnapshotFlags(
    /// The bits.
    pub u32,
);

impl SnapshotFlags {
    /// `COR_PRF_SNAPSHOT_DEFAULT`.
    pub const DEFAULT: Self = Self(0);
    /// `COR_PRF_SNAPSHOT_REGISTER_CONTEXT`: callbacks get a CONTEXT (C-092, C-093).
    pub const REGISTER_CONTEXT: Self = Self(1);

    /// Returns true if callbacks get a CONTEXT.
    pub const fn wants_context(self) -> bool {
        self.0 & 1 != 0
    }
}

/// `COR_PRF_MONITOR`: the events that a profiler receives, and the requests that it may make
/// (contract §1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventMask(
    /// The bits.
    pub u32,
);

impl EventMask {
    /// `COR_PRF_MONITOR_THREADS`.
    pub const MONITOR_THREADS: Self = Self(0x200);
    /// `COR_PRF_MONITOR_SUSPENDS`.
    pub const MONITOR_SUSPENDS: Self = Self(0x1_0000);
    /// `COR_PRF_ENABLE_STACK_SNAPSHOT`.
    pub const ENABLE_STACK_SNAPSHOT: Self = Self(0x1000_0000);

    /// Returns true if all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl core::ops::BitOr for EventMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A `COR_PRF_FRAME_INFO`, valid only during the callback that received it (C-101).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo<'c> {
    /// The runtime's handle.
    handle: u64,
    callback: PhantomData<&'c ()>,
}

impl FrameInfo<'_> {
    /// Creates a frame info from a runtime's handle.
    pub const fn new(handle: u64) -> Self {
        Self { handle, callback: PhantomData }
    }

    /// Returns the runtime's handle.
    pub const fn handle(self) -> u64 {
        self.handle
    }
}

/// The arguments of `DoStackSnapshot`, except the callback. By default the calling thread is walked without a seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotRequest<'s> {
    /// Target thread: 0 for the caller.
    pub thread: ThreadId,
    /// `infoFlags`.
    pub flags: SnapshotFlags,
    /// The seed, a whole CONTEXT: the bytes after a shorter slice cannot be read.
    pub seed: Option<&'s [u8]>,
    /// `contextSize`, which has no effect (C-022).
    pub context_size: u32,
    /// `clientData`.
    pub client_data: u64,
}

impl<'s> SnapshotRequest<'s> {
    /// Creates a request for a walk of a thread.
    pub fn of(thread: ThreadId, flags: SnapshotFlags) -> Self {
        Self { thread, flags, ..Self::default() }
    }

    /// Returns the request with a seed, and its size.
    #[must_use]
    pub fn seeded(self, seed: Option<&'s [u8]>) -> Self {
        Self { seed, context_size: seed.map_or(0, |seed| seed.len() as u32), ..self }
    }
}

/// The arguments of a `StackSnapshotCallback` (contract §1.5).
#[derive(Debug)]
pub struct SnapshotFrame<'c> {
    /// `funcId`; `None` for 0, the marker of an unmanaged run (C-059).
    pub function: Option<FunctionId>,
    /// `ip` (VA): a return address or the instruction at which a thread was stopped, never adjusted
    /// (C-090).
    pub ip: u64,
    /// `frameInfo`.
    pub frame_info: FrameInfo<'c>,
    /// `context`, of `contextSize` bytes: a CONTEXT, or empty without
    /// [`SnapshotFlags::REGISTER_CONTEXT`]. Only some of the registers can be trusted (C-096 to
    /// C-098), and ContextFlags cannot (C-097).
    pub context: &'c mut [u8],
    /// `clientData`, as the profiler passed it (C-089).
    pub client_data: u64,
}

/// A `StackSnapshotCallback`. The walk continues only if it returns [`HResult::OK`] (C-104).
///
/// The callback must take no lock that the target may hold, and allocate nothing (C-152).
pub type SnapshotCallback<'f> = dyn FnMut(&mut SnapshotFrame<'_>) -> HResult + 'f;

/// An error of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CallError<F> {
    /// The call returned this HRESULT.
    #[error("{0}")]
    Failed(HResult),
    /// The call did not return, which only a simulated call can report.
    #[error("the call does not return")]
    Fatal(F),
}

impl<F> From<HResult> for CallError<F> {
    fn from(result: HResult) -> Self {
        Self::Failed(result)
    }
}

/// A piece of a function's code: `COR_PRF_CODE_INFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// Address of the first byte (VA).
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
}

/// The results of `GetFunctionInfo2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// `ClassID`; 0 if it is not known for shared code (C-124).
    pub class: u64,
    /// `ModuleID`.
    pub module: u64,
    /// The method's metadata token.
    pub token: u32,
    /// Number of type arguments.
    pub type_argument_count: u32,
    /// `ClassID`s of the type arguments, at most as many as were requested.
    pub type_arguments: Vec<u64>,
}
