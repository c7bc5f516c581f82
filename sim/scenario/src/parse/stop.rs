//! Parsing of stops and their expectations.

use super::node::{Fields, Value};
use super::reader::Reader;
use crate::expect::{Expectation, ExpectedFrame};
use crate::grammar::Level;
use crate::problem::ProblemKind;
use crate::snapshot::SeedSource;
use crate::{Stop, StopAt};

impl Reader {
    /// Reads a stop that comes after those `before` it.
    pub(super) fn stop(&mut self, fields: &Fields<'_>, before: &[Stop]) -> Stop {
        let (mut expect, mut snapshots, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut spans = Vec::new();
        let mut mixed_walks = Vec::new();
        for node in self.nodes(fields.children(), Level::Stop) {
            if node.rule.name == "snapshot" {
                snapshots.push(self.snapshot(&node));
                spans.push(node.span());
                continue;
            }
            if node.rule.name == "mixed-walk" {
                mixed_walks.push(self.mixed_walk(&node));
                continue;
            }
            if node.rule.name == "other" {
                let thread = node.args.first().and_then(Value::thread).unwrap_or_default();
                others.push((thread, self.stop_at(&node, false)));
                continue;
            }
            let frames = self.nodes(node.children(), Level::Expect);
            expect.push(Expectation {
                rules: node.term("rules").unwrap_or_default(),
                frames: frames.iter().map(frame).collect(),
                ends: node.term("ends").unwrap_or_default(),
            });
        }
        let stop = Stop {
            thread: fields.thread("thread").unwrap_or_default(),
            at: self.stop_at(fields, fields.node.args().next().is_some()),
            expect,
            others,
            snapshots,
            mixed_walks,
        };
        for (call, span) in stop.snapshots.iter().zip(spans) {
            let is_stale = call.seed.as_ref().is_some_and(|seed| seed.from == SeedSource::Stale);
            if let Some(walked) = stop.walks(call).filter(|_| is_stale)
                && (stop.place_of(walked).is_none()
                    || !before.iter().any(|before| before.thread == walked))
            {
                self.problem(span, ProblemKind::NoPreviousStop);
            }
        }
        stop
    }

    fn stop_at(&mut self, fields: &Fields<'_>, at_end: bool) -> StopAt {
        // A wrong value counts too: its problem was reported already.
        let written = |name: &str| fields.is_written(name);
        let places =
            [at_end, written("after"), written("at"), written("callback"), written("hook")];
        let counted = !written("visit") || written("at") || written("callback");
        if places.iter().filter(|place| **place).count() != 1
            || written("instruction") && !written("at")
            || !counted
        {
            self.problem(fields.span(), ProblemKind::StopPlace);
        }
        if at_end {
            StopAt::End
        } else if let Some(after) = fields.number("after") {
            StopAt::After(after)
        } else {
            let index = fields.number("instruction").unwrap_or_default();
            let visit = fields.number("visit").unwrap_or(1);
            if let Some(visit) = fields.number("hook") {
                return StopAt::Hook(visit);
            }
            if let Some(kind) = fields.term("callback") {
                return StopAt::Callback { kind, visit };
            }
            match fields.property("at") {
                Some(Value::Runtime(function)) => {
                    StopAt::Runtime { function: *function, index, visit }
                }
                _ => StopAt::Instruction {
                    function: fields.function("at").unwrap_or_default(),
                    index,
                    visit,
                },
            }
        }
    }
}

fn frame(node: &Fields<'_>) -> ExpectedFrame {
    ExpectedFrame {
        function: node.arg_function(),
        trust: node.term("trust"),
        registers: node.registers(),
    }
}
