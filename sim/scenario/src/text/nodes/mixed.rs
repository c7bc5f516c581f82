//! Mixed walks and their expected results.

use crate::model::{
    ExpectedMixed, ExpectedMixedFrame, ExpectedMixedItem, MIXED_CAPACITY, MixedClaim,
    MixedFrameKind, MixedWalk, ReasonKind,
};
use crate::model::{ExpectedOutcome, Provenance};
use crate::text::codec::{Codec, HEX64, Item, between, nodes};
use crate::text::grammar::{Level, MAX_CAPACITY};
use crate::text::keywords::Keyword as _;
use crate::text::nodes::snapshot::{outcome, provenance};
use crate::text::problem::ProblemKind;
use clr_runtime::generation::Generations;
use std::sync::LazyLock;

pub(super) fn mixed_walk(walk: &mut MixedWalk, c: &mut Codec<'_>) {
    c.optional_arg(&mut walk.title);
    c.required("policy", &mut walk.policy);
    c.with("by", &mut walk.by);
    c.with("in-callback", &mut walk.in_callback);
    c.or_of("capacity", between(1, MAX_CAPACITY.into()), &mut walk.capacity, &MIXED_CAPACITY);
    let blank = ExpectedMixed {
        on: Generations::ALL,
        from: Provenance::default(),
        others: false,
        items: Vec::new(),
        claim: None,
        result: None,
        clauses: Vec::new(),
    };
    let mut left = Generations::ALL;
    c.block(Level::MixedWalk, |c| {
        c.each("expect", &mut walk.expect, &blank, |expected, c| {
            mixed_of(expected, &mut left, c);
        });
    });
}

/// The expected result of a mixed walk.
pub(crate) fn expected_mixed(expected: &mut ExpectedMixed, c: &mut Codec<'_>) {
    let mut left = Generations::ALL;
    mixed_of(expected, &mut left, c);
}

fn mixed_of(expected: &mut ExpectedMixed, left: &mut Generations, c: &mut Codec<'_>) {
    c.on_what_is(left, &mut expected.on);
    provenance(&mut expected.from, c);
    c.with("others", &mut expected.others);
    c.block(Level::MixedReport, |c| {
        let (has_claim, has_gap) = (c.one_of(&["complete"]) > 0, c.one_of(&["gap"]) > 0);
        c.items(&mut expected.items);
        c.setting("complete", &mut expected.claim);
        c.maybe("result", &mut expected.result, &ExpectedOutcome::default(), outcome);
        c.clauses(&mut expected.clauses);
        if let Some(problem) = contradiction(expected, has_claim, has_gap) {
            c.refuse(true, problem);
        }
    });
}

fn contradiction(expected: &ExpectedMixed, has_claim: bool, has_gap: bool) -> Option<ProblemKind> {
    let missing = |missing| Some(ProblemKind::MissingNode { node: "expect", missing });
    match expected.claim {
        None if !has_claim && expected.comes_back() => missing("complete"),
        Some(MixedClaim::Partial(_)) if !has_gap => missing("gap"),
        Some(MixedClaim::Partial(_)) => None,
        Some(_) if has_gap => Some(ProblemKind::CompleteWithGap),
        _ => None,
    }
}

const FRAME: ExpectedMixedFrame = ExpectedMixedFrame {
    kind: MixedFrameKind::Managed,
    label: None,
    sp: None,
    seen_by: None,
    trust: None,
};

nodes! {
    fn item(node: ExpectedMixedItem, c), fn blanks;
    Frame(report = FRAME) => frame(report, c),
    Gap { reason = ReasonKind::NotStopped, result } => c.node("gap", |c| {
        let is_valid = c.has_argument();
        c.arg(reason);
        c.with("result", result);
        let is_wrong = is_valid && c.is_written("result") && !reason.is_result();
        c.refuse(is_wrong, ProblemKind::Without("result=", "snapshot"));
    }),
}

fn frame(frame: &mut ExpectedMixedFrame, c: &mut Codec<'_>) {
    for word in MixedFrameKind::WORDS {
        c.node_if(word, frame.kind.word() == *word, |c| {
            frame.kind = MixedFrameKind::from_word(word).unwrap_or(frame.kind);
            match frame.kind {
                MixedFrameKind::Managed | MixedFrameKind::Native => c.arg(&mut frame.label),
                MixedFrameKind::Hidden | MixedFrameKind::Unknown => {
                    c.optional_arg(&mut frame.label);
                }
            }
            c.with_of("rsp", HEX64, &mut frame.sp);
            c.with("seen-by", &mut frame.seen_by);
            c.with("trust", &mut frame.trust);
        });
    }
}

impl Item for ExpectedMixedItem {
    fn blanks() -> &'static [Self] {
        static BLANKS: LazyLock<Vec<ExpectedMixedItem>> = LazyLock::new(blanks);
        &BLANKS
    }

    fn codec(&mut self, c: &mut Codec<'_>) {
        item(self, c);
    }
}
