//! Results of mixed walks, compared with what is expected.

use crate::model::ExpectedOutcome;
use crate::model::{
    ExpectedMixed, ExpectedMixedFrame, ExpectedMixedItem, MixedClaim, MixedFrameKind,
};
use crate::run::snapshot_result::DecidingClauses;
use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::profiling::HResult;
use clr_unwind::Position;
use clr_walker::mixed::{Completeness, FrameKind, Gap, MixedFrame, MixedStack, Reason, Source};
use core::fmt;
use thiserror::Error;

/// The result of a mixed walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundMixed {
    /// Frames, leaf first.
    pub frames: Vec<FoundMixedFrame>,
    /// Gaps where frames are missing, leaf first.
    pub gaps: Vec<Gap>,
    /// Completeness that the walk claims; `None` if it did not return.
    pub completeness: Option<Completeness>,
    /// Outcome of `DoStackSnapshot` if it was called, or the fatal outcome that ended the process.
    pub outcome: Option<Outcome>,
    /// Clauses that applied to the runtime's decisions; `None` if the walk's expectation names none.
    pub decided_by: Option<DecidingClauses>,
}

/// A frame that a walk found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMixedFrame {
    /// The frame.
    pub frame: MixedFrame,
    /// Label of the ip: a function and the offset from its start.
    pub label: String,
}

/// A frame or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundMixedItem<'f> {
    /// A frame.
    Frame(&'f FoundMixedFrame),
    /// A gap, with its reason.
    Gap(Reason),
}

/// A difference between the result of a walk and its expectation. Frames and gaps share one
/// numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MixedDifference {
    /// An expected frame or gap is missing.
    #[error("expected item {item} is missing")]
    Missing {
        /// Index among the expected items, from 0.
        item: usize,
    },
    /// A frame or gap was found that is not expected.
    #[error("item {item} is not expected")]
    Surplus {
        /// Index among the items found, from 0.
        item: usize,
    },
    /// A frame or gap differs from the expected one.
    #[error("item {item} differs from the expected one")]
    Other {
        /// Index among the items found, from 0.
        item: usize,
    },
    /// The walk claims another completeness.
    #[error("the claimed completeness differs")]
    Claim {
        /// Expected claim.
        expected: Option<MixedClaim>,
        /// Actual claim.
        found: Option<MixedClaim>,
    },
    /// The outcome of `DoStackSnapshot` differs.
    #[error("expected: {}; found: {}", or_not(*.expected), or_not(*.found))]
    Outcome {
        /// Expected outcome.
        expected: Option<ExpectedOutcome>,
        /// Actual outcome.
        found: Option<Outcome>,
    },
    /// The expectation names clauses, and none of them has decided anything in the walk.
    #[error("{named} has decided nothing in this walk, nor has another clause of the expectation")]
    Clause {
        /// The first clause of the expectation.
        named: Clause,
    },
}

fn or_not(outcome: Option<impl fmt::Display>) -> String {
    outcome.map_or_else(|| "no call".to_owned(), |outcome| outcome.to_string())
}

impl FoundMixed {
    /// Creates the result from a stack; `label_of` gives the label of an address in code (VA).
    pub(crate) fn new(stack: MixedStack, label_of: impl Fn(u64) -> String) -> Self {
        let label = |frame: &MixedFrame| match frame.position {
            Position::Interrupted => label_of(frame.ip),
            // A call may be the last instruction of its function.
            Position::ReturnAddress => behind(&label_of(frame.ip.wrapping_sub(1)), frame.ip),
        };
        let frames = stack.frames.iter();
        let frames = frames.map(|frame| FoundMixedFrame { frame: *frame, label: label(frame) });
        Self {
            frames: frames.collect(),
            completeness: Some(stack.completeness()),
            outcome: stack.snapshot.map(Outcome::Returned),
            gaps: stack.gaps,
            decided_by: None,
        }
    }

    /// Creates the result of a walk that ended the process.
    pub(crate) fn fatal(outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::default() }
    }

    /// Returns the completeness that the walk claims.
    #[must_use]
    pub fn claim(&self) -> Option<MixedClaim> {
        self.completeness.map(MixedClaim::from)
    }

    /// Returns frames and gaps, leaf first.
    #[must_use]
    pub fn items(&self) -> Vec<FoundMixedItem<'_>> {
        let mut items = Vec::with_capacity(self.frames.len() + self.gaps.len());
        let gaps = |at: usize| self.gaps.iter().filter(move |gap| gap.at == at);
        for (at, frame) in self.frames.iter().enumerate() {
            items.extend(gaps(at).map(|gap| FoundMixedItem::Gap(gap.reason)));
            items.push(FoundMixedItem::Frame(frame));
        }
        items.extend(gaps(self.frames.len()).map(|gap| FoundMixedItem::Gap(gap.reason)));
        items
    }
}

/// Returns the label of the address `ip` (VA) that follows the address with the given label.
pub(crate) fn behind(label: &str, ip: u64) -> String {
    let next = label.rsplit_once("+0x").and_then(|(function, offset)| {
        let offset = u64::from_str_radix(offset, 16).ok()?;
        Some(format!("{function}+{:#x}", offset.wrapping_add(1)))
    });
    next.unwrap_or_else(|| format!("{ip:#x}"))
}

/// Returns the HRESULT of a runtime method if it is the reason.
pub(crate) const fn result_of(reason: Reason) -> Option<HResult> {
    match reason {
        Reason::Lookup(result) | Reason::Snapshot(result) | Reason::Suspend(result) => Some(result),
        _ => None,
    }
}

impl FoundMixedItem<'_> {
    /// Returns true if the item matches the expected one.
    #[must_use]
    pub fn is(&self, expected: &ExpectedMixedItem) -> bool {
        match (self, expected) {
            (Self::Frame(found), ExpectedMixedItem::Frame(expected)) => found.is(expected),
            (Self::Gap(found), ExpectedMixedItem::Gap { reason, result }) => {
                *reason == (*found).into()
                    && result.is_none_or(|result| result_of(*found) == Some(result))
            }
            _ => false,
        }
    }
}

impl FoundMixedFrame {
    /// Returns the trust of the unwinder step that led to the frame, if there was one.
    #[must_use]
    pub const fn trust(&self) -> Option<clr_unwind::Trust> {
        match self.frame.source {
            Source::Unwound(trust) => Some(trust),
            Source::Context | Source::Snapshot | Source::CallFrame => None,
        }
    }

    fn is(&self, expected: &ExpectedMixedFrame) -> bool {
        let inside = self.label.rsplit_once("+0x").map_or("", |(function, _)| function);
        let label = expected.label.as_deref();
        expected.kind == self.frame.kind.into()
            && label.is_none_or(|label| label == self.label || label == inside)
            && expected.sp.is_none_or(|sp| sp == self.frame.sp)
            && expected.seen_by.is_none_or(|seen_by| seen_by == self.frame.seen_by())
            && expected.trust.is_none_or(|trust| self.trust() == Some(trust))
    }
}

impl ExpectedMixed {
    /// Returns the differences between a result and the expectation, leaf first.
    #[must_use]
    pub fn differences(&self, found: &FoundMixed) -> Vec<MixedDifference> {
        let mut differences = Vec::new();
        let items = found.items();
        if self.others {
            let mut rest = items.iter();
            for (item, expected) in self.items.iter().enumerate() {
                if !rest.any(|found| found.is(expected)) {
                    differences.push(MixedDifference::Missing { item });
                }
            }
        } else {
            for (item, found) in items.iter().enumerate() {
                match self.items.get(item) {
                    Some(expected) if found.is(expected) => {}
                    Some(_) => differences.push(MixedDifference::Other { item }),
                    None => differences.push(MixedDifference::Surplus { item }),
                }
            }
            let missing = items.len()..self.items.len();
            differences.extend(missing.map(|item| MixedDifference::Missing { item }));
        }
        if self.claim != found.claim() {
            let (expected, found) = (self.claim, found.claim());
            differences.push(MixedDifference::Claim { expected, found });
        }
        let same = match (self.result, found.outcome) {
            (Some(expected), Some(outcome)) => expected.is(outcome),
            (None, None) => true,
            _ => false,
        };
        if !same {
            let (expected, found) = (self.result, found.outcome);
            differences.push(MixedDifference::Outcome { expected, found });
        }
        let unfounded =
            found.decided_by.as_ref().and_then(|by| by.unfounded(&self.clauses, self.on));
        differences.extend(unfounded.map(|named| MixedDifference::Clause { named }));
        differences
    }

    /// Converts a result to an expectation.
    #[must_use]
    pub fn of(on: clr_runtime::generation::Generations, found: &FoundMixed) -> Self {
        let item = |item: FoundMixedItem<'_>| match item {
            FoundMixedItem::Frame(found) => ExpectedMixedItem::Frame(ExpectedMixedFrame {
                kind: found.frame.kind.into(),
                label: Some(found.label.clone()),
                sp: Some(found.frame.sp),
                seen_by: Some(found.frame.seen_by()),
                trust: None,
            }),
            FoundMixedItem::Gap(reason) => {
                ExpectedMixedItem::Gap { reason: reason.into(), result: result_of(reason) }
            }
        };
        Self {
            on,
            from: crate::Provenance::Rules,
            others: false,
            items: found.items().into_iter().map(item).collect(),
            claim: found.claim(),
            result: found.outcome.map(ExpectedOutcome::from),
            clauses: Vec::new(),
        }
    }
}

/// Prints the kind, the label, the stack pointer and the source of the frame.
impl fmt::Display for FoundMixedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::text::keywords::Keyword as _;
        let MixedFrame { kind, sp, .. } = self.frame;
        let seen_by = self.frame.seen_by().word();
        write!(f, "{} {}, rsp {sp:#x} ({seen_by})", MixedFrameKind::from(kind).word(), self.label)?;
        if kind == FrameKind::Hidden(None) { f.write_str(", without an id") } else { Ok(()) }
    }
}

/// Prints frames and gaps, one per line, then the claim.
impl fmt::Display for FoundMixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in self.items() {
            match item {
                FoundMixedItem::Frame(frame) => writeln!(f, "{frame}")?,
                FoundMixedItem::Gap(reason) => writeln!(f, "gap: {reason}")?,
            }
        }
        match self.completeness {
            Some(Completeness::Whole) => writeln!(f, "whole")?,
            Some(Completeness::Reportable) => writeln!(f, "reportable")?,
            Some(Completeness::WithoutLeaf) => writeln!(f, "without-leaf")?,
            Some(Completeness::Guessed(_)) => writeln!(f, "guessed")?,
            Some(Completeness::Partial(reason)) => writeln!(f, "partial: {reason}")?,
            None => {}
        }
        writeln!(f, "{}", or_not(self.outcome))
    }
}
