//! Tests of signals that find a thread in a wait of the runtime.

use super::*;
use crate::Explorer;

const MAIN: ThreadIndex = ThreadIndex(0);

/// Creates a process in which a thread makes a GC while another one computes.
fn collecting(generation: Generation) -> TestedProcess {
    // The table of a ready-to-run image is looked up in cooperative mode.
    let collect = RuntimeCall { kind: RuntimeCallKind::Collect, target: None };
    let work = vec![Statement::Loop(200, vec![Statement::Work(50)])];
    let main = Function { kind: CodeKind::ReadyToRun, ..function("Main", work) };
    let collects = function("Gc", vec![Statement::Runtime(collect)]);
    let threads = [("main", 0), ("gc", 1)];
    let threads = threads.map(|(name, start)| (name, ThreadStart::Managed(FunctionIndex(start))));
    let functions = vec![main, collects];
    let convention = CallingConvention::SystemV;
    on(generation, &Program { convention, functions, ..Program::default() }, &threads)
}

/// Searches with a handler of signals that asks the runtime, or that asks nothing.
fn search(process: &TestedProcess, asks: bool) -> Report {
    let load = move |setup: &mut Setup<'_>| {
        setup.on_signal(move |me| {
            if asks {
                let main = me.target(MAIN).unwrap().top_managed();
                let _ = me.info().get_function_from_ip(main.map_or(0, |main| main.rip));
            } else {
                me.say("handled");
            }
        });
        setup.thread("sampler", |me| {
            for _ in 0..5 {
                me.sleep(1_000);
                me.signal(MAIN);
            }
        });
    };
    let histories = if asks { 1_000 } else { 50 };
    check(process, &load, &Budget::random(0, histories)).unwrap()
}

/// A handler that needs the end of the suspension waits for itself.
#[track_caller]
fn waits_for_itself(generation: Generation) {
    let process = collecting(generation);
    assert!(search(&process, false).survives(), "{generation}");
    let failure = search(&process, true).failure.unwrap();
    let Verdict::Deadlock(edges) = failure.verdict else { panic!("{:?}", failure.verdict) };
    let edges: Vec<_> = edges.iter().map(|edge| (edge.waits, edge.why, edge.for_whom)).collect();
    assert_eq!(edges, [(MAIN, BlockReason::InterruptedWait, MAIN)], "{generation}");
}

#[test]
fn a_handler_that_asks_the_runtime_in_a_suspension_waits_for_itself() {
    for generation in Generation::ALL.into_iter().filter(|generation| generation.is_unix()) {
        waits_for_itself(generation);
    }
}

/// A handler may release the lock that its thread is about to release: then it is released once.
#[test]
fn a_lock_that_a_handler_has_released_is_not_released_again() {
    let convention = CallingConvention::SystemV;
    let program = Program { convention, ..Program::default() };
    let process = on(Generation::Net8Unix, &program, &[]);
    let load = |setup: &mut Setup<'_>| {
        let names = setup.lock("names");
        setup.on_signal(move |me| me.unlock(names));
        for name in ["owner", "other"] {
            setup.thread(name, move |me| {
                me.acquire(names);
                me.unlock(names);
            });
        }
        setup.thread("sender", move |me| me.signal(ThreadIndex(0)));
    };
    let mut explorer = Explorer::new(&process).unwrap();
    let mut search = Random::new(0);
    let mut by_handler = 0;
    for number in 0..300 {
        search.begin(number);
        let (limits, detail) = (Limits::default(), HistoryDetail::Events);
        let history = explorer.run(&load, &mut search, limits, detail).history.unwrap();
        let mut owner = None;
        let mut handles = false;
        for turn in &history.turns {
            for event in &turn.events {
                match event {
                    TurnEvent::Acquired(_) => assert_eq!(owner.replace(turn.thread), None),
                    TurnEvent::Released(_) => {
                        assert_eq!(owner.take(), Some(turn.thread), "{number}");
                        by_handler += u32::from(handles && turn.thread == ThreadIndex(0));
                    }
                    TurnEvent::Signal => handles = true,
                    TurnEvent::SignalOver => handles = false,
                    _ => {}
                }
            }
        }
    }
    assert!(by_handler > 0);
}

/// Makes a call in a thread that gets a signal meanwhile, in many interleavings. Returns how often a handler has interrupted it,
/// and how often none has.
fn interrupted(
    restarts: bool,
    by: Interruption,
    call: fn(&CurrentThread<'_, '_>, &Objects),
) -> [u32; 2] {
    let convention = CallingConvention::SystemV;
    let program = Program { convention, ..Program::default() };
    let process = on(Generation::Net8Unix, &program, &[]);
    let counts: Rc<[Cell<u32>; 2]> = Rc::default();
    let load = |setup: &mut Setup<'_>| {
        let counts = Rc::clone(&counts);
        let lock = setup.lock("names");
        let objects = Objects { lock, condition: setup.condition(), event: setup.event() };
        setup.on_signal(move |me| me.ends_interrupted_wait(restarts));
        setup.thread("caller", move |me| {
            let interrupted = me.interruptible(by, || {
                call(me, &objects);
                me.is_interrupted()
            });
            assert!(!me.is_interrupted(), "the call is over");
            if !me.is_over() {
                let count = &counts[usize::from(!interrupted)];
                count.set(count.get() + 1);
            }
        });
        setup.thread("sender", move |me| me.signal(ThreadIndex(0)));
        setup.thread("other", move |me| {
            me.sleep(9_000);
            me.acquire(objects.lock);
            me.notify_one(objects.condition);
            me.unlock(objects.lock);
            me.set(objects.event);
        });
    };
    let report = check(&process, &load, &Budget::random(0, 200)).unwrap();
    assert!(report.survives(), "{report}");
    counts.each_ref().map(Cell::get)
}

#[derive(Clone, Copy)]
struct Objects {
    lock: ProfilerLock,
    condition: ConditionVariable,
    event: EventObject,
}

#[test]
fn a_handler_ends_the_waits_of_an_interruptible_call() {
    let sleep = |me: &CurrentThread<'_, '_>, _: &Objects| {
        let left = me.sleep_unless_interrupted(5_000);
        assert!(left == 0 || me.is_interrupted());
        assert!(left <= 5_000);
    };
    let wait = |me: &CurrentThread<'_, '_>, objects: &Objects| me.wait_for(objects.event);
    let wait_on = |me: &CurrentThread<'_, '_>, objects: &Objects| {
        me.acquire(objects.lock);
        // Nobody notifies it again if the notification has come before.
        me.wait_on(objects.condition, objects.lock, Some(20_000));
        me.unlock(objects.lock);
    };
    for (restarts, by) in [
        (false, Interruption::UnlessRestarted),
        (false, Interruption::Always),
        (true, Interruption::Always),
    ] {
        for counts in [
            interrupted(restarts, by, sleep),
            interrupted(restarts, by, wait),
            interrupted(restarts, by, wait_on),
        ] {
            assert!(counts.iter().all(|count| *count > 0), "{by:?} {restarts}: {counts:?}");
        }
    }
    let by = Interruption::UnlessRestarted;
    assert_eq!(interrupted(true, by, sleep)[0], 0);
    assert_eq!(interrupted(true, by, wait)[0], 0);
    assert_eq!(interrupted(true, by, wait_on)[0], 0);
}

/// A notification wakes a thread that no handler has interrupted: that of an interrupted one would be lost.
#[test]
fn a_notification_is_not_lost_to_an_interrupted_thread() {
    let convention = CallingConvention::SystemV;
    let program = Program { convention, ..Program::default() };
    let process = on(Generation::Net8Unix, &program, &[]);
    let woken: Rc<Cell<u32>> = Rc::default();
    let load = |setup: &mut Setup<'_>| {
        let woken = Rc::clone(&woken);
        let (lock, condition) = (setup.lock("names"), setup.condition());
        let waits: Rc<Cell<bool>> = Rc::default();
        let still_waits = Rc::clone(&waits);
        setup.on_signal(|me| me.ends_interrupted_wait(false));
        setup.thread("interrupted", move |me| {
            me.acquire(lock);
            let interrupted = me.interruptible(Interruption::Always, || {
                me.wait_on(condition, lock, None);
                me.is_interrupted()
            });

            // The notification was for this thread, and is passed on.
            if !interrupted {
                me.notify_one(condition);
            }
            me.unlock(lock);
        });
        setup.thread("sender", |me| me.signal(ThreadIndex(0)));
        setup.thread("waiter", move |me| {
            me.acquire(lock);
            waits.set(true);
            me.wait_on(condition, lock, None);
            waits.set(false);
            woken.set(woken.get() + u32::from(!me.is_over()));
            // The other one may have begun to wait since.
            me.notify_one(condition);
            me.unlock(lock);
        });
        setup.thread("notifier", move |me| {
            loop {
                me.acquire(lock);
                let waits = still_waits.get();
                if waits {
                    me.notify_one(condition);
                }
                me.unlock(lock);
                if waits || me.is_over() {
                    break;
                }
                me.sleep(1_000);
            }
        });
    };
    let report = check(&process, &load, &Budget::random(0, 400)).unwrap();
    assert!(report.survives(), "{report}");
    // A thread that waits for ever is no failure of a program.
    assert_eq!(woken.get(), 400);
}

/// A handler may run before the thread has begun to wait: the wait is over then, too.
#[test]
fn a_wait_for_an_event_that_never_comes_is_interrupted_at_each_of_its_turns() {
    let convention = CallingConvention::SystemV;
    let program = Program { convention, ..Program::default() };
    let process = on(Generation::Net8Unix, &program, &[]);
    let counts: Rc<[Cell<u32>; 2]> = Rc::default();
    let load = |setup: &mut Setup<'_>| {
        let [handled, returned] = [(); 2].map(|()| Rc::clone(&counts));
        let event = setup.event();
        let waits: Rc<Cell<bool>> = Rc::default();
        let in_wait = Rc::clone(&waits);
        setup.on_signal(move |me| {
            handled[0].set(handled[0].get() + u32::from(in_wait.get()));
            me.ends_interrupted_wait(false);
        });
        setup.thread("waiter", move |me| {
            me.interruptible(Interruption::Always, || {
                waits.set(true);
                me.wait_for(event);
                waits.set(false);
            });
            returned[1].set(returned[1].get() + u32::from(!me.is_over()));
        });
        setup.thread("sender", |me| me.signal(ThreadIndex(0)));
    };
    let report = check(&process, &load, &Budget::random(0, 400)).unwrap();
    assert!(report.survives(), "{report}");
    let [handled, returned] = counts.each_ref().map(Cell::get);
    assert_eq!(handled, returned);
    assert!(handled > 0);
}
