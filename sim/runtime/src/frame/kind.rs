//! The kinds of explicit Frames, and how a runtime distinguishes them (contract §3.5).

use crate::generation::{FrameIdentity, Generation};
use core::fmt;

/// Memory layout of a Frame, and its treatment by a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameShape {
    /// A Frame around an inlined P/Invoke; active while its return address is not 0.
    InlinedCall,
    /// A Frame with a TransitionBlock and a method.
    FramedMethod,
    /// A Frame with a TransitionBlock and no method.
    Transition,
    /// A Frame of an FCall or a JIT helper, with machine state that is captured first and completed
    /// later.
    HelperMethod,
    /// A Frame for a hijacked return address.
    Hijack,
    /// A Frame of an interrupted thread: a pointer to a whole CONTEXT.
    Resumable,
    /// A Frame of a fault in managed code: a whole CONTEXT.
    Faulting,
    /// A Frame of an exception thrown by managed code: a CONTEXT of which a part is used.
    Software,
    /// A Frame of an evaluation by a debugger: a pointer to a whole CONTEXT.
    FuncEval,
    /// A Frame of a tail call through the helper.
    TailCall,
    /// A Frame of a call from unmanaged to managed code.
    UnmanagedToManaged,
    /// A Frame without a caller to continue at.
    Mark,
}

/// Defines each kind as an enum variant with its class name in the runtime and its shape.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident $name:literal $shape:ident,)*) => {
        /// A kind of Frame: a class of the runtime.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FrameKind {
            $(
                #[doc = concat!("`", $name, "`.")]
                $(#[doc = $doc])*
                $kind,
            )*
        }

        impl FrameKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the class name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns the shape.
            pub const fn shape(self) -> FrameShape {
                match self { $(Self::$kind => FrameShape::$shape,)* }
            }
        }
    };
}

kinds! {
    InlinedCall "InlinedCallFrame" InlinedCall,
    Resumable "ResumableFrame" Resumable,
    RedirectedThread "RedirectedThreadFrame" Resumable,
    FaultingException "FaultingExceptionFrame" Faulting,
    SoftwareException "SoftwareExceptionFrame" Software,
    FuncEval "FuncEvalFrame" FuncEval,
    HelperMethod "HelperMethodFrame" HelperMethod,
    HelperMethod1Obj "HelperMethodFrame_1OBJ" HelperMethod,
    HelperMethod2Obj "HelperMethodFrame_2OBJ" HelperMethod,
    HelperMethod3Obj "HelperMethodFrame_3OBJ" HelperMethod,
    HelperMethodProtectObj "HelperMethodFrame_PROTECTOBJ" HelperMethod,
    ComMethod "ComMethodFrame" UnmanagedToManaged,
    ComPlusMethod "ComPlusMethodFrame" FramedMethod,
    ComPrestubMethod "ComPrestubMethodFrame" UnmanagedToManaged,
    PInvokeCalli "PInvokeCalliFrame" FramedMethod,
    Hijack "HijackFrame" Hijack,
    PrestubMethod "PrestubMethodFrame" FramedMethod,
    CallCountingHelper "CallCountingHelperFrame" FramedMethod,
    StubDispatch "StubDispatchFrame" FramedMethod,
    ResolveHelper "ResolveHelperFrame" FramedMethod,
    ExternalMethod "ExternalMethodFrame" FramedMethod,
    DynamicHelper "DynamicHelperFrame" FramedMethod,
    ProtectValueClass "ProtectValueClassFrame" Mark,
    DebuggerClassInitMark "DebuggerClassInitMarkFrame" Mark,
    DebuggerExit "DebuggerExitFrame" Mark,
    DebuggerU2MCatchHandler "DebuggerU2MCatchHandlerFrame" Mark,
    ExceptionFilter "ExceptionFilterFrame" Mark,
    StubHelper "StubHelperFrame" Transition,
    SecureDelegate "SecureDelegateFrame" FramedMethod,
    Multicast "MulticastFrame" FramedMethod,
    TailCall "TailCallFrame" TailCall,
    UMThkCall "UMThkCallFrame" UnmanagedToManaged,
    Gc "GCFrame" Mark,
    ContextTransition "ContextTransitionFrame" Mark,
    ProtectByRefs "ProtectByRefsFrame" Mark,
    DebuggerSecurityCodeMark "DebuggerSecurityCodeMarkFrame" Mark,
    AssumeByrefFromJitStack "AssumeByrefFromJITStack" Mark,
}

impl FrameKind {
    /// Returns the kind with this class name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns true if a runtime of `generation` creates such Frames.
    pub fn exists_in(self, generation: Generation) -> bool {
        match self {
            Self::SoftwareException => generation.has_software_exception_frames(),
            Self::HelperMethod
            | Self::HelperMethod1Obj
            | Self::HelperMethod2Obj
            | Self::HelperMethod3Obj
            | Self::HelperMethodProtectObj => generation.has_helper_method_frames(),
            // Both left the chain at the same time. The kinds listed below were removed when the
            // identity of Frames changed from vtables to numbers.
            Self::Gc | Self::ContextTransition => generation.has_gc_frames(),
            Self::CallCountingHelper => !generation.has_gc_frames(),
            Self::StubHelper
            | Self::SecureDelegate
            | Self::Multicast
            | Self::TailCall
            | Self::UMThkCall
            | Self::ProtectByRefs
            | Self::DebuggerSecurityCodeMark
            | Self::AssumeByrefFromJitStack => generation.frame_identity() == FrameIdentity::Vtable,
            Self::ComMethod | Self::ComPlusMethod | Self::ComPrestubMethod => {
                generation.has_com_frames()
            }
            Self::ResolveHelper => generation.has_resolve_helper_frames(),
            _ => true,
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Address (VA) of the simulated runtime's vtables: one for each kind of Frame.
const VTABLES: u64 = 0x7FF8_2040_0000;

/// Distance from one vtable to the next, in bytes.
const VTABLE_SIZE: u64 = 0x100;

/// Maps the first words of a process's Frames to Frame kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameIdentities {
    /// Ascending by word.
    words: Vec<(u64, FrameKind)>,
}

impl FrameIdentities {
    /// Returns the identities of the simulated runtime: vtables, or the numbers that the newest
    /// runtime assigns to its kinds in order.
    pub fn of(generation: Generation) -> Self {
        let kinds = FrameKind::ALL.iter().copied().filter(|kind| kind.exists_in(generation));
        let words = match generation.frame_identity() {
            FrameIdentity::Vtable => {
                kinds.map(|kind| (VTABLES + VTABLE_SIZE * kind as u64, kind)).collect()
            }
            FrameIdentity::Number => (1..).zip(kinds).collect(),
        };
        Self { words }
    }

    /// Maps `word` to `kind`. Returns false if the word already stands for another kind.
    pub fn insert(&mut self, word: u64, kind: FrameKind) -> bool {
        match self.words.binary_search_by_key(&word, |(word, _)| *word) {
            Ok(index) => self.words.get(index).is_some_and(|(_, other)| *other == kind),
            Err(index) => {
                self.words.insert(index, (word, kind));
                true
            }
        }
    }

    /// Returns the kind that `word` stands for.
    pub fn kind(&self, word: u64) -> Option<FrameKind> {
        let index = self.words.binary_search_by_key(&word, |(word, _)| *word).ok()?;
        self.words.get(index).map(|(_, kind)| *kind)
    }

    /// Returns a word that stands for `kind`.
    pub fn word(&self, kind: FrameKind) -> Option<u64> {
        self.words.iter().find(|(_, other)| *other == kind).map(|(word, _)| *word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers were observed in walks of .NET 10 on Windows.
    #[test]
    fn numbers_are_those_that_were_observed() {
        let identities = FrameIdentities::of(Generation::Net10Windows);
        for (number, kind) in [
            (1, FrameKind::InlinedCall),
            (5, FrameKind::SoftwareException),
            (10, FrameKind::PInvokeCalli),
            (12, FrameKind::PrestubMethod),
            (16, FrameKind::DynamicHelper),
            (20, FrameKind::DebuggerU2MCatchHandler),
        ] {
            assert_eq!(identities.kind(number), Some(kind));
            assert_eq!(identities.word(kind), Some(number));
        }
        assert_eq!(identities.kind(0), None);
        assert_eq!(identities.word(FrameKind::Gc), None);
    }

    #[test]
    fn all_kinds_of_a_generation_are_distinguished() {
        for generation in Generation::ALL {
            let identities = FrameIdentities::of(generation);
            for kind in FrameKind::ALL {
                let word = identities.word(*kind);
                assert_eq!(word.is_some(), kind.exists_in(generation), "{kind}, {generation}");
                assert!(word.is_none_or(|word| identities.kind(word) == Some(*kind)));
                assert_eq!(FrameKind::from_name(kind.name()), Some(*kind));
            }
        }
    }

    #[test]
    fn a_process_may_have_words_of_its_own() {
        let mut identities = FrameIdentities::of(Generation::Net9Unix);
        assert!(identities.insert(0x1234, FrameKind::Hijack));
        assert!(identities.insert(0x1234, FrameKind::Hijack));
        assert!(!identities.insert(0x1234, FrameKind::InlinedCall));
        assert_eq!(identities.kind(0x1234), Some(FrameKind::Hijack));
    }
}
