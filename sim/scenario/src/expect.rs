//! What a walk has to find.

use clr_codegen::FunctionId;
use clr_walker::registers::Gpr;
use clr_walker::unwind::{Rules, Trust, UnwindError};

/// What a walk by one set of rules has to find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The rules.
    pub rules: Rules,
    /// The frames, innermost first. The caller outside the program is not among them.
    pub frames: Vec<ExpectedFrame>,
    /// What comes behind the last of them.
    pub ends: WalkEnd,
}

/// A frame that a walk has to find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedFrame {
    /// Its function; `None` if its code belongs to no function of the program, as `___chkstk_ms`
    /// does.
    pub function: Option<FunctionId>,
    /// How its caller is found, if that matters.
    pub trust: Option<Trust>,
    /// Values of some of its registers, ascending by register.
    pub registers: Vec<(Gpr, u64)>,
}

/// How a walk ends behind the expected frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WalkEnd {
    /// It reaches the caller outside the program.
    #[default]
    Base,
    /// It does not matter: only the innermost frames are expected.
    Any,
    /// The step from the last frame fails.
    Error(UnwindErrorKind),
}

/// The kind of an [`UnwindError`], without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants of UnwindError tell it")]
pub enum UnwindErrorKind {
    UnknownCode,
    CallerWithoutEntry,
    EndOfStack,
    NoFrameInformation,
    Cfi,
    Stack,
    CodeUnmapped,
    UnwindDataUnmapped,
    UnsupportedVersion,
    InvalidOperation,
    NoFrameRegister,
    ChainTooLong,
    LostRegister,
    NoProgress,
    TooManyFrames,
}

impl From<UnwindError> for UnwindErrorKind {
    fn from(error: UnwindError) -> Self {
        match error {
            UnwindError::UnknownCode { .. } => Self::UnknownCode,
            UnwindError::CallerWithoutEntry { .. } => Self::CallerWithoutEntry,
            UnwindError::EndOfStack { .. } => Self::EndOfStack,
            UnwindError::NoFrameInformation { .. } => Self::NoFrameInformation,
            UnwindError::Cfi(_) => Self::Cfi,
            UnwindError::Stack(_) => Self::Stack,
            UnwindError::CodeUnmapped { .. } => Self::CodeUnmapped,
            UnwindError::UnwindDataUnmapped { .. } => Self::UnwindDataUnmapped,
            UnwindError::UnsupportedVersion { .. } => Self::UnsupportedVersion,
            UnwindError::InvalidOperation { .. } => Self::InvalidOperation,
            UnwindError::NoFrameRegister { .. } => Self::NoFrameRegister,
            UnwindError::ChainTooLong { .. } => Self::ChainTooLong,
            UnwindError::LostRegister { .. } => Self::LostRegister,
            UnwindError::NoProgress { .. } => Self::NoProgress,
            UnwindError::TooManyFrames { .. } => Self::TooManyFrames,
        }
    }
}
