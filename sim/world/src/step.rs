//! Parts of services.

use super::arrangement::Awaited;
use crate::stubs::Shared;
use clr_codegen::{FuncletKind, FunctionIndex};
use clr_runtime::Lock;
use clr_runtime::profiling::{CallbackKind as Kind, CallbackMode};
use clr_walker::profiling::{FunctionId, ThreadId};

/// A part of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// The profiler is called back.
    Callback(Kind),
    /// The profiler is called back in another mode than the usual one of that callback.
    CallbackIn(Kind, CallbackMode),
    /// The profiler is called back about a method.
    CallbackAbout(Kind, About),
    /// The JIT inlines a method, or calls it.
    Inline(Inlining),
    /// Code has called a hook of the profiler.
    Hook,
    /// The service returns with this value in rax.
    Return(u64),
    /// The runtime creates a Thread object for the thread.
    Attach,
    /// The thread is no longer a thread of the runtime.
    Gone,
    /// The thread's id is over for the profiler, though the thread is not removed yet.
    IdOver,
    /// The thread waits until no other foreground thread is left.
    AwaitForeground,
    /// The runtime marks itself as shutting down.
    ShutDown,
    /// The thread changes its mode.
    Cooperative(bool),
    /// The thread forbids its suspension, or allows it again.
    ForbidSuspension(bool),
    /// The thread waits this number of times.
    Wait(u8),
    /// The thread takes a lock as soon as it is free.
    Acquire(Lock),
    /// The thread releases a lock.
    Release(Lock),
    /// The thread waits until the runtime is not suspended by another one, and becomes cooperative.
    AwaitResume,
    /// The suspension of the runtime enters a phase.
    Suspend(Phase),
    /// The thread begins to write to the code manager's tables as soon as no other thread reads or
    /// writes them (true), or has written (false).
    Write(bool),
    /// The code of a method is freed.
    Free(FunctionIndex),
    /// The thread requests a GC from the server GC's thread.
    AskForGc,
    /// The thread waits until this number of GCs has been made.
    AwaitGc(u32),
    /// The server GC's thread waits for a request, or for the end of all other threads.
    ServeGc,
    /// The server GC's thread has made this number of GCs.
    MadeGc(u32),
    /// The thread stops all other threads, and waits until they have stopped.
    StopOthers,
    /// The registers from before a redirection are restored.
    Restore,
    /// The thread waits for something that another thread of the program does.
    AwaitProgram(Awaited),
    /// The handler of the process's end is queued for the finalizer's thread.
    RaiseProcessExit,
    /// The start of the runtime is over.
    StartEnds,
    /// The finalizer's thread takes the next method, or removes a thread that has ended in the system.
    TakeFinalizer,
    /// The finalizer's thread has removed a thread.
    Removed,
    /// A thread of tiered compilation takes the next method.
    TakeTier,
    /// The runtime counts as started.
    Started,
    /// The process ends; true after a fatal error.
    Die(bool),
    /// A handler of exceptions is called instead of the service.
    Notify(Handler),
    /// An exception advances.
    Exception(Action),
    /// An exception continues in native code.
    Propagate,
}

/// The callbacks about the load of an assembly of one module.
pub(super) const ASSEMBLY_LOAD: [Kind; 5] = [
    Kind::AssemblyLoadStarted,
    Kind::ModuleLoadStarted,
    Kind::ModuleLoadFinished,
    Kind::ModuleAttachedToAssembly,
    Kind::AssemblyLoadFinished,
];

/// The subject of a callback, where the registers of the thread do not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct About {
    /// The method, if it is about one.
    pub function: FunctionId,
    /// The method that it is inlined into.
    pub caller: FunctionId,
    /// `ModuleID` of the module, if it is about one alone.
    pub module: u64,
    /// `AppDomainID` of the domain, if it is about one.
    pub domain: u64,
    /// The thread, if it is about another one than that which makes it.
    pub thread: ThreadId,
    /// Control returns, in a transition.
    pub returns: bool,
}

/// The inlining of a method into another one, unless the profiler or its events refuse that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inlining {
    pub caller: FunctionId,
    pub function: FunctionId,
    /// The word that says whether the caller calls the method (VA).
    pub word: u64,
    /// The events refuse it.
    pub is_refused: bool,
}

/// The phase of a suspension of the runtime by the thread itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Running,
    Suspending,
    Suspended,
}

/// A handler of exceptions that the program has registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Handler {
    /// The handler of first-chance exceptions.
    FirstChance,
    /// The handler of exceptions that nothing catches.
    Unhandled,
}

impl Handler {
    /// Returns the native code that calls the handler.
    pub(super) const fn caller(self) -> Shared {
        match self {
            Self::FirstChance => Shared::CallHandler,
            Self::Unhandled => Shared::CallUnhandledHandler,
        }
    }
}

/// A part of the handling of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// A pass examines its current frame.
    Look,
    /// A pass advances to the next frame.
    Next,
    /// An EH clause is the one that catches.
    Found(usize),
    /// The second pass begins.
    Second,
    /// The EH clause catches if its filter has accepted the exception.
    Decide(usize),
    /// The second pass enters managed code, or leaves it, as seen by others.
    Entered(bool),
    /// A funclet of an EH clause is called.
    Call(usize, FuncletKind),
    /// The second pass has left all frames below this address (VA), the rsp of the frame that it
    /// has reached.
    LeftUpTo(u64),
    /// The program is notified of the exception.
    Notify(Handler),
    /// The exception is forgotten.
    Forget,
    /// Execution resumes.
    Resume,
    /// There is no managed code to handle the exception.
    Unhandled,
}
