//! Statements by which a program goes through the runtime: written by who writes a program, replaced
//! by the runtime's own code when a world is built.

use super::program::FunctionId;

/// What a function has the runtime do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeCall {
    /// What.
    pub kind: RuntimeCallKind,
    /// What is called in the end, if it is a call; or what is unloaded.
    pub target: Option<FunctionId>,
}

/// A function that is called through the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A method.
    Managed,
    /// A function of unmanaged code.
    Unmanaged,
}

/// A kind is an enum variant, its word in texts, what kind of code it stands in, and what it calls.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident $word:literal $place:ident -> $target:expr,)*) => {
        /// A way through the runtime.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RuntimeCallKind {
            $($(#[doc = $doc])* $kind,)*
        }

        impl RuntimeCallKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its word in texts.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$kind => $word,)* }
            }

            /// Whether it stands in managed code.
            #[must_use]
            pub const fn is_in_managed_code(self) -> bool {
                match self { $(Self::$kind => matches!(Target::$place, Target::Managed),)* }
            }

            /// What it calls, if it calls a function of the program.
            #[must_use]
            pub const fn target(self) -> Option<Target> {
                match self { $(Self::$kind => $target,)* }
            }
        }
    };
}

kinds! {
    /// Managed code calls unmanaged code; the transition is part of the method.
    PInvoke "p-invoke" Managed -> Some(Target::Unmanaged),
    /// The same through an IL stub.
    PInvokeStub "p-invoke-stub" Managed -> Some(Target::Unmanaged),
    /// The same between the helpers by which ready-to-run code does it (C-156).
    PInvokeByHelper "p-invoke-by-helper" Managed -> Some(Target::Unmanaged),
    /// The same without a transition, where that exists; else through a stub.
    PInvokeSuppressed "p-invoke-suppressed" Managed -> Some(Target::Unmanaged),
    /// Calls unmanaged code by a pointer; the stub is looked up first.
    PInvokeCalli "p-invoke-calli" Managed -> Some(Target::Unmanaged),
    /// A P/Invoke with variable arguments; the stub is looked up first.
    PInvokeVararg "p-invoke-vararg" Managed -> Some(Target::Unmanaged),
    /// Managed code calls a COM method through an IL stub. Without COM it is a P/Invoke.
    ComCall "com-call" Managed -> Some(Target::Unmanaged),
    /// The same by the stub that all COM methods share.
    ComCallGeneric "com-call-generic" Managed -> Some(Target::Unmanaged),
    /// Unmanaged code calls a managed method by COM. Without COM it is a reverse P/Invoke.
    ComMethod "com-method" Unmanaged -> Some(Target::Managed),
    /// Unmanaged code calls a managed method, by a delegate's thunk.
    ReversePInvoke "reverse-p-invoke" Unmanaged -> Some(Target::Managed),
    /// Calls a method that has not been compiled yet.
    FirstCall "first-call" Managed -> Some(Target::Managed),
    /// Calls a static method by a delegate: a thunk shuffles the arguments and jumps.
    OpenDelegate "open-delegate" Managed -> Some(Target::Managed),
    /// Calls a method twice, by a delegate of two.
    MulticastDelegate "multicast-delegate" Managed -> Some(Target::Managed),
    /// Calls a method by a delegate that wraps another one.
    WrapperDelegate "wrapper-delegate" Managed -> Some(Target::Managed),
    /// Calls a method from ready-to-run code for the first time: the call is bound first.
    LazyCall "lazy-call" Managed -> Some(Target::Managed),
    /// Calls a method through virtual stub dispatch, which resolves it first.
    VirtualCall "virtual-call" Managed -> Some(Target::Managed),
    /// Leaves for a method by the tail call helper.
    TailCallByHelper "tail-call-by-helper" Managed -> Some(Target::Managed),
    /// Calls a method by reflection.
    ReflectionCall "reflection-call" Managed -> Some(Target::Managed),
    /// Has the runtime run a class constructor.
    ClassConstructor "class-constructor" Managed -> Some(Target::Managed),
    /// Calls an FCall that has a Frame, if FCalls have.
    FCall "fcall" Managed -> None,
    /// Ready-to-run code looks something up, which may load a class.
    DynamicHelper "dynamic-helper" Managed -> None,
    /// Takes a free monitor.
    MonitorEnter "monitor-enter" Managed -> None,
    /// Waits for a monitor.
    MonitorWait "monitor-wait" Managed -> None,
    /// Sleeps.
    Sleep "sleep" Managed -> None,
    /// Names its thread.
    NameThread "name-thread" Managed -> None,
    /// Loads an assembly.
    LoadAssembly "load-assembly" Managed -> None,
    /// Unloads an assembly that can be collected. A method that it names is of that assembly: its code
    /// goes away, unless a thread executes it.
    UnloadAssembly "unload-assembly" Managed -> None,
    /// Destroys a dynamic method, the code of which goes away if it is named and no thread executes it.
    UnloadDynamicMethod "unload-dynamic-method" Managed -> None,
    /// Creates a handle of the GC.
    CreateHandle "create-handle" Managed -> None,
    /// Destroys one.
    DestroyHandle "destroy-handle" Managed -> None,
    /// Has everything collected.
    Collect "collect" Managed -> None,
    /// Allocates an object, for which a GC is needed.
    NewWithGc "new-with-gc" Managed -> None,
    /// Allocates an object by the helper that has a Frame.
    New "new" Managed -> None,
    /// Allocates an object by a helper without Frame.
    NewFast "new-fast" Managed -> None,
    /// Writes a reference: a helper that is a leaf without Frame.
    WriteBarrier "write-barrier" Managed -> None,
    /// Throws an exception.
    Raise "raise" Managed -> None,
    /// Throws the exception again that a catch has caught.
    Rethrow "rethrow" Managed -> None,
    /// Reads through a null pointer: a hardware fault, which the runtime makes an exception.
    NullDereference "null-dereference" Managed -> None,
    /// Native code takes memory from the process's heap, under its lock (H-13).
    Malloc "malloc" Unmanaged -> None,
    /// Native code loads a library, under the loader lock; on Windows the inverted function table gets
    /// to know it, under a lock of its own (H-11, H-12).
    LoadLibrary "load-library" Unmanaged -> None,
}

impl RuntimeCallKind {
    /// Whether control leaves the function with it.
    #[must_use]
    pub const fn leaves(self) -> bool {
        matches!(self, Self::TailCallByHelper)
    }

    /// Whether it throws.
    #[must_use]
    pub const fn throws(self) -> bool {
        matches!(self, Self::Raise | Self::Rethrow | Self::NullDereference)
    }

    /// Whether it may name a method, the code of which it takes away. It does not call it.
    #[must_use]
    pub const fn may_unload(self) -> bool {
        matches!(self, Self::UnloadAssembly | Self::UnloadDynamicMethod)
    }

    /// The one with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}
