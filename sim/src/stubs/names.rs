//! The runtime's functions by name: helpers that all programs of a generation share, and stubs that are
//! made for a target.

use crate::code::{FunctionId, RuntimeCallKind};
use crate::generation::Generation;

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
    /// Calls a method from unmanaged code of the runtime.
    CallDescrWorker "CallDescrWorkerInternal",
    /// Switches the mode for a reverse P/Invoke.
    UmThunkStub "UMThunkStub",
    /// Switches the mode in a stub of a reverse P/Invoke.
    ReversePInvokeEnter "JIT_ReversePInvokeEnter",
    /// Switches the mode back.
    ReversePInvokeExit "JIT_ReversePInvokeExit",
    /// Where a method that is not compiled yet is called.
    ThePreStub "ThePreStub",
    /// Has the method compiled.
    PreStubWorker "PreStubWorker",
    /// Compiles it.
    Jit "MethodDesc::JitCompileCode",
    /// Allocates an object, with a Frame.
    New "JIT_New",
    /// What it calls, where the Frame is a transition's.
    NewWorker "JIT_NewWorker",
    /// Takes the memory, and tells the profiler.
    Allocate "AllocateObject",
    /// Allocates an object without Frame.
    NewFast "JIT_NewS_MP_FastPortable",
    /// Writes a reference.
    WriteBarrier "JIT_WriteBarrier",
}

impl Shared {
    /// Whether a generation has it.
    #[must_use]
    pub const fn exists_in(self, generation: Generation) -> bool {
        match self {
            Self::UmThunkStub => generation.has_um_thunk_stub(),
            Self::ReversePInvokeEnter | Self::ReversePInvokeExit => !generation.has_um_thunk_stub(),
            Self::NewWorker => !generation.has_helper_method_frames(),
            _ => true,
        }
    }
}

/// A function that the runtime makes for one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stub {
    /// The IL stub of a P/Invoke.
    PInvoke,
    /// The IL stub of a reverse P/Invoke.
    ReversePInvoke,
    /// What the first call of a method goes through.
    Precode,
}

impl Stub {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::PInvoke, Self::ReversePInvoke, Self::Precode];

    /// What stands before the target's name in its own.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::PInvoke => "IL_STUB_PInvoke:",
            Self::ReversePInvoke => "IL_STUB_ReversePInvoke:",
            Self::Precode => "Precode:",
        }
    }

    /// The stub that a statement needs for its target.
    pub(super) const fn of(kind: RuntimeCallKind) -> Option<Self> {
        match kind {
            RuntimeCallKind::PInvokeStub => Some(Self::PInvoke),
            RuntimeCallKind::ReversePInvoke => Some(Self::ReversePInvoke),
            RuntimeCallKind::FirstCall => Some(Self::Precode),
            RuntimeCallKind::PInvoke
            | RuntimeCallKind::New
            | RuntimeCallKind::NewFast
            | RuntimeCallKind::WriteBarrier => None,
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
