//! The helpers that all programs of a generation share.

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
