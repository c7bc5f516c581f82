//! Tests of handlers on the program's threads, and of walks of these threads.

use super::*;
use crate::Explorer;

fn runtime(kind: RuntimeCallKind) -> Statement {
    Statement::Runtime(RuntimeCall { kind, target: None })
}

/// Creates a process with two threads that allocate.
fn allocating() -> TestedProcess {
    let new = runtime(RuntimeCallKind::New);
    let body = vec![Statement::Work(3), new.clone(), Statement::Work(3), new];
    executing(&[("Main", body.clone()), ("Other", body)])
}

const MAIN: ThreadIndex = ThreadIndex(0);

/// Makes the profiler count allocations under a lock.
fn counting(setup: &mut Setup<'_>, lock: ProfilerLock, counted: &Rc<Cell<u32>>) {
    let counted = Rc::clone(counted);
    setup.on(CallbackKind::ObjectAllocated, move |me| {
        let _lock = me.lock(lock);
        counted.set(counted.get() + 1);
    });
}

#[test]
fn callbacks_have_arguments_in_the_order_of_the_history() {
    let histories = 100;
    let objects = Rc::new(RefCell::new(Vec::new()));
    let load = |setup: &mut Setup<'_>| {
        let objects = Rc::clone(&objects);
        setup.on(CallbackKind::ObjectAllocated, move |me| {
            let arguments = me.callback().unwrap().arguments;
            assert!(arguments.object <= arguments.objects);
            objects.borrow_mut().push(arguments.object);
        });
    };
    let report = check(&allocating(), &load, &Budget::random(2, histories)).unwrap();
    assert!(report.survives(), "{:?}", report.failure);
    let mut objects = objects.take();
    assert_eq!(objects.len() as u64, 4 * histories);
    for of_history in objects.chunks_mut(4) {
        of_history.sort_unstable();
        assert_eq!(of_history, [1, 2, 3, 4]);
    }
}

#[test]
fn handlers_run_on_the_threads_that_they_are_called_on() {
    let allocations = Rc::new(Cell::new(0));
    let created = Rc::new(RefCell::new(Vec::new()));
    let histories = 100;
    let load = |setup: &mut Setup<'_>| {
        let lock = setup.lock("");
        counting(setup, lock, &allocations);
        let created = Rc::clone(&created);
        setup.on(CallbackKind::ThreadCreated, move |me| {
            let id = me.info().get_current_thread_id().unwrap();
            assert_eq!(me.target(me.index()).unwrap().id(), id);
            created.borrow_mut().push(me.index().0);
        });
    };
    let report = check(&allocating(), &load, &Budget::random(2, histories)).unwrap();
    assert!(report.survives(), "{:?}", report.failure);
    assert_eq!(u64::from(allocations.get()), 4 * histories);
    let mut created = created.take();
    created.sort_unstable();
    created.dedup_by_key(|thread| (*thread, ()));
    assert_eq!(created, [0, 1]);
}

#[test]
fn a_thread_may_be_suspended_in_a_callback_in_which_it_owns_a_lock() {
    let load = |setup: &mut Setup<'_>| {
        let lock = setup.lock("names");
        counting(setup, lock, &Rc::default());
        setup.thread("sampler", move |me| {
            let main = me.target(MAIN).unwrap();
            for _ in 0..3 {
                me.sleep(1_000);
                if main.suspend().is_ok() {
                    drop(me.lock(lock));
                    main.resume().unwrap();
                }
            }
        });
    };
    let failure = check(&allocating(), &load, &Budget::random(1, 2_000)).unwrap().failure.unwrap();
    assert_eq!(cycle(Some(failure.verdict)), [(0, 2), (2, 0)]);
    let statuses = failure.history.turns.last().unwrap().statuses.clone();
    assert!(statuses[0].stack[0].starts_with("profiler: ObjectAllocated ("), "{statuses:?}");
    assert_eq!(statuses[0].suspended_by, [ThreadIndex(2)]);
    assert_eq!(statuses[0].holds.len(), 1);
}

/// Walks a thread with the runtime. Returns the number of frames, if the walk was possible.
fn walk(
    me: &CurrentThread<'_, '_>,
    id: ThreadId,
    mut each: impl FnMut(&SnapshotFrame<'_>),
) -> Option<u32> {
    let mut frames = 0;
    let mut callback = |frame: &mut SnapshotFrame<'_>| {
        frames += 1;
        each(frame);
        HResult::OK
    };
    let walked = me
        .info()
        .do_stack_snapshot(&SnapshotRequest::of(id, SnapshotFlags::DEFAULT), Some(&mut callback));
    walked.is_ok().then_some(frames)
}

#[test]
fn the_walked_thread_may_own_the_lock_that_a_callback_takes() {
    let load = |setup: &mut Setup<'_>| {
        let lock = setup.lock("names");
        counting(setup, lock, &Rc::default());
        setup.on(CallbackKind::RuntimeThreadSuspended, move |me| drop(me.lock(lock)));
        setup.thread("sampler", move |me| {
            for _ in 0..3 {
                me.sleep(1_000);
                if let Some(main) = me.target(MAIN).map(|main| main.id()).filter(|id| id.0 != 0) {
                    walk(me, main, |_| {});
                }
            }
        });
    };
    let failure = check(&allocating(), &load, &Budget::random(1, 5_000)).unwrap().failure.unwrap();
    let Verdict::Deadlock(edges) = &failure.verdict else { panic!("{:?}", failure.verdict) };
    assert!(edges.iter().any(|edge| edge.why == BlockReason::Suspended && edge.for_whom.0 == 2));
    assert_eq!(cycle(Some(failure.verdict)), [(0, 2), (2, 0)]);
    let reported: Vec<_> = failure.history.turns.iter().flat_map(|turn| &turn.events).collect();
    assert!(reported.contains(&&TurnEvent::Callback(CallbackKind::RuntimeThreadSuspended)));
}

/// The frame passed to a callback belongs to its own walk, even if other threads walk meanwhile;
/// the handles are the same in each interleaving.
#[test]
fn walks_at_the_same_time_do_not_disturb_each_other() {
    let (walks, handles) = (Cell::new(0), RefCell::new(std::collections::BTreeMap::new()));
    let load: &super::Load<'_> = &|setup| {
        let (walks, handles) = (&walks, &handles);
        let number = Rc::new(Cell::new(0));
        let destroyed = Rc::new(Cell::new(false));
        let walking = [setup.lock(""), setup.lock("")];
        let destroys = Rc::clone(&destroyed);
        setup.on(CallbackKind::ThreadDestroyed, move |me| {
            let _walking = walking.map(|lock| me.lock(lock));
            destroys.set(destroys.get() || me.index() == MAIN);
        });
        for lock in walking {
            let (number, destroyed) = (Rc::clone(&number), Rc::clone(&destroyed));
            setup.thread("sampler", move |me| {
                for _ in 0..2 {
                    me.sleep(1_000);
                    let _walking = me.lock(lock);
                    let main = me.target(MAIN).map(|main| main.id()).unwrap();
                    if main.0 == 0 || destroyed.get() {
                        continue;
                    }
                    let walked = walk(me, main, |frame| {
                        number.set(number.get() + 1);
                        let handle = frame.frame_info.handle();
                        let known = handles.borrow_mut().insert(number.get(), handle);
                        assert_eq!(known.unwrap_or(handle), handle);
                        let Some(function) = frame.function else { return };
                        let asked =
                            me.info().get_function_info2(function, Some(frame.frame_info), 0);
                        assert!(asked.is_ok(), "{asked:?}");
                    });
                    walks.set(walks.get() + u32::from(walked.is_some()));
                }
            });
        }
    };
    for every_instruction in [false, true] {
        let limits = Limits { every_instruction, ..Limits::default() };
        let budget = Budget { limits, ..Budget::random(6, 150) };
        let report = check(&allocating(), load, &budget).unwrap();
        assert!(report.survives(), "{:?}", report.failure.map(|failure| failure.verdict));
    }
    assert!(walks.get() >= 10, "{}", walks.get());
}

/// A sampler finds a thread in both modes, wherever these change.
#[test]
fn threads_of_the_program_can_be_suspended_in_each_mode_in_and_out_of_services() {
    let (new, sleep) = (runtime(RuntimeCallKind::New), runtime(RuntimeCallKind::Sleep));
    let process = executing(&[("Main", vec![Statement::Work(3), sleep, new])]);
    let modes = RefCell::new(std::collections::BTreeSet::new());
    let budget = Budget::random(3, 300);
    let load: &super::Load<'_> = &|setup| {
        let modes = &modes;
        setup.thread("sampler", move |me| {
            let main = me.target(MAIN).unwrap();
            me.sleep(1_000);
            if main.suspend().is_ok() {
                let world = me.kernel.world.borrow();
                modes.borrow_mut().insert((world.is_cooperative(0), world.is_serving(0)));
                drop(world);
                main.resume().unwrap();
            }
        });
    };
    let report = check(&process, load, &budget).unwrap();
    assert!(report.survives(), "{:?}", report.failure);
    // Other threads can run as soon as the mode has changed.
    let mut explorer = Explorer::new(&process).unwrap();
    let ending =
        explorer.run(&|_| {}, &mut Random::new(0), Limits::default(), HistoryDetail::Events);
    for turn in ending.history.unwrap().turns {
        let mut behind = turn.events.iter();
        let changes = behind.any(|event| matches!(event, TurnEvent::Mode { .. }));
        let goes_on = behind.any(|event| matches!(event, TurnEvent::Executed(_)));
        assert!(!(changes && goes_on), "{turn:?}");
    }
    let modes: Vec<_> = modes.take().into_iter().collect();
    assert_eq!(modes, [(false, false), (false, true), (true, false), (true, true)]);
}

#[test]
fn a_callback_without_a_handler_ends_no_turn() {
    let count = |load: &super::Load<'_>| {
        let report = check(&allocating(), load, &Budget::exhaustive(1)).unwrap();
        assert!(report.survives());
        report.turns
    };
    let (without, with) =
        (count(&|_| {}), count(&|setup| setup.on(CallbackKind::ObjectAllocated, |_| {})));
    // Two threads with two allocations each: a turn ends at each, and the handler has its own turn.
    assert_eq!(with, without + 8);
}

/// Loads are reported in cooperative mode: the thread does not wait for itself.
#[test]
fn a_cooperative_thread_of_the_program_can_suspend_the_runtime() {
    let process =
        executing(&[("Main", vec![Statement::Work(1)]), ("Other", vec![Statement::Work(3)])]);
    let suspensions = Rc::new(Cell::new(0));
    let histories = 50;
    let load = |setup: &mut Setup<'_>| {
        setup.begin_with_start();
        let suspensions = Rc::clone(&suspensions);
        setup.on(CallbackKind::AssemblyLoadFinished, move |me| {
            if me.info().suspend_runtime().is_ok() {
                suspensions.set(suspensions.get() + 1);
                me.info().resume_runtime().unwrap();
            }
        });
    };
    let report = check(&process, &load, &Budget::random(2, histories)).unwrap();
    assert!(report.survives(), "{:?}", report.failure);
    assert_eq!(suspensions.get(), histories, "the runtime has started when the program is loaded");
}
