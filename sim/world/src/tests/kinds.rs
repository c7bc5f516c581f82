//! Every way through the runtime on its own: results of walks in its callbacks.

use super::*;

/// Creates a program in which `App.Main`, or `Lib.Run` called by it, reaches a target in that way.
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
        Some(CallTarget::Unmanaged) => Some(("Lib.Work", CodeKind::Native)),
        Some(CallTarget::Managed) => Some(("App.Work", CodeKind::ReadyToRun)),
        None => None,
    };
    functions.extend(name.map(|(name, kind)| function(name, kind, vec![Statement::Work(3)])));
    Program { functions, ..Program::default() }
}

/// Returns all callbacks with the results of walks in them.
fn callbacks(program: &Program, generation: Generation, hooks: Hooks) -> String {
    let build = Build::with_hooks(program, &BTreeMap::new(), generation, hooks).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let mut log = String::new();
    loop {
        let event = world.step(0).unwrap();
        match event {
            StepEvent::Ended => break,
            StepEvent::Callback(kind) => {
                writeln!(log, "    {}: {}", kind.name(), walk(&mut world, 0)).unwrap();
            }
            StepEvent::Hook => writeln!(log, "    (hook): {}", walk(&mut world, 0)).unwrap(),
            StepEvent::Stepped | StepEvent::Entered(_) | StepEvent::Waits => {}
        }
    }
    // Nothing returns to its caller where nothing catches.
    assert!(
        world.is_unhandled(0)
            || world.has_exited()
            || world.shadow_stack(0).unwrap().callers().is_empty()
    );
    log
}

/// Generations with the same callbacks are grouped.
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

/// A native thread becomes known to the runtime when it first calls managed code. There is no
/// P/Invoke below, so that .NET 9 finds nothing in the transition's callbacks (C-170), and 3.1 only
/// the marker after the stub.
#[test]
fn a_native_thread_is_attached() {
    let program = program(RuntimeCallKind::ReversePInvoke);
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Native(FunctionIndex(1))]).unwrap();
        assert_eq!(world.object(0), None);
        let mut found = Vec::new();
        loop {
            match world.step(0).unwrap() {
                StepEvent::Ended => break,
                StepEvent::Callback(kind) => found.push((kind.name(), walk(&mut world, 0))),
                _ => {}
            }
        }
        assert_eq!(world.shadow_stack(0).unwrap().callers(), []);
        let begins = |name: &str| found.iter().find(|(kind, _)| *kind == name).unwrap().1.as_str();
        assert_eq!(begins("ThreadCreated"), "E_FAIL", "{generation}");
        let transition = begins("UnmanagedToManagedTransition");
        let expected = if generation.has_um_thunk_stub() { "*UMThunkStub S_OK" } else { "E_FAIL" };
        assert_eq!(transition, expected, "{generation}");
    }
}

/// Only callbacks that the event mask requests are made.
#[test]
fn callbacks_are_those_that_were_asked_for() {
    let program = program(RuntimeCallKind::NewWithGc);
    let generation = Generation::Net9Unix;
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let mask = EventMask::ENABLE_STACK_SNAPSHOT | EventMask::MONITOR_THREADS;
    world.runtime().change_process(|process| process.event_mask = mask);
    let mut found = Vec::new();
    loop {
        match world.step(0).unwrap() {
            StepEvent::Ended => break,
            StepEvent::Callback(kind) => found.push(kind.name()),
            _ => {}
        }
    }
    assert_eq!(found, ["ThreadCreated", "ThreadAssignedToOSThread", "ThreadDestroyed"]);
}

/// COM in both directions: E-17.
#[test]
fn com_calls_both_ways() {
    use RuntimeCallKind::{ComCall, ComMethod};
    let program = Program {
        functions: vec![
            function("App.M1", CodeKind::Jit, vec![runtime(ComCall, Some(1))]),
            function("Lib.Client", CodeKind::Native, vec![runtime(ComMethod, Some(2))]),
            function("App.M2", CodeKind::Jit, vec![runtime(ComCall, Some(3))]),
            function("Lib.Server2", CodeKind::Native, vec![Statement::Work(3)]),
        ],
        ..Program::default()
    };
    for generation in Generation::ALL.into_iter().filter(|generation| generation.has_com_frames()) {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let server = build.expanded().placed[3];
        while world.rip(0) != Some(build.linked().entries[server.index()]) {
            assert_ne!(world.step(0).unwrap(), StepEvent::Ended);
        }
        assert!(!world.is_cooperative(0));
        assert_eq!(
            walk_by(&mut world, None, 0),
            "App.M2 *COMToCLRDispatchHelper App.M1 *CallDescrWorkerInternal S_OK",
            "{generation}"
        );
    }
}
