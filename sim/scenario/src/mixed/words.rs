//! The words for what a walk finds.

use crate::expect::UnwindErrorKind;
use clr_walker::mixed::{Completeness, FrameKind, Reason, SeedRefused};

/// What a frame's code is, without where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants of FrameKind tell it")]
pub enum MixedFrameKind {
    Managed,
    Hidden,
    Native,
    Unknown,
}

impl From<FrameKind> for MixedFrameKind {
    fn from(kind: FrameKind) -> Self {
        match kind {
            FrameKind::Managed(_) => Self::Managed,
            FrameKind::Hidden(_) => Self::Hidden,
            FrameKind::Native { .. } => Self::Native,
            FrameKind::Unknown => Self::Unknown,
        }
    }
}

/// Why something is missing, without numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants of Reason and SeedRefused tell it")]
pub enum ReasonKind {
    NotStopped,
    StaleContext,
    Running,
    NotUnwound,
    FramePointers,
    Unwind(UnwindErrorKind),
    NotACall,
    OutsideStack,
    Disagreement,
    Lookup,
    SeedNoContext,
    SeedOutsideStack,
    SeedUnaligned,
    SeedLostRegister,
    SeedNoCaller,
    Snapshot,
    Suspend,
    Unreported,
    BufferFull,
}

impl From<Reason> for ReasonKind {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::NotStopped => Self::NotStopped,
            Reason::StaleContext => Self::StaleContext,
            Reason::Running => Self::Running,
            Reason::NotUnwound => Self::NotUnwound,
            Reason::FramePointers => Self::FramePointers,
            Reason::Unwind(error) => Self::Unwind(error.into()),
            Reason::NotACall { .. } => Self::NotACall,
            Reason::OutsideStack { .. } => Self::OutsideStack,
            Reason::Disagreement { .. } => Self::Disagreement,
            Reason::Lookup(_) => Self::Lookup,
            Reason::Seed(SeedRefused::NoContext) => Self::SeedNoContext,
            Reason::Seed(SeedRefused::OutsideStack { .. }) => Self::SeedOutsideStack,
            Reason::Seed(SeedRefused::Unaligned { .. }) => Self::SeedUnaligned,
            Reason::Seed(SeedRefused::LostRegister { .. }) => Self::SeedLostRegister,
            Reason::Seed(SeedRefused::NoCaller { .. }) => Self::SeedNoCaller,
            Reason::Snapshot(_) => Self::Snapshot,
            Reason::Suspend(_) => Self::Suspend,
            Reason::Unreported => Self::Unreported,
            Reason::BufferFull => Self::BufferFull,
        }
    }
}

impl ReasonKind {
    /// Whether it is what a method of the runtime returned.
    #[must_use]
    pub const fn is_result(self) -> bool {
        matches!(self, Self::Lookup | Self::Snapshot | Self::Suspend)
    }
}

/// How much of a stack a walk claims to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MixedClaim {
    /// Every frame.
    Whole,
    /// Every frame that may be reported, and the native ones between them.
    Reportable,
    /// Less: the first reason, from the leaf.
    Partial(ReasonKind),
}

impl From<Completeness> for MixedClaim {
    fn from(completeness: Completeness) -> Self {
        match completeness {
            Completeness::Whole => Self::Whole,
            Completeness::Reportable => Self::Reportable,
            Completeness::Partial(reason) => Self::Partial(reason.into()),
        }
    }
}
