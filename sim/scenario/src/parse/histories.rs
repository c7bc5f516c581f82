//! Parsing of profilers and of searches of histories.

use super::node::{Fields, Value};
use super::reader::Reader;
use crate::grammar::Level;
use crate::histories::{
    Action, DEPTH, ExpectedEnd, ExpectedHistory, ExpectedWait, Exploration, ProfilerMethod,
    ProfilerScript, SCHEDULES, ScriptThread, SnapshotOptions, ThreadName,
};
use crate::problem::ProblemKind;
use clr_explore::Strategy;
use clr_runtime::profiling::CallbackKind;
use clr_walker::mixed::Policy;
use std::collections::BTreeSet;

/// Node names of the ends of histories.
const ENDS: &[(&str, ExpectedEnd)] = &[
    ("deadlock", ExpectedEnd::Deadlock),
    ("live-lock", ExpectedEnd::LiveLock),
    ("lost-wake-up", ExpectedEnd::LostWakeUp),
    ("destroyed-thread", ExpectedEnd::DestroyedThread),
    ("unloaded-code", ExpectedEnd::UnloadedCode),
    ("killed", ExpectedEnd::Killed),
    ("watchdog", ExpectedEnd::Watchdog),
    ("failed", ExpectedEnd::Failed),
];

fn party(value: Option<&Value>) -> ThreadName {
    match value {
        Some(Value::Party(who)) => *who,
        // The problem was reported already.
        _ => ThreadName::Own,
    }
}

fn number(fields: &Fields<'_>) -> u32 {
    match fields.args.first() {
        Some(Value::Index(index)) => *index,
        _ => 0,
    }
}

impl Reader {
    pub(super) fn profiler(&mut self, fields: &Fields<'_>) -> ProfilerScript {
        let mut profiler = ProfilerScript::default();
        let mut callbacks = BTreeSet::new();
        let mut names = BTreeSet::new();
        for node in self.nodes(fields.children(), Level::Profiler) {
            let given: &[Value] = if node.rule.name.starts_with("on") { &[] } else { &node.args };
            for name in given {
                let Value::Name(name) = name else { continue };
                // Names of program threads are checked against these with the other rules.
                let kind = if node.rule.name == "thread" { "thread" } else { "" };
                if name.is_empty() || !names.insert((kind, name.clone())) {
                    self.problem(node.span(), ProblemKind::ProfilerName);
                }
            }
            match node.rule.name {
                "lock" => profiler.locks.extend(node.arg_texts()),
                "event" => profiler.events.extend(node.arg_texts()),
                "thread" => profiler.threads.push(ScriptThread {
                    name: node.arg_text().to_owned(),
                    managed: node.flag("managed").unwrap_or_default(),
                    actions: self.actions(&node),
                }),
                "on" => {
                    let actions = self.actions(&node);
                    if let Some(kind) = node.arg_word::<CallbackKind>() {
                        if !callbacks.insert(kind.name()) {
                            self.problem(node.span(), ProblemKind::DuplicateCallback(kind.name()));
                        }
                        profiler.callbacks.push((kind, actions));
                    }
                }
                "on-hook" => profiler.hook = Some(self.actions(&node)),
                "on-crash" => profiler.crash = Some(self.actions(&node)),
                _ => profiler.signal = Some(self.actions(&node)),
            }
        }
        profiler
    }

    fn actions(&mut self, fields: &Fields<'_>) -> Vec<Action> {
        self.actions_in(fields, false)
    }

    /// Parses actions, which may be in the callback of a walk.
    fn actions_in(&mut self, fields: &Fields<'_>, in_walk: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        for node in self.nodes(fields.children(), Level::Action) {
            if node.rule.name == "else" {
                let inner = self.actions_in(&node, in_walk);
                match actions.last_mut() {
                    Some(
                        Action::TryLock { otherwise, .. }
                        | Action::Wait { otherwise, micros: Some(_), .. },
                    ) if otherwise.is_empty() => *otherwise = inner,
                    _ => self.problem(node.span(), ProblemKind::ElseOfNothing),
                }
                continue;
            }
            let action = self.action(&node, in_walk);
            actions.push(action);
        }
        actions
    }

    fn action(&mut self, node: &Fields<'_>, in_walk: bool) -> Action {
        let who = party(node.args.first());
        let has_block = node.node.block.is_some();
        let inner = self.actions_in(node, in_walk || node.rule.name == "snapshot");
        if node.rule.name == "escape" && !in_walk {
            self.problem(node.span(), ProblemKind::Without("escape", "snapshot"));
        }
        match node.rule.name {
            "suspend" if has_block => Action::Suspended(who, inner),
            "suspend" => Action::Suspend(who),
            "resume" => Action::Resume(who),
            "context" => Action::Context(who),
            "set-context" => Action::SetContext(who),
            "escape" => Action::Escape,
            "detach" => Action::Detach,
            "since" => Action::Since {
                event: number(node),
                micros: node.number("micros").unwrap_or_default(),
                then: inner,
            },
            "snapshot" => Action::Snapshot {
                of: who,
                seed: node.term("seed").unwrap_or_default(),
                returns: node.hresult("returns"),
                care: SnapshotOptions {
                    again: node.flag("again").unwrap_or_default(),
                    listed: node.flag("listed").unwrap_or_default(),
                    checked: node.flag("checked").unwrap_or_default(),
                },
                callback: inner,
            },
            "walk" => {
                // The problem of the missing policy was reported already.
                let policy = node.term("policy").unwrap_or(Policy::Seeded);
                let checked = node.flag("checked").unwrap_or_default();
                Action::Walk { of: who, policy, root: node.number("root"), checked }
            }
            "lock" => Action::Lock(number(node), inner),
            "acquire" => Action::Acquire(number(node)),
            "release" => Action::Release(number(node)),
            "try-lock" => Action::TryLock {
                lock: number(node),
                micros: node.number("micros").unwrap_or_default(),
                then: inner,
                otherwise: Vec::new(),
            },
            "set" => Action::Set(number(node)),
            "reset" => Action::Reset(number(node)),
            "wait" => Action::Wait {
                event: number(node),
                micros: node.number("micros"),
                then: inner,
                otherwise: Vec::new(),
            },
            "sleep" => Action::Sleep(node.arg_number()),
            "allocate" => Action::Allocate,
            "log" => Action::Log,
            "load-library" => Action::LoadLibrary,
            "look-up-function-entry" => Action::LookUpFunctionEntry,
            "unwind" => Action::Unwind,
            "call" => Action::Call {
                method: node.arg_word().unwrap_or(ProfilerMethod::EnumThreads),
                of: party(node.property("of")),
                returns: node.hresult("returns"),
            },
            "suspend-runtime" if has_block => Action::RuntimeSuspended(inner),
            "suspend-runtime" => Action::SuspendRuntime,
            "resume-runtime" => Action::ResumeRuntime,
            "prepare" => Action::Prepare,
            "signal" => Action::Signal(who),
            "repeat" => Action::Repeat(node.arg_number(), inner),
            "join" => Action::Join(who),
            "bark" => Action::Bark,
            _ => Action::Fail(node.arg_text().to_owned()),
        }
    }

    pub(super) fn explore(&mut self, fields: &Fields<'_>) -> Exploration {
        let by = match fields.property("by") {
            Some(Value::Word("pct")) => {
                Strategy::Pct { depth: fields.number("depth").unwrap_or(DEPTH) }
            }
            Some(Value::Word("exhaustive")) => {
                Strategy::Exhaustive { preemptions: fields.number("preemptions") }
            }
            Some(Value::Word("guided")) => Strategy::Guided,
            _ => Strategy::Random,
        };
        if fields.is_written("depth") && !matches!(by, Strategy::Pct { .. }) {
            self.problem(fields.span(), ProblemKind::Without("depth=", "by=\"pct\""));
        }
        if fields.is_written("preemptions") && !matches!(by, Strategy::Exhaustive { .. }) {
            let without = ProblemKind::Without("preemptions=", "by=\"exhaustive\"");
            self.problem(fields.span(), without);
        }
        let mut explore = Exploration {
            by,
            schedules: fields.number("schedules").unwrap_or(SCHEDULES),
            seed: fields.number("seed").unwrap_or_default(),
            instructions: fields.flag("instructions").unwrap_or_default(),
            rules: fields.flag("rules").unwrap_or_default(),
            expect: Vec::new(),
        };
        for node in self.nodes(fields.children(), Level::Explore) {
            let expected = self.expected_history(&node, by);
            explore.expect.push(expected);
        }
        explore
    }

    fn expected_history(&mut self, fields: &Fields<'_>, by: Strategy) -> ExpectedHistory {
        let mut expected = ExpectedHistory {
            on: fields.on(),
            from: self.provenance(fields),
            ends: ExpectedEnd::Survives { everything: false },
            waits: Vec::new(),
            hazard: None,
            clauses: Vec::new(),
            replay: None,
        };
        let mut ends = None;
        for node in self.nodes(fields.children(), Level::History) {
            match node.rule.name {
                "waits" => expected.waits.push(ExpectedWait {
                    waits: party(node.args.first()),
                    for_whom: party(node.property("for")),
                    why: node.term("why"),
                    lock: match node.property("lock") {
                        Some(Value::Lock(lock)) => Some(*lock),
                        _ => None,
                    },
                }),
                "hazard" => {
                    if let Some(Value::Hazard(hazard)) = node.args.first() {
                        expected.hazard = Some(*hazard);
                    }
                }
                "clause" => expected.clauses.extend(node.arg_clauses()),
                "replay" => {
                    if let Some(Value::Schedule(schedule)) = node.args.first() {
                        expected.replay = Some(schedule.clone());
                    }
                }
                name => {
                    if let Some(other) = ends.replace(name) {
                        self.problem(node.span(), ProblemKind::Excluded(other, name));
                    }
                    expected.ends = self.end(&node, by);
                }
            }
        }
        if ends.is_none() {
            let missing = ProblemKind::MissingNode { node: "expect", missing: "survives" };
            self.problem(fields.span(), missing);
        }
        if !expected.waits.is_empty() && expected.ends != ExpectedEnd::Deadlock {
            self.problem(fields.span(), ProblemKind::Without("waits", "deadlock"));
        }
        let survives = matches!(expected.ends, ExpectedEnd::Survives { .. });
        if survives && expected.replay.is_some() {
            self.problem(fields.span(), ProblemKind::Excluded("survives", "replay"));
        }
        if survives && expected.hazard.is_some() {
            self.problem(fields.span(), ProblemKind::Excluded("survives", "hazard"));
        }
        expected
    }

    fn end(&mut self, node: &Fields<'_>, by: Strategy) -> ExpectedEnd {
        let name = node.rule.name;
        if let Some((_, end)) = ENDS.iter().find(|(word, _)| *word == name) {
            return *end;
        }
        if let Some(rule) = node.arg_word().filter(|_| name == "rule") {
            return ExpectedEnd::Rule(rule);
        }
        let everything = node.flag("everything").unwrap_or_default();
        if everything && !matches!(by, Strategy::Exhaustive { .. }) {
            let without = ProblemKind::Without("everything=", "by=\"exhaustive\"");
            self.problem(node.span(), without);
        }
        ExpectedEnd::Survives { everything }
    }
}
