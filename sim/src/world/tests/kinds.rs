//! Every way through the runtime by itself: what walks in its callbacks show.

use super::{function, runtime, walk};
use crate::code::{CodeKind, FunctionId, Program, RuntimeCallKind, Statement, Target};
use crate::generation::Generation;
use crate::stubs::Hooks;
use crate::world::{Build, Event, Start};
use core::fmt::Write as _;
use std::collections::BTreeMap;

/// `App.Main` goes that way to a target, or `Lib.Run` does, which it calls.
pub(super) fn program(kind: RuntimeCallKind) -> Program {
    let through = |target| runtime(kind, kind.target().map(|_| target));
    let mut functions = if kind.is_in_managed_code() {
        vec![function("App.Main", CodeKind::Jit, vec![through(1), Statement::Work(2)])]
    } else {
        vec![
            function(
                "App.Main",
                CodeKind::Jit,
                vec![runtime(RuntimeCallKind::PInvoke, Some(1)), Statement::Work(2)],
            ),
            function("Lib.Run", CodeKind::Native, vec![through(2)]),
        ]
    };
    let name = match kind.target() {
        Some(Target::Unmanaged) => Some(("Lib.Work", CodeKind::Native)),
        Some(Target::Managed) => Some(("App.Work", CodeKind::ReadyToRun)),
        None => None,
    };
    functions.extend(name.map(|(name, kind)| function(name, kind, vec![Statement::Work(3)])));
    Program { functions, ..Program::default() }
}

/// All callbacks with the walks in them.
fn callbacks(program: &Program, generation: Generation, hooks: Hooks) -> String {
    let build = Build::with_hooks(program, &BTreeMap::new(), generation, hooks).unwrap();
    let mut world = build.world(&[Start::Managed(FunctionId(0))]).unwrap();
    let mut log = String::new();
    loop {
        let event = world.step(0).unwrap();
        match event {
            Event::Ended => break,
            Event::Callback(kind) => {
                writeln!(log, "    {}: {}", kind.name(), walk(&mut world, 0)).unwrap();
            }
            Event::Hook => writeln!(log, "    (hook): {}", walk(&mut world, 0)).unwrap(),
            Event::Stepped | Event::Waits => {}
        }
    }
    assert_eq!(world.truth(0).unwrap().callers(), []);
    log
}

/// Generations with the same callbacks stand together.
fn by_generation(callbacks: impl Fn(Generation) -> String) -> String {
    let mut groups: Vec<(String, String)> = Vec::new();
    for generation in Generation::ALL {
        let log = callbacks(generation);
        match groups.iter_mut().find(|(_, other)| *other == log) {
            Some((names, _)) => write!(names, ", {generation}").unwrap(),
            None => groups.push((generation.to_string(), log)),
        }
    }
    let mut all = String::new();
    for (names, log) in groups {
        write!(all, "  {names}\n{log}").unwrap();
    }
    all
}

#[test]
fn every_kind_runs_to_its_end_and_calls_back() {
    let mut log = String::new();
    for kind in RuntimeCallKind::ALL {
        let program = program(*kind);
        let of = |generation| callbacks(&program, generation, Hooks::None);
        writeln!(log, "{}\n{}", kind.word(), by_generation(of)).unwrap();
    }
    insta::assert_snapshot!(log);
}

#[test]
fn hooks_are_called_by_the_runtime_or_directly() {
    let program = Program {
        functions: vec![
            function(
                "App.Main",
                CodeKind::Jit,
                vec![runtime(RuntimeCallKind::OpenDelegate, Some(1))],
            ),
            function("App.Work", CodeKind::Jit, vec![Statement::Work(3)]),
        ],
        ..Program::default()
    };
    let mut log = String::new();
    for hooks in [Hooks::Slow, Hooks::Fast] {
        let of = |generation| callbacks(&program, generation, hooks);
        writeln!(log, "{hooks:?}\n{}", by_generation(of)).unwrap();
    }
    insta::assert_snapshot!(log);
}
