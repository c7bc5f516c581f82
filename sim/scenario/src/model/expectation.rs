//! Expected results of bare unwinder walks.

use clr_codegen::FunctionIndex;
use clr_unwind::compat::Rules;
use clr_unwind::{Gpr, Trust, UnwindError};

/// The expected result of a walk by one set of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Rules of the walk.
    pub rules: Rules,
    /// Expected frames, leaf first. The caller outside the program is not included.
    pub frames: Vec<ExpectedFrame>,
    /// Expected end of the walk after the last frame.
    pub ends: WalkEnd,
}

/// An expected frame of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedFrame {
    /// Function of the frame; `None` if its code belongs to no function of the program, as that of
    /// `___chkstk_ms`.
    pub function: Option<FunctionIndex>,
    /// Expected trust of the step to the caller; `None` if it is not checked.
    pub trust: Option<Trust>,
    /// Expected values of some registers, ascending by register.
    pub registers: Vec<(Gpr, u64)>,
}

/// The end of a walk after the expected frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WalkEnd {
    /// The walk reaches the caller outside the program.
    #[default]
    Base,
    /// The end is not checked: only the leaf frames are expected.
    Any,
    /// The step from the last frame fails.
    Error(UnwindErrorKind),
}

/// Defines the kinds of an enum: its variants without what they contain.
macro_rules! kinds {
    ($(#[$doc:meta])+ $kind:ident of $whole:ident: $($variant:ident)+) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind { $(#[expect(missing_docs, reason = "as in the enum")] $variant,)+ }

        impl From<$whole> for $kind {
            fn from(whole: $whole) -> Self {
                match whole { $($whole::$variant { .. } => Self::$variant,)+ }
            }
        }
    };
}
pub(crate) use kinds;

kinds! {
    /// The kind of an [`UnwindError`], without its numbers.
    UnwindErrorKind of UnwindError:
    UnknownCode CallerWithoutEntry EndOfStack NoFrameInformation Cfi Compact CodeContradictsTable
    Stack CodeUnmapped UnwindDataUnmapped UnsupportedVersion InvalidOperation PayloadCutOff
    InvalidEpilogue UnknownFrameType NoFrameRegister ChainTooLong LostRegister NoProgress
    TooManyFrames
}
