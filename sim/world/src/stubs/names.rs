//! The runtime's functions by name: helpers that all programs of a generation share, and stubs that are
//! made for a target.

use clr_codegen::{FunctionId, RuntimeCallKind};
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;

macro_rules! shared {
    ($($(#[doc = $doc:literal])* $shared:ident $name:literal,)*) => {
        /// A function of the runtime. They stand behind all others, callers before callees.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Shared {
            $(
                #[doc = concat!("`", $name, "`: ")]
                $(#[doc = $doc])*
                $shared,
            )*
        }

        impl Shared {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$shared,)*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$shared => $name,)* }
            }
        }
    };
}

shared! {
    /// The first function of a thread that the runtime has made.
    KickOffThread "ThreadNative::KickOffThread",
    /// Sleeps, where that is a QCall.
    Sleep "System.Threading.Thread.Sleep",
    /// Waits for a monitor, where that is a QCall.
    MonitorWait "System.Threading.Monitor.Enter_Slowpath",
    /// Names a thread.
    NameThread "System.Threading.Thread.set_Name",
    /// Loads an assembly.
    LoadAssembly "System.Reflection.Assembly.Load",
    /// Unloads what can be collected of an assembly.
    DestroyAllocator "System.Reflection.LoaderAllocatorScout.Destroy",
    /// Destroys a dynamic method, where that is a QCall.
    DestroyMethod "System.RuntimeMethodHandle.Destroy",
    /// Creates a handle, where that is a QCall.
    CreateHandle "System.Runtime.InteropServices.GCHandle.InternalAllocWithGCTransition",
    /// Destroys a handle, where that is a QCall.
    DestroyHandle "System.Runtime.InteropServices.GCHandle.InternalFreeWithGCTransition",
    /// Collects.
    Collect "System.GC.Collect",
    /// Calls a method by reflection, where that is a QCall.
    Invoke "System.RuntimeMethodHandle.InvokeMethod",
    /// Runs a class constructor, where that is a QCall.
    InitClass "System.Runtime.CompilerServices.InitHelpers.InitClass",
    /// Calls the targets of tail calls by helper, one after another.
    DispatchTailCalls "System.Runtime.CompilerServices.RuntimeHelpers.DispatchTailCalls",
    /// Sleeps.
    ThreadSleep "ThreadNative::Sleep",
    /// Waits for a monitor.
    MonitorContention "JITutil_MonContention",
    /// Tells of a thread's name.
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
    /// Has a GC made.
    GcInterfaceCollect "GCInterface::Collect",
    /// Calls a method by reflection.
    InvokeMethod "RuntimeMethodHandle::InvokeMethod",
    /// Runs a class constructor.
    ClassInit "JIT_ClassInitDynamicClass",
    /// Some FCall.
    FCall "ObjectNative::GetClass",
    /// Links the Frame of a P/Invoke in ready-to-run code.
    PInvokeBegin "JIT_PInvokeBegin",
    /// Unlinks it.
    PInvokeEnd "JIT_PInvokeEnd",
    /// Looks up the stub of a call by pointer.
    GenericPInvokeCalliHelper "GenericPInvokeCalliHelper",
    /// What it calls.
    GenericPInvokeCalliStubWorker "GenericPInvokeCalliStubWorker",
    /// Looks up the stub of a P/Invoke with variable arguments.
    VarargPInvokeStub "VarargPInvokeStub",
    /// What it calls.
    VarargPInvokeStubWorker "VarargPInvokeStubWorker",
    /// Binds a call of ready-to-run code.
    DelayLoadMethodCall "DelayLoad_MethodCall",
    /// What it calls.
    ExternalMethodFixupWorker "ExternalMethodFixupWorker",
    /// Looks something up for ready-to-run code.
    DelayLoadHelper "DelayLoad_Helper",
    /// What it calls.
    DynamicHelperWorker "DynamicHelperWorker",
    /// Resolves a call by virtual stub dispatch.
    ResolveWorkerAsmStub "ResolveWorkerAsmStub",
    /// What it calls.
    VsdResolveWorker "VSD_ResolveWorker",
    /// Calls a COM method.
    GenericComPlusCallStub "GenericComPlusCallStub",
    /// What it calls.
    ClrToComWorker "CLRToCOMWorker",
    /// Where COM calls managed code.
    GenericComCallStub "GenericComCallStub",
    /// What it calls.
    ComToClrDispatchHelper "COMToCLRDispatchHelper",
    /// Switches the mode for a reverse P/Invoke.
    UmThunkStub "UMThunkStub",
    /// Switches the mode in a stub of a reverse P/Invoke.
    ReversePInvokeEnter "JIT_ReversePInvokeEnterTrackTransitions",
    /// Switches the mode back.
    ReversePInvokeExit "JIT_ReversePInvokeExitTrackTransitions",
    /// Tells the profiler that unmanaged code is called.
    BeginTransition "StubHelpers::ProfilerBeginTransitionCallback",
    /// Tells the profiler that it has returned.
    EndTransition "StubHelpers::ProfilerEndTransitionCallback",
    /// The same of managed code that is called.
    BeginReverseTransition "StubHelpers::ProfilerBeginReverseTransitionCallback",
    /// The same of managed code that has returned.
    EndReverseTransition "StubHelpers::ProfilerEndReverseTransitionCallback",
    /// Where a method that is not compiled yet is called.
    ThePreStub "ThePreStub",
    /// Has the method compiled.
    PreStubWorker "PreStubWorker",
    /// Where a thread is that was redirected.
    RedirectedHandledJitCase "Thread::RedirectedHandledJITCase",
    /// Where a hijacked return goes.
    OnHijackTripThread "OnHijackTripThread",
    /// What saves the registers there.
    OnHijackSave "OnHijackTripThread:Save",
    /// What it calls.
    OnHijackWorker "OnHijackWorker",
    /// Calls a method from unmanaged code of the runtime.
    CallDescrWorker "CallDescrWorkerInternal",
    /// Compiles a method.
    Jit "MethodDesc::JitCompileCode",
    /// Makes an IL stub.
    GetIlStub "NDirect::GetILStub",
    /// Loads a class.
    LoadType "ClassLoader::LoadTypeHandleThrowing",
    /// Allocates an object, with a Frame.
    New "JIT_New",
    /// What it calls, where the Frame is a transition's.
    NewWorker "JIT_NewWorker",
    /// Takes the memory, and tells the profiler.
    Allocate "AllocateObject",
    /// Collects.
    GarbageCollect "GCHeap::GarbageCollectGeneration",
    /// Allocates an object without Frame.
    NewFast "JIT_NewS_MP_FastPortable",
    /// Writes a reference.
    WriteBarrier "JIT_WriteBarrier",
    /// Takes a free monitor.
    MonitorEnter "JIT_MonEnter",
    /// Throws an exception.
    Throw "IL_Throw",
    /// Throws an exception again.
    Rethrow "IL_Rethrow",
    /// Where a thread goes on behind a hardware fault.
    HardwareFault "NakedThrowHelper",
    /// Throws an exception anew that native code of the runtime has caught.
    RethrowHelper "UnwindAndContinueRethrowHelperAfterCatch",
    /// Goes on with an exception in native code.
    Propagate "PropagateExceptionThroughNativeFrames",
    /// Has the system dispatch an exception.
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
    /// Handles an exception that is thrown again.
    RhRethrow "System.Runtime.EH.RhRethrow",
    /// Makes the two passes.
    DispatchEx "System.Runtime.EH.DispatchEx",
    /// Asks the clauses of a frame in the first pass.
    FindFirstPassHandler "System.Runtime.EH.FindFirstPassHandler",
    /// Has the clauses of a frame run that do not catch.
    InvokeSecondPass "System.Runtime.EH.InvokeSecondPass",
    /// Makes what is known of an exception (a method of the nested class `EH/ExInfo`).
    ExInfoInit "System.Runtime.EH.ExInfo.Init",
    /// Gives the exception itself.
    ExInfoThrownException "System.Runtime.EH.ExInfo.get_ThrownException",
    /// Begins a pass: to walk the stack for it.
    SfiInit "SfiInit",
    /// Goes on with that.
    SfiNext "SfiNext",
    /// Looks for the next clause of a frame.
    EhEnumNext "EHEnumNext",
    /// Calls a catch handler for it.
    CallCatchFunclet "CallCatchFunclet",
    /// Calls a finally or fault handler.
    CallFinallyFunclet "CallFinallyFunclet",
    /// Calls a filter.
    CallFilterFunclet "CallFilterFunclet",
    /// Tells the code manager of a new code heap.
    AddCodeHeap "ExecutionManager::AddRangeHelper",
    /// Tells it that one goes away.
    DeleteCodeHeap "ExecutionManager::DeleteRange",
    /// The first function of the thread of a server GC.
    GcThread "gc_heap::gc_thread_function",
    /// Where functions report that they are entered.
    ProfileEnterNaked "ProfileEnterNaked",
    /// What it calls.
    ProfileEnter "ProfileEnter",
    /// Where functions report that they are left.
    ProfileLeaveNaked "ProfileLeaveNaked",
    /// What it calls.
    ProfileLeave "ProfileLeave",
    /// Where functions report that they are left for another one.
    ProfileTailcallNaked "ProfileTailcallNaked",
    /// What it calls.
    ProfileTailcall "ProfileTailcall",
    /// The profiler's own hook.
    ProfilerHook "ProfilerHook",
    /// takes memory from the process's heap.
    Malloc "malloc",
    /// loads a library.
    LoadLibrary "LdrLoadDll",
}

impl Shared {
    /// Whether a generation has it.
    #[must_use]
    pub const fn exists_in(self, generation: Generation) -> bool {
        match self {
            Self::UmThunkStub => generation.has_um_thunk_stub(),
            Self::ReversePInvokeEnter | Self::ReversePInvokeExit => !generation.has_um_thunk_stub(),
            Self::BeginReverseTransition | Self::EndReverseTransition => {
                generation.has_helper_method_frames()
            }
            Self::NewWorker | Self::Sleep | Self::MonitorWait | Self::Invoke | Self::InitClass => {
                !generation.has_helper_method_frames()
            }
            Self::DestroyMethod | Self::CreateHandle | Self::DestroyHandle => {
                generation.frees_by_qcalls()
            }
            Self::AddCodeHeap => generation.adds_code_under_lock(),
            Self::DispatchTailCalls => generation.has_tail_call_dispatcher(),
            Self::GenericComPlusCallStub
            | Self::ClrToComWorker
            | Self::GenericComCallStub
            | Self::ComToClrDispatchHelper => !generation.is_unix(),
            Self::RaiseException
            | Self::ProcessException
            | Self::CallFunclet
            | Self::CallFilter => !generation.hides_exception_handling(),
            Self::Propagate
            | Self::RhThrowEx
            | Self::RhThrowHwEx
            | Self::RhRethrow
            | Self::DispatchEx
            | Self::FindFirstPassHandler
            | Self::InvokeSecondPass
            | Self::ExInfoInit
            | Self::ExInfoThrownException
            | Self::SfiInit
            | Self::SfiNext
            | Self::EhEnumNext
            | Self::CallCatchFunclet
            | Self::CallFinallyFunclet
            | Self::CallFilterFunclet => generation.hides_exception_handling(),
            _ => true,
        }
    }

    /// Whether it is a method of the class that handles exceptions, not native code.
    const fn handles_exceptions(self) -> bool {
        matches!(
            self,
            Self::RhThrowEx
                | Self::RhThrowHwEx
                | Self::RhRethrow
                | Self::DispatchEx
                | Self::FindFirstPassHandler
                | Self::InvokeSecondPass
        )
    }

    /// Whether it is one of the managed exception handling: a method of that class, or of its nested
    /// `ExInfo`, which walks do not hide (C-163).
    pub(super) const fn is_exception_handling(self) -> bool {
        self.handles_exceptions() || matches!(self, Self::ExInfoInit | Self::ExInfoThrownException)
    }

    /// What kind of method it is, if it is one.
    pub(super) const fn method_kind(self) -> MethodKind {
        if self.handles_exceptions() { MethodKind::ExceptionHandling } else { MethodKind::Ordinary }
    }

    /// Whether it is a method of the class library, not unmanaged code.
    #[must_use]
    pub const fn is_managed(self) -> bool {
        matches!(
            self,
            Self::Sleep
                | Self::MonitorWait
                | Self::NameThread
                | Self::LoadAssembly
                | Self::DestroyAllocator
                | Self::DestroyMethod
                | Self::CreateHandle
                | Self::DestroyHandle
                | Self::Collect
                | Self::Invoke
                | Self::InitClass
                | Self::DispatchTailCalls
        ) || self.is_exception_handling()
    }

    /// Whether it is an FCall: a method of its own with unmanaged code.
    #[must_use]
    pub const fn is_fcall(self) -> bool {
        matches!(
            self,
            Self::ThreadSleep
                | Self::InvokeMethod
                | Self::FCall
                | Self::RuntimeMethodDestroy
                | Self::HandleAlloc
                | Self::HandleFree
                | Self::BeginTransition
                | Self::EndTransition
                | Self::BeginReverseTransition
                | Self::EndReverseTransition
        )
    }
}

macro_rules! stubs {
    ($(#[doc = $doc:literal] $stub:ident $prefix:literal,)*) => {
        /// A function that the runtime makes for one target.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Stub {
            $(#[doc = $doc] $stub,)*
        }

        impl Stub {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$stub,)*];

            /// What stands before the target's name in its own.
            #[must_use]
            pub const fn prefix(self) -> &'static str {
                match self { $(Self::$stub => $prefix,)* }
            }
        }
    };
}

stubs! {
    /// The IL stub of a P/Invoke.
    PInvoke "IL_STUB_PInvoke:",
    /// The IL stub of a call of a COM method.
    ComCall "IL_STUB_CLRtoCOM:",
    /// The IL stub of a reverse P/Invoke.
    ReversePInvoke "IL_STUB_ReversePInvoke:",
    /// The IL stub by which COM calls.
    ComMethod "IL_STUB_COMtoCLR:",
    /// What the first call of a method goes through.
    Precode "Precode:",
    /// What a call from ready-to-run code goes through that is not bound yet.
    DelayLoad "DelayLoadThunk:",
    /// What a virtual call goes through that is not resolved yet.
    Resolve "ResolveStub:",
    /// The thunk of an open delegate.
    ShuffleThunk "ShuffleThunk:",
    /// What calls a delegate of several.
    Multicast "MulticastStub:",
    /// What calls a wrapped delegate.
    Wrapper "SecureDelegateStub:",
    /// What a tail call by helper goes through.
    TailCall "CallTailCallTarget:",
}

impl Stub {
    /// The one that stands first.
    pub(super) const FIRST: Self = Self::PInvoke;

    /// The stub that a statement needs for its target.
    pub(super) const fn of(kind: RuntimeCallKind, generation: Generation) -> Option<Self> {
        let has_com = !generation.is_unix();
        match kind {
            RuntimeCallKind::PInvokeSuppressed if generation.has_suppressed_transitions() => None,
            RuntimeCallKind::ComCall if has_com => Some(Self::ComCall),
            RuntimeCallKind::ComCallGeneric if has_com => None,
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
    Stub(Stub, FunctionId),
}

impl RuntimeFunction {
    /// The one with this name; `function` finds functions of the source.
    #[must_use]
    pub fn from_name(
        name: &str,
        function: impl FnOnce(&str) -> Option<FunctionId>,
    ) -> Option<Self> {
        if let Some(shared) = Shared::ALL.iter().find(|shared| shared.name() == name) {
            return Some(Self::Shared(*shared));
        }
        let (stub, target) =
            Stub::ALL.iter().find_map(|stub| Some((*stub, name.strip_prefix(stub.prefix())?)))?;
        Some(Self::Stub(stub, function(target)?))
    }
}
