//! The mistakes that can be planted in the second reader of CFI.

use std::fmt;

/// A mistake that real readers of CFI have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// A row begins one byte late.
    AdvanceLocOffByOne,
    /// The CFA changes one row late: only after the push that causes the change has run.
    CfaAfterPush,
    /// States are not remembered, so that only the initial state can be restored.
    RestoreWithoutRemember,
    /// Restoring a state leaves the CFA as it is.
    RestoreKeepsCfa,
    /// `DW_OP_deref` reads nothing.
    DerefMissing,
    /// A caller's row is looked up at its return address, not one byte before.
    RowAtReturnAddress,
    /// An interrupted frame is treated as one that made a call.
    SignalFrameIsCall,
    /// Registers 4 and 7 are numbered as in machine code.
    RegisterOrderMixed,
    /// Pushed arguments are added to the CFA.
    ArgumentsMoveCfa,
    /// The sign of the data alignment factor is ignored.
    OffsetsAreAboveCfa,
    /// A signal handler on its own stack is refused.
    SignalStackRefused,
}

impl Bug {
    /// All mistakes.
    pub const ALL: [Self; 11] = [
        Self::AdvanceLocOffByOne,
        Self::CfaAfterPush,
        Self::RestoreWithoutRemember,
        Self::RestoreKeepsCfa,
        Self::DerefMissing,
        Self::RowAtReturnAddress,
        Self::SignalFrameIsCall,
        Self::RegisterOrderMixed,
        Self::ArgumentsMoveCfa,
        Self::OffsetsAreAboveCfa,
        Self::SignalStackRefused,
    ];
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdvanceLocOffByOne => "A row is taken only beyond its first byte, not at it.",
            Self::CfaAfterPush => "A new CFA offset is taken only from the next row on.",
            Self::RestoreWithoutRemember => {
                "DW_CFA_remember_state is ignored, and DW_CFA_restore_state restores the CIE's rules."
            }
            Self::RestoreKeepsCfa => "DW_CFA_restore_state restores the registers, not the CFA.",
            Self::DerefMissing => "DW_OP_deref leaves the address on the stack.",
            Self::RowAtReturnAddress => "Callers are looked up at their return address itself.",
            Self::SignalFrameIsCall => "The augmentation S is ignored.",
            Self::RegisterOrderMixed => "The DWARF numbers 4 and 7 are taken for each other.",
            Self::ArgumentsMoveCfa => "DW_CFA_GNU_args_size is added to the CFA.",
            Self::OffsetsAreAboveCfa => "Offsets are multiplied by 8 instead of -8.",
            Self::SignalStackRefused => {
                "Who was interrupted by a signal is refused where rsp goes down."
            }
        })
    }
}
