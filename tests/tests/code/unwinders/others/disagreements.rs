//! The known mistakes of other unwinders: each step that differs from execution must be one of
//! them.

use super::*;
use crate::unwinders::others::site::Site;

/// A mistake of another unwinder. `UNWINDERS.md` has a minimal case of each, under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mistake {
    /// A jump inside a function is taken for a tail call.
    JumpInside,
    /// `rep ret` and `bnd ret` are not recognized as returns, so that the epilogue is not
    /// recognized.
    PrefixedReturn,
    /// `ret imm16` is not recognized as a return.
    ReturnWithImmediate,
    /// `iretq` is not recognized as a return.
    InterruptReturn,
    /// UNWIND_INFO of version 3 is refused.
    Version3,
    /// `vzeroupper` is not recognized as a part of an epilogue.
    Vzeroupper,
    /// `jmp rax`, with or without REX.W, is not recognized as a tail call.
    JumpToRegister,
    /// An epilogue of more than 12 instructions is not recognized.
    LongEpilogue,
    /// The displacement of `lea rsp, [frame register + disp]` is not sign-extended.
    NegativeDisplacement,
    /// `lea rsp, [r12 + disp]` is decoded without its SIB byte.
    FrameInR12,
    /// Saves are located by the frame register before the prologue has set it.
    FrameNotSet,
    /// Saves are located by rsp, which the operations undone so far have changed.
    FrameBaseMoves,
    /// `___chkstk_ms` pushes registers without unwind data.
    Chkstk,
    /// An EPILOG code's operation is used in place of its info.
    EpilogCodesMisread,
    /// In a prologue, EPILOG codes cause operations to be undone that have not been executed.
    EpilogCodesInPrologue,
    /// An image without a function table is unwound by rbp.
    NoFunctionTable,
    /// A step that fails silently becomes a step by rbp.
    FailureHidden,
}

impl Mistake {
    pub(crate) const ALL: [Self; 17] = [
        Self::Version3,
        Self::Vzeroupper,
        Self::JumpInside,
        Self::PrefixedReturn,
        Self::ReturnWithImmediate,
        Self::InterruptReturn,
        Self::JumpToRegister,
        Self::LongEpilogue,
        Self::NegativeDisplacement,
        Self::FrameInR12,
        Self::FrameNotSet,
        Self::FrameBaseMoves,
        Self::Chkstk,
        Self::EpilogCodesMisread,
        Self::EpilogCodesInPrologue,
        Self::NoFunctionTable,
        Self::FailureHidden,
    ];

    /// Returns true if the unwinder makes this mistake.
    pub(crate) const fn is_of(self, which: Which) -> bool {
        match self {
            Self::EpilogCodesMisread => matches!(which, Which::PeUnwindInfo),
            Self::EpilogCodesInPrologue | Self::FailureHidden | Self::NoFunctionTable => {
                matches!(which, Which::Framehop)
            }
            _ => true,
        }
    }

    /// Returns true if the mistake can cause this difference from the truth in a step from this
    /// frame.
    pub(crate) fn explains(self, site: &Site<'_>, difference: &Difference) -> bool {
        match self {
            Self::JumpInside => {
                site.is_interrupted(Role::Body) && matches!(site.bytes()[..], [0xE9 | 0xEB, ..])
            }
            Self::PrefixedReturn => matches!(site.way_out()[..], [0xF2 | 0xF3, 0xC3]),
            Self::ReturnWithImmediate => site.way_out().starts_with(&[0xC2]),
            Self::InterruptReturn => site.way_out() == [0x48, 0xCF],
            Self::Version3 => site.has_version_3(),
            Self::Vzeroupper => site.epilogue().contains(&vec![0xC5, 0xF8, 0x77]),
            Self::JumpToRegister => {
                matches!(site.way_out()[..], [0x48, 0xFF, 0xE0] | [0xFF, 0xE0])
            }
            // The instruction that leaves the function does not count.
            Self::LongEpilogue => site.epilogue().len() > 13,
            Self::NegativeDisplacement => {
                let displacement = match site.bytes()[..] {
                    [0x48 | 0x49, 0x8D, modrm, .., last] if modrm >> 6 != 0 => last,
                    _ => 0,
                };
                site.is_interrupted(Role::Epilogue) && displacement >= 0x80
            }
            Self::FrameInR12 => {
                site.is_interrupted(Role::Epilogue)
                    && matches!(site.bytes()[..], [0x49, 0x8D, 0x64 | 0xA4, 0x24, ..])
            }
            Self::FrameNotSet => {
                site.precedes_frame() && difference.only_registers(|gpr| site.saves(gpr))
            }
            // Without a frame register in the unwind data, home slots are located by rsp.
            Self::FrameBaseMoves => {
                site.frame_register().is_none()
                    && Gpr::ALL.into_iter().any(|gpr| site.has_home(gpr))
                    && difference.only_registers(|gpr| site.has_home(gpr))
            }
            Self::Chkstk => {
                let placed = site.placed();
                placed.is_some_and(|placed| placed.mistake == Some(WindowsMistake::Chkstk))
            }
            Self::EpilogCodesMisread => {
                // With overflow checks, pe-unwind-info panics if the misread distance is too large.
                let overflows = site.end_rva().is_some_and(|end| end < 0x700);
                site.has_epilog_codes()
                    && (site.is_interrupted(Role::Epilogue)
                        || overflows && *difference == Difference::Failed)
            }
            Self::EpilogCodesInPrologue => {
                let placed = site.placed();
                site.has_epilog_codes() && placed.is_some_and(|p| p.role == Role::Prologue)
            }
            Self::NoFunctionTable => site.lacks_table(),
            Self::FailureHidden => {
                site.pe_unwind_info_fails && matches!(difference, Difference::Registers { .. })
            }
        }
    }
}
