//! The methods of ICorProfilerInfo that a stack profiler calls, and the arguments of its callbacks.

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
    #[must_use]
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
    #[must_use]
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
    #[must_use]
    pub const fn new(handle: u64) -> Self {
        Self { handle, callback: PhantomData }
    }

    /// Returns the runtime's handle.
    #[must_use]
    pub const fn handle(self) -> u64 {
        self.handle
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

/// The part of ICorProfilerInfo that a stack profiler calls.
///
/// "Asynchronous" methods may be called from anywhere; the others only inside a callback, or on a
/// thread that the runtime does not know (C-122).
///
/// Walks do not need the provided methods: these return `E_NOTIMPL`, as if the runtime's interface
/// lacked them.
pub trait ProfilerInfo {
    /// The event that ends a call without a return. In a real runtime it ends the process, so
    /// implementations over one use [`core::convert::Infallible`].
    type Fatal: Copy + core::fmt::Debug;

    /// `DoStackSnapshot`: walks the stack of `thread`, leaf first, with a callback for each managed
    /// frame and for each unmanaged run between two of them. Asynchronous.
    ///
    /// `context` is the seed, a whole CONTEXT; if the slice is shorter, the bytes after it cannot
    /// be read. `context_size` has no effect (C-022).
    ///
    /// # Errors
    /// [`CallError`]; callbacks may have been made before it (C-113).
    fn do_stack_snapshot(
        &self,
        thread: ThreadId,
        callback: Option<&mut SnapshotCallback<'_>>,
        flags: SnapshotFlags,
        client_data: u64,
        context: Option<&[u8]>,
        context_size: u32,
    ) -> Result<(), CallError<Self::Fatal>>;

    /// `GetFunctionFromIP`. Asynchronous.
    ///
    /// # Errors
    /// `E_FAIL` if `ip` is in no managed method with metadata (C-114, C-115).
    fn get_function_from_ip(&self, ip: u64) -> Result<FunctionId, CallError<Self::Fatal>>;

    /// `GetFunctionFromIP2`.
    ///
    /// # Errors
    /// As [`get_function_from_ip`](Self::get_function_from_ip), and outside callbacks (C-119).
    fn get_function_from_ip2(
        &self,
        ip: u64,
    ) -> Result<(FunctionId, ReJitId), CallError<Self::Fatal>> {
        let _ = ip;
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetFunctionFromIP3`, which knows dynamic methods too (C-118).
    ///
    /// # Errors
    /// As [`get_function_from_ip2`](Self::get_function_from_ip2).
    fn get_function_from_ip3(
        &self,
        ip: u64,
    ) -> Result<(FunctionId, ReJitId), CallError<Self::Fatal>> {
        let _ = ip;
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetCodeInfo`: the first piece of a function's code. Asynchronous.
    ///
    /// # Errors
    /// `E_INVALIDARG` for id 0, `CORPROF_E_FUNCTION_NOT_COMPILED`.
    fn get_code_info(&self, function: FunctionId) -> Result<CodeRange, CallError<Self::Fatal>> {
        let _ = function;
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetCodeInfo2`: writes the pieces of a function's code, in the order of the method, and
    /// returns their number even if `ranges` has room for fewer (C-125). Asynchronous.
    ///
    /// # Errors
    /// As [`get_code_info`](Self::get_code_info).
    fn get_code_info2(
        &self,
        function: FunctionId,
        ranges: &mut [CodeRange],
    ) -> Result<u32, CallError<Self::Fatal>> {
        let _ = (function, ranges);
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetCodeInfo3`: writes the pieces of one version of a function's code, as
    /// [`get_code_info2`](Self::get_code_info2) does.
    ///
    /// # Errors
    /// As [`get_code_info`](Self::get_code_info), and outside callbacks.
    fn get_code_info3(
        &self,
        function: FunctionId,
        rejit: ReJitId,
        ranges: &mut [CodeRange],
    ) -> Result<u32, CallError<Self::Fatal>> {
        let _ = (function, rejit, ranges);
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetCodeInfo4`: writes the pieces of the code that starts at `start` (VA), as
    /// [`get_code_info2`](Self::get_code_info2) does.
    ///
    /// # Errors
    /// As [`get_code_info3`](Self::get_code_info3).
    fn get_code_info4(
        &self,
        start: u64,
        ranges: &mut [CodeRange],
    ) -> Result<u32, CallError<Self::Fatal>> {
        let _ = (start, ranges);
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetFunctionInfo2`, with at most `type_arguments` type arguments. Asynchronous.
    ///
    /// # Errors
    /// `E_INVALIDARG` for id 0 and for the frameInfo of another function (C-123).
    fn get_function_info2(
        &self,
        function: FunctionId,
        frame_info: Option<FrameInfo<'_>>,
        type_arguments: u32,
    ) -> Result<FunctionInfo, CallError<Self::Fatal>> {
        let _ = (function, frame_info, type_arguments);
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetCurrentThreadID`. Asynchronous.
    ///
    /// # Errors
    /// `CORPROF_E_NOT_MANAGED_THREAD` (C-120).
    fn get_current_thread_id(&self) -> Result<ThreadId, CallError<Self::Fatal>> {
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetThreadInfo`: the operating system's id of a thread.
    ///
    /// # Errors
    /// `E_INVALIDARG` for id 0 (C-121), and outside callbacks.
    fn get_thread_info(&self, thread: ThreadId) -> Result<u32, CallError<Self::Fatal>> {
        let _ = thread;
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `GetHandleFromThread`: a handle that the runtime keeps owning.
    ///
    /// # Errors
    /// As [`get_thread_info`](Self::get_thread_info), and if the handle is invalid.
    fn get_handle_from_thread(&self, thread: ThreadId) -> Result<u64, CallError<Self::Fatal>> {
        let _ = thread;
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `EnumThreads`: the threads that exist now.
    ///
    /// # Errors
    /// `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` outside callbacks (C-122).
    fn enum_threads(&self) -> Result<Vec<ThreadId>, CallError<Self::Fatal>> {
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `InitializeCurrentThread`: makes the preparations that the thread's first call would make
    /// otherwise.
    ///
    /// # Errors
    /// `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` outside callbacks (C-122).
    fn initialize_current_thread(&self) -> Result<(), CallError<Self::Fatal>> {
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `SuspendRuntime` of ICorProfilerInfo10.
    ///
    /// # Errors
    /// The errors of C-126, and `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` in some callbacks (C-167).
    fn suspend_runtime(&self) -> Result<(), CallError<Self::Fatal>>;

    /// `ResumeRuntime`.
    ///
    /// # Errors
    /// `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE` if the profiler has not suspended it (C-127).
    fn resume_runtime(&self) -> Result<(), CallError<Self::Fatal>>;

    /// `GetEventMask`. Asynchronous.
    ///
    /// # Errors
    /// `CORPROF_E_PROFILER_DETACHING`.
    fn get_event_mask(&self) -> Result<EventMask, CallError<Self::Fatal>> {
        Err(HResult::NOT_IMPLEMENTED.into())
    }

    /// `SetEventMask`. Asynchronous.
    ///
    /// # Errors
    /// `E_FAIL` if a bit changes that may not change after startup,
    /// `CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER` for a bit that needs startup.
    fn set_event_mask(&self, mask: EventMask) -> Result<(), CallError<Self::Fatal>> {
        let _ = mask;
        Err(HResult::NOT_IMPLEMENTED.into())
    }
}
