//! Walks of whole stacks by the profiler's side, as a text says them, and what each must find.

mod compare;
mod found;
mod make;
mod words;

pub(super) use compare::SiteRow;
pub use compare::{Compared, TrueFrame};
pub use found::{FoundMixed, FoundMixedFrame, FoundMixedItem, MixedDifference};
pub use make::{EachMixed, MixedAt, MixedReport};
pub use words::{MixedClaim, MixedFrameKind, ReasonKind};

use super::snapshot::{ExpectedOutcome, Provenance, SnapshotCaller};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_walker::mixed::{Policy, SeenBy};
use clr_walker::unwind::Trust;

/// How many frames have room in a walk's buffer unless a text says otherwise.
pub const MIXED_ROOM: u32 = 256;

/// A walk of a whole stack, and what it must find on each generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedWalk {
    /// What is particular about it.
    pub title: Option<String>,
    /// The policy.
    pub policy: Policy,
    /// The thread that walks, if it is another one than the policy asks for: the thread itself, or one
    /// that the runtime does not know.
    pub by: Option<SnapshotCaller>,
    /// The callback that it is made in.
    pub in_callback: Option<CallbackKind>,
    /// How many frames have room.
    pub room: u32,
    /// What is expected. The first one that is for a generation counts.
    pub expect: Vec<ExpectedMixed>,
}

/// What a walk must find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedMixed {
    /// On which generations.
    pub on: Generations,
    /// How that is known.
    pub from: Provenance,
    /// Other frames and gaps may stand between these.
    pub others: bool,
    /// Frames, and gaps between them, leaf first.
    pub items: Vec<ExpectedMixedItem>,
    /// How much of the stack the walk claims to have. `None` only if it does not come back.
    pub claim: Option<MixedClaim>,
    /// How `DoStackSnapshot` ends; `None` if it is not called.
    pub result: Option<ExpectedOutcome>,
    /// The clauses that say so.
    pub clauses: Vec<Clause>,
}

/// A part of a stack that is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedMixedItem {
    /// A frame.
    Frame(ExpectedMixedFrame),
    /// A place where something is missing, or may be.
    Gap {
        /// Why.
        reason: ReasonKind,
        /// What a method of the runtime returned, if that is the reason and it matters.
        result: Option<HResult>,
    },
}

/// A frame that is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedMixedFrame {
    /// What its code is.
    pub kind: MixedFrameKind,
    /// Where its ip is, if that matters: in a function, or with an offset exactly there.
    pub label: Option<String>,
    /// Its stack pointer (VA), if that matters.
    pub sp: Option<u64>,
    /// Who saw it, if that matters.
    pub seen_by: Option<SeenBy>,
    /// How it was unwound to, if that matters.
    pub trust: Option<Trust>,
}

impl MixedWalk {
    /// A walk of which nothing is expected.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self {
            title: None,
            policy,
            by: None,
            in_callback: None,
            room: MIXED_ROOM,
            expect: Vec::new(),
        }
    }

    /// The thread that walks.
    #[must_use]
    pub fn walker(&self) -> SnapshotCaller {
        let usual = if self.policy.is_for_itself() {
            SnapshotCaller::Own
        } else {
            SnapshotCaller::NativeWalker
        };
        self.by.unwrap_or(usual)
    }

    /// What is expected on a generation, and its place among all that is.
    #[must_use]
    pub fn expected_on(&self, generation: Generation) -> Option<(usize, &ExpectedMixed)> {
        self.expect.iter().enumerate().find(|(_, expect)| expect.on.contains(generation))
    }

    /// Whether it is made on a generation: where something is expected, or everywhere if nothing is.
    #[must_use]
    pub fn is_made_on(&self, generation: Generation) -> bool {
        self.expect.is_empty() || self.expected_on(generation).is_some()
    }
}

impl ExpectedMixed {
    /// Whether the walk comes back: nothing that it does ends the process, or never ends.
    #[must_use]
    pub fn comes_back(&self) -> bool {
        self.result.is_none_or(|result| matches!(result, ExpectedOutcome::Returned(_)))
    }
}
