//! The words for results of mixed walks.

use crate::model::expectation::{UnwindErrorKind, kinds};
use clr_walker::mixed::{Completeness, FrameKind, Reason, SeedRefused};

kinds! {
    /// The kind of a frame's code, without its position.
    MixedFrameKind of FrameKind: Managed Hidden Native Unknown
}

/// The reason of a gap, without numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants of Reason and SeedRefused are documented")]
pub enum ReasonKind {
    NotStopped,
    StaleContext,
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
    /// Returns true if the reason is the result of a runtime method.
    #[must_use]
    pub const fn is_result(self) -> bool {
        matches!(self, Self::Lookup | Self::Snapshot | Self::Suspend)
    }
}

/// The completeness that a walk claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MixedClaim {
    /// The walk has every frame.
    Whole,
    /// The walk has every frame that may be reported, and the native frames between them.
    Reportable,
    /// The same without the native leaf, which runs on.
    WithoutLeaf,
    /// The walk has every frame, if a guess is right.
    Guessed,
    /// The walk has fewer frames: the first reason, from the leaf.
    Partial(ReasonKind),
}

impl From<Completeness> for MixedClaim {
    fn from(completeness: Completeness) -> Self {
        match completeness {
            Completeness::Whole => Self::Whole,
            Completeness::Reportable => Self::Reportable,
            Completeness::WithoutLeaf => Self::WithoutLeaf,
            Completeness::Guessed(_) => Self::Guessed,
            Completeness::Partial(reason) => Self::Partial(reason.into()),
        }
    }
}
