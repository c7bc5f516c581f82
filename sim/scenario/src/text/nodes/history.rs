//! Searches of interleavings, and their expected results.

use crate::model::Provenance;
use crate::model::{
    DEPTH, ExpectedEnd, ExpectedHistory, ExpectedWait, Exploration, SCHEDULES, ThreadName,
};
use crate::text::codec::{Codec, SIZE64, between};
use crate::text::grammar::{Kind, Level};
use crate::text::nodes::snapshot::provenance;
use crate::text::problem::ProblemKind;
use clr_explore::{ProfilerRule, Strategy};
use clr_runtime::generation::Generations;

pub(super) fn explore(explore: &mut Exploration, c: &mut Codec<'_>) {
    strategy(&mut explore.by, c);
    let most = between(1, u32::MAX.into());
    c.or_of("schedules", most, &mut explore.schedules, &SCHEDULES);
    c.with_of("seed", SIZE64, &mut explore.seed);
    c.with("instructions", &mut explore.instructions);
    c.with("rules", &mut explore.rules);
    c.with("faults", &mut explore.faults.which);
    c.or_of("most-faults", between(1, u8::MAX.into()), &mut explore.faults.most, &1);
    let is_wrong = c.is_written("most-faults") && explore.faults.which.is_empty();
    c.refuse(is_wrong, ProblemKind::Without("most-faults=", "faults="));
    let blank = ExpectedHistory {
        on: Generations::ALL,
        from: Provenance::default(),
        ends: ExpectedEnd::Survives { everything: false },
        waits: Vec::new(),
        hazard: None,
        clauses: Vec::new(),
        replay: None,
    };
    let is_exhaustive = matches!(explore.by, Strategy::Exhaustive { .. });
    let mut left = Generations::ALL;
    c.block(Level::Explore, |c| {
        c.each("expect", &mut explore.expect, &blank, |expected, c| {
            c.on_what_is(&mut left, &mut expected.on);
            expected_of(expected, is_exhaustive, c);
        });
    });
}

/// `by=` and what only some search algorithms have.
fn strategy(by: &mut Strategy, c: &mut Codec<'_>) {
    let (mut word, mut depth, mut preemptions) = match *by {
        Strategy::Random => ("random", DEPTH, None),
        Strategy::Pct { depth } => ("pct", depth, None),
        Strategy::Exhaustive { preemptions } => ("exhaustive", DEPTH, preemptions),
        Strategy::Guided => ("guided", DEPTH, None),
    };
    let words = Kind::Word(&["random", "pct", "exhaustive", "guided"]);
    c.or_of("by", words, &mut word, &"random");
    c.or_of("depth", between(1, u8::MAX.into()), &mut depth, &DEPTH);
    c.with_of("preemptions", between(0, u8::MAX.into()), &mut preemptions);
    for (name, part, other, value) in [
        ("depth", "depth=", "pct", "by=\"pct\""),
        ("preemptions", "preemptions=", "exhaustive", "by=\"exhaustive\""),
    ] {
        let is_wrong = c.is_written(name) && word != other;
        c.refuse(is_wrong, ProblemKind::Without(part, value));
    }
    *by = match word {
        "pct" => Strategy::Pct { depth },
        "exhaustive" => Strategy::Exhaustive { preemptions },
        "guided" => Strategy::Guided,
        _ => Strategy::Random,
    };
}

/// The expected result of a search.
pub(crate) fn expected_history(expected: &mut ExpectedHistory, c: &mut Codec<'_>) {
    c.on(&mut expected.on);
    expected_of(expected, true, c);
}

fn expected_of(expected: &mut ExpectedHistory, is_exhaustive: bool, c: &mut Codec<'_>) {
    provenance(&mut expected.from, c);
    c.block(Level::History, |c| {
        ends(&mut expected.ends, is_exhaustive, c);
        let blank = ExpectedWait {
            waits: ThreadName::Own,
            for_whom: ThreadName::Own,
            why: None,
            lock: None,
        };
        c.each("waits", &mut expected.waits, &blank, |wait, c| {
            c.arg(&mut wait.waits);
            c.required("for", &mut wait.for_whom);
            c.with("why", &mut wait.why);
            c.with("lock", &mut wait.lock);
        });
        c.setting("hazard", &mut expected.hazard);
        c.clauses(&mut expected.clauses);
        c.setting("replay", &mut expected.replay);
        let is_locked = expected.ends == ExpectedEnd::Deadlock;
        let survives = matches!(expected.ends, ExpectedEnd::Survives { .. });
        let waits = !expected.waits.is_empty() && !is_locked;
        c.refuse(waits, ProblemKind::Without("waits", "deadlock"));
        let replay = survives && expected.replay.is_some();
        c.refuse(replay, ProblemKind::Excluded("survives", "replay"));
        let hazard = survives && expected.hazard.is_some();
        c.refuse(hazard, ProblemKind::Excluded("survives", "hazard"));
    });
}

/// The ends without further parts.
const PLAIN: [ExpectedEnd; 8] = [
    ExpectedEnd::Deadlock,
    ExpectedEnd::LiveLock,
    ExpectedEnd::LostWakeUp,
    ExpectedEnd::DestroyedThread,
    ExpectedEnd::UnloadedCode,
    ExpectedEnd::Killed,
    ExpectedEnd::Watchdog,
    ExpectedEnd::Failed,
];

/// The end of the first interleaving that fails, or the statement that none fails.
fn ends(end: &mut ExpectedEnd, is_exhaustive: bool, c: &mut Codec<'_>) {
    let mut names = vec!["survives", "rule"];
    names.extend(PLAIN.map(ExpectedEnd::word));
    let missing = ProblemKind::MissingNode { node: "expect", missing: "survives" };
    let count = c.one_of(&names);
    c.refuse(count == 0, missing);
    let mut everything = *end == ExpectedEnd::Survives { everything: true };
    c.once("survives", matches!(end, ExpectedEnd::Survives { .. }), |c| {
        c.with("everything", &mut everything);
        *end = ExpectedEnd::Survives { everything };
        let without = ProblemKind::Without("everything=", "by=\"exhaustive\"");
        c.refuse(everything && !is_exhaustive, without);
    });
    for plain in PLAIN {
        c.once(plain.word(), *end == plain, |_| *end = plain);
    }
    let mut rule = if let ExpectedEnd::Rule(rule) = *end {
        rule
    } else {
        ProfilerRule::SuspenderRanManagedCode
    };
    c.once("rule", matches!(end, ExpectedEnd::Rule(_)), |c| {
        c.arg(&mut rule);
        *end = ExpectedEnd::Rule(rule);
    });
}
