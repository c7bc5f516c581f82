//! Errors in compact unwind information.

use thiserror::Error;

/// Compact unwind information that cannot be used, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{problem}, at __unwind_info+{offset:#x}")]
pub struct CompactError {
    /// The fault.
    pub problem: CompactProblem,
    /// Offset of the faulty structure in `__unwind_info`, or in `__compact_unwind` of an object file.
    pub offset: u32,
}

/// A fault in compact unwind information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompactProblem {
    /// The section's version is not 1.
    #[error("version {0} is unsupported")]
    Version(u32),
    /// A structure goes beyond the end of the section.
    #[error("a structure is cut off by the section's end")]
    CutOff,
    /// The kind of a second-level page is neither regular (2) nor compressed (3).
    #[error("the second-level page has the unknown kind {0}")]
    PageKind(u32),
    /// The entries do not ascend, so they cannot be listed.
    #[error("the entries do not ascend by address")]
    Order,
    /// An entry's encoding is in neither array of encodings.
    #[error("there is no encoding with index {0}")]
    EncodingIndex(u8),
    /// An encoding has a mode that x86-64 does not have.
    #[error("the encoding {0:#010x} has an unknown mode")]
    Mode(u32),
    /// The saved registers of an encoding are impossible.
    #[error("the encoding {0:#010x} has impossible saved registers")]
    Registers(u32),
    /// The frame is smaller than what it has to hold.
    #[error("the frame of encoding {0:#010x} is too small")]
    FrameSize(u32),
    /// The function has no `sub rsp, imm32` at the place that an encoding names.
    #[error("the function has no sub rsp, imm32 where encoding {0:#010x} says")]
    StackSize(u32),
    /// An encoding refers to call frame information that does not exist.
    #[error("there is no call frame information for the encoding {0:#010x}")]
    Dwarf(u32),
}
