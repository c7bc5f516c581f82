//! Parsing of mixed walks and their expectations.

use super::node::{Fields, Value};
use super::reader::Reader;
use crate::grammar::Level;
use crate::keywords::Keyword as _;
use crate::mixed::{
    ExpectedMixed, ExpectedMixedFrame, ExpectedMixedItem, MIXED_ROOM, MixedClaim, MixedFrameKind,
    MixedWalk, ReasonKind,
};
use crate::problem::ProblemKind;
use clr_walker::mixed::Policy;

impl Reader {
    pub(super) fn mixed_walk(&mut self, fields: &Fields<'_>) -> MixedWalk {
        let by = match fields.property("by") {
            Some(Value::Caller(caller)) => Some(*caller),
            _ => None,
        };
        // The problem of the missing policy was reported already.
        let policy = fields.term("policy").unwrap_or(Policy::Seeded);
        let mut walk = MixedWalk {
            title: fields.args.first().map(|_| fields.arg_text().to_owned()),
            by,
            in_callback: fields.term("in-callback"),
            room: fields.number("room").unwrap_or(MIXED_ROOM),
            ..MixedWalk::new(policy)
        };
        for node in self.nodes(fields.children(), Level::MixedWalk) {
            walk.expect.push(self.expected_mixed(&node));
        }
        walk
    }

    fn expected_mixed(&mut self, fields: &Fields<'_>) -> ExpectedMixed {
        let mut expected = ExpectedMixed {
            on: fields.on(),
            from: self.provenance(fields),
            others: fields.flag("others").unwrap_or_default(),
            items: Vec::new(),
            claim: None,
            result: None,
            clauses: Vec::new(),
        };
        let (mut claims, mut has_gap) = (false, false);
        for node in self.nodes(fields.children(), Level::MixedReport) {
            match node.rule.name {
                "complete" => {
                    claims = true;
                    expected.claim = node.arg_word();
                }
                "result" => expected.result = Some(self.outcome(&node)),
                "clause" => expected.clauses.extend(node.arg_clauses()),
                "gap" => {
                    has_gap = true;
                    expected.items.extend(self.gap(&node));
                }
                name => expected.items.extend(frame(name, &node)),
            }
        }
        match expected.claim {
            None if !claims && expected.comes_back() => {
                let missing = ProblemKind::MissingNode { node: "expect", missing: "complete" };
                self.problem(fields.span(), missing);
            }
            Some(MixedClaim::Whole | MixedClaim::Reportable | MixedClaim::WithoutLeaf)
                if has_gap =>
            {
                self.problem(fields.span(), ProblemKind::CompleteWithGap);
            }
            Some(MixedClaim::Partial(_)) if !has_gap => {
                let missing = ProblemKind::MissingNode { node: "expect", missing: "gap" };
                self.problem(fields.span(), missing);
            }
            _ => {}
        }
        expected
    }

    fn gap(&mut self, node: &Fields<'_>) -> Option<ExpectedMixedItem> {
        let reason: ReasonKind = node.arg_word()?;
        if node.is_written("result") && !reason.is_result() {
            self.problem(node.span(), ProblemKind::Without("result=", "snapshot"));
        }
        Some(ExpectedMixedItem::Gap { reason, result: node.hresult("result") })
    }
}

fn frame(name: &str, node: &Fields<'_>) -> Option<ExpectedMixedItem> {
    Some(ExpectedMixedItem::Frame(ExpectedMixedFrame {
        kind: MixedFrameKind::from_word(name)?,
        label: node.args.first().map(|_| node.arg_text().to_owned()),
        sp: node.number("rsp"),
        seen_by: node.term("seen-by"),
        trust: node.term("trust"),
    }))
}
