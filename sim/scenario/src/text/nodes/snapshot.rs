//! Snapshots: calls of `DoStackSnapshot` and their expected results.

use crate::model::{
    ExpectedFrameReport, ExpectedOutcome, ExpectedSnapshot, LastCallback, NestedCall, Provenance,
    SEED_SIZE, SeedSource, SnapshotCall, SnapshotSeed,
};
use crate::text::codec::{Codec, HEX32, HEX64, Item, ORDINAL, SIZE32, each_register};
use crate::text::grammar::{Kind, Level, Style};
use crate::text::problem::ProblemKind;
use clr_runtime::generation::Generations;
use clr_runtime::profiling::HResult;
use clr_walker::profiling::SnapshotFlags;
use std::sync::LazyLock;

const NULL: &str = "none";

pub(super) fn snapshot(call: &mut SnapshotCall, c: &mut Codec<'_>) {
    c.optional_arg(&mut call.title);
    c.with("by", &mut call.by);
    c.with("thread", &mut call.thread);
    c.with("in-callback", &mut call.in_callback);
    c.or_of("flags", SIZE32, &mut call.flags.0, &SnapshotFlags::REGISTER_CONTEXT.0);
    let (mut plain, mut changed) = (None, None);
    match call.seed.take() {
        Some(seed) if seed == SnapshotSeed::new(plain_source(&seed.from)) => {
            plain = Some(seed.from);
        }
        seed => changed = seed,
    }
    c.with("seed", &mut plain);
    let mut callback = if call.null_callback { NULL } else { "continue" };
    c.or_of("callback", Kind::Word(&["continue", NULL]), &mut callback, &"continue");
    call.null_callback = callback == NULL;
    last_callback(&mut call.stop_at, c);
    c.with("suspended", &mut call.suspended);
    let has_seed = c.is_written("seed");
    c.block(Level::Snapshot, |c| {
        c.once("seed", changed.is_some(), |c| {
            c.refuse(has_seed, ProblemKind::DuplicateNode("seed"));
            seed(&mut changed, c);
        });
        c.each("nested", &mut call.nested, &NestedCall::default(), |nested, c| {
            c.with("by", &mut nested.by);
            c.with("thread", &mut nested.thread);
        });
        let blank = ExpectedSnapshot::nothing_on(Generations::ALL);
        let mut left = Generations::ALL;
        c.each("expect", &mut call.expect, &blank, |expected, c| {
            expected_of(expected, &mut left, c);
        });
    });
    call.seed = changed.or_else(|| plain.map(SnapshotSeed::new));
}

/// Returns the source as it is without a block: of bytes, all are 0.
fn plain_source(source: &SeedSource) -> SeedSource {
    match source {
        SeedSource::Bytes(_) => SeedSource::Bytes(0),
        other => other.clone(),
    }
}

fn last_callback(last: &mut Option<LastCallback>, c: &mut Codec<'_>) {
    let mut number = last.map(|last| last.callback);
    let mut returns = last.map_or(HResult::FALSE, |last| last.returns);
    c.with_of("stop-at", ORDINAL, &mut number);
    c.or("returns", &mut returns, &HResult::FALSE);
    c.needs("returns=", "stop-at=");
    *last = number.map(|callback| LastCallback { callback, returns });
}

fn seed(seed: &mut Option<SnapshotSeed>, c: &mut Codec<'_>) {
    let mut source = seed.as_ref().map(|seed| seed.from.clone());
    c.arg(&mut source);
    let mut parts = seed.take().unwrap_or(SnapshotSeed::new(SeedSource::Leaf));
    let mut byte = if let Some(SeedSource::Bytes(byte)) = source { byte } else { 0 };
    c.block(Level::Seed, |c| {
        c.setting("rip", &mut parts.rip);
        each_register(&mut parts.registers, |name, value| c.setting_of(name, HEX64, value));
        c.setting_of("flags", HEX32, &mut parts.flags);
        c.setting_of("features", HEX64, &mut parts.features);
        c.once("fill", byte != 0, |c| {
            c.arg_of(Kind::Number(0, u8::MAX.into(), Style::Hex), &mut byte);
            let has_bytes = matches!(source, Some(SeedSource::Bytes(_)));
            c.refuse(!has_bytes, ProblemKind::Without("fill", "bytes"));
        });
        let cut = Kind::Number(0, SEED_SIZE.into(), Style::Hex);
        c.setting_of("cut", cut, &mut parts.cut);
    });
    if let Some(SeedSource::Bytes(filled)) = &mut source {
        *filled = byte;
    }
    *seed = source.map(|from| SnapshotSeed { from, ..parts });
}

/// `from=` and `count=`: the provenance of an expectation.
pub(super) fn provenance(from: &mut Provenance, c: &mut Codec<'_>) {
    let (mut word, mut count) = match *from {
        Provenance::Rules => (None, None),
        Provenance::Source => (Some("source"), None),
        Provenance::Documentation => (Some("documentation"), None),
        Provenance::Reported => (Some("reported"), None),
        Provenance::Observed(count) => (Some("observed"), count),
    };
    let words = Kind::Word(&["source", "documentation", "reported", "observed"]);
    c.with_of("from", words, &mut word);
    c.with("count", &mut count);
    *from = match word {
        Some("observed") => Provenance::Observed(count),
        Some("documentation") => Provenance::Documentation,
        Some("reported") => Provenance::Reported,
        Some(_) => Provenance::Source,
        None => Provenance::Rules,
    };
    let is_observed = matches!(from, Provenance::Observed(_));
    let without = ProblemKind::Without("count=", "from=\"observed\"");
    c.refuse(c.is_written("count") && !is_observed, without);
}

/// The expected result of a snapshot.
pub(crate) fn expected(expected: &mut ExpectedSnapshot, c: &mut Codec<'_>) {
    let mut left = Generations::ALL;
    expected_of(expected, &mut left, c);
}

fn expected_of(expected: &mut ExpectedSnapshot, left: &mut Generations, c: &mut Codec<'_>) {
    c.on_what_is(left, &mut expected.on);
    provenance(&mut expected.from, c);
    c.with("others", &mut expected.others);
    c.with("context-flags", &mut expected.context_flags);
    c.block(Level::Report, |c| {
        c.items(&mut expected.frames);
        c.each("nested", &mut expected.nested, &ExpectedOutcome::default(), outcome);
        let missing = ProblemKind::MissingNode { node: "expect", missing: "result" };
        let count = c.one_of(&["result"]);
        c.refuse(count == 0, missing);
        c.once("result", true, |c| outcome(&mut expected.result, c));
        c.clauses(&mut expected.clauses);
    });
}

/// The outcome of a call.
pub(super) fn outcome(outcome: &mut ExpectedOutcome, c: &mut Codec<'_>) {
    let (mut code, mut at) = match *outcome {
        ExpectedOutcome::Killed { code } => (code, None),
        ExpectedOutcome::AccessViolation { at } => (None, at),
        _ => (None, None),
    };
    let is_valid = c.has_argument();
    c.arg(outcome);
    c.with("code", &mut code);
    c.with_of("at", HEX64, &mut at);
    let (mut takes_code, mut takes_at) = (false, false);
    match outcome {
        ExpectedOutcome::Killed { code: place } => (*place, takes_code) = (code, true),
        ExpectedOutcome::AccessViolation { at: place } => (*place, takes_at) = (at, true),
        _ => {}
    }
    for (name, part, other, takes) in
        [("code", "code=", "killed", takes_code), ("at", "at=", "access-violation", takes_at)]
    {
        let is_wrong = is_valid && !takes && c.is_written(name);
        c.refuse(is_wrong, ProblemKind::Without(part, other));
    }
}

impl Item for ExpectedFrameReport {
    fn blanks() -> &'static [Self] {
        static BLANK: LazyLock<[ExpectedFrameReport; 1]> = LazyLock::new(Default::default);
        &*BLANK
    }

    fn codec(&mut self, c: &mut Codec<'_>) {
        c.node_if("frame", !self.marker, |c| {
            c.arg(&mut self.label);
            context(self, c);
        });
        c.node_if("marker", self.marker, |c| {
            self.marker = true;
            c.optional_arg(&mut self.label);
            context(self, c);
        });
    }
}

fn context(report: &mut ExpectedFrameReport, c: &mut Codec<'_>) {
    c.registers(HEX64, &mut report.registers);
    c.with("stale", &mut report.stale);
    c.with("context-flags", &mut report.context_flags);
}
