//! The mistakes that can be planted in the second unwinder of UNWIND_INFO.

use std::fmt;

/// A mistake that real unwinders have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// An instruction that ends exactly at rip is taken for one that has not run.
    CodeOffsetOffByOne,
    /// SAVE_NONVOL is scaled like SAVE_XMM128.
    IntegerSavesScaledBy16,
    /// The parents of a chain are not followed.
    ChainIgnored,
    /// The offset into the function is not recomputed for the parent.
    ChainWithChildOffset,
    /// `add rsp` and `lea rsp` of an epilogue cannot decrease rsp.
    ZeroExtendedDisplacement,
    /// The target of a relative jump is not checked.
    JumpInsideTakenForEpilogue,
    /// `rex.w jmp r/m` is taken for a jump inside the function.
    RexJumpNotSeen,
    /// The pops of an epilogue are assigned to registers in reverse order.
    PopOrderSwapped,
    /// The 32-bit operand of ALLOC_LARGE is scaled, too.
    AllocLargeScaledTwice,
    /// Version 2: EPILOG codes are counted from the function's begin.
    EpilogSlotsAsOffsets,
    /// Saves are located relative to the current value of rsp or of the frame register.
    FrameBaseRecomputed,
    /// A call that is a function's last instruction is attributed to the next function.
    ReturnAddressNotDecremented,
}

impl Bug {
    /// All mistakes.
    pub const ALL: [Self; 12] = [
        Self::CodeOffsetOffByOne,
        Self::IntegerSavesScaledBy16,
        Self::ChainIgnored,
        Self::ChainWithChildOffset,
        Self::ZeroExtendedDisplacement,
        Self::JumpInsideTakenForEpilogue,
        Self::RexJumpNotSeen,
        Self::PopOrderSwapped,
        Self::AllocLargeScaledTwice,
        Self::EpilogSlotsAsOffsets,
        Self::FrameBaseRecomputed,
        Self::ReturnAddressNotDecremented,
    ];
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CodeOffsetOffByOne => {
                "An unwind code is applied only beyond its CodeOffset, not at it."
            }
            Self::IntegerSavesScaledBy16 => "The operand of SAVE_NONVOL is multiplied by 16.",
            Self::ChainIgnored => "Chained unwind info is not followed.",
            Self::ChainWithChildOffset => {
                "A parent's unwind codes are compared with the offset from the child's begin."
            }
            Self::ZeroExtendedDisplacement => {
                "Displacements of add and lea in an epilogue are zero-extended."
            }
            Self::JumpInsideTakenForEpilogue => "Any relative jump ends an epilogue.",
            Self::RexJumpNotSeen => "An indirect jump with REX.W ends no epilogue.",
            Self::PopOrderSwapped => "The registers of an epilogue's pops are taken in reverse.",
            Self::AllocLargeScaledTwice => "The 32-bit operand of ALLOC_LARGE is multiplied by 8.",
            Self::EpilogSlotsAsOffsets => {
                "EPILOG codes are taken as distances from the function's begin."
            }
            Self::FrameBaseRecomputed => {
                "The frame base is computed anew after each undone unwind code."
            }
            Self::ReturnAddressNotDecremented => {
                "Callers are looked up at their return address itself."
            }
        })
    }
}
