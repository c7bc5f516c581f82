//! Locks of the runtime and the process, and waits between threads.

use super::*;
use clr_runtime::{Profiler, Runtime, Wait};
use core::cell::RefCell;

/// Creates one thread for each statement, which does nothing else; native threads are called by a
/// P/Invoke.
fn program(kinds: &[Kind]) -> Program {
    let mut functions = Vec::new();
    for (kind, n) in kinds.iter().zip(0..) {
        let (own, callee) = (runtime(*kind, None), 2 * n + 1);
        let native = !kind.is_in_managed_code();
        let body = if native { runtime(Kind::PInvoke, Some(callee)) } else { own.clone() };
        let name = format!("App.Main{n}");
        functions.push(function(&name, CodeKind::Jit, vec![body, Statement::Work(2)]));
        let body = if native { own } else { Statement::Work(1) };
        functions.push(function(&format!("Lib.Run{n}"), CodeKind::Native, vec![body]));
    }
    Program { functions, ..Program::default() }
}

fn build(kinds: &[Kind], generation: Generation) -> (Build, Vec<ThreadStart>) {
    let build = Build::new(&program(kinds), &BTreeMap::new(), generation).unwrap();
    let starts = (0..kinds.len()).map(|n| ThreadStart::Managed(FunctionIndex(2 * n as u32)));
    (build, starts.collect())
}

/// Steps a thread until the condition is true.
fn run_until(world: &mut World<'_>, thread: usize, so: impl Fn(&World<'_>) -> bool) {
    while !so(world) {
        assert_ne!(world.step(thread).unwrap(), StepEvent::Ended);
    }
}

/// Steps a thread until it waits, or calls the profiler back.
fn run_on(world: &mut World<'_>, thread: usize) -> StepEvent {
    loop {
        match world.step(thread).unwrap() {
            StepEvent::Stepped => {}
            event => return event,
        }
    }
}

/// After the return of `Main` the process lives as long as another thread that the runtime has started, but not
/// as long as one that came from unmanaged code.
#[test]
fn a_process_ends_after_its_foreground_threads() {
    use StepEvent::{Callback, Ended, Waits};
    let (build, mut starts) = build(&[Kind::New, Kind::New], Generation::CoreClr31Unix);
    starts.push(ThreadStart::Native(FunctionIndex(1)));
    let mut world = build.world(&starts).unwrap();
    world
        .runtime()
        .change_process(|process| process.event_mask = clr_walker::profiling::EventMask(0));
    world.end_by(ProcessEnd::Return(0));
    assert_eq!(run_on(&mut world, 0), Waits);
    let other = world.os(1).unwrap();
    assert_eq!(world.waits_for(0), Some(Wait::ForegroundThreads));
    assert_eq!((world.others(0), world.is_cooperative(0)), (vec![other], false));
    assert_eq!(run_on(&mut world, 1), Ended);
    assert_eq!((world.waits_for(0), world.has_exited()), (None, false));
    assert_eq!(run_on(&mut world, 0), Callback(CallbackKind::Shutdown));
    assert_eq!((run_on(&mut world, 0), world.has_exited()), (Ended, true));
    assert_ne!(run_on(&mut world, 2), Waits);
}

fn owner(world: &World<'_>, lock: Lock) -> Option<OsThreadId> {
    world.as_synced().process.get().owner(lock)
}

/// Records the waits of profiling methods, and refuses all of them.
#[derive(Default)]
struct Waits(RefCell<Vec<Wait>>);

impl<'a> Profiler<'a, Machine> for Waits {
    fn call_back(&self, _: &Runtime<'a>, _: OsThreadId, _: ProfilerCallback) {}

    fn wait(&self, _: &Runtime<'a>, _: OsThreadId, wait: Wait) -> bool {
        self.0.borrow_mut().push(wait);
        false
    }
}

/// Lets the threads of a world go on as long as a method waits.
struct Kernel<'b>(RefCell<World<'b>>);

impl<'b> Profiler<'b, Machine> for Kernel<'b> {
    fn call_back(&self, _: &Runtime<'b>, _: OsThreadId, _: ProfilerCallback) {}

    fn wait(&self, _: &Runtime<'b>, os: OsThreadId, wait: Wait) -> bool {
        let mut world = self.0.borrow_mut();
        for _ in 0..10_000 {
            let over = match wait {
                Wait::ThreadsToStop => world.stop_others(None),
                _ => world.has_ended(os, wait),
            };
            if over {
                return true;
            }
            step_all(&mut world);
        }
        false
    }
}

/// Steps each thread that can go on. Returns true if there was one.
fn step_all(world: &mut World<'_>) -> bool {
    let mut any = false;
    for thread in 0..world.thread_count() {
        if world.waits_for(thread).is_none() {
            any |= world.step(thread).unwrap() != StepEvent::Ended;
        }
    }
    any
}

/// H-13: a thread that requests the heap waits for the thread that holds it.
#[test]
fn a_lock_is_waited_for() {
    for generation in Generation::ALL {
        let (build, starts) = build(&[Kind::Malloc, Kind::Malloc], generation);
        let mut world = build.world(&starts).unwrap();
        let [first, second] = [0, 1].map(|thread| world.os(thread).unwrap());
        run_until(&mut world, 0, |world| owner(world, Lock::ProcessHeap) == Some(first));
        let wait = Some(Wait::Lock(Lock::ProcessHeap));
        run_until(&mut world, 1, |world| world.waits_for(1) == wait);
        assert_eq!((world.others(1), world.waits_for(0)), (vec![first], None));
        assert_eq!(world.step(1).unwrap(), StepEvent::Waits, "{generation}");
        let locks: Vec<_> = world.as_synced().process.get().locks_of(first).collect();
        assert_eq!(locks, [Lock::ProcessHeap], "{generation}");
        run_until(&mut world, 0, |world| owner(world, Lock::ProcessHeap).is_none());
        assert_eq!((world.waits_for(1), world.others(1)), (None, vec![]), "{generation}");
        run_until(&mut world, 1, |world| owner(world, Lock::ProcessHeap) == Some(second));
        while step_all(&mut world) {}
        assert_eq!(owner(&world, Lock::ProcessHeap), None, "{generation}");
    }
}

/// H-11, H-12: the locks held while a library is loaded, step by step.
#[test]
fn a_library_is_loaded_under_the_loader_lock() {
    for generation in Generation::ALL {
        let (build, starts) = build(&[Kind::LoadLibrary], generation);
        let mut world = build.world(&starts).unwrap();
        let os = world.os(0).unwrap();
        let mut seen: Vec<Vec<Lock>> = Vec::new();
        while world.step(0).unwrap() != StepEvent::Ended {
            let held: Vec<_> = world.as_synced().process.get().locks_of(os).collect();
            if held.contains(&Lock::Loader) && seen.last() != Some(&held) {
                seen.push(held);
            }
        }
        let loader = vec![Lock::Loader];
        let mut expected =
            vec![loader.clone(), vec![Lock::ProcessHeap, Lock::Loader], loader.clone()];
        if !generation.is_unix() {
            expected.extend([vec![Lock::Loader, Lock::FunctionTables], loader]);
        }
        assert_eq!(seen, expected, "{generation}");
    }
}

/// Contract §6: a thread in ThreadDestroyed does not hold the thread store, which a collecting thread needs; it
/// takes the thread store to leave it.
#[test]
fn an_ending_thread_delays_a_collecting_thread_only_when_it_leaves() {
    for generation in Generation::ALL {
        let (build, starts) = build(&[Kind::WriteBarrier, Kind::Collect], generation);
        let begin = || {
            let mut world = build.world(&starts).unwrap();
            let in_callback = |w: &World<'_>| w.callback(0) == Some(CallbackKind::ThreadDestroyed);
            run_until(&mut world, 0, in_callback);
            world
        };
        let mut world = begin();
        assert_eq!(owner(&world, Lock::ThreadStore), None, "{generation}");
        // The callback does not return, and the other thread begins, collects and ends.
        while !matches!(world.step(1), Ok(StepEvent::Ended)) {
            assert_eq!(world.waits_for(1), None, "{generation}");
        }
        assert_eq!(world.callback(0), Some(CallbackKind::ThreadDestroyed), "{generation}");
        let mut world = begin();
        let first = world.os(0).unwrap();
        run_until(&mut world, 0, |world| owner(world, Lock::ThreadStore) == Some(first));
        // A thread that begins needs the thread store too.
        run_until(&mut world, 1, |world| world.waits_for(1).is_some());
        let wait = Some(Wait::Lock(Lock::ThreadStore));
        assert_eq!((world.waits_for(1), world.others(1)), (wait, vec![first]), "{generation}");
        while step_all(&mut world) {}
        assert!(matches!(world.step(1), Ok(StepEvent::Ended)), "{generation}");
    }
}

/// The id of a thread is over when ThreadDestroyed has returned, though the thread has to wait before it is removed
/// (C-149).
#[test]
fn the_id_of_a_thread_is_over_before_the_thread_is() {
    for generation in Generation::ALL {
        let (build, starts) = build(&[Kind::WriteBarrier], generation);
        let mut world = build.world(&starts).unwrap();
        let first = world.os(0).unwrap();
        let state = |world: &World<'_>| {
            let runtime = world.as_synced();
            runtime.thread(first, |it| (it.reported_dead, it.id_is_over, it.life))
        };
        let (lives, dead) = (ThreadLife::Running, ThreadLife::Dead);
        run_until(&mut world, 0, |w| w.callback(0) == Some(CallbackKind::ThreadDestroyed));
        assert_eq!(state(&world), Some((true, false, lives)), "{generation}");
        let runtime = world.as_synced();
        runtime.change_process(|process| assert!(process.try_acquire(Lock::ThreadStore, NOBODY)));
        run_until(&mut world, 0, |world| world.waits_for(0).is_some());
        assert_eq!(state(&world), Some((true, true, lives)), "{generation}");
        let runtime = world.as_synced();
        runtime.change_process(|process| assert!(process.release(Lock::ThreadStore, NOBODY)));
        while step_all(&mut world) {}
        assert_eq!(state(&world), Some((true, true, dead)), "{generation}");
    }
}

/// Contract §5.9: SuspendRuntime waits until all threads are preemptive, and they wait until
/// ResumeRuntime. The thread store stays locked.
#[test]
fn a_profiler_suspends_running_threads() {
    let kinds = [Kind::New, Kind::NewWithGc, Kind::Collect];
    for generation in Generation::ALL {
        if !generation.is_core() {
            continue;
        }
        for steps in [0, 10, 100, 200, 300, 400, 600] {
            let (build, starts) = build(&kinds, generation);
            let world = build.world(&starts).unwrap();
            let shared = world.shared();
            let kernel = Kernel(RefCell::new(world));
            for _ in 0..steps {
                step_all(&mut kernel.0.borrow_mut());
            }
            let profiler = shared.on(NOBODY).with_profiler(&kernel);
            if shared.process.get().suspension != Suspension::None {
                continue;
            }
            assert_eq!(profiler.suspend_runtime(), Ok(()), "{generation}, {steps}");
            {
                let mut world = kernel.0.borrow_mut();
                let process = world.as_synced().process.get();
                assert_eq!(process.suspension, Suspension::Suspended(NOBODY));
                assert_eq!(process.owner(Lock::ThreadStore), Some(NOBODY));
                for _ in 0..2_000 {
                    // A thread that returns may be cooperative for a moment, until it sees that it
                    // has to wait.
                    for thread in (0..3).filter(|thread| world.is_cooperative(*thread)) {
                        let code = world.as_synced().code.find(world.rip(thread).unwrap());
                        assert!(code.is_none(), "{generation}, {steps}, {thread}");
                    }
                    step_all(&mut world);
                }
                for thread in 0..3 {
                    let others = world.others(thread);
                    let ended = matches!(world.step(thread), Ok(StepEvent::Ended));
                    assert!(ended || !others.is_empty(), "{generation}, {steps}, {thread}");
                }
            }
            assert_eq!(profiler.resume_runtime(), Ok(()), "{generation}, {steps}");
            let mut world = kernel.0.borrow_mut();
            assert_eq!(owner(&world, Lock::ThreadStore), None);
            while step_all(&mut world) {}
            for thread in 0..3 {
                let waits = (world.waits_for(thread), world.others(thread));
                let event = world.step(thread);
                assert_eq!(
                    event,
                    Ok(StepEvent::Ended),
                    "{generation}, {steps}, {thread}: {waits:?}"
                );
            }
        }
    }
}

/// G17: enumerating threads while all are stopped makes .NET 9 wait for itself.
#[test]
fn threads_are_enumerated_while_they_are_stopped() {
    for generation in Generation::ALL {
        let (build, starts) = build(&[Kind::Collect], generation);
        let mut world = build.world(&starts).unwrap();
        let os = world.os(0).unwrap();
        run_until(&mut world, 0, |w| w.callback(0) == Some(CallbackKind::RuntimeSuspendFinished));
        if generation.profiler_info() >= 4 {
            let threads = world.runtime().on(os).enum_threads();
            assert_eq!(threads.map(|threads| threads.len()), Ok(1), "{generation}");
        }
        while world.waits_for(0).is_none() && world.step(0).unwrap() != StepEvent::Ended {}
        let is_9 = generation.to_string().starts_with("net9");
        let wait = is_9.then_some(Wait::RuntimeRunning(os));
        assert_eq!(world.waits_for(0), wait, "{generation}");
        assert_eq!(world.others(0), if is_9 { vec![os] } else { vec![] }, "{generation}");
    }
}

/// H-03: a thread's first call takes memory from the heap; with a stress log, under its lock too.
#[test]
fn a_first_call_needs_the_heap() {
    for generation in Generation::ALL {
        for (lock, logs) in [(Lock::ProcessHeap, false), (Lock::StressLog, true)] {
            let (build, starts) = build(&[Kind::Malloc], generation);
            let mut world = build.world(&starts).unwrap();
            let [walker, _] = world.add_walkers().unwrap();
            let os = world.os(0).unwrap();
            let runtime = world.shared();
            runtime.change_process(|process| {
                process.stress_log = logs;
                assert!(process.try_acquire(lock, os));
            });
            for first in [true, false] {
                let waits = Waits::default();
                let call = runtime.on(walker).with_profiler(&waits).get_current_thread_id();
                if first {
                    assert_eq!(call, Err(CallError::Fatal(Outcome::Blocked)), "{generation}");
                    assert_eq!(*waits.0.borrow(), [Wait::Lock(lock)], "{generation}");
                    runtime.change_process(|process| assert!(process.release(lock, os)));
                    let _ = runtime.on(walker).get_current_thread_id();
                    runtime.change_process(|process| assert!(process.try_acquire(lock, os)));
                } else {
                    assert_eq!(*waits.0.borrow(), [], "{generation}");
                }
            }
            let own: Vec<_> = runtime.process.get().locks_of(walker).collect();
            assert_eq!(own, [], "{generation}");
        }
    }
}

/// H-11: where a helper's caller is still to be found, native code is unwound by the system's
/// tables.
#[test]
fn a_helper_frame_needs_the_function_tables_on_windows() {
    for generation in [Generation::Framework4, Generation::CoreClr31Windows] {
        let (build, starts) = build(&[Kind::Sleep, Kind::LoadLibrary], generation);
        let mut world = build.world(&starts).unwrap();
        while world.step(0).unwrap() != StepEvent::Waits {}
        let second = world.os(1);
        run_until(&mut world, 1, |world| owner(world, Lock::FunctionTables) == second);
        let call =
            SnapshotRequest { thread: world.object(0).unwrap(), ..SnapshotRequest::default() };
        let waits = Waits::default();
        let outcome =
            world.runtime().on(NOBODY).with_profiler(&waits).do_stack_snapshot(&call, None);
        assert_eq!(outcome, Outcome::Blocked, "{generation}");
        assert_eq!(*waits.0.borrow(), [Wait::Lock(Lock::FunctionTables)], "{generation}");
    }
}

/// C-157: only threads of the runtime wait for the end of a GC when they look up code of an image.
#[test]
fn looking_images_up_may_wait_for_a_collection() {
    for generation in Generation::ALL {
        let mut program = program(&[Kind::Collect]);
        program.functions[0].kind = CodeKind::ReadyToRun;
        let build = Build::new(&program, &BTreeMap::new(), generation).unwrap();
        let mut world = build.world(&[ThreadStart::Managed(FunctionIndex(0))]).unwrap();
        let walkers = world.add_walkers().unwrap();
        let os = world.os(0).unwrap();
        run_until(&mut world, 0, |w| w.callback(0) == Some(CallbackKind::GarbageCollectionStarted));
        let address = world.linked().entries[0];
        for (walker, known) in walkers.into_iter().zip([false, true]) {
            let waits = Waits::default();
            let caller = world.runtime().on(walker).with_profiler(&waits);
            assert!(caller.get_function_from_ip(address).is_ok(), "{generation}");
            // Observed on .NET Core 3.1 and .NET 8 on Windows.
            let waited = known && generation.is_core();
            let expected = if waited { vec![Wait::RuntimeRunning(os)] } else { vec![] };
            assert_eq!(*waits.0.borrow(), expected, "{generation}");
        }
    }
}

/// H-10: a writer of the code manager's tables waits for the readers.
#[test]
fn writers_wait_for_readers() {
    let (build, starts) = build(&[Kind::UnloadAssembly], Generation::CoreClr31Windows);
    let mut world = build.world(&starts).unwrap();
    let [_, reader] = world.add_walkers().unwrap();
    let shared = world.shared();
    shared.change_thread(reader, |thread| thread.code_manager_reads = 1);
    run_until(&mut world, 0, |world| world.waits_for(0).is_some());
    assert_eq!(world.waits_for(0), Some(Wait::CodeManagerReaders));
    assert_eq!(world.others(0), [reader]);
    assert_eq!(world.step(0).unwrap(), StepEvent::Waits);
    shared.change_thread(reader, |thread| thread.code_manager_reads = 0);
    while world.step(0).unwrap() != StepEvent::Ended {}
}

/// A thread that looks up code holds the reader lock meanwhile, if it takes the lock (contract
/// §2.6).
#[test]
fn code_lookups_take_the_reader_lock() {
    struct Between(RefCell<Vec<u32>>);
    impl<'a> Profiler<'a, Machine> for Between {
        fn call_back(&self, _: &Runtime<'a>, _: OsThreadId, _: ProfilerCallback) {}

        fn between(&self, runtime: &Runtime<'a>, thread: OsThreadId) {
            let reads = runtime.thread(thread, |thread| thread.code_manager_reads).unwrap();
            self.0.borrow_mut().push(reads);
        }
    }
    let (build, starts) = build(&[Kind::New], Generation::CoreClr31Windows);
    let mut world = build.world(&starts).unwrap();
    let walkers = world.add_walkers().unwrap();
    let address = world.linked().entries[0];
    for (walker, most) in walkers.into_iter().zip([0, 1]) {
        let between = Between(RefCell::default());
        let caller = world.runtime().on(walker);
        // As in a callback: elsewhere the call would not wait.
        let found = caller.in_callback(CallbackKind::ClassLoadStarted, |caller| {
            caller.with_profiler(&between).get_function_from_ip(address)
        });
        assert!(found.is_ok());
        assert_eq!(between.0.borrow().iter().max(), Some(&most));
        assert_eq!(between.0.borrow().last(), Some(&0));
    }
}

/// A callback in cooperative mode is made when the runtime is no longer suspended (contract §6).
#[test]
fn callbacks_in_cooperative_mode_wait_for_the_runtime() {
    for generation in Generation::ALL {
        let (build, starts) = build(&[Kind::LoadAssembly, Kind::Collect], generation);
        let mut world = build.world(&starts).unwrap();
        let is_in = |kind| move |world: &World<'_>| world.callback(0) == Some(kind);
        run_until(&mut world, 0, is_in(CallbackKind::ModuleLoadFinished));
        let collector = world.os(1).unwrap();
        let suspension = |world: &World<'_>| world.as_synced().process.get().suspension;
        run_until(&mut world, 1, |world| suspension(world) == Suspension::Suspended(collector));
        let wait = Some(Wait::RuntimeRunning(collector));
        run_until(&mut world, 0, |world| world.waits_for(0) == wait);
        assert_eq!(world.step(0).unwrap(), StepEvent::Waits, "{generation}");
        assert_ne!(world.callback(0), Some(CallbackKind::AssemblyLoadFinished), "{generation}");
        run_until(&mut world, 1, |world| suspension(world) == Suspension::None);
        assert_eq!(world.waits_for(0), None, "{generation}");
        run_until(&mut world, 0, is_in(CallbackKind::AssemblyLoadFinished));
        assert!(world.is_cooperative(0), "{generation}");
    }
}

/// A thread that was cooperative waits at the end of a preemptive callback until the runtime runs; one
/// that was preemptive before leaves it.
#[test]
fn preemptive_threads_come_back_from_callbacks_during_a_suspension() {
    for generation in Generation::ALL {
        let mut met = [false; 2];
        let alone = Kind::ALL.iter().copied().filter(|kind| kind.target().is_none());
        for own in alone {
            let (build, starts) = build(&[own, Kind::Collect], generation);
            for nth in 0.. {
                let mut world = build.world(&starts).unwrap();
                let Some((kind, was_cooperative)) = preemptive_callback(&mut world, nth) else {
                    break;
                };
                let collector = world.os(1).unwrap();
                let is_suspended = |world: &World<'_>| {
                    world.as_synced().process.get().suspension == Suspension::Suspended(collector)
                };
                for _ in 0..10_000 {
                    if !is_suspended(&world) {
                        let _ = world.step(1).unwrap();
                    }
                }
                // The thread may have a lock that a suspension needs.
                if is_suspended(&world) {
                    let _ = world.step(0).unwrap();
                    let stays = world.callback(0) == Some(kind);
                    assert_eq!(stays, was_cooperative, "{generation}, {}", kind.name());
                    met[usize::from(was_cooperative)] = true;
                }
            }
        }
        // Managed exception handling makes its callbacks from preemptive code.
        let native = !generation.hides_exception_handling();
        assert_eq!(met, [true, native], "{generation}: preemptive, cooperative before");
    }
}

/// Steps thread 0 into a callback in preemptive mode, the one after `nth` others. Returns its kind,
/// and true if the thread was cooperative before.
fn preemptive_callback(world: &mut World<'_>, nth: usize) -> Option<(CallbackKind, bool)> {
    let mut left = nth;
    loop {
        match world.step(0).unwrap() {
            StepEvent::Ended => return None,
            StepEvent::Callback(kind) if !world.is_cooperative(0) => {
                if left == 0 {
                    return Some((kind, world.threads[0].was_cooperative));
                }
                left -= 1;
            }
            _ => {}
        }
    }
}

/// A wait for threads to stop is over as soon as one of them can be stopped: the suspending thread
/// does it.
#[test]
fn a_suspending_thread_goes_on_when_another_one_can_be_stopped() {
    for generation in Generation::ALL {
        let (build, starts) = build(&[Kind::Collect, Kind::New], generation);
        let mut world = build.world(&starts).unwrap();
        let allocates = |world: &World<'_>| {
            world.is_cooperative(1)
                && world.as_synced().code.find(world.rip(1).unwrap()).is_none()
                && !world.can_be_stopped(1)
        };
        run_until(&mut world, 1, |world| world.can_be_stopped(1));
        run_until(&mut world, 1, allocates);
        run_until(&mut world, 0, |world| world.waits_for(0) == Some(Wait::ThreadsToStop));
        assert_eq!(world.others(0), [world.os(1).unwrap()], "{generation}");
        run_until(&mut world, 1, |world| world.can_be_stopped(1) || !world.is_cooperative(1));
        assert!(world.can_be_stopped(1), "{generation}");
        assert_eq!(world.waits_for(0), None, "{generation}");
        assert_eq!(world.step(0).unwrap(), StepEvent::Stepped, "{generation}");
    }
}
