//! What can be told of a call.

use crate::Outcome;
use crate::{ContextSafety, FrameKind, Funclet};
use clr_walker::profiling::{FunctionId, HResult, ProfilerCallback, SnapshotFlags, ThreadId};

/// A check of the entry path that a call passed (contract §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passed {
    /// The profiler is not being detached.
    NotDetaching,
    /// The runtime has started.
    Started,
    /// The event mask allows snapshots.
    SnapshotEnabled,
    /// infoFlags are valid.
    InfoFlags,
    /// The target's hijack lock was free, and is taken now.
    HijackLock,
    /// No suspension of the runtime is in its suspending phase, or it does not matter.
    NoSuspensionInProgress,
    /// The target is in no region in which it must not be suspended.
    ForbidSuspend,
    /// The target's context is safe to use.
    ContextSafe,
    /// The target's exceptions allow a walk.
    Exceptions,
}

/// What a walk starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// The Frame chain: all registers are 0.
    FrameChain,
    /// The seed that was given.
    Seed,
    /// The target's own context, taken by the runtime.
    OwnContext,
    /// The context that a debugger has of the thread.
    DebuggerContext,
}

/// Why a managed frame or a marker is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hidden {
    /// An IL stub (C-067).
    IlStub,
    /// A handler funclet, whose method is reported instead (C-081).
    Funclet,
    /// It lies between a handler funclet and its method (C-081, C-082).
    BelowFunclet,
    /// The current exception has unwound it (C-086).
    Unwound,
}

/// Why an internal stop is not told to the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Silent {
    /// It is an explicit Frame (C-065).
    Frame,
    /// It is a dynamic method (C-066).
    Dynamic,
    /// It belongs to the managed exception handling, or was called by it (C-087).
    ExceptionHandling,
}

/// Why a Frame was left unseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// It lies below the caller SP of a managed frame (C-056).
    BelowCallerSp(
        /// The caller SP (VA).
        u64,
    ),
    /// It leads nowhere (C-071, C-078).
    LeadsNowhere,
    /// It leads to unmanaged code (C-079).
    LeadsToUnmanagedCode(
        /// Where (VA).
        u64,
    ),
}

/// Something that was decided or done in a call.
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
    Passed(Passed),
    /// Whose stack is to be walked: a thread that may have managed frames.
    Target {
        /// Its Thread object.
        object: ThreadId,
        /// It is not the caller.
        other: bool,
    },
    /// The profiler is being detached.
    Detaching,
    /// The runtime has not started.
    NotStarted,
    /// The event mask does not allow snapshots.
    SnapshotNotEnabled,
    /// infoFlags have a bit that they must not.
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
    /// The target must not be suspended now: so often it has said so.
    SuspensionForbidden(u32),
    /// Other threads cannot be walked here without SuspendRuntime.
    OtherThread,
    /// A cooperative thread other than the caller cannot be walked here at all.
    OtherCooperativeThread,
    /// The runtime is suspended by the profiler, so the target need not be.
    NoSuspensionNeeded,
    /// The target is no thread that can be suspended: the process dies.
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
        /// It is cooperative; otherwise preemptive.
        cooperative: bool,
    },
    /// The target is preemptive: a seed is not looked at.
    SeedIgnored,
    /// The target's context is not safe to use.
    ContextUnsafe {
        /// What the system says of it.
        safety: ContextSafety,
    },
    /// The target's context cannot be read, and there is no seed.
    ContextUnreadable,
    /// Code cannot be looked up: a writer holds the code manager's lock.
    CodeManagerBusy {
        /// The ip that was to be looked up (VA).
        ip: u64,
    },
    /// The target is preemptive although its ip is managed.
    ManagedButPreemptive {
        /// Its ip (VA).
        ip: u64,
    },
    /// The target's topmost Frame lies below its rsp.
    FrameBelowSp {
        /// The Frame (VA).
        frame: u64,
        /// rsp (VA).
        rsp: u64,
    },
    /// The target's own context serves as seed.
    OwnContext {
        /// Its rip (VA).
        ip: u64,
    },
    /// The seed's rip is no managed code.
    SeedUnmanaged {
        /// It (VA).
        ip: u64,
        /// Whether the runtime took the seed itself.
        own: bool,
    },
    /// The seed's rip is managed code.
    SeedManaged {
        /// It (VA).
        ip: u64,
    },
    /// The current exception is in its second pass, native code is at work.
    UnwindingNatively,
    /// An exception has ended, and the thread has not gone on yet.
    InconsistentExceptions,
    /// The walk starts.
    Started(Start),
    /// A hijacked return address was put back.
    Unhijacked {
        /// Its slot (VA).
        slot: u64,
        /// The address (VA).
        address: u64,
    },
    /// The walk starts in unmanaged code, which is never reported.
    InitialNative,
    /// A managed frame was met.
    Managed {
        /// Its method.
        function: FunctionId,
        /// Its ip (VA).
        ip: u64,
        /// Its rsp (VA).
        rsp: u64,
        /// Its caller's rsp (VA).
        caller_sp: u64,
    },
    /// A Frame was left unseen.
    FrameDropped {
        /// The Frame (VA).
        at: u64,
        /// Its kind, if it is one.
        kind: Option<FrameKind>,
        /// Why.
        why: Dropped,
    },
    /// The walk goes on where a Frame leads.
    FrameFollowed {
        /// The Frame (VA).
        at: u64,
        /// Its kind.
        kind: FrameKind,
        /// The ip that it leads to (VA).
        ip: u64,
        /// The rsp that it leads to (VA).
        rsp: u64,
    },
    /// A HelperMethodFrame was asked for the first time: its helper's native frames were unwound.
    FrameCompleted {
        /// The Frame (VA).
        at: u64,
    },
    /// A managed frame or a marker is not shown.
    Hidden {
        /// Its ip (VA).
        ip: u64,
        /// Why.
        why: Hidden,
    },
    /// A handler funclet was met: everything is hidden up to its method's frame.
    FuncletMet {
        /// Its ip (VA).
        ip: u64,
        /// The caller SP of that frame (VA); `None` for the next managed frame.
        parent: Option<u64>,
    },
    /// A stop is not told to the profiler.
    NotReported {
        /// Its ip, or the Frame (VA).
        at: u64,
        /// Why.
        why: Silent,
    },
    /// A managed frame is reported.
    ReportedManaged {
        /// Its method.
        function: FunctionId,
        /// Its ip (VA).
        ip: u64,
        /// Its rsp (VA).
        rsp: u64,
        /// What funclet it is in.
        funclet: Option<Funclet>,
        /// Whether there is a context.
        context: bool,
    },
    /// The marker of an unmanaged run is reported.
    ReportedMarker {
        /// Its ip (VA).
        ip: u64,
        /// Its rsp (VA).
        rsp: u64,
        /// Whether there is a context.
        context: bool,
    },
    /// The callback wants no more.
    Aborted(HResult),
    /// rsp has left the stack.
    OffStack {
        /// rsp (VA).
        rsp: u64,
        /// The stack's bounds (VA): its lowest address, and the one behind its highest.
        stack: (u64, u64),
    },
    /// A resumable Frame on a thread that the call suspended.
    ResumableFrame {
        /// The Frame (VA).
        at: u64,
    },
    /// What should be a Frame is none.
    NoFrame {
        /// It (VA).
        at: u64,
        /// Its first word, which the runtime calls through.
        word: u64,
    },
    /// Managed code cannot be unwound: its unwind data are broken, or its code is not there.
    CannotUnwind {
        /// Its ip (VA).
        ip: u64,
    },
    /// Native code of a helper cannot be unwound, so its managed caller is not found.
    CannotUnwindHelper {
        /// The native code (VA).
        ip: u64,
    },
    /// Fewer bytes of the seed can be read than are copied.
    SeedTooShort {
        /// How many can be read.
        readable: u64,
        /// How many are copied.
        needed: u64,
    },
    /// Memory could not be read.
    Fault {
        /// Where (VA).
        at: u64,
    },
    /// A GS cookie is not the process's.
    BadCookie {
        /// The cookie (VA).
        at: u64,
    },
    /// The callback is NULL.
    NullCallback,
    /// Nothing was found to stop at.
    Empty,
    /// The call ended.
    Ended(Outcome),
}
