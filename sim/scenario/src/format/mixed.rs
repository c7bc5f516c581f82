//! Printing of mixed walks and their expectations.

use super::snapshot::hresult;
use super::{Line, Printer, quoted};
use crate::keywords::Keyword as _;
use crate::mixed::{ExpectedMixed, ExpectedMixedItem, MIXED_ROOM, MixedWalk};

impl Printer<'_> {
    pub(super) fn mixed_walk(&mut self, walk: &MixedWalk) {
        let mut line = Line::new("mixed-walk");
        if let Some(title) = &walk.title {
            line = line.text(title);
        }
        line = line.property("policy", quoted(walk.policy.word()));
        if let Some(by) = walk.by {
            line = line.property("by", self.caller_name(by));
        }
        if let Some(kind) = walk.in_callback {
            line = line.property("in-callback", quoted(kind.word()));
        }
        if walk.room != MIXED_ROOM {
            line = line.property("room", walk.room);
        }
        self.block(&line, |printer| {
            for expected in &walk.expect {
                printer.expected_mixed(expected);
            }
        });
    }

    pub(super) fn expected_mixed(&mut self, expected: &ExpectedMixed) {
        let mut line = Line::new("expect").on(expected.on).from(expected.from);
        if expected.others {
            line = line.property("others", "#true");
        }
        self.block(&line, |printer| {
            for item in &expected.items {
                printer.item_of_mixed(item);
            }
            if let Some(claim) = expected.claim {
                printer.line(&Line::new("complete").term(claim));
            }
            if let Some(result) = expected.result {
                printer.line(&Line::new("result").outcome(result));
            }
            printer.clauses(&expected.clauses);
        });
    }

    fn item_of_mixed(&mut self, item: &ExpectedMixedItem) {
        let line = match item {
            ExpectedMixedItem::Gap { reason, result } => {
                let line = Line::new("gap").term(*reason);
                result.map(hresult).iter().fold(line, |line, it| line.property("result", it))
            }
            ExpectedMixedItem::Frame(frame) => {
                let mut line = Line::new(frame.kind.word());
                if let Some(label) = &frame.label {
                    line = line.text(label);
                }
                line = frame.sp.iter().fold(line, |line, sp| line.address("rsp", *sp));
                if let Some(seen_by) = frame.seen_by {
                    line = line.property("seen-by", quoted(seen_by.word()));
                }
                if let Some(trust) = frame.trust {
                    line = line.property("trust", quoted(trust.word()));
                }
                line
            }
        };
        self.line(&line);
    }
}
