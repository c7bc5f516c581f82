//! The runtime's functions by name: helpers that all programs of a generation share, and stubs that
//! are made for a target.

use clr_codegen::{FunctionIndex, RuntimeCallKind};
use clr_runtime::generation::Generation;

macro_rules! shared {
    ($($(#[doc = $doc:literal])* $shared:ident $name:literal,)*) => {
        /// A function of the runtime. These functions come after all others, callers before
        /// callees.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Shared {
            $(
                #[doc = concat!("`", $name, "`: ")]
                $(#[doc = $doc])*
                $shared,
            )*
        }

        impl Shared {
            /// All helpers.
            pub const ALL: &[Self] = &[$(Self::$shared,)*];

            /// Returns the name of the function.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$shared => $name,)* }
            }
        }
    };
}

shared! {
    /// The first function of a thread that the runtime has created.
    KickOffThread "ThreadNative::KickOffThread",
    /// First function of the thread that executes the program's entry point, where a managed method calls that.
    RunMain "RunMainInternal",
    /// Calls the program's entry point.
    CallEntryPoint "System.Environment.CallEntryPoint",
    /// The first function of the finalizer's thread.
    FinalizerThread "FinalizerThread::FinalizerThreadStart",
    /// The first function of a thread of tiered compilation.
    TieringThread "TieredCompilationManager::BackgroundWorkerStart",
    /// Calls the handler of the end of the process, where managed code does that.
    OnProcessExit "System.AppContext.OnProcessExit",
    /// Calls finalizers, where managed code does that.
    RunFinalizers "System.GC.RunFinalizers",
    /// The first method of a thread that the program has started, in .NET 10.
    StartCallback "System.Threading.Thread.StartCallback",
    /// The first method of a thread that the program has started, up to CoreCLR 3.1.
    ThreadStart "System.Threading.ThreadHelper.ThreadStart",
    /// Runs a method in an execution context.
    RunInternal "System.Threading.ExecutionContext.RunInternal",
    /// Calls the method of the thread.
    ThreadStartContext "System.Threading.ThreadHelper.ThreadStart_Context",
    /// Throws an exception again that was caught elsewhere.
    DispatchInfoThrow "System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw",
    /// Ends the process, where that is a QCall.
    ExitMethod "System.Environment.Exit",
    /// Waits for a thread, where that is a QCall.
    Join "System.Threading.Thread.Join",
    /// Waits for finalizers, where that is a QCall.
    WaitForFinalizers "System.GC.WaitForPendingFinalizers",
    /// Throws because an index is out of range, where managed code does that.
    ThrowIndexOutOfRange "Internal.Runtime.CompilerHelpers.ThrowHelpers.ThrowIndexOutOfRangeException",
    /// Checks a cast, where managed code does that.
    CheckCast "System.Runtime.CompilerServices.CastHelpers.ChkCast_Helper",
    /// Throws because a cast is invalid, in .NET 10.
    CheckCastAny "System.Runtime.CompilerServices.CastHelpers.ChkCastAny_NoCacheLookup",
    /// Sleeps, where that is a QCall.
    Sleep "System.Threading.Thread.Sleep",
    /// Waits for a monitor, where that is a QCall.
    MonitorWait "System.Threading.Monitor.Enter_Slowpath",
    /// Names a thread.
    NameThread "System.Threading.Thread.set_Name",
    /// Loads an assembly.
    LoadAssembly "System.Reflection.Assembly.Load",
    /// Looks up a class by its name.
    GetType "System.Type.GetType",
    /// Unloads the collectible part of an assembly.
    DestroyAllocator "System.Reflection.LoaderAllocatorScout.Destroy",
    /// Destroys a dynamic method, where that is a QCall.
    DestroyMethod "System.RuntimeMethodHandle.Destroy",
    /// Creates a handle, where that is a QCall.
    CreateHandle "System.Runtime.InteropServices.GCHandle.InternalAllocWithGCTransition",
    /// Destroys a handle, where that is a QCall.
    DestroyHandle "System.Runtime.InteropServices.GCHandle.InternalFreeWithGCTransition",
    /// Makes a GC.
    Collect "System.GC.Collect",
    /// The IL stub of the QCall by which `System.GC.Collect` makes a GC.
    CollectStub "IL_STUB_PInvoke:System.GC._Collect",
    /// Calls a method by reflection, where that is a QCall.
    Invoke "System.RuntimeMethodHandle.InvokeMethod",
    /// Returns the statics of a class whose constructor has not run, where managed code does that.
    StaticBase "System.Runtime.CompilerServices.StaticsHelpers.GetNonGCStaticBaseSlow",
    /// Runs a class constructor, where that is a QCall.
    InitClass "System.Runtime.CompilerServices.InitHelpers.InitClassSlow",
    /// Calls a method by reflection, up to CoreCLR 3.1.
    InvokeMethodBase "System.Reflection.MethodBase.Invoke",
    /// Calls a method by reflection.
    InvokeMethodInfo "System.Reflection.RuntimeMethodInfo.Invoke",
    /// Calls the code emitted for a method, and wraps what it throws.
    InvokeWithNoArgs "System.Reflection.MethodBaseInvoker.InvokeWithNoArgs",
    /// Calls the targets of tail calls by helper, one after another.
    DispatchTailCalls "System.Runtime.CompilerServices.RuntimeHelpers.DispatchTailCalls",
    /// Starts a thread.
    StartThread "ThreadNative::Start",
    /// Waits for a thread.
    ThreadJoin "ThreadNative::Join",
    /// Waits for finalizers.
    FinalizerWait "FinalizerThread::FinalizerThreadWait",
    /// Notes that a method is called.
    CallOnce "Once",
    /// Queues a method for tiered compilation.
    TierUp "TieredCompilationManager::AsyncPromoteToTier1",
    /// Compiles a method again that executes. Its Frame is assumed: recorded walks show what is reported, and that is no Frame.
    Patchpoint "JIT_Patchpoint",
    /// Worker of `JIT_Patchpoint`, where its Frame is a transition Frame.
    PatchpointWorker "JIT_PatchpointWorkerWorkerWithPolicy",
    /// Registers a handler.
    HandleFirstChance "AppContext::add_FirstChanceException",
    /// Registers a handler.
    HandleProcessExit "AppContext::add_ProcessExit",
    /// Registers an object with a finalizer.
    MakeFinalizable "GCHeap::RegisterForFinalization",
    /// Calls the handler of first-chance exceptions.
    CallHandler "ExceptionNotifications::DeliverFirstChanceNotification",
    /// Entry of that call, where managed code calls the handler.
    FirstChanceEntry "System.AppContext.OnFirstChanceException",
    /// Calls the handler of first-chance exceptions.
    OnFirstChance "System.AppContext.OnFirstChanceException:2",
    /// Registers a handler.
    HandleUnhandled "AppContext::add_UnhandledException",
    /// Calls the handler of exceptions that nothing catches.
    CallUnhandledHandler "DistributeUnhandledExceptionReliably",
    /// Entry of that call, where managed code calls the handler by two methods.
    UnhandledEntry "System.AppContext.OnUnhandledException",
    /// Calls the handler of exceptions that nothing catches.
    OnUnhandled "System.AppContext.OnUnhandledException:2",
    /// Ends the process.
    Exit "EEPolicy::HandleExitProcess",
    /// Ends the process after a fatal error.
    FailFast "EEPolicy::HandleFatalError",
    /// Sleeps.
    ThreadSleep "ThreadNative::Sleep",
    /// Waits for a monitor.
    MonitorContention "JITutil_MonContention",
    /// Reports a thread's name.
    InformThreadNameChange "ThreadNative::InformThreadNameChange",
    /// Loads an assembly.
    AssemblyNativeLoad "AssemblyNative::InternalLoad",
    /// Unloads an assembly.
    LoaderAllocatorDestroy "LoaderAllocator::Destroy",
    /// Destroys a dynamic method.
    RuntimeMethodDestroy "RuntimeMethodHandle::Destroy",
    /// Creates a handle.
    HandleAlloc "MarshalNative::GCHandleInternalAlloc",
    /// Destroys a handle.
    HandleFree "MarshalNative::GCHandleInternalFree",
    /// Makes a GC.
    GcInterfaceCollect "GCInterface::Collect",
    /// Calls a method by reflection.
    InvokeMethod "RuntimeMethodHandle::InvokeMethod",
    /// Runs a class constructor.
    ClassInit "JIT_ClassInitDynamicClass",
    /// Calls a class constructor, where managed code does that.
    CallClassConstructor "System.Runtime.CompilerServices.InitHelpers.CallClassConstructor",
    /// Notifies the profiler that unmanaged code is called, where a method of the class library does that: for a P/Invoke with
    /// marshalling (observed), and, as is assumed, for a call by pointer, above whose stub its Frame stands then.
    TellTransition "System.StubHelpers.StubHelpers.ProfilerBeginTransitionCallback",
    /// Notifies the profiler that unmanaged code has returned.
    TellReturn "System.StubHelpers.StubHelpers.ProfilerEndTransitionCallback",
    /// An FCall that does nothing.
    FCall "ObjectNative::GetClass",
    /// Links the Frame of a P/Invoke in ready-to-run code.
    PInvokeBegin "JIT_PInvokeBegin",
    /// Unlinks the Frame of a P/Invoke in ready-to-run code.
    PInvokeEnd "JIT_PInvokeEnd",
    /// Looks up the stub of a call by pointer.
    GenericPInvokeCalliHelper "GenericPInvokeCalliHelper",
    /// Worker of `GenericPInvokeCalliHelper`.
    GenericPInvokeCalliStubWorker "GenericPInvokeCalliStubWorker",
    /// Looks up the stub of a P/Invoke with variable arguments.
    VarargPInvokeStub "VarargPInvokeStub",
    /// Worker of `VarargPInvokeStub`.
    VarargPInvokeStubWorker "VarargPInvokeStubWorker",
    /// Binds a call of ready-to-run code.
    DelayLoadMethodCall "DelayLoad_MethodCall",
    /// Worker of `DelayLoad_MethodCall`.
    ExternalMethodFixupWorker "ExternalMethodFixupWorker",
    /// Looks something up for ready-to-run code.
    DelayLoadHelper "DelayLoad_Helper",
    /// Worker of `DelayLoad_Helper`.
    DynamicHelperWorker "DynamicHelperWorker",
    /// Resolves a call by virtual stub dispatch.
    ResolveWorkerAsmStub "ResolveWorkerAsmStub",
    /// Worker of `ResolveWorkerAsmStub`.
    VsdResolveWorker "VSD_ResolveWorker",
    /// Calls a COM method.
    GenericComPlusCallStub "GenericComPlusCallStub",
    /// Worker of `GenericComPlusCallStub`.
    ClrToComWorker "CLRToCOMWorker",
    /// Entry of calls by COM into managed code.
    GenericComCallStub "GenericComCallStub",
    /// Called by `GenericComCallStub`.
    ComToClrDispatchHelper "COMToCLRDispatchHelper",
    /// Switches the mode for a reverse P/Invoke.
    UmThunkStub "UMThunkStub",
    /// Switches the mode in a stub of a reverse P/Invoke.
    ReversePInvokeEnter "JIT_ReversePInvokeEnterTrackTransitions",
    /// Switches the mode back.
    ReversePInvokeExit "JIT_ReversePInvokeExitTrackTransitions",
    /// Notifies the profiler that unmanaged code is called.
    BeginTransition "StubHelpers::ProfilerBeginTransitionCallback",
    /// Notifies the profiler that unmanaged code has returned.
    EndTransition "StubHelpers::ProfilerEndTransitionCallback",
    /// Notifies the profiler that managed code is called.
    BeginReverseTransition "StubHelpers::ProfilerBeginReverseTransitionCallback",
    /// Notifies the profiler that managed code has returned.
    EndReverseTransition "StubHelpers::ProfilerEndReverseTransitionCallback",
    /// Entry of a method that is not compiled yet.
    ThePreStub "ThePreStub",
    /// Has the method compiled.
    PreStubWorker "PreStubWorker",
    /// Continuation of a thread that was redirected.
    RedirectedHandledJitCase "Thread::RedirectedHandledJITCase",
    /// Target of a hijacked return.
    OnHijackTripThread "OnHijackTripThread",
    /// Saves the registers at a hijacked return.
    OnHijackSave "OnHijackTripThread:Save",
    /// Worker of `OnHijackTripThread`.
    OnHijackWorker "OnHijackWorker",
    /// Calls a method from unmanaged code of the runtime.
    CallDescrWorker "CallDescrWorkerInternal",
    /// Compiles a method.
    Jit "MethodDesc::JitCompileCode",
    /// Creates an IL stub.
    GetIlStub "NDirect::GetILStub",
    /// Loads a class.
    LoadType "ClassLoader::LoadTypeHandleThrowing",
    /// Allocates an object, with a Frame.
    New "JIT_New",
    /// Worker of `JIT_New`, where its Frame is a transition Frame.
    NewWorker "JIT_NewWorker",
    /// Takes the memory, and notifies the profiler.
    Allocate "AllocateObject",
    /// Makes a GC.
    GarbageCollect "GCHeap::GarbageCollectGeneration",
    /// Allocates an object without a Frame.
    NewFast "JIT_NewS_MP_FastPortable",
    /// Writes a reference.
    WriteBarrier "JIT_WriteBarrier",
    /// Takes a free monitor.
    MonitorEnter "JIT_MonEnter",
    /// Throws an exception.
    Throw "IL_Throw",
    /// Rethrows an exception.
    Rethrow "IL_Rethrow",
    /// Throws because an index is out of range.
    FailRangeCheck "JIT_RngChkFail",
    /// Throws because a cast is invalid.
    FailCast "JIT_ChkCastAny",
    /// Continuation of a thread after a hardware fault.
    HardwareFault "NakedThrowHelper",
    /// Rethrows an exception that native code of the runtime has caught.
    RethrowHelper "UnwindAndContinueRethrowHelperAfterCatch",
    /// Continues an exception in native code.
    Propagate "PropagateExceptionThroughNativeFrames",
    /// Has the operating system dispatch an exception.
    RaiseException "RaiseException",
    /// Handles an exception in native code.
    ProcessException "ProcessCLRException",
    /// Calls a handler.
    CallFunclet "CallEHFunclet",
    /// Calls a filter.
    CallFilter "CallEHFilterFunclet",
    /// Handles an exception in managed code.
    RhThrowEx "System.Runtime.EH.RhThrowEx",
    /// Handles a hardware fault.
    RhThrowHwEx "System.Runtime.EH.RhThrowHwEx",
    /// Handles an exception that is rethrown.
    RhRethrow "System.Runtime.EH.RhRethrow",
    /// Performs the two passes.
    DispatchEx "System.Runtime.EH.DispatchEx",
    /// Examines the EH clauses of a frame in the first pass.
    FindFirstPassHandler "System.Runtime.EH.FindFirstPassHandler",
    /// Runs the EH clauses of a frame that do not catch.
    InvokeSecondPass "System.Runtime.EH.InvokeSecondPass",
    /// Initializes the record of an exception (a method of the nested class `EH/ExInfo`).
    ExInfoInit "System.Runtime.EH.ExInfo.Init",
    /// Returns the exception object.
    ExInfoThrownException "System.Runtime.EH.ExInfo.get_ThrownException",
    /// Begins the stack walk of a pass.
    SfiInit "SfiInit",
    /// Continues the stack walk of a pass.
    SfiNext "SfiNext",
    /// Finds the next EH clause of a frame.
    EhEnumNext "EHEnumNext",
    /// Calls a catch handler for managed exception handling.
    CallCatchFunclet "CallCatchFunclet",
    /// Calls a finally or fault handler.
    CallFinallyFunclet "CallFinallyFunclet",
    /// Calls a filter.
    CallFilterFunclet "CallFilterFunclet",
    /// Removes a code heap from the code manager.
    DeleteCodeHeap "ExecutionManager::DeleteRange",
    /// The first function of the thread of a server GC.
    GcThread "gc_heap::gc_thread_function",
    /// Called by functions that are entered.
    ProfileEnterNaked "ProfileEnterNaked",
    /// Worker of `ProfileEnterNaked`.
    ProfileEnter "ProfileEnter",
    /// Called by functions that are left.
    ProfileLeaveNaked "ProfileLeaveNaked",
    /// Worker of `ProfileLeaveNaked`.
    ProfileLeave "ProfileLeave",
    /// Called by functions that are left by a tail call.
    ProfileTailcallNaked "ProfileTailcallNaked",
    /// Worker of `ProfileTailcallNaked`.
    ProfileTailcall "ProfileTailcall",
    /// The profiler's own hook for functions that are entered.
    ProfilerHook "ProfilerHook",
    /// The profiler's own hook for functions that are left.
    ProfilerLeaveHook "ProfilerLeaveHook",
    /// The profiler's own hook for functions that are left by a tail call.
    ProfilerTailcallHook "ProfilerTailcallHook",
    /// Takes memory from the process's heap.
    Malloc "malloc",
    /// Loads a library.
    LoadLibrary "LdrLoadDll",
    /// Waits until the runtime is no longer suspended, before the thread becomes cooperative.
    RareDisable "Thread::RareDisablePreemptiveGC",
    /// Waits on a condition variable of the thread, in the C library.
    ConditionWait "pthread_cond_wait",
}

macro_rules! stubs {
    ($(#[doc = $doc:literal] $stub:ident $prefix:literal,)*) => {
        /// A function that the runtime makes for one target.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Stub {
            $(#[doc = $doc] $stub,)*
        }

        impl Stub {
            /// All stubs.
            pub const ALL: &[Self] = &[$(Self::$stub,)*];

            /// Returns the prefix of a stub's name; the target's name follows.
            pub const fn prefix(self) -> &'static str {
                match self { $(Self::$stub => $prefix,)* }
            }
        }
    };
}

stubs! {
    /// The IL stub of a P/Invoke.
    PInvoke "IL_STUB_PInvoke:",
    /// The code of a P/Invoke that belongs to its method.
    PInvokeMethod "PInvoke:",
    /// The IL stub of a call of a COM method.
    ComCall "IL_STUB_CLRtoCOM:",
    /// The IL stub of a reverse P/Invoke.
    ReversePInvoke "IL_STUB_ReversePInvoke:",
    /// The IL stub of a call by COM.
    ComMethod "IL_STUB_COMtoCLR:",
    /// The block that the first call of a method goes through.
    Precode "Precode:",
    /// The thunk of a call from ready-to-run code that is not bound yet.
    DelayLoad "DelayLoadThunk:",
    /// The stub of a virtual call that is not resolved yet.
    Resolve "ResolveStub:",
    /// The stub of a virtual call that is resolved.
    Dispatch "DispatchStub:",
    /// The stub of a method of a value type that is called on a boxed object.
    Unboxing "UnboxingStub:",
    /// The stub of a method whose calls are counted.
    CallCounting "CallCountingStub:",
    /// The thunk of an open delegate.
    ShuffleThunk "ShuffleThunk:",
    /// The stub that calls a multicast delegate.
    Multicast "MulticastStub:",
    /// The stub that calls a wrapped delegate.
    Wrapper "SecureDelegateStub:",
    /// The code that a tail call by helper goes through.
    TailCall "CallTailCallTarget:",
}

impl Stub {
    /// The first stub in the order of the variants.
    pub(super) const FIRST: Self = Self::PInvoke;

    /// Returns the stub that a statement needs for its target.
    pub(super) const fn of(kind: RuntimeCallKind, generation: Generation) -> Option<Self> {
        let has_com = generation.has_com_frames();
        match kind {
            RuntimeCallKind::PInvokeSuppressed if generation.has_suppressed_transitions() => None,
            RuntimeCallKind::ComCall if has_com => Some(Self::ComCall),
            RuntimeCallKind::ComCallGeneric if has_com => None,
            RuntimeCallKind::PInvokeStub | RuntimeCallKind::PInvokeSuppressed
                if generation.p_invokes_are_methods() =>
            {
                Some(Self::PInvokeMethod)
            }
            RuntimeCallKind::PInvokeStub
            | RuntimeCallKind::PInvokeSuppressed
            | RuntimeCallKind::PInvokeCalli
            | RuntimeCallKind::PInvokeVararg
            | RuntimeCallKind::ComCall
            | RuntimeCallKind::ComCallGeneric => Some(Self::PInvoke),
            RuntimeCallKind::ComMethod if has_com => Some(Self::ComMethod),
            RuntimeCallKind::ReversePInvoke | RuntimeCallKind::ComMethod => {
                Some(Self::ReversePInvoke)
            }
            RuntimeCallKind::FirstCall => Some(Self::Precode),
            RuntimeCallKind::LazyCall => Some(Self::DelayLoad),
            RuntimeCallKind::VirtualCall => Some(Self::Resolve),
            RuntimeCallKind::InterfaceCall => Some(Self::Dispatch),
            RuntimeCallKind::BoxedCall => Some(Self::Unboxing),
            RuntimeCallKind::CountedCall if generation.has_call_counting_stubs() => {
                Some(Self::CallCounting)
            }
            RuntimeCallKind::OpenDelegate => Some(Self::ShuffleThunk),
            RuntimeCallKind::MulticastDelegate => Some(Self::Multicast),
            RuntimeCallKind::WrapperDelegate => Some(Self::Wrapper),
            RuntimeCallKind::TailCallByHelper => Some(Self::TailCall),
            _ => None,
        }
    }
}

/// A function of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuntimeFunction {
    /// A helper.
    Shared(Shared),
    /// A stub for a function of the source.
    Stub(Stub, FunctionIndex),
}

impl RuntimeFunction {
    /// Returns the function with this name; `function` finds functions of the source.
    pub fn from_name(
        name: &str,
        function: impl FnOnce(&str) -> Option<FunctionIndex>,
    ) -> Option<Self> {
        if let Some(shared) = Shared::ALL.iter().find(|shared| shared.name() == name) {
            return Some(Self::Shared(*shared));
        }
        let (stub, target) =
            Stub::ALL.iter().find_map(|stub| Some((*stub, name.strip_prefix(stub.prefix())?)))?;
        Some(Self::Stub(stub, function(target)?))
    }
}
