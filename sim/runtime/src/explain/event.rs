//! The events that are recorded during a call.

use crate::profiling::ProfilerCallback;
use crate::{ContextSafety, FrameKind, Funclet, Outcome};
use clr_walker::profiling::{FunctionId, HResult, SnapshotFlags, ThreadId};

/// A check of the entry path that a call passed (contract §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryCheck {
    /// The profiler is not being detached.
    NotDetaching,
    /// The runtime has started.
    Started,
    /// The event mask allows snapshots.
    SnapshotEnabled,
    /// infoFlags are valid.
    InfoFlags,
    /// The target's hijack lock was free and has been taken.
    HijackLock,
    /// No suspension of the runtime is in its suspending phase, or it does not apply to the caller.
    NoSuspensionInProgress,
    /// The target is in no forbid-suspend region.
    ForbidSuspend,
    /// The target's context is safe to use.
    ContextSafe,
    /// The target's exceptions allow a walk.
    Exceptions,
}

/// Start of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WalkStart {
    /// The Frame chain: all registers are 0.
    FrameChain,
    /// The seed that the caller gave.
    Seed,
    /// The target's own context, taken by the runtime.
    OwnContext,
    /// The context that a debugger has set for the thread.
    DebuggerContext,
}

/// Reason why a managed frame or a marker is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HiddenReason {
    /// An IL stub (C-067).
    IlStub,
    /// A handler funclet, whose method is reported instead (C-081).
    Funclet,
    /// The item is between a handler funclet and its method (C-081, C-082).
    BelowFunclet,
    /// The current exception has unwound this part of the stack (C-086).
    Unwound,
}

/// Reason why an internal stop is not reported to the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SilentReason {
    /// The stop is an explicit Frame (C-065).
    Frame,
    /// The stop is a dynamic method (C-066).
    Dynamic,
    /// The stop belongs to the managed exception handling, or was called by it (C-087).
    ExceptionHandling,
}

/// Reason why a Frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The Frame is below the caller SP of a managed frame (C-056).
    BelowCallerSp(
        /// The caller SP (VA).
        u64,
    ),
    /// The Frame has no caller to continue at (C-071, C-078).
    LeadsNowhere,
    /// The Frame leads to unmanaged code (C-079).
    LeadsToUnmanagedCode(
        /// The ip (VA).
        u64,
    ),
}

/// A decision or an action in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `DoStackSnapshot` was called.
    Called {
        /// The target: 0 for the caller.
        thread: ThreadId,
        /// infoFlags.
        flags: SnapshotFlags,
        /// rip of the seed, if there is one and it can be read.
        seed: Option<u64>,
    },
    /// A check was passed.
    Passed(EntryCheck),
    /// The target was determined: a thread that may have managed frames.
    Target {
        /// Thread object of the target.
        object: ThreadId,
        /// The target is not the caller.
        other: bool,
    },
    /// The profiler is being detached.
    Detaching,
    /// The search has made the call fail.
    Injected(HResult),
    /// The runtime has not started.
    NotStarted,
    /// The event mask does not allow snapshots.
    SnapshotNotEnabled,
    /// infoFlags have a bit that is not allowed.
    BadFlags(SnapshotFlags),
    /// The caller has no Thread object, and asked for its own stack.
    NoManagedThread,
    /// The target belongs to the GC.
    GcSpecial,
    /// The GC is not initialized.
    NoGc,
    /// The target's hijack lock was taken: another walk of it is in progress.
    HijackLocked,
    /// The runtime is being suspended, and the caller is one of its threads.
    SuspensionInProgress,
    /// The target is in this number of forbid-suspend regions.
    SuspensionForbidden(u32),
    /// Another thread cannot be walked in this runtime without SuspendRuntime.
    OtherThread,
    /// A cooperative thread other than the caller cannot be walked in this runtime at all.
    OtherCooperativeThread,
    /// The runtime is suspended by the profiler, so the target need not be.
    NoSuspensionNeeded,
    /// The target is not a thread that can be suspended: the process dies.
    InvalidTarget,
    /// The target could not be suspended.
    SuspensionFailed,
    /// The target was suspended.
    Suspended(ThreadId),
    /// The target was resumed.
    Resumed(ThreadId),
    /// A callback was made.
    CalledBack(ProfilerCallback),
    /// The target's GC mode.
    Mode {
        /// The target is cooperative; otherwise it is preemptive.
        cooperative: bool,
    },
    /// The target is preemptive: the seed is ignored.
    SeedIgnored,
    /// The target's context is not safe to use.
    ContextUnsafe {
        /// Safety of the context according to the system.
        safety: ContextSafety,
    },
    /// The target's context cannot be read, and there is no seed.
    ContextUnreadable,
    /// Code cannot be looked up: another thread holds the code manager's writer lock.
    CodeManagerBusy {
        /// The ip that was to be looked up (VA).
        ip: u64,
    },
    /// The target is preemptive although its ip is managed.
    ManagedButPreemptive {
        /// The target's ip (VA).
        ip: u64,
    },
    /// The target's topmost Frame is below its rsp.
    FrameBelowSp {
        /// The Frame (VA).
        frame: u64,
        /// rsp (VA).
        rsp: u64,
    },
    /// The target's own context is used as the seed.
    OwnContext {
        /// The rip of the context (VA).
        ip: u64,
    },
    /// The seed's rip is not managed code.
    SeedUnmanaged {
        /// The rip (VA).
        ip: u64,
        /// The runtime took the seed itself.
        own: bool,
    },
    /// The seed's rip is managed code.
    SeedManaged {
        /// The rip (VA).
        ip: u64,
    },
    /// The current exception is in its second pass, and native code handles it.
    UnwindingNatively,
    /// An exception has ended, and the thread has not continued yet.
    InconsistentExceptions,
    /// The walk starts.
    Started(WalkStart),
    /// A hijacked return address was restored.
    Unhijacked {
        /// The slot of the return address (VA).
        slot: u64,
        /// The original address (VA).
        address: u64,
    },
    /// The walk starts in unmanaged code, which is never reported.
    InitialNative,
    /// The walk reached a managed frame.
    Managed {
        /// Method of the frame.
        function: FunctionId,
        /// The frame's ip (VA).
        ip: u64,
        /// The frame's rsp (VA).
        rsp: u64,
        /// The caller's rsp (VA).
        caller_sp: u64,
    },
    /// A Frame was dropped.
    FrameDropped {
        /// The Frame (VA).
        at: u64,
        /// Kind of the Frame; `None` if it is not a Frame.
        kind: Option<FrameKind>,
        /// Reason.
        why: DropReason,
    },
    /// The walk continues at the caller that a Frame leads to.
    FrameFollowed {
        /// The Frame (VA).
        at: u64,
        /// Kind of the Frame.
        kind: FrameKind,
        /// The ip that the Frame leads to (VA).
        ip: u64,
        /// The rsp that the Frame leads to (VA).
        rsp: u64,
    },
    /// A HelperMethodFrame was completed: its helper's native frames were unwound.
    FrameCompleted {
        /// The Frame (VA).
        at: u64,
    },
    /// A managed frame or a marker is hidden.
    Hidden {
        /// The item's ip (VA).
        ip: u64,
        /// Reason.
        why: HiddenReason,
    },
    /// The walk reached a handler funclet: all items up to its method's frame are hidden.
    FuncletMet {
        /// The funclet's ip (VA).
        ip: u64,
        /// The caller SP of the method's frame (VA); `None` for the next managed frame.
        parent: Option<u64>,
    },
    /// A stop is not reported to the profiler.
    NotReported {
        /// The stop's ip, or the Frame (VA).
        at: u64,
        /// Reason.
        why: SilentReason,
    },
    /// A managed frame is reported.
    ReportedManaged {
        /// Method of the frame.
        function: FunctionId,
        /// The frame's ip (VA).
        ip: u64,
        /// The frame's rsp (VA).
        rsp: u64,
        /// Kind of the funclet that the frame is in.
        funclet: Option<Funclet>,
        /// The callback gets a context.
        context: bool,
    },
    /// The marker of an unmanaged run is reported.
    ReportedMarker {
        /// The marker's ip (VA).
        ip: u64,
        /// The marker's rsp (VA).
        rsp: u64,
        /// The callback gets a context.
        context: bool,
    },
    /// The callback returned this result, which ends the walk.
    Aborted(HResult),
    /// rsp is no longer on the stack.
    OffStack {
        /// rsp (VA).
        rsp: u64,
        /// Bounds of the stack (VA): its lowest address, and its end (exclusive).
        stack: (u64, u64),
    },
    /// The walk reached a resumable Frame on a thread that the call suspended.
    ResumableFrame {
        /// The Frame (VA).
        at: u64,
    },
    /// An active call whose Frame leads to unmanaged code: the walk comes back to it without end.
    NeverLeft {
        /// The Frame (VA).
        at: u64,
        /// The return address in unmanaged code (VA).
        ip: u64,
    },
    /// The chain leads to memory that is not a Frame.
    NoFrame {
        /// Address of the memory (VA).
        at: u64,
        /// First word, which the runtime uses as a vtable.
        word: u64,
    },
    /// Managed code cannot be unwound: its unwind data is broken, or its code is missing.
    CannotUnwind {
        /// The code's ip (VA).
        ip: u64,
    },
    /// Native code of a helper cannot be unwound, so its managed caller cannot be found.
    CannotUnwindHelper {
        /// The native code (VA).
        ip: u64,
    },
    /// Fewer bytes of the seed are readable than are copied.
    SeedTooShort {
        /// Number of readable bytes.
        readable: u64,
        /// Number of copied bytes.
        needed: u64,
    },
    /// Memory could not be read.
    Fault {
        /// Address (VA).
        at: u64,
    },
    /// A GS cookie differs from the process's.
    BadCookie {
        /// Address of the cookie (VA).
        at: u64,
    },
    /// The callback is NULL.
    NullCallback,
    /// The walk had no stop.
    Empty,
    /// The call ended.
    Ended(Outcome),
}
