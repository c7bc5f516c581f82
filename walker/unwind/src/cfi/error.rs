//! Errors in call frame information.

use core::fmt;
use thiserror::Error;

/// A section of call frame information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameSection {
    /// `.eh_frame`
    EhFrame,
    /// `.debug_frame`
    DebugFrame,
}

impl fmt::Display for FrameSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EhFrame => ".eh_frame",
            Self::DebugFrame => ".debug_frame",
        })
    }
}

/// Call frame information that cannot be used, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{problem}, at {section}+{offset:#x}")]
pub struct CfiError {
    /// The fault.
    pub problem: CfiProblem,
    /// The section with the fault.
    pub section: FrameSection,
    /// Offset in the section of the entry, or of the instruction or expression in it.
    pub offset: u32,
}

/// A fault in call frame information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CfiProblem {
    /// An entry is cut off by the section's end, or an instruction by that of its entry.
    #[error("an entry or an instruction is cut off")]
    CutOff,
    /// An FDE has no CIE, or its CIE is malformed or of an unknown version, augmentation or pointer
    /// encoding.
    #[error("the CIE is missing, malformed or of an unknown kind")]
    Cie,
    /// The table of `.eh_frame_hdr` lists an FDE at another address than its own.
    #[error("the table of .eh_frame_hdr lists the entry at another address")]
    Header,
    /// A pointer has an unknown encoding, or counts from an unknown base.
    #[error("a pointer has an encoding that cannot be decoded")]
    Encoding,
    /// A number has more than 64 bits.
    #[error("a number has more than 64 bits")]
    Number,
    /// An instruction is unknown.
    #[error("the instruction {0:#04x} is unknown")]
    Instruction(u8),
    /// An instruction has no meaning at its place: an offset without a register, or a step back.
    #[error("an instruction has no meaning at its place")]
    Context,
    /// `DW_CFA_restore_state` without a state, or more than 4 states.
    #[error("remembered and restored states do not pair")]
    States,
    /// An offset is too large for a frame.
    #[error("an offset is out of range")]
    Offset,
    /// A rule takes a value from a register that a walk does not track.
    #[error("DWARF register {0} is not tracked")]
    Register(u16),
    /// There is no rule for the return address.
    #[error("there is no rule for the return address")]
    NoReturnAddress,
    /// There are more rules of unusual form than a sound section of this size has.
    #[error("there are too many rules of unusual form")]
    TooManyRules,
    /// An expression has an operation that is unknown or has no meaning in a frame.
    #[error("an expression has an operation that cannot be evaluated")]
    Operation,
    /// An expression takes a value from an empty stack, leaves no value, or has more than 64.
    #[error("an expression has too few or too many values")]
    ExpressionStack,
    /// An expression divides by zero.
    #[error("an expression divides by zero")]
    DivisionByZero,
    /// An expression branches out of itself.
    #[error("an expression branches out of itself")]
    Branch,
    /// An expression takes more than 1,000 operations.
    #[error("an expression takes more than 1,000 operations")]
    ExpressionTooLong,
}
