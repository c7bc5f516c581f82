//! Parsing of snapshots: calls of `DoStackSnapshot` and their expected results.

use super::node::{Fields, Value};
use super::reader::Reader;
use crate::grammar::Level;
use crate::problem::ProblemKind;
use crate::snapshot::{
    ExpectedFrameReport, ExpectedOutcome, ExpectedSnapshot, LastCallback, NestedCall, Provenance,
    SeedAddress, SeedSource, SnapshotCall, SnapshotCaller, SnapshotSeed, SnapshotThread,
};
use clr_runtime::profiling::HResult;
use clr_walker::profiling::SnapshotFlags;
use clr_walker::registers::Gpr;

/// Converts the word for a seed's source; returns `None` for `none`.
fn seed_source(word: &str) -> Option<SeedSource> {
    Some(match word {
        "none" => return None,
        "leaf" => SeedSource::Leaf,
        "top-managed" => SeedSource::TopManaged,
        "stale" => SeedSource::Stale,
        "bytes" => SeedSource::Bytes(0),
        function => SeedSource::Function(function.to_owned()),
    })
}

fn caller(fields: &Fields<'_>) -> SnapshotCaller {
    match fields.property("by") {
        Some(Value::Caller(caller)) => *caller,
        _ => SnapshotCaller::default(),
    }
}

fn thread(fields: &Fields<'_>) -> SnapshotThread {
    match fields.property("thread") {
        Some(Value::Target(thread)) => *thread,
        _ => SnapshotThread::default(),
    }
}

impl Reader {
    pub(super) fn snapshot(&mut self, fields: &Fields<'_>) -> SnapshotCall {
        let seed = fields.text("seed").and_then(seed_source);
        self.seed_function(fields, seed.as_ref());
        let mut call = SnapshotCall {
            title: fields.args.first().map(|_| fields.arg_text().to_owned()),
            by: caller(fields),
            in_callback: fields.term("in-callback"),
            thread: thread(fields),
            flags: fields.number("flags").map_or(SnapshotFlags::REGISTER_CONTEXT, SnapshotFlags),
            seed: seed.map(SnapshotSeed::new),
            null_callback: fields.property("callback") == Some(&Value::Word("none")),
            stop_at: fields.number("stop-at").map(|callback| LastCallback {
                callback,
                returns: fields.hresult("returns").unwrap_or(HResult::FALSE),
            }),
            suspended: fields.flag("suspended").unwrap_or_default(),
            ..SnapshotCall::default()
        };
        if fields.is_written("returns") && !fields.is_written("stop-at") {
            self.problem(fields.span(), ProblemKind::Without("returns=", "stop-at="));
        }
        for node in self.nodes(fields.children(), Level::Snapshot) {
            match node.rule.name {
                "seed" => {
                    if fields.is_written("seed") {
                        self.problem(node.span(), ProblemKind::DuplicateNode("seed"));
                    }
                    call.seed = self.seed(&node);
                }
                "nested" => {
                    call.nested.push(NestedCall { by: caller(&node), thread: thread(&node) });
                }
                _ => call.expect.push(self.expected(&node)),
            }
        }
        call
    }

    /// Reports a seed of a function that the program does not have.
    fn seed_function(&mut self, fields: &Fields<'_>, from: Option<&SeedSource>) {
        if let Some(SeedSource::Function(name)) = from {
            self.function_of_program(fields, name);
        }
    }

    fn seed(&mut self, fields: &Fields<'_>) -> Option<SnapshotSeed> {
        let parts = self.nodes(fields.children(), Level::Seed);
        let mut seed = SnapshotSeed::new(seed_source(fields.arg_text())?);
        self.seed_function(fields, Some(&seed.from));
        for part in &parts {
            match part.rule.name {
                "rip" => {
                    seed.rip = match part.args.first() {
                        Some(Value::Address(address)) => Some(address.clone()),
                        _ => None,
                    };
                    if let Some(SeedAddress::Label(label)) = &seed.rip {
                        let name =
                            label.rsplit_once("+0x").map_or(label.as_str(), |(name, _)| name);
                        self.function_of_program(part, name);
                    }
                }
                "flags" => seed.flags = Some(part.arg_number()),
                "features" => seed.features = part.arg_number(),
                "fill" => match &mut seed.from {
                    SeedSource::Bytes(byte) => *byte = part.arg_number(),
                    _ => self.problem(part.span(), ProblemKind::Without("fill", "bytes")),
                },
                "cut" => seed.cut = Some(part.arg_number()),
                register => {
                    let register = Gpr::ALL.into_iter().find(|gpr| gpr.name() == register);
                    seed.registers.extend(register.map(|gpr| (gpr, part.arg_number())));
                }
            }
        }
        seed.registers.sort_by_key(|(register, _)| *register);
        Some(seed)
    }

    /// Returns the provenance of an expectation.
    pub(super) fn provenance(&mut self, fields: &Fields<'_>) -> Provenance {
        let count = fields.number("count");
        let from = match fields.property("from") {
            Some(Value::Word("observed")) => Provenance::Observed(count),
            Some(Value::Word("documentation")) => Provenance::Documentation,
            Some(Value::Word("reported")) => Provenance::Reported,
            Some(Value::Word("source")) => Provenance::Source,
            _ => Provenance::Rules,
        };
        if fields.is_written("count") && !matches!(from, Provenance::Observed(_)) {
            self.problem(fields.span(), ProblemKind::Without("count=", "from=\"observed\""));
        }
        from
    }

    fn expected(&mut self, fields: &Fields<'_>) -> ExpectedSnapshot {
        let mut expected = ExpectedSnapshot {
            on: fields.on(),
            from: self.provenance(fields),
            others: fields.flag("others").unwrap_or_default(),
            context_flags: fields.context_flags(),
            frames: Vec::new(),
            nested: Vec::new(),
            result: ExpectedOutcome::default(),
            clauses: Vec::new(),
        };
        let mut has_result = false;
        for node in self.nodes(fields.children(), Level::Report) {
            match node.rule.name {
                "result" => {
                    has_result = true;
                    expected.result = self.outcome(&node);
                }
                "nested" => {
                    let outcome = self.outcome(&node);
                    expected.nested.push(outcome);
                }
                "clause" => expected.clauses.extend(node.arg_clauses()),
                name => expected.frames.push(ExpectedFrameReport {
                    marker: name == "marker",
                    label: node.args.first().map(|_| node.arg_text().to_owned()),
                    registers: node.registers(),
                    stale: node.stale(),
                    context_flags: node.context_flags(),
                }),
            }
        }
        if !has_result {
            let missing = ProblemKind::MissingNode { node: "expect", missing: "result" };
            self.problem(fields.span(), missing);
        }
        expected
    }

    pub(super) fn outcome(&mut self, node: &Fields<'_>) -> ExpectedOutcome {
        let Some(Value::Outcome(outcome)) = node.args.first() else {
            return ExpectedOutcome::default();
        };
        let (mut takes_code, mut takes_at) = (false, false);
        let outcome = match *outcome {
            ExpectedOutcome::Killed { .. } => {
                takes_code = true;
                ExpectedOutcome::Killed { code: node.hresult("code") }
            }
            ExpectedOutcome::AccessViolation { .. } => {
                takes_at = true;
                ExpectedOutcome::AccessViolation { at: node.number("at") }
            }
            other => other,
        };
        if node.is_written("code") && !takes_code {
            self.problem(node.span(), ProblemKind::Without("code=", "killed"));
        }
        if node.is_written("at") && !takes_at {
            self.problem(node.span(), ProblemKind::Without("at=", "access-violation"));
        }
        outcome
    }
}
