//! Mixed walks: walks of the whole stack by the profiler's side, and their expected results.

use super::mixed_words::{MixedClaim, MixedFrameKind, ReasonKind};
use crate::model::snapshot::{ExpectedOutcome, Provenance, SnapshotCaller};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::{CallbackKind, HResult, Policy};
use clr_unwind::Trust;
use clr_walker::mixed::SeenBy;

/// Number of frames in the buffer of a walk if the text does not give one.
pub const MIXED_CAPACITY: u32 = 256;

/// A mixed walk, and its expected result on each generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedWalk {
    /// Title of the walk.
    pub title: Option<String>,
    /// Policy of the walk.
    pub policy: Policy,
    /// Thread that walks, if it is not the one that the policy asks for: the thread itself, or one
    /// that the runtime does not know.
    pub by: Option<SnapshotCaller>,
    /// Profiler callback that the walk is made in.
    pub in_callback: Option<CallbackKind>,
    /// Number of frames in the buffer.
    pub capacity: u32,
    /// Expectations. For each generation the first matching one is used.
    pub expect: Vec<ExpectedMixed>,
}

/// The expected result of a mixed walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedMixed {
    /// Generations that the expectation is for.
    pub on: Generations,
    /// Provenance of the expectation.
    pub from: Provenance,
    /// Other frames and gaps are allowed between these.
    pub others: bool,
    /// Frames and the gaps between them, leaf first.
    pub items: Vec<ExpectedMixedItem>,
    /// Completeness that the walk claims; `None` only if it does not return.
    pub claim: Option<MixedClaim>,
    /// Outcome of `DoStackSnapshot`; `None` if it is not called.
    pub result: Option<ExpectedOutcome>,
    /// Clauses that state the rule.
    pub clauses: Vec<Clause>,
}

/// An expected part of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedMixedItem {
    /// A frame.
    Frame(ExpectedMixedFrame),
    /// A place where frames are missing, or may be.
    Gap {
        /// Reason of the gap.
        reason: ReasonKind,
        /// HRESULT of a runtime method, if it is the reason; `None` if it is not checked.
        result: Option<HResult>,
    },
}

/// An expected frame of a mixed walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedMixedFrame {
    /// Kind of the code.
    pub kind: MixedFrameKind,
    /// Function that contains the ip, or with an offset the exact position; `None` if it is not
    /// checked.
    pub label: Option<String>,
    /// Stack pointer (VA); `None` if it is not checked.
    pub sp: Option<u64>,
    /// Source that reported the frame; `None` if it is not checked.
    pub seen_by: Option<SeenBy>,
    /// Trust of the unwinder step to the frame; `None` if it is not checked.
    pub trust: Option<Trust>,
}

impl MixedWalk {
    /// Creates a walk without expectations.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self {
            title: None,
            policy,
            by: None,
            in_callback: None,
            capacity: MIXED_CAPACITY,
            expect: Vec::new(),
        }
    }

    /// Returns the thread that walks.
    #[must_use]
    pub fn walker(&self) -> SnapshotCaller {
        let usual = if self.policy.is_for_itself() {
            SnapshotCaller::Own
        } else {
            SnapshotCaller::NativeWalker
        };
        self.by.unwrap_or(usual)
    }

    /// Returns the expectation for a generation, with its index.
    #[must_use]
    pub fn expected_on(&self, generation: Generation) -> Option<(usize, &ExpectedMixed)> {
        self.expect.iter().enumerate().find(|(_, expect)| expect.on.contains(generation))
    }

    /// Returns true if the walk is made on a generation: one with an expectation, or every one if
    /// the walk has no expectations.
    #[must_use]
    pub fn applies_to(&self, generation: Generation) -> bool {
        self.expect.is_empty() || self.expected_on(generation).is_some()
    }
}

impl ExpectedMixed {
    /// Returns true if the walk returns: nothing in it ends the process or runs for ever.
    #[must_use]
    pub fn comes_back(&self) -> bool {
        self.result.is_none_or(|result| matches!(result, ExpectedOutcome::Returned(_)))
    }
}
