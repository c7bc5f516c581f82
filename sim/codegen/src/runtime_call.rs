//! Statements with which a program calls the runtime. The runtime's own code replaces them when a
//! world is built.

use super::program::FunctionIndex;

/// A call of the runtime in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeCall {
    /// Kind of the call.
    pub kind: RuntimeCallKind,
    /// The function that is called in the end, the method whose code is unloaded, or the constructor of the exception
    /// that is thrown.
    pub target: Option<FunctionIndex>,
}

/// The kind of function that is called through the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallTarget {
    /// A method.
    Managed,
    /// A function of unmanaged code.
    Unmanaged,
}

/// An entry is an enum variant, the keyword in texts, the kind of code that contains the statement,
/// and the kind of function called.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident $word:literal $place:ident -> $target:expr,)*) => {
        /// The kinds of calls of the runtime.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RuntimeCallKind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl RuntimeCallKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the keyword in texts.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// Returns true if the statement belongs in managed code.
            pub const fn is_in_managed_code(self) -> bool {
                match self { $(Self::$kind => matches!(CallTarget::$place, CallTarget::Managed),)* }
            }

            /// Returns the kind of the called function of the program, if it calls one.
            pub const fn target(self) -> Option<CallTarget> {
                match self { $(Self::$kind => $target,)* }
            }
        }
    };
}

kinds! {
    /// Managed code calls unmanaged code; the transition is part of the method.
    PInvoke "p-invoke" Managed -> Some(CallTarget::Unmanaged),
    /// Managed code calls unmanaged code through an IL stub.
    PInvokeStub "p-invoke-stub" Managed -> Some(CallTarget::Unmanaged),
    /// Ready-to-run code calls unmanaged code between two helpers (C-156).
    PInvokeByHelper "p-invoke-by-helper" Managed -> Some(CallTarget::Unmanaged),
    /// Managed code calls unmanaged code without a transition where that exists, otherwise through
    /// a stub.
    PInvokeSuppressed "p-invoke-suppressed" Managed -> Some(CallTarget::Unmanaged),
    /// Managed code calls unmanaged code through a pointer; the stub is looked up first.
    PInvokeCalli "p-invoke-calli" Managed -> Some(CallTarget::Unmanaged),
    /// A P/Invoke with variable arguments; the stub is looked up first.
    PInvokeVararg "p-invoke-vararg" Managed -> Some(CallTarget::Unmanaged),
    /// Managed code calls a COM method through an IL stub. Without COM it is a P/Invoke.
    ComCall "com-call" Managed -> Some(CallTarget::Unmanaged),
    /// Managed code calls a COM method through the stub that all COM methods share.
    ComCallGeneric "com-call-generic" Managed -> Some(CallTarget::Unmanaged),
    /// Unmanaged code calls a managed method through COM. Without COM it is a reverse P/Invoke.
    ComMethod "com-method" Unmanaged -> Some(CallTarget::Managed),
    /// Unmanaged code calls a managed method through a delegate's thunk.
    ReversePInvoke "reverse-p-invoke" Unmanaged -> Some(CallTarget::Managed),
    /// Calls a method that has not been compiled yet.
    FirstCall "first-call" Managed -> Some(CallTarget::Managed),
    /// Calls a static method through a delegate: a thunk shuffles the arguments and jumps.
    OpenDelegate "open-delegate" Managed -> Some(CallTarget::Managed),
    /// Calls a method twice, through a multicast delegate of two.
    MulticastDelegate "multicast-delegate" Managed -> Some(CallTarget::Managed),
    /// Calls a method through a delegate that wraps another one.
    WrapperDelegate "wrapper-delegate" Managed -> Some(CallTarget::Managed),
    /// Calls a method from ready-to-run code for the first time: the call is bound first.
    LazyCall "lazy-call" Managed -> Some(CallTarget::Managed),
    /// Calls a method through virtual stub dispatch, which resolves it first.
    VirtualCall "virtual-call" Managed -> Some(CallTarget::Managed),
    /// Calls a method through virtual stub dispatch that has resolved it: a dispatch stub compares
    /// the object's type and jumps.
    InterfaceCall "interface-call" Managed -> Some(CallTarget::Managed),
    /// Calls a method of a value type on a boxed object: an unboxing stub steps to the value and
    /// jumps.
    BoxedCall "boxed-call" Managed -> Some(CallTarget::Managed),
    /// Calls a method whose calls are counted before it is compiled again: through a call counting
    /// stub, in runtimes that have them.
    CountedCall "counted-call" Managed -> Some(CallTarget::Managed),
    /// Leaves for a method through the tail call helper.
    TailCallByHelper "tail-call-by-helper" Managed -> Some(CallTarget::Managed),
    /// Calls a method through reflection.
    ReflectionCall "reflection-call" Managed -> Some(CallTarget::Managed),
    /// Calls a method through reflection that was called so before: later runtimes have emitted code for that.
    ReflectionCallAgain "reflection-call-again" Managed -> Some(CallTarget::Managed),
    /// Calls a method the first time that any statement of this kind is reached for it.
    CallOnce "call-once" Managed -> Some(CallTarget::Managed),
    /// Starts the thread that begins with a method.
    StartThread "start-thread" Managed -> Some(CallTarget::Managed),
    /// Waits for the end of the thread that begins with a method.
    JoinThread "join-thread" Managed -> Some(CallTarget::Managed),
    /// Has a method called for each exception before it is handled.
    HandleFirstChance "handle-first-chance" Managed -> Some(CallTarget::Managed),
    /// Has a method called for an exception that nothing catches.
    HandleUnhandled "handle-unhandled" Managed -> Some(CallTarget::Managed),
    /// Has a method called at the end of the process.
    HandleProcessExit "handle-process-exit" Managed -> Some(CallTarget::Managed),
    /// Ends the process.
    Exit "exit" Managed -> None,
    /// Ends the process at once, as after a fatal error.
    FailFast "fail-fast" Managed -> None,
    /// Exhausts the stack, which ends the process.
    ExhaustStack "exhaust-stack" Managed -> None,
    /// Makes the runtime execute a class constructor.
    ClassConstructor "class-constructor" Managed -> Some(CallTarget::Managed),
    /// Calls an FCall, with a Frame if FCalls of this runtime have one.
    FCall "fcall" Managed -> None,
    /// Ready-to-run code looks up something, which may load a class.
    DynamicHelper "dynamic-helper" Managed -> None,
    /// Takes a free monitor.
    MonitorEnter "monitor-enter" Managed -> None,
    /// Waits on a monitor.
    MonitorWait "monitor-wait" Managed -> None,
    /// Sleeps.
    Sleep "sleep" Managed -> None,
    /// Sets the name of the current thread, or of the one that the program starts with the method.
    NameThread "name-thread" Managed -> None,
    /// Loads an assembly: that of a named method, or any other.
    LoadAssembly "load-assembly" Managed -> None,
    /// Looks up a class by its name, which loads it: that of a named method, or any other.
    LoadClass "load-class" Managed -> None,
    /// Compiles the method again while it runs, where the runtime replaces code on the stack.
    ReplaceOnStack "replace-on-stack" Managed -> None,
    /// Has the thread of tiered compilation compile a method again.
    TierUp "tier-up" Managed -> Some(CallTarget::Managed),
    /// Unloads a collectible assembly. A named method belongs to that assembly: its code is removed
    /// unless a thread executes it.
    UnloadAssembly "unload-assembly" Managed -> None,
    /// Destroys a dynamic method. The code of a named method is removed unless a thread executes
    /// it.
    UnloadDynamicMethod "unload-dynamic-method" Managed -> None,
    /// Creates a GC handle.
    CreateHandle "create-handle" Managed -> None,
    /// Creates a GC handle of no object.
    CreateEmptyHandle "create-empty-handle" Managed -> None,
    /// Destroys a GC handle.
    DestroyHandle "destroy-handle" Managed -> None,
    /// Triggers a full GC.
    Collect "collect" Managed -> None,
    /// Triggers a full GC by a method that the compiler has inlined.
    CollectInlined "collect-inlined" Managed -> None,
    /// Triggers a GC of generation 0.
    CollectYoungest "collect-generation-0" Managed -> None,
    /// Triggers a GC of generations 0 and 1.
    CollectYoung "collect-generation-1" Managed -> None,
    /// Triggers a full GC that moves objects.
    Compact "collect-compacting" Managed -> None,
    /// Allocates an object, which requires a GC.
    NewWithGc "new-with-gc" Managed -> None,
    /// Allocates an object whose finalizer the method is.
    NewFinalizable "new-finalizable" Managed -> Some(CallTarget::Managed),
    /// Waits until the finalizer's thread has run all finalizers.
    AwaitFinalizers "await-finalizers" Managed -> None,
    /// Allocates an object through the helper that has a Frame, and calls its constructor if one is named.
    New "new" Managed -> None,
    /// Allocates an object in the heap of large ones.
    NewLarge "new-large" Managed -> None,
    /// Allocates an object in the heap of pinned ones, where the runtime has one.
    NewPinned "new-pinned" Managed -> None,
    /// Allocates an object that refers to the one that the thread has made last.
    NewReferring "new-referring" Managed -> None,
    /// Allocates an object through a helper without a Frame.
    NewFast "new-fast" Managed -> None,
    /// Writes a reference through a helper that is a leaf without a Frame.
    WriteBarrier "write-barrier" Managed -> None,
    /// Throws an exception: that of a named constructor, which is called first, or any other.
    Raise "raise" Managed -> None,
    /// Throws the exception that was thrown last once more, as `throw e` does.
    RaiseAgain "raise-again" Managed -> None,
    /// Rethrows the exception that a catch has caught.
    Rethrow "rethrow" Managed -> None,
    /// Reads through a null pointer: a hardware fault that the runtime turns into an exception.
    NullDereference "null-dereference" Managed -> None,
    /// Divides by 0: a hardware fault that the runtime turns into an exception.
    DivideByZero "divide-by-zero" Managed -> None,
    /// Fails the check of an array's index.
    FailRangeCheck "fail-range-check" Managed -> None,
    /// Fails a cast.
    FailCast "fail-cast" Managed -> None,
    /// Native code allocates memory from the process's heap, under its lock (H-13).
    Malloc "malloc" Unmanaged -> None,
    /// Native code loads a library under the loader lock. On Windows the library is added to the
    /// inverted function table under a lock of its own (H-11, H-12).
    LoadLibrary "load-library" Unmanaged -> None,
}

impl RuntimeCall {
    /// Returns true if the class of an exception that the call throws is known, by its kind or its constructor.
    pub const fn names_exception(&self) -> bool {
        use RuntimeCallKind::{
            DivideByZero, FailCast, FailRangeCheck, Raise, RaiseAgain, ReflectionCallAgain,
            StartThread,
        };
        match self.kind {
            DivideByZero | FailCast | FailRangeCheck | RaiseAgain | ReflectionCallAgain
            | StartThread => true,
            Raise => self.target.is_some(),
            _ => false,
        }
    }
}

impl RuntimeCallKind {
    /// Returns true if control leaves the function with the call.
    pub const fn leaves(self) -> bool {
        matches!(self, Self::TailCallByHelper)
    }

    /// Returns true if the call allocates an object in a heap of its own, or one with a reference.
    pub const fn says_heap(self) -> bool {
        matches!(self, Self::NewLarge | Self::NewPinned | Self::NewReferring)
    }

    /// Returns true if the call throws.
    pub const fn throws(self) -> bool {
        matches!(
            self,
            Self::Raise
                | Self::RaiseAgain
                | Self::Rethrow
                | Self::NullDereference
                | Self::DivideByZero
                | Self::FailRangeCheck
                | Self::FailCast
        )
    }

    /// Returns true if the call throws, or the class library throws again what its target throws.
    pub const fn may_throw(self) -> bool {
        self.throws() || matches!(self, Self::ReflectionCallAgain | Self::StartThread)
    }

    /// Returns true if the statement may name a method: one whose code it removes, which it does not call, one of the
    /// assembly or class that it loads, the constructor of an exception, or the first method of a thread.
    pub const fn may_name_method(self) -> bool {
        matches!(
            self,
            Self::UnloadAssembly
                | Self::UnloadDynamicMethod
                | Self::LoadAssembly
                | Self::LoadClass
                | Self::New
                | Self::Raise
                | Self::NameThread
        )
    }

    /// Returns the kind with this keyword.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}
