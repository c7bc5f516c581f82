//! What a walk found, held against what is expected.

use super::{ExpectedMixed, ExpectedMixedFrame, ExpectedMixedItem, MixedClaim, MixedFrameKind};
use crate::snapshot::ExpectedOutcome;
use clr_runtime::Outcome;
use clr_runtime::profiling::HResult;
use clr_walker::mixed::{Completeness, FrameKind, Gap, MixedFrame, MixedStack, Reason, Source};
use clr_walker::unwind::Position;
use core::fmt;
use thiserror::Error;

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundMixed {
    /// The frames, leaf first.
    pub frames: Vec<FoundMixedFrame>,
    /// Where something is missing, leaf first.
    pub gaps: Vec<Gap>,
    /// How much of the stack it claims to have; nothing if it did not come back.
    pub completeness: Option<Completeness>,
    /// How `DoStackSnapshot` ended, if it was called; or what ended the process.
    pub outcome: Option<Outcome>,
}

/// A frame that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMixedFrame {
    /// The frame.
    pub frame: MixedFrame,
    /// Where its ip is: a function and the distance from its start.
    pub label: String,
}

/// A frame or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundMixedItem<'f> {
    /// A frame.
    Frame(&'f FoundMixedFrame),
    /// A gap.
    Gap(Reason),
}

/// Something that is not as expected. Frames and gaps are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MixedDifference {
    /// An expected frame or gap is not there.
    #[error("expected item {item} is not there")]
    Missing {
        /// Its place among the expected ones, from 0.
        item: usize,
    },
    /// A frame or a gap is there that is not expected.
    #[error("item {item} is not expected")]
    Surplus {
        /// Its place among those found, from 0.
        item: usize,
    },
    /// A frame or a gap is another one.
    #[error("item {item} is something else")]
    Other {
        /// Its place among those found, from 0.
        item: usize,
    },
    /// The walk claims to have more or less.
    #[error("it claims something else")]
    Claim {
        /// What it should claim.
        expected: Option<MixedClaim>,
        /// What it claims.
        found: Option<MixedClaim>,
    },
    /// `DoStackSnapshot` ended in another way.
    #[error("expected: {}; found: {}", or_not(*.expected), or_not(*.found))]
    Outcome {
        /// How it should.
        expected: Option<ExpectedOutcome>,
        /// How it did.
        found: Option<Outcome>,
    },
}

fn or_not(outcome: Option<impl fmt::Display>) -> String {
    outcome.map_or_else(|| "no call".to_owned(), |outcome| outcome.to_string())
}

impl FoundMixed {
    /// A stack, with a label for each address in code (VA).
    pub(super) fn new(stack: MixedStack, label_of: impl Fn(u64) -> String) -> Self {
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
        }
    }

    /// What ended the process.
    pub(super) fn fatal(outcome: Outcome) -> Self {
        Self { outcome: Some(outcome), ..Self::default() }
    }

    /// What the walk claims.
    #[must_use]
    pub fn claim(&self) -> Option<MixedClaim> {
        self.completeness.map(MixedClaim::from)
    }

    /// Frames and gaps, leaf first.
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

/// The label of the address `ip` (VA) behind one that has this label.
pub(super) fn behind(label: &str, ip: u64) -> String {
    let next = label.rsplit_once("+0x").and_then(|(function, offset)| {
        let offset = u64::from_str_radix(offset, 16).ok()?;
        Some(format!("{function}+{:#x}", offset.wrapping_add(1)))
    });
    next.unwrap_or_else(|| format!("{ip:#x}"))
}

/// What a method of the runtime returned, if that is the reason.
pub(super) const fn result_of(reason: Reason) -> Option<HResult> {
    match reason {
        Reason::Lookup(result) | Reason::Snapshot(result) | Reason::Suspend(result) => Some(result),
        _ => None,
    }
}

impl FoundMixedItem<'_> {
    /// Whether it is what is expected.
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
    /// How it was unwound to, if it was.
    #[must_use]
    pub const fn trust(&self) -> Option<clr_walker::unwind::Trust> {
        match self.frame.source {
            Source::Unwound(trust) => Some(trust),
            Source::Context | Source::Snapshot => None,
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
    /// What is not as expected, leaf first.
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
        differences
    }

    /// What was found, as an expectation.
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
            from: crate::Provenance::Source,
            others: false,
            items: found.items().into_iter().map(item).collect(),
            claim: found.claim(),
            result: found.outcome.map(ExpectedOutcome::from),
            clauses: Vec::new(),
        }
    }
}

/// A frame: its kind, place and stack pointer, and who saw it.
impl fmt::Display for FoundMixedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::terms::Term as _;
        let MixedFrame { kind, sp, .. } = self.frame;
        let seen_by = self.frame.seen_by().word();
        write!(f, "{} {}, rsp {sp:#x} ({seen_by})", MixedFrameKind::from(kind).word(), self.label)?;
        if kind == FrameKind::Hidden(None) { f.write_str(", without an id") } else { Ok(()) }
    }
}

/// Frames and gaps, one in a line, and what it claims.
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
            Some(Completeness::Partial(reason)) => writeln!(f, "partial: {reason}")?,
            None => {}
        }
        writeln!(f, "{}", or_not(self.outcome))
    }
}
