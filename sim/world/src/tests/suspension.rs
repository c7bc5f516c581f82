//! Threads that are stopped while another one collects.

use super::*;
use clr_walker::profiling::SnapshotRequest;

/// Creates two threads: one collects; the other one only computes, or is in a P/Invoke.
fn program() -> Program {
    Program {
        functions: vec![
            function("App.Main", CodeKind::Jit, vec![runtime(RuntimeCallKind::Collect, None)]),
            function(
                "App.Busy",
                CodeKind::Jit,
                vec![Statement::Call(clr_codegen::CallForm::Near, FunctionIndex(4))],
            ),
            function(
                "App.Away",
                CodeKind::Jit,
                vec![runtime(RuntimeCallKind::PInvoke, Some(3)), Statement::Work(3)],
            ),
            function("Lib.Long", CodeKind::Native, vec![Statement::Work(9)]),
            function("App.Compute", CodeKind::Jit, vec![Statement::Work(200)]),
        ],
        ..Program::default()
    }
}

fn threads() -> [ThreadStart; 3] {
    [0, 1, 2].map(|index| ThreadStart::Managed(FunctionIndex(index)))
}

/// Steps a thread until it is in this function.
fn run_into(world: &mut World<'_>, thread: usize, name: &str) {
    let functions = &world.expanded().program.functions;
    let index = functions.iter().position(|function| function.name == name).unwrap();
    let entry = world.linked().entries[index];
    while world.rip(thread) != Some(entry) {
        assert!(!matches!(world.step(thread), Ok(StepEvent::Ended) | Err(_)), "{name}");
    }
    let _ = world.step(thread).unwrap();
}

/// Returns the result of a walk of a stopped thread (contract §4.1): `E_FAIL` where a thread was
/// redirected, the caller where a function's return was hijacked, and all frames after a P/Invoke
/// has returned.
fn stopped(generation: Generation, stop_by: StopBy, thread: usize) -> &'static str {
    match (thread, stop_by) {
        _ if generation.is_unix() => "E_NOTIMPL",
        (2, _) => "App.Away *CallDescrWorkerInternal S_OK",
        (_, StopBy::Hijack) => "App.Busy *CallDescrWorkerInternal S_OK",
        // In this generation no walk stops at such Frames.
        _ if !Generations::CLR_4.contains(generation) => {
            "App.Compute App.Busy *CallDescrWorkerInternal S_OK"
        }
        _ => "E_FAIL",
    }
}

/// Walks all threads during a GC, under redirection or hijacking.
fn walks(generation: Generation, stop_by: StopBy) -> String {
    let program = program();
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = build.world(&threads()).unwrap();
    world.stop_threads_by(stop_by);
    // A thread that begins while others are being stopped waits for the thread store.
    run_into(&mut world, 1, "App.Compute");
    run_into(&mut world, 2, "Lib.Long");
    while world.callback(0) != Some(CallbackKind::RuntimeSuspendStarted) {
        let _ = world.step(0).unwrap();
    }
    let mut log = String::new();
    let mut ended = [false; 3];
    let mut steps = 0;
    while ended != [true; 3] {
        steps += 1;
        assert!(steps < 100_000, "{generation} hangs\n{log}");
        for (thread, ended) in ended.iter_mut().enumerate() {
            // The thread returns from its P/Invoke when all others have been stopped.
            if thread == 2 && log.lines().all(|line| !line.contains("GarbageCollectionStarted")) {
                continue;
            }
            match world.step(thread).unwrap() {
                StepEvent::Ended => *ended = true,
                StepEvent::Callback(kind) if thread == 0 => {
                    let walk = walk(&mut world, 0);
                    writeln!(log, "    {}: {walk}", kind.name()).unwrap();
                    if kind.name() == "GarbageCollectionStarted" {
                        for thread in [1, 2] {
                            // Its last instructions before the wait.
                            while world.step(thread).unwrap() != StepEvent::Waits {}
                            let walk = super::walk_by(&mut world, None, thread);
                            assert_eq!(walk, stopped(generation, stop_by, thread), "{generation}");
                            writeln!(log, "      thread {thread}: {walk}").unwrap();
                        }
                    }
                }
                _ => {}
            }
        }
    }
    for thread in 0..3 {
        assert_eq!(world.shadow_stack(thread).unwrap().callers(), []);
    }
    log
}

#[test]
fn others_are_stopped_while_one_collects() {
    let mut log = String::new();
    for stop_by in [StopBy::Redirection, StopBy::Hijack] {
        writeln!(log, "{stop_by:?}").unwrap();
        for generation in Generation::ALL {
            writeln!(log, "  {generation}\n{}", walks(generation, stop_by)).unwrap();
        }
    }
    insta::assert_snapshot!(log);
}

/// Creates a world whose threads are stopped by hijacks, with one of them in `App.Compute`.
fn computing(build: &Build) -> World<'_> {
    let mut world = build.world(&threads()).unwrap();
    world.stop_threads_by(StopBy::Hijack);
    run_into(&mut world, 1, "App.Compute");
    world
}

/// A walk undoes a hijack (C-077); the function then returns to its caller, and the thread is
/// stopped in another way.
#[test]
fn a_walk_undoes_a_hijack() {
    let program = program();
    let generation = Generation::CoreClr31Windows;
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = computing(&build);
    while world.callback(0) != Some(CallbackKind::RuntimeSuspendStarted) {
        let _ = world.step(0).unwrap();
    }
    while !matches!(world.step(0), Ok(StepEvent::Waits)) {}
    let expected = world.activations(1);
    let walk = super::walk_by(&mut world, None, 1);
    assert_eq!(walk, "App.Compute App.Busy *CallDescrWorkerInternal S_OK");
    assert_eq!(world.activations(1), expected);
    for _ in 0..20_000 {
        for thread in [0, 1] {
            let _ = world.step(thread).unwrap();
        }
    }
    assert_eq!(world.shadow_stack(0).unwrap().callers(), []);
    assert_eq!(world.shadow_stack(1).unwrap().callers(), []);
}

/// Under SuspendRuntime a redirected thread is walked through its CONTEXT, on Unix too (C-076,
/// E-12).
#[test]
fn a_profiler_walks_redirected_threads() {
    let program = program();
    for generation in Generation::ALL {
        if !generation.is_core() {
            continue;
        }
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&threads()).unwrap();
        run_into(&mut world, 1, "App.Compute");
        let before = world.activations(1);
        world.runtime().on(super::NOBODY).suspend_runtime().unwrap();
        while !world.stop_others(None) {
            let _ = world.step(1).unwrap();
        }
        let walk = super::walk_by(&mut world, None, 1);
        assert_eq!(walk, "App.Compute App.Busy *CallDescrWorkerInternal S_OK", "{generation}");
        // The stub in which the thread waits is the only additional activation.
        assert_eq!(world.activations(1)[1..], before, "{generation}");
        while world.step(1).unwrap() != StepEvent::Waits {}
        world.runtime().on(super::NOBODY).resume_runtime().unwrap();
        while world.step(1).unwrap() != StepEvent::Ended {}
        assert_eq!(world.shadow_stack(1).unwrap().callers(), []);
    }
}

/// Exceptions bypass returns: hijacked return addresses are restored before anything is unwound.
#[test]
fn an_exception_undoes_a_hijack() {
    use super::exceptions::{call, clause, managed, throw};
    use clr_codegen::EhClauseKind;
    let catch = vec![clause(EhClauseKind::Catch, vec![Statement::Work(1)])];
    let guarded = Statement::Guarded(vec![call(2)], catch);
    let thrower = vec![Statement::Work(200), throw(RuntimeCallKind::Raise)];
    let program = Program {
        functions: vec![
            function("App.Main", CodeKind::Jit, vec![runtime(RuntimeCallKind::Collect, None)]),
            managed("App.Busy", CodeKind::Jit, vec![guarded, Statement::Work(100)]),
            managed("App.Thrower", CodeKind::Jit, thrower),
        ],
        ..Program::default()
    };
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world =
            build.world(&[0, 1].map(|index| ThreadStart::Managed(FunctionIndex(index)))).unwrap();
        world.stop_threads_by(StopBy::Hijack);
        run_into(&mut world, 1, "App.Thrower");
        while !matches!(world.step(0), Ok(StepEvent::Waits)) {}
        let mut caught = false;
        while world.step(1).unwrap() != StepEvent::Ended {
            caught |= world.callback(1) == Some(CallbackKind::ExceptionCatcherEnter);
            let _ = world.step(0).unwrap();
        }
        assert!(caught && !world.is_unhandled(1), "{generation}");
        assert_eq!(world.shadow_stack(1).unwrap().callers(), [], "{generation}");
    }
}

/// The callback of a walk ends it: the target is resumed all the same, and its hijack lock is free
/// (C-025, C-088).
#[test]
fn an_aborted_walk_resumes_its_target() {
    let program = program();
    for generation in Generation::ALL.into_iter().filter(|generation| !generation.is_unix()) {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&threads()).unwrap();
        run_into(&mut world, 1, "App.Compute");
        let (id, os) = (world.object(1).unwrap(), world.os(1).unwrap());
        let runtime = world.runtime();
        let suspended = || runtime.thread(os, |thread| thread.suspended).unwrap();
        let is_locked = || ThreadObject(id).is_hijack_locked(&*runtime.memory.borrow()).unwrap();
        let mut seen = Vec::new();
        let mut callback = |_: &mut SnapshotFrame<'_>| {
            seen.push((suspended(), is_locked()));
            HResult::FALSE
        };
        let flags = SnapshotFlags::DEFAULT;
        let caller = &runtime.on(super::NOBODY);
        let callback: Option<&mut SnapshotCallback<'_>> = Some(&mut callback);
        let ended =
            ProfilerInfo::do_stack_snapshot(caller, &SnapshotRequest::of(id, flags), callback);
        assert_eq!(ended, Err(CallError::Failed(HResult::ABORTED)), "{generation}");
        assert_eq!(seen, [(1, true)], "{generation}");
        assert_eq!((suspended(), is_locked()), (0, false), "{generation}");
    }
}

/// While a walk has the hijack lock of a thread, no return of the thread is hijacked (H-22).
#[test]
fn a_walk_keeps_a_return_from_being_hijacked() {
    let program = program();
    let generation = Generation::CoreClr31Windows;
    let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
    let mut world = computing(&build);
    let object = ThreadObject(world.object(1).unwrap());
    let lock = |world: &mut World<'_>, locks: bool| {
        let memory = &mut *world.runtime().memory.borrow_mut();
        if locks {
            assert_eq!(object.try_hijack_lock(memory), Ok(true));
        } else {
            object.release_hijack_lock(memory).unwrap();
        }
    };
    let is_hijacked =
        |world: &mut World<'_>| object.is_hijacked(&*world.runtime().memory.borrow()).unwrap();
    lock(&mut world, true);
    assert!(!world.stop_others(None));
    assert!(!is_hijacked(&mut world));
    lock(&mut world, false);
    assert!(!world.stop_others(None));
    assert!(is_hijacked(&mut world));
}

/// On Unix the return value lies where unwind data name a return address, until the worker of the
/// hijacked return has written that (H-32).
#[test]
fn a_return_value_lies_in_the_slot_of_a_hijacked_return() {
    let program = program();
    for generation in Generation::ALL {
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = computing(&build);
        let caller = world.activations(1)[1].registers;
        assert!(!world.stop_others(None), "{generation}");
        run_into(&mut world, 1, "OnHijackTripThread:Save");
        let value = world.registers_of(1).unwrap().get(clr_unwind::Gpr::Rax);
        let slot = |world: &mut World<'_>| {
            world.runtime().memory.borrow().read_u64(caller.rsp() - 8).unwrap()
        };
        assert_eq!(slot(&mut world), value, "{generation}");
        assert_ne!(value, caller.rip, "{generation}");
        run_into(&mut world, 1, "OnHijackWorker");
        assert_eq!(slot(&mut world), value, "{generation}");
        let mut steps = 0;
        while slot(&mut world) == value {
            let _ = world.step(1).unwrap();
            steps += 1;
            assert!(steps < 20, "{generation}");
        }
        assert_eq!(slot(&mut world), caller.rip, "{generation}");
    }
}
