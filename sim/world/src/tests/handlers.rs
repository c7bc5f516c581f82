//! Walks during exception handling, compared with the contract and with observations.

use super::*;

const SECOND_PASS: &str = "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX";
const ROOT: &str = "*CallDescrWorkerInternal S_OK";

/// Creates a program: Main guards a call of Thrower with a finally, and the finally with a filter;
/// each handler calls a function that allocates.
pub(super) fn observed(kind: RuntimeCallKind) -> Program {
    let allocates = |name| managed(name, CodeKind::Jit, vec![throw(New)]);
    let inner =
        Statement::Guarded(vec![call(1)], vec![clause(EhClauseKind::Finally, vec![call(3)])]);
    let filtered = EhClauseKind::Filtered { accepts: true, filter: vec![call(2)] };
    let main = vec![Statement::Guarded(vec![inner], vec![clause(filtered, vec![call(4)])])];
    Program {
        functions: vec![
            managed("App.Main", CodeKind::Jit, main),
            managed("App.Thrower", CodeKind::Jit, vec![throw(kind)]),
            allocates("App.Filter"),
            allocates("App.Finally"),
            allocates("App.Catch"),
        ],
        ..Program::default()
    }
}

/// The walk of all of them.
const ALL: &str = "App.Thrower App.Main *CallDescrWorkerInternal S_OK";

/// Results of each callback's unseeded walk of its own thread: observed on U31, U9, W31 and WN
/// (contract §6, C-048, C-081, C-085, C-134, C-163, C-164, C-172).
fn expected_walks(generation: Generation) -> Vec<(&'static str, &'static str)> {
    const REFUSED: &str = "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX";
    let managed = generation.hides_exception_handling();
    let own = if managed { "App.Main *CallDescrWorkerInternal S_OK" } else { REFUSED };
    let filter = if managed {
        "App.Filter App.Main App.Thrower App.Main *CallDescrWorkerInternal S_OK"
    } else {
        "App.Filter App.Main *CallEHFilterFunclet App.Thrower App.Main *CallDescrWorkerInternal S_OK"
    };
    vec![
        ("ExceptionThrown", ALL),
        ("ExceptionSearchFunctionEnter", ALL),
        ("ExceptionSearchFunctionLeave", ALL),
        ("ExceptionSearchFunctionEnter", ALL),
        ("ExceptionSearchFilterEnter", ALL),
        ("ObjectAllocated", filter),
        ("ExceptionSearchFilterLeave", ALL),
        ("ExceptionSearchCatcherFound", ALL),
        ("ExceptionSearchFunctionLeave", ALL),
        ("ExceptionUnwindFunctionEnter", REFUSED),
        ("ExceptionUnwindFunctionLeave", REFUSED),
        ("ExceptionUnwindFunctionEnter", REFUSED),
        ("ExceptionUnwindFinallyEnter", own),
        ("ObjectAllocated", "App.Finally App.Main *CallDescrWorkerInternal S_OK"),
        ("ExceptionUnwindFinallyLeave", own),
        ("ExceptionCatcherEnter", own),
        ("ObjectAllocated", "App.Catch App.Main *CallDescrWorkerInternal S_OK"),
        ("ExceptionCatcherLeave", own),
    ]
}

#[test]
fn walks_in_exception_callbacks_have_the_observed_results() {
    for generation in Generation::ALL {
        for kind in [Raise, NullDereference] {
            let mut found = Vec::new();
            in_callbacks(&observed(kind), generation, |world, kind| {
                found.push((kind, walk(world, 0)));
            });
            let found = found.iter().map(|(kind, walk)| (*kind, walk.as_str()));
            // .NET 11 reports transitions of the method that handles the exception; the whole stack is walked in them.
            let (around, found): (Vec<_>, Vec<_>) =
                found.partition(|(kind, _)| kind.ends_with("Transition"));
            assert!(around.iter().all(|(_, walk)| *walk == ALL), "{generation}, {kind:?}");
            assert_eq!(found, expected_walks(generation), "{generation}, {kind:?}");
        }
    }
}

/// Executes a program to its end, and calls `look` in each callback but those of threads.
pub(super) fn in_callbacks(
    program: &Program,
    generation: Generation,
    look: impl FnMut(&mut World<'_>, &'static str),
) {
    assert!(!run(program, generation, look));
}

/// Does the same. Returns true if the program ended with an uncaught exception.
pub(super) fn run(
    program: &Program,
    generation: Generation,
    mut look: impl FnMut(&mut World<'_>, &'static str),
) -> bool {
    let build = Build::new(program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    world.add_walkers().unwrap();
    loop {
        match world.step(0).unwrap() {
            StepEvent::Ended => break,
            StepEvent::Callback(kind) if !kind.name().starts_with("Thread") => {
                look(&mut world, kind.name());
            }
            _ => {}
        }
    }
    world.is_unhandled(0)
}

/// A callback of a walk.
#[derive(Clone, Debug)]
pub(super) struct Reported {
    name: String,
    registers: Registers,
    flags: u32,
}

/// Walks thread 0 from the thread `os`.
pub(super) fn snapshot(
    world: &mut World<'_>,
    os: OsThreadId,
    seed: Option<&Registers>,
) -> (Vec<Reported>, String) {
    let seed = seed.map(|&registers| Context { registers, flags: 0 });
    let (callbacks, outcome) = callbacks(world, os, 0, seed.as_ref());
    let (linked, functions) = (world.linked(), &world.expanded().program.functions);
    let reported = |callback: &Callback| {
        let Context { registers, flags } = callback.context;
        let function = linked.function_of(registers.rip, Position::ReturnAddress);
        // At its first instruction, a function has no frame yet.
        let function =
            function.or_else(|| linked.function_of(registers.rip, Position::Interrupted));
        let mut name = function.map_or("?", |id| functions[id.index()].name.as_str()).to_owned();
        if callback.function.is_none() {
            name.insert(0, '*');
        }
        Reported { name, registers, flags }
    };
    (callbacks.iter().map(reported).collect(), outcome)
}

pub(super) fn shape((found, outcome): &(Vec<Reported>, String)) -> String {
    found.iter().map(|one| format!("{} ", one.name)).chain([outcome.clone()]).collect()
}

/// Returns the registers of the innermost activation of a function, from the shadow stack.
pub(super) fn registers_of(world: &World<'_>, name: &str) -> Option<Registers> {
    let functions = &world.expanded().program.functions;
    let activations = world.activations(0);
    let frame = activations.iter().find(|frame| {
        frame.function.is_some_and(|function| functions[function.index()].name == name)
    })?;
    Some(frame.registers)
}

/// E-14 and E-15, executed: from a handler the walk continues at the call in the guarded body.
#[test]
fn a_handler_replaces_the_frame_of_its_method() {
    for generation in Generation::ALL {
        let program = observed(Raise);
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let [walker, _] = world.add_walkers().unwrap();
        let entry =
            |function: usize| build.linked().entries[build.expanded().placed[function].index()];
        let (mut guarded, mut shapes) = (None, Vec::new());
        while world.step(0).unwrap() != StepEvent::Ended {
            let rip = world.rip(0).unwrap();
            if rip == entry(1) {
                guarded = registers_of(&world, "App.Main");
            }
            if ![entry(2), entry(3), entry(4)].contains(&rip) {
                continue;
            }
            let own = world.os(0).unwrap();
            let seed =
                registers_of(&world, ["App.Filter", "App.Finally", "App.Catch"][shapes.len()]);
            let found = snapshot(&mut world, own, seed.as_ref());
            let main = found.0.iter().rev().find(|one| one.name == "App.Main").unwrap();
            let guarded = guarded.unwrap();
            assert_eq!((main.registers.rip, main.registers.rsp()), (guarded.rip, guarded.rsp()));
            shapes.push(shape(&found));
            // Another thread starts from the registers that the thread has.
            let other = snapshot(&mut world, walker, None);
            let expected = if generation.is_unix() { "E_NOTIMPL" } else { shapes.last().unwrap() };
            assert_eq!(shape(&other), expected, "{generation}");
        }
        let dispatcher =
            if generation.hides_exception_handling() { "" } else { "*CallEHFilterFunclet " };
        assert_eq!(
            shapes,
            [
                format!("App.Filter App.Main {dispatcher}App.Thrower App.Main {ROOT}"),
                format!("App.Finally App.Main {ROOT}"),
                format!("App.Catch App.Main {ROOT}"),
            ],
            "{generation}"
        );
    }
}

/// On Windows another thread walks a cooperative thread in native code from its registers, a
/// preemptive one by its Frames.
#[test]
fn walks_of_another_thread_depend_on_its_mode() {
    for generation in Generation::ALL.into_iter().filter(|generation| !generation.is_unix()) {
        let build = Build::new(&observed(Raise), &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let [walker, _] = world.add_walkers().unwrap();
        let mut seen = 0;
        loop {
            match world.step(0).unwrap() {
                StepEvent::Ended => break,
                StepEvent::Callback(kind) if kind.name().starts_with("Exception") => {
                    let found = shape(&snapshot(&mut world, walker, None));
                    let preemptive = kind.mode(generation) == CallbackMode::Preemptive;
                    let first = kind.name().starts_with("ExceptionSearch");
                    let expected = if preemptive && first {
                        format!("App.Thrower App.Main {ROOT}")
                    } else {
                        SECOND_PASS.to_owned()
                    };
                    assert_eq!(found, expected, "{generation}, {}", kind.name());
                    seen += 1;
                }
                _ => {}
            }
        }
        assert_eq!(seen, 15);
    }
}

/// C-050: the exception is over, the catch has returned, and execution has not resumed.
#[test]
fn no_walk_is_made_before_execution_goes_on() {
    for generation in Generation::ALL {
        let build = Build::new(&observed(Raise), &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let (mut seen, mut main) = (0, None);
        while world.step(0).unwrap() != StepEvent::Ended {
            let own = world.os(0).unwrap();
            main = registers_of(&world, "App.Main").or(main);
            let inconsistent =
                world.runtime().thread(own, |thread| thread.exceptions.inconsistent).unwrap();
            if inconsistent {
                for seed in [None, main] {
                    let found = shape(&snapshot(&mut world, own, seed.as_ref()));
                    assert_eq!(found, "CORPROF_E_STACKSNAPSHOT_UNSAFE", "{generation}");
                }
                seen += 1;
            }
        }
        assert_eq!(seen, 1, "{generation}");
    }
}

/// A program with a runtime has no `throw`: that is said where it is executed.
#[test]
fn a_throw_that_no_runtime_has_is_named() {
    let thrower = managed("App.Main", CodeKind::Jit, vec![Statement::Throw]);
    let program = Program { functions: vec![thrower], ..Program::default() };
    let build = Build::new(&program, &BTreeMap::new(), Generation::Net8Unix).unwrap();
    let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
    let error = (0..1_000).find_map(|_| world.step(0).err()).unwrap();
    assert_eq!(error, WorldError::Thrown);
    assert!(error.to_string().contains("`raise` throws"));
}

/// C-160: the walk begins with the faulting instruction and all its registers.
#[test]
fn a_fault_is_reported_with_all_registers() {
    for generation in Generation::ALL {
        let build = Build::new(&observed(NullDereference), &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let own = world.os(0).unwrap();
        let (mut faulting, mut seen) = (None, false);
        loop {
            if let Some(registers) = registers_of(&world, "App.Thrower")
                && world.activations(0).len() == 4
            {
                faulting = Some(registers);
            }
            match world.step(0).unwrap() {
                StepEvent::Ended => break,
                StepEvent::Callback(kind) if kind.name() == "ExceptionThrown" => {
                    let (found, _) = snapshot(&mut world, own, None);
                    assert_eq!(Some(found[0].registers), faulting, "{generation}");
                    let family = generation.family();
                    let flags = match (family.os, family.version.0) {
                        (Os::Windows, 10 | 11) => 0x810_001F,
                        (Os::Windows, 9) => 0x810_0017,
                        (Os::Windows, _) => 0x10_005F,
                        (Os::Unix, 9) if !family.legacy_exceptions => 0x810_0003,
                        (Os::Unix, 9..=11) => 0x810_000B,
                        (Os::Unix, _) => 0x810_004B,
                    };
                    assert_eq!(found[0].flags, flags, "{generation}");
                    seen = true;
                }
                _ => {}
            }
        }
        assert!(seen);
    }
}

/// C-086: frames that have been left are hidden, frames that are being left are not.
#[test]
fn frames_that_were_left_are_hidden() {
    for generation in Generation::ALL {
        let (mut thrower, mut found) = (None, Vec::new());
        in_callbacks(&observed(Raise), generation, |world, kind| {
            thrower = thrower.or(registers_of(world, "App.Thrower"));
            if ["ExceptionUnwindFunctionLeave", "ExceptionUnwindFinallyEnter"].contains(&kind) {
                let own = world.os(0).unwrap();
                found.push(shape(&snapshot(world, own, thrower.as_ref())));
            }
        });
        let is_9 = Generations::NET_9.contains(generation);
        let expected = if is_9 && !generation.family().legacy_exceptions {
            // There the thread is preemptive: seeds are ignored. Before a handler managed code counts as
            // entered (C-164).
            [SECOND_PASS.to_owned(), format!("App.Main {ROOT}")]
        } else {
            [format!("App.Thrower App.Main {ROOT}"), format!("App.Main {ROOT}")]
        };
        assert_eq!(found, expected, "{generation}");
    }
}

/// C-165: a handler that a later exception has left is visible by the frames that called it.
#[test]
fn a_handler_that_was_left_leaves_its_caller() {
    let kind = EhClauseKind::Catch;
    let again = Statement::Guarded(vec![call(1)], vec![clause(kind.clone(), vec![call(1)])]);
    let main = vec![Statement::Guarded(vec![again], vec![clause(kind, Vec::new())])];
    let program = Program {
        functions: vec![
            managed("App.Main", CodeKind::Jit, main),
            managed("App.Thrower", CodeKind::Jit, vec![throw(Raise)]),
        ],
        ..Program::default()
    };
    for generation in Generation::ALL {
        let mut found = Vec::new();
        in_callbacks(&program, generation, |world, kind| {
            if ["ExceptionThrown", "ExceptionCatcherEnter"].contains(&kind) {
                found.push(walk(world, 0));
            }
        });
        let managed = generation.hides_exception_handling();
        let thrown = format!("App.Thrower App.Main {ROOT}");
        let catcher = |walk: &str| {
            if managed { format!("{walk}App.Main {ROOT}") } else { SECOND_PASS.to_owned() }
        };
        let expected = [thrown.clone(), catcher(""), thrown, catcher("*CallCatchFunclet ")];
        assert_eq!(found, expected, "{generation}");
    }
}

/// An exception passes through native code on Windows only; the Frames of the part that it has left
/// are gone.
#[test]
fn native_code_between_is_left_on_windows() {
    use RuntimeCallKind::{PInvoke, ReversePInvoke};
    let mut native =
        super::function("Lib.Sort", CodeKind::Native, vec![runtime(ReversePInvoke, Some(2))]);
    native.shape.locals = 0x28;
    let catch = clause(EhClauseKind::Catch, vec![call(3)]);
    let main = vec![Statement::Guarded(vec![runtime(PInvoke, Some(1))], vec![catch]), call(3)];
    let program = Program {
        functions: vec![
            managed("App.Main", CodeKind::Jit, main),
            native,
            managed("App.Compare", CodeKind::Jit, vec![throw(Raise)]),
            managed("App.New", CodeKind::Jit, vec![throw(New)]),
        ],
        ..Program::default()
    };
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let (mut found, mut thrown) = (Vec::new(), 0);
        loop {
            match world.step(0).unwrap() {
                StepEvent::Ended => break,
                StepEvent::Callback(kind) if kind.name() == "ObjectAllocated" => {
                    found.push(walk(&mut world, 0));
                }
                StepEvent::Callback(kind) => thrown += u32::from(kind.name() == "ExceptionThrown"),
                _ => {}
            }
        }
        assert_eq!(world.is_unhandled(0), generation.is_unix());
        // Managed handling ends at the stub, and begins again at the P/Invoke.
        let new_windows = Generations::NEW.both(Generations::WINDOWS).contains(generation);
        assert_eq!(thrown, if new_windows { 2 } else { 1 });
        let expected = vec![format!("App.New App.Main {ROOT}"); 2];
        assert_eq!(found, if generation.is_unix() { Vec::new() } else { expected }, "{generation}");
    }
}

/// Wherever a thread is stopped, a walk from its innermost managed frame reaches the end or is
/// refused.
#[test]
fn walks_can_be_made_at_each_instruction() {
    for generation in Generation::ALL {
        for kind in [Raise, NullDereference] {
            let build = Build::new(&observed(kind), &BTreeMap::new(), generation).unwrap();
            let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
            let own = world.os(0).unwrap();
            let (mut walked, mut refused) = (0, 0);
            while world.step(0).unwrap() != StepEvent::Ended {
                let activations = world.activations(0);
                let managed =
                    |registers: &Registers| world.as_synced().code.find(registers.rip).is_some();
                let seed = activations.iter().map(|frame| frame.registers).find(managed);
                let Some(seed) = seed else { continue };
                let (found, outcome) = snapshot(&mut world, own, Some(&seed));
                if outcome == "S_OK" {
                    assert_eq!(found.last().unwrap().name, "*CallDescrWorkerInternal");
                    walked += 1;
                } else {
                    assert!(outcome.ends_with("UNMANAGED_CTX") || outcome.ends_with("UNSAFE"));
                    refused += 1;
                }
            }
            assert!(walked > 200 && refused > 2, "{generation}, {kind:?}: {walked}, {refused}");
        }
    }
}
