//! Threads, methods and states of a world.

use super::*;
use clr_runtime::THREAD_OBJECT_SIZE;

const MAIN: ThreadStart = ThreadStart::Managed(FunctionIndex(0));

fn build(program: &Program) -> Build {
    Build::new(program, &BTreeMap::new(), Generation::Net9Unix).unwrap()
}

fn main_with(body: Vec<Statement>) -> Program {
    Program { functions: vec![function("App.Main", CodeKind::Jit, body)], ..Program::default() }
}

#[test]
fn instructions_are_counted_over_all_threads() {
    let build = build(&main_with(vec![Statement::Work(20)]));
    let mut world = build.world(&[MAIN, MAIN]).unwrap();
    let start = world.executed();
    let mut counted = 0;
    for step in 0..40 {
        let thread = step % 2;
        let serves = world.is_serving(thread) || world.callback(thread).is_some();
        let before = world.executed();
        world.step(thread).unwrap();
        let executed = world.executed() - before;
        // A part of a service is no instruction.
        assert!(executed <= 1 && !(serves && executed > 0 && world.is_serving(thread)), "{step}");
        counted += executed;
    }
    assert_eq!(world.executed() - start, counted);
    assert!(counted > 10, "{counted}");
}

#[test]
fn threads_of_the_profiler_have_ids_handles_and_objects_of_their_own() {
    let build = build(&main_with(vec![]));
    let mut world = build.world(&[MAIN]).unwrap();
    let [native, managed] = world.add_walkers().unwrap();
    let stranger = world.add_profilers_thread(0, false);
    let known = [1, 2].map(|number| world.add_profilers_thread(number, true));
    assert_eq!([stranger, known[0], known[1]], [0x2000, 0x2001, 0x2002].map(OsThreadId));
    let object = |world: &World<'_>, os| world.as_synced().object_of(os);
    assert_eq!((object(&world, native), object(&world, stranger)), (None, None));
    assert!(object(&world, managed).is_some());
    // A thread becomes known, and each has another object, whose fields do not overlap.
    for os in [native, stranger, NOBODY] {
        world.attach_thread(os);
    }
    assert_eq!(object(&world, NOBODY), None, "there is no such thread");
    let all = [native, managed, stranger, known[0], known[1]];
    let objects: BTreeSet<_> = all.iter().map(|os| object(&world, *os).unwrap().0).collect();
    assert_eq!(objects.len(), 5);
    let apart = objects.iter().zip(objects.iter().skip(1)).map(|(one, next)| next - one);
    assert!(apart.min().unwrap() >= THREAD_OBJECT_SIZE, "{objects:x?}");
    let memory = world.as_synced().memory.borrow();
    for at in &objects {
        let thread = ThreadObject(clr_walker::profiling::ThreadId(*at));
        assert_eq!(thread.is_cooperative(&*memory), Ok(false), "{at:x}");
    }
    let threads = world.as_synced().threads.borrow();
    let handles: BTreeSet<_> = threads.iter().map(|thread| thread.handle).collect();
    assert!(handles.len() == threads.len() && !handles.contains(&0), "{handles:x?}");
}

#[test]
fn a_thread_begins_without_frames_on_its_own_stack() {
    let build = build(&main_with(vec![Statement::Work(1)]));
    let world = build.world(&[MAIN, MAIN, MAIN]).unwrap();
    let memory = world.as_synced().memory.borrow();
    let mut stacks = Vec::new();
    for thread in 0..3 {
        let object = ThreadObject(world.object(thread).unwrap());
        assert_eq!(object.top_frame(&*memory), Ok(FRAME_TOP));
        stacks.push(world.shadow_stack(thread).unwrap().callers()[0].registers.rsp());
    }
    assert!(stacks.windows(2).all(|pair| pair[0].abs_diff(pair[1]) >= 0x1_0000), "{stacks:x?}");
    let ids: Vec<_> = (0..4).map(|thread| world.os(thread)).collect();
    assert_eq!(ids, [Some(OsThreadId(1)), Some(OsThreadId(2)), Some(OsThreadId(3)), None]);
}

/// A function that a stub of managed code calls has a method, and other unmanaged functions have none.
#[test]
fn a_function_that_managed_code_calls_is_a_method_without_code() {
    for kind in [Call::PInvokeStub, Call::PInvokeVararg, Call::ComCall] {
        let inner = Statement::Call(clr_codegen::CallForm::Near, FunctionIndex(2));
        let functions = vec![
            function("App.Main", CodeKind::Jit, vec![runtime(kind, Some(1))]),
            function("Lib.Work", CodeKind::Native, vec![inner]),
            function("Lib.Inner", CodeKind::Native, vec![Statement::Work(1)]),
        ];
        let build = build(&Program { functions, ..Program::default() });
        let world = build.world(&[MAIN]).unwrap();
        for (index, expected) in [(1, Some("Lib.Work")), (2, None)] {
            let placed = build.expanded().placed[index];
            let method = world.as_synced().code.method(FunctionId(method_id(placed)));
            assert_eq!(method.map(|(_, method)| &*method.name), expected, "{kind:?}");
            let entry = build.linked().entries[placed.index()];
            assert!(world.as_synced().code.find(entry).is_none(), "{kind:?}");
        }
    }
}

/// Owners of locks, the suspension and code have access sets of their own.
#[test]
fn locks_and_suspensions_are_no_part_of_the_common_state() {
    let build = build(&main_with(vec![]));
    let world = build.world(&[MAIN]).unwrap();
    let (start, common) = (world.as_synced().process.get(), world.common(0));
    let by = OsThreadId(1);
    let mut locked = start;
    assert!(locked.try_acquire(clr_runtime::Lock::ThreadStore, by));
    for process in [
        locked,
        Process { code_manager_writer: Some(by), ..start },
        Process { suspension: Suspension::Suspended(by), ..start },
    ] {
        world.as_synced().process.set(process);
        assert_eq!(world.common(0), common, "{process:?}");
    }
    world.as_synced().process.set(Process { profiler_suspensions: 1, ..start });
    assert_ne!(world.common(0), common);
    world.as_synced().process.set(start);
    world.as_synced().change_thread(by, |thread| thread.id_is_over = true);
    assert_ne!(world.common(0).listed, common.listed);
    assert_eq!(world.common(7).listed, crate::Listed::default());
}

#[test]
fn unloading_looks_at_what_others_execute() {
    let looked = |kind: Call| {
        let build = build(&main_with(vec![runtime(kind, None)]));
        let mut world = build.world(&[MAIN]).unwrap();
        let mut looked = false;
        while world.step(0).unwrap() != StepEvent::Ended {
            looked |= world.looked_at_others(0);
        }
        looked
    };
    assert!(looked(Call::UnloadAssembly) && looked(Call::UnloadDynamicMethod));
    assert!(!looked(Call::New) && !looked(Call::Collect));
}

#[test]
fn a_process_ends_with_its_thread_and_is_shut_down() {
    let build = build(&main_with(vec![Statement::Work(1)]));
    let mut world = build.world(&[MAIN, MAIN]).unwrap();
    world.end_by(ProcessEnd::Exit(0));
    while world.step(1).unwrap() != StepEvent::Ended {}
    assert!(!world.has_exited(), "another thread");
    while world.step(0).unwrap() != StepEvent::Ended {}
    assert!(world.has_exited());
    world.shut_down(0);
    assert_eq!(world.step(0), Ok(StepEvent::Callback(CallbackKind::Shutdown)));
    // Without such an end the process has none of its own.
    let world = build.world(&[MAIN]).unwrap();
    assert!(!world.has_exited());
}

#[test]
fn a_restored_world_goes_on_as_before() {
    let body = vec![
        runtime(Call::New, None),
        runtime(Call::CreateHandle, None),
        runtime(Call::Collect, None),
    ];
    let build = build(&main_with(body));
    let mut world = build.world(&[MAIN]).unwrap();
    let start = world.save();
    let run = |world: &mut World<'_>| {
        let mut reported = Vec::new();
        loop {
            match world.step(0).unwrap() {
                StepEvent::Ended => return reported,
                StepEvent::Callback(kind) => reported.push((kind, world.callback_arguments(0))),
                _ => {}
            }
        }
    };
    let first = run(&mut world);
    assert!(first.len() > 10);
    for _ in 0..2 {
        assert!(world.restore(&start));
        assert_eq!(run(&mut world), first);
    }
}

#[test]
fn the_content_says_which_code_was_freed() {
    let body = vec![Statement::Work(1)];
    let functions =
        ["App.Main", "App.Other"].map(|name| function(name, CodeKind::Jit, body.clone()));
    let build = build(&Program { functions: functions.into(), ..Program::default() });
    let contents: BTreeSet<_> = [None, Some(0), Some(1)]
        .map(|freed| {
            let world = build.world(&[MAIN]).unwrap();
            if let Some(freed) = freed {
                let id = FunctionId(method_id(FunctionIndex(freed)));
                assert!(world.as_synced().code.free(id), "{freed}");
            }
            world.common_content().code
        })
        .into();
    assert_eq!(contents.len(), 3);
}
