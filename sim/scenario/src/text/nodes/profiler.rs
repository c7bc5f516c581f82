//! Profilers: their locks, events and threads, and the actions in scripts.

use crate::model::{Action, ProfilerMethod, ProfilerScript, ScriptThread, ThreadName};
use crate::text::codec::{Codec, Data as _, Item, Join, MANY, SIZE64, Task, between, nodes};
use crate::text::grammar::{Kind, Level};
use crate::text::problem::ProblemKind;
use clr_runtime::profiling::{CallbackKind, Policy};
use std::sync::LazyLock;

pub(super) fn profiler(profiler: &mut ProfilerScript, c: &mut Codec<'_>) {
    c.whole_block(Level::Profiler, |c| {
        for (name, names) in [("lock", &mut profiler.locks), ("event", &mut profiler.events)] {
            c.node_if(name, !names.is_empty(), |c| c.args_of(Kind::Name, MANY, names));
        }
        c.each("thread", &mut profiler.threads, &ScriptThread::default(), |thread, c| {
            c.arg(&mut thread.name);
            c.with("managed", &mut thread.managed);
            actions(&mut thread.actions, c);
        });
        let blank = (CallbackKind::ALL[0], Vec::new());
        c.each("on", &mut profiler.callbacks, &blank, |(kind, actions), c| {
            c.arg(kind);
            whole(actions, c);
        });
        c.maybe("on-hook", &mut profiler.hook, &Vec::new(), whole);
        c.maybe("on-signal", &mut profiler.signal, &Vec::new(), whole);
        c.maybe("on-crash", &mut profiler.crash, &Vec::new(), whole);
    });
}

fn actions(actions: &mut Vec<Action>, c: &mut Codec<'_>) {
    c.block(Level::Action, |c| c.items(actions));
}

fn whole(actions: &mut Vec<Action>, c: &mut Codec<'_>) {
    c.whole_block(Level::Action, |c| c.items(actions));
}

/// A block that makes a difference even if it is empty.
fn scope(inner: &mut Option<Vec<Action>>, c: &mut Codec<'_>) {
    if c.has_block() && c.task() != Task::Print {
        inner.get_or_insert_default();
    }
    if let Some(inner) = inner {
        whole(inner, c);
    }
}

nodes! {
    fn action(node: Action, c), fn blanks;
    Suspend(who) => *node = suspend(*who, None, c),
    Suspended(who, inner) => *node = suspend(*who, Some(core::mem::take(inner)), c),
    Resume(who) => about("resume", who, c),
    Context(who) => about("context", who, c),
    SetContext(who) => about("set-context", who, c),
    Snapshot { of, seed, returns, care, callback } => c.node("snapshot", |c| {
        c.arg(of);
        c.with("seed", seed);
        c.with("again", &mut care.again);
        c.with("listed", &mut care.listed);
        c.with("checked", &mut care.checked);
        c.with("returns", returns);
        actions(callback, c);
    }),
    Escape => c.node("escape", |c| {
        c.refuse(!c.is_in("snapshot"), ProblemKind::Without("escape", "snapshot"));
    }),
    Walk { of, policy = Policy::Seeded, root, checked } => c.node("walk", |c| {
        c.arg(of);
        c.required("policy", policy);
        c.with_of("root", SIZE64, root);
        c.with("checked", checked);
    }),
    Lock(lock, inner) => c.node("lock", |c| {
        c.arg_of(Kind::Lock, lock);
        actions(inner, c);
    }),
    Acquire(lock) => index("acquire", Kind::Lock, lock, c),
    Release(lock) => index("release", Kind::Lock, lock, c),
    TryLock { lock, micros, then, otherwise } => {
        c.node("try-lock", |c| {
            c.arg_of(Kind::Lock, lock);
            c.with_of("micros", u32::KIND, micros);
            actions(then, c);
        });
        c.node_if("else", !otherwise.is_empty(), |c| actions(otherwise, c));
    },
    Set(event) => index("set", Kind::Event, event, c),
    Reset(event) => index("reset", Kind::Event, event, c),
    Wait { event, micros, then, otherwise } => {
        c.node("wait", |c| {
            c.arg_of(Kind::Event, event);
            c.with_of("micros", u32::KIND, micros);
            actions(then, c);
        });
        c.node_if("else", !otherwise.is_empty(), |c| actions(otherwise, c));
    },
    Since { event, micros, then } => c.node("since", |c| {
        c.arg_of(Kind::Event, event);
        c.required_of("micros", u32::KIND, micros);
        actions(then, c);
    }),
    Sleep(micros) => c.node("sleep", |c| c.arg_of(u32::KIND, micros)),
    Allocate => plain("allocate", c),
    Log => plain("log", c),
    LoadLibrary => plain("load-library", c),
    LookUpFunctionEntry => plain("look-up-function-entry", c),
    Unwind => plain("unwind", c),
    Call { method = ProfilerMethod::EnumThreads, of, returns, then } => c.node("call", |c| {
        c.arg(method);
        c.with("of", of);
        c.with("returns", returns);
        actions(then, c);
    }),
    SuspendRuntime => *node = suspend_runtime(None, c),
    RuntimeSuspended(inner) => *node = suspend_runtime(Some(core::mem::take(inner)), c),
    ResumeRuntime => plain("resume-runtime", c),
    Prepare => plain("prepare", c),
    Detach => plain("detach", c),
    Signal(who) => about("signal", who, c),
    Repeat(times, inner) => c.node("repeat", |c| {
        c.arg_of(between(1, u8::MAX.into()), times);
        actions(inner, c);
    }),
    Join(who) => about("join", who, c),
    Bark => plain("bark", c),
    Fail(words) => c.node("fail", |c| c.arg(words)),
}

fn plain(name: &'static str, c: &mut Codec<'_>) {
    c.node(name, |_| {});
}

/// An action on a thread.
fn about(name: &'static str, who: &mut ThreadName, c: &mut Codec<'_>) {
    c.node(name, |c| c.arg(who));
}

/// An action on a lock or an event.
fn index(name: &'static str, kind: Kind, index: &mut u32, c: &mut Codec<'_>) {
    c.node(name, |c| c.arg_of(kind, index));
}

fn suspend(mut who: ThreadName, mut inner: Option<Vec<Action>>, c: &mut Codec<'_>) -> Action {
    c.node("suspend", |c| {
        c.arg(&mut who);
        scope(&mut inner, c);
    });
    match inner {
        Some(inner) => Action::Suspended(who, inner),
        None => Action::Suspend(who),
    }
}

fn suspend_runtime(mut inner: Option<Vec<Action>>, c: &mut Codec<'_>) -> Action {
    c.node("suspend-runtime", |c| scope(&mut inner, c));
    inner.map_or(Action::SuspendRuntime, Action::RuntimeSuspended)
}

impl Item for Action {
    fn blanks() -> &'static [Self] {
        static BLANKS: LazyLock<Vec<Action>> = LazyLock::new(blanks);
        &BLANKS
    }

    fn codec(&mut self, c: &mut Codec<'_>) {
        action(self, c);
    }

    fn joins(last: Option<&Self>, c: &Codec<'_>) -> Join {
        if c.item(0) != Some("else") {
            return Join::Begins;
        }
        match last {
            Some(
                Self::TryLock { otherwise, .. } | Self::Wait { otherwise, micros: Some(_), .. },
            ) if otherwise.is_empty() => Join::Continues,
            _ => Join::Stray(ProblemKind::ElseOfNothing),
        }
    }
}
