//! Statements by which a program goes through the runtime: written by who writes a program, replaced
//! by the runtime's own code when a world is built.

use super::program::FunctionId;

/// What a function has the runtime do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeCall {
    /// What.
    pub kind: RuntimeCallKind,
    /// What is called in the end, if it is a call.
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
    /// Unmanaged code calls a managed method, by a delegate's thunk.
    ReversePInvoke "reverse-p-invoke" Unmanaged -> Some(Target::Managed),
    /// Calls a method that has not been compiled yet.
    FirstCall "first-call" Managed -> Some(Target::Managed),
    /// Allocates an object by the helper that has a Frame.
    New "new" Managed -> None,
    /// Allocates an object by a helper without Frame.
    NewFast "new-fast" Managed -> None,
    /// Writes a reference: a helper that is a leaf without Frame.
    WriteBarrier "write-barrier" Managed -> None,
}

impl RuntimeCallKind {
    /// The one with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}
