//! The nodes of profilers, and of searches of histories.

use super::{
    ANY_U32, ANY_U64, Args, FROM, Kind, Level, MANY, NodeRule, ON, node, property, required,
};
use crate::histories::{ProfilerMethod, ScriptSeed, WaitKind};
use crate::keywords::Keyword;
use clr_explore::ProfilerRule;
use clr_runtime::profiling::CallbackKind;
use clr_walker::mixed::Policy;

pub(in crate::grammar) static PROFILER: &[NodeRule] = &[
    node("lock", Args::Many(Kind::Name, MANY)),
    node("event", Args::Many(Kind::Name, MANY)),
    node("thread", Args::One(Kind::Name))
        .with(&[property("managed", Kind::Flag)])
        .block(Level::Action),
    node("on", Args::One(Kind::Word(CallbackKind::WORDS))).block(Level::Action),
    node("on-hook", Args::None).block(Level::Action).once(),
    node("on-signal", Args::None).block(Level::Action).once(),
    node("on-crash", Args::None).block(Level::Action).once(),
];

pub(in crate::grammar) static ACTION: &[NodeRule] = &[
    node("suspend", Args::One(Kind::Party)).block(Level::Action),
    node("resume", Args::One(Kind::Party)),
    node("context", Args::One(Kind::Party)),
    node("set-context", Args::One(Kind::Party)),
    node("snapshot", Args::One(Kind::Party))
        .with(&[
            property("seed", Kind::Word(ScriptSeed::WORDS)),
            property("returns", Kind::HResult),
            property("again", Kind::Flag),
            property("listed", Kind::Flag),
            property("checked", Kind::Flag),
        ])
        .block(Level::Action),
    node("escape", Args::None),
    node("walk", Args::One(Kind::Party)).with(&[
        required("policy", Kind::Word(Policy::WORDS)),
        property("root", ANY_U64),
        property("checked", Kind::Flag),
    ]),
    node("lock", Args::One(Kind::Lock)).block(Level::Action),
    node("acquire", Args::One(Kind::Lock)),
    node("release", Args::One(Kind::Lock)),
    node("try-lock", Args::One(Kind::Lock))
        .with(&[property("micros", ANY_U32)])
        .block(Level::Action),
    node("set", Args::One(Kind::Event)),
    node("reset", Args::One(Kind::Event)),
    node("wait", Args::One(Kind::Event)).with(&[property("micros", ANY_U32)]).block(Level::Action),
    node("since", Args::One(Kind::Event)).with(&[required("micros", ANY_U32)]).block(Level::Action),
    node("else", Args::None).block(Level::Action),
    node("sleep", Args::One(ANY_U32)),
    node("allocate", Args::None),
    node("log", Args::None),
    node("load-library", Args::None),
    node("look-up-function-entry", Args::None),
    node("unwind", Args::None),
    node("call", Args::One(Kind::Word(ProfilerMethod::WORDS)))
        .with(&[property("of", Kind::Party), property("returns", Kind::HResult)]),
    node("suspend-runtime", Args::None).block(Level::Action),
    node("resume-runtime", Args::None),
    node("prepare", Args::None),
    node("detach", Args::None),
    node("signal", Args::One(Kind::Party)),
    node("repeat", Args::One(Kind::Number(1, u8::MAX as u64))).block(Level::Action),
    node("join", Args::One(Kind::Party)),
    node("bark", Args::None),
    node("fail", Args::One(Kind::Name)),
];

pub(in crate::grammar) static EXPLORE: &[NodeRule] = &[node("expect", Args::None)
    .with(&[ON, property("from", FROM), property("count", ANY_U64)])
    .block(Level::History)];

pub(in crate::grammar) static HISTORY: &[NodeRule] = &[
    node("survives", Args::None).with(&[property("everything", Kind::Flag)]).once(),
    node("deadlock", Args::None).once(),
    node("live-lock", Args::None).once(),
    node("lost-wake-up", Args::None).once(),
    node("destroyed-thread", Args::None).once(),
    node("unloaded-code", Args::None).once(),
    node("killed", Args::None).once(),
    node("watchdog", Args::None).once(),
    node("rule", Args::One(Kind::Word(ProfilerRule::WORDS))).once(),
    node("failed", Args::None).once(),
    node("waits", Args::One(Kind::Party)).with(&[
        required("for", Kind::Party),
        property("why", Kind::Word(WaitKind::WORDS)),
        property("lock", Kind::AnyLock),
    ]),
    node("hazard", Args::One(Kind::Hazard)).once(),
    node("clause", Args::Many(Kind::Clause, MANY)),
    node("replay", Args::One(Kind::Schedule)).once(),
];
