//! Tests of which threads can run, and of waits, on states made by hand.

use super::*;
use clr_coroutine::Yielder;

/// The threads: one of the program, and three of the profiler.
pub(super) const MAIN: usize = 0;
pub(super) const ONE: usize = 1;
pub(super) const TWO: usize = 2;
pub(super) const THREE: usize = 3;

/// Returns the number of a coroutine, which is never resumed.
pub(super) fn coroutine() -> Id {
    let mut stacks = Stacks::new(64 * 1024);
    scope(&mut stacks, |scope| scope.start(|_: &Yielder<'_, ()>| {}).unwrap())
}

/// Begins an interleaving at time 100 whose profiler's threads are at a switch point.
pub(super) fn begin(kernel: &Kernel<'_>, id: Id) {
    let known = kernel.runtime.threads.borrow().len();
    let mut world = kernel.world.borrow_mut();
    for number in known..4 {
        world.add_profilers_thread(number as u32, false);
    }
    drop(world);
    let known = kernel.runtime.threads.borrow();
    let threads = known.iter().enumerate().map(|(index, thread)| {
        let kind = if index == MAIN { ThreadKind::App } else { ThreadKind::Profiler };
        let mut thread = Thread::new(kind, "".into(), thread.os);
        thread.activities = (index != MAIN).then(|| activity(id, None)).into_iter().collect();
        thread
    });
    let (threads, locks) = (threads.collect(), vec![LockState::new(LockKind::Plain); 2]);
    drop(known);
    kernel.begin(State { threads, locks, events: vec![false; 2], now: 100, ..State::default() });
}

type Change<'c> = &'c dyn Fn(&mut State);

/// Asserts which threads can run after each change of the state.
fn assert_runnable(cases: &[(&str, Change<'_>, &[u32])]) {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    for (case, change, expected) in cases {
        begin(&kernel, id);
        change(&mut kernel.state.borrow_mut());
        let mut runnable = Vec::new();
        kernel.runnable(&mut runnable);
        let numbers: Vec<_> = runnable.iter().map(|thread| thread.0).collect();
        assert_eq!(numbers, *expected, "{case}");
    }
}

pub(super) fn wait(state: &mut State, thread: usize, waiting: Waiting, until: Option<u64>) {
    let activity: &mut Activity = state.threads[thread].activities.last_mut().unwrap();
    activity.waiting = Some(waiting);
    activity.until = until;
}

fn sleep(state: &mut State, thread: usize, until: u64) {
    wait(state, thread, Waiting::Time, Some(until));
}

/// Lets only these threads take part.
pub(super) fn only(state: &mut State, threads: &[usize]) {
    for (index, thread) in state.threads.iter_mut().enumerate() {
        thread.ended = !threads.contains(&index);
    }
}

#[test]
fn a_thread_can_run_if_its_condition_is_satisfied() {
    let on_lock = |owner: Option<u32>, readers: usize, waiting: Waiting| {
        move |state: &mut State| {
            state.locks[0].owner = owner.map(ThreadIndex);
            state.locks[0].readers = vec![ThreadIndex(2); readers];
            wait(state, ONE, waiting, None);
        }
    };
    let (lock, shared) = (Waiting::Lock(0), Waiting::Shared(0));
    assert_runnable(&[
        ("all", &|_| {}, &[0, 1, 2, 3]),
        ("one has ended", &|state| state.threads[TWO].ended = true, &[0, 1, 3]),
        ("free lock", &on_lock(None, 0, lock), &[0, 1, 2, 3]),
        ("owned lock", &on_lock(Some(2), 0, lock), &[0, 2, 3]),
        ("shared lock", &on_lock(None, 1, lock), &[0, 2, 3]),
        ("to share an owned lock", &on_lock(Some(2), 0, shared), &[0, 2, 3]),
        ("to share a shared lock", &on_lock(None, 1, shared), &[0, 1, 2, 3]),
        ("an event", &|state| wait(state, ONE, Waiting::Event(1), None), &[0, 2, 3]),
        (
            "an event that is set",
            &|state| {
                state.events[1] = true;
                wait(state, ONE, Waiting::Event(1), None);
            },
            &[0, 1, 2, 3],
        ),
        ("the end", &|state| wait(state, ONE, Waiting::Join(ThreadIndex(2)), None), &[0, 2, 3]),
        (
            "the end that was",
            &|state| {
                wait(state, ONE, Waiting::Join(ThreadIndex(2)), None);
                state.threads[TWO].ended = true;
            },
            &[0, 1, 3],
        ),
        ("forever", &|state| wait(state, ONE, Waiting::Time, None), &[0, 1, 2, 3]),
        ("not begun", &|state| state.threads[ONE].activities.clear(), &[0, 2, 3]),
    ]);
}

#[test]
fn of_sleeping_threads_the_first_to_wake_can_run() {
    assert_runnable(&[
        (
            "the earliest",
            &|state| {
                sleep(state, ONE, 300);
                sleep(state, TWO, 200);
                sleep(state, THREE, 250);
            },
            &[0, 2],
        ),
        (
            "the first of two at one time",
            &|state| {
                sleep(state, ONE, 200);
                sleep(state, TWO, 200);
            },
            &[0, 1, 3],
        ),
        (
            "whose time is over",
            &|state| {
                sleep(state, ONE, 100);
                sleep(state, TWO, 101);
                sleep(state, THREE, 99);
            },
            &[0, 1, 2, 3],
        ),
        (
            "alone",
            &|state| {
                only(state, &[ONE, TWO]);
                sleep(state, ONE, 300);
                sleep(state, TWO, 200);
            },
            &[2],
        ),
    ]);
}

/// Beside a sleeper a timed wait ends when no thread can run: then the first deadline counts.
#[test]
fn a_sleeper_waits_for_an_earlier_deadline_of_a_timed_wait() {
    let timed = |until: u64, runs: bool| {
        move |state: &mut State| {
            only(state, if runs { &[ONE, TWO, THREE] } else { &[ONE, TWO] });
            wait(state, ONE, Waiting::Event(0), Some(until));
            sleep(state, TWO, 200);
        }
    };
    assert_runnable(&[
        ("earlier", &timed(199, false), &[]),
        ("at the same time", &timed(200, false), &[2]),
        ("later", &timed(201, false), &[2]),
        ("earlier, but another thread runs", &timed(199, true), &[2, 3]),
        (
            "a wait that is over has no deadline",
            &|state| {
                timed(150, false)(state);
                state.events[0] = true;
            },
            &[1, 2],
        ),
    ]);
}

#[test]
fn a_limit_may_pass_while_others_can_run_and_each_has_its_turn() {
    let waits = |until: u64, turns: u64| {
        move |state: &mut State| {
            (state.limits_expire, state.turns) = (true, turns);
            wait(state, ONE, Waiting::Event(0), Some(until));
        }
    };
    // Its limit has passed three times, and then these have had a turn.
    let looping = |until: u64, others: &'static [u32]| {
        move |state: &mut State| {
            waits(until, 0)(state);
            for turn in 1..=3 {
                state.turns = turn;
                state.decide(ThreadIndex(1), ThreadIndex(1));
                state.has_turn(ThreadIndex(1));
                wait(state, ONE, Waiting::Event(0), Some(until));
            }
            for other in others {
                state.has_turn(ThreadIndex(*other));
            }
        }
    };
    let declined = |state: &mut State| {
        waits(1_000_000, 16)(state);
        state.decide(ThreadIndex(1), ThreadIndex(0));
        state.turns = 31;
    };
    assert_runnable(&[
        ("short", &waits(9_000, 0), &[0, 1, 2, 3]),
        ("long", &waits(1_000_000, 15), &[0, 2, 3]),
        ("long, and others have had turns", &waits(1_000_000, 16), &[0, 1, 2, 3]),
        ("declined", &declined, &[0, 2, 3]),
        ("twice", &looping(9_000, &[]), &[0, 2, 3]),
        ("twice, and one other has had a turn", &looping(9_000, &[0]), &[0, 2, 3]),
        ("twice, and all others have had turns", &looping(9_000, &[0, 2, 3]), &[0, 1, 2, 3]),
        (
            "a sleeper wakes before",
            &|state| {
                waits(9_000, 0)(state);
                sleep(state, TWO, 8_000);
            },
            &[0, 2, 3],
        ),
    ]);
}

#[test]
fn a_suspended_thread_cannot_run_unless_it_is_in_the_system() {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    for (in_system, expected) in [(false, vec![2, 3]), (true, vec![0, 1, 2, 3])] {
        begin(&kernel, id);
        for thread in [MAIN, ONE] {
            kernel.runtime.threads.borrow_mut()[thread].suspended = 1;
            kernel.state.borrow_mut().threads[thread].in_system = in_system;
        }
        let mut runnable = Vec::new();
        kernel.runnable(&mut runnable);
        let numbers: Vec<_> = runnable.iter().map(|thread| thread.0).collect();
        assert_eq!(numbers, expected);
    }
}

#[test]
fn the_program_waits_for_its_starter() {
    let starts = |ended: bool| {
        move |state: &mut State| {
            state.starter = Some(ThreadIndex(2));
            state.threads[TWO].ended = ended;
        }
    };
    assert_runnable(&[
        ("starts", &starts(false), &[1, 2, 3]),
        ("started", &starts(true), &[0, 1, 3]),
    ]);
}

#[test]
fn a_thread_with_a_signal_can_run_once() {
    let signalled = |ends_with: TurnEvent| {
        move |state: &mut State| {
            wait(state, ONE, Waiting::Event(0), None);
            state.threads[ONE].activities[0].ends_with = ends_with;
            state.threads[ONE].signals = 1;
        }
    };
    assert_runnable(&[
        ("signalled", &signalled(TurnEvent::Ends), &[0, 1, 2, 3]),
        ("in a handler", &signalled(TurnEvent::SignalOver), &[0, 2, 3]),
    ]);
}

#[test]
fn time_jumps_to_the_first_deadline() {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    // Returns the time after the jump, and the threads whose waits have timed out.
    let jump = |change: Change<'_>| {
        begin(&kernel, id);
        change(&mut kernel.state.borrow_mut());
        let jumps = kernel.jump();
        let state = kernel.state.borrow();
        let timed_out = state.threads.iter().enumerate().filter(|(_, thread)| {
            thread.activities.last().is_some_and(|activity| activity.timed_out)
        });
        let timed_out: Vec<_> = timed_out.map(|(index, _)| index).collect();
        (jumps.then_some(state.now), timed_out)
    };
    let two = |one: u64, other: u64| {
        move |state: &mut State| {
            wait(state, ONE, Waiting::Event(0), Some(one));
            sleep(state, TWO, other);
        }
    };
    assert_eq!(jump(&|_| {}), (None, vec![]));
    assert_eq!(jump(&|state| wait(state, ONE, Waiting::Event(0), None)), (None, vec![]));
    assert_eq!(jump(&two(300, 200)), (Some(200), vec![TWO]));
    assert_eq!(jump(&two(150, 200)), (Some(150), vec![ONE]));
    assert_eq!(jump(&two(200, 200)), (Some(200), vec![ONE]), "the first thread");
    assert_eq!(jump(&two(50, 200)), (Some(100), vec![ONE]), "time does not run backwards");
    let ended = |state: &mut State| {
        two(150, 200)(state);
        state.threads[ONE].ended = true;
    };
    assert_eq!(jump(&ended), (Some(200), vec![TWO]));
    begin(&kernel, id);
    kernel.runtime.threads.borrow_mut()[ONE].suspended = 1;
    assert_eq!(jump(&two(150, 200)), (Some(200), vec![TWO]), "its timer stands still");
    let index = |thread: usize| ThreadIndex(thread as u32);
    two(150, 200)(&mut kernel.state.borrow_mut());
    assert_eq!([ONE, TWO, THREE].map(|it| kernel.has_limit(index(it))), [false, true, false]);
}

fn edges(kernel: &Kernel<'_>, thread: usize) -> Vec<(BlockReason, u32)> {
    let mut edges: Vec<Edge> = Vec::new();
    kernel.edges_of(ThreadIndex(thread as u32), &mut edges);
    assert!(edges.iter().all(|edge| edge.waits.index() == thread));
    edges.into_iter().map(|edge| (edge.why, edge.for_whom.0)).collect()
}

#[test]
fn a_thread_is_blocked_by_owners_and_readers_by_an_end_or_by_suspensions() {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    let why = BlockReason::Lock(LockName::Profiler(0));
    begin(&kernel, id);
    assert_eq!(edges(&kernel, ONE), []);
    let mut state = kernel.state.borrow_mut();
    wait(&mut state, ONE, Waiting::Lock(0), None);
    wait(&mut state, THREE, Waiting::Join(ThreadIndex(1)), None);
    drop(state);
    assert_eq!(edges(&kernel, ONE), [], "the lock is free");
    assert_eq!(edges(&kernel, THREE), [(BlockReason::Join, 1)]);
    kernel.state.borrow_mut().locks[0].owner = Some(ThreadIndex(2));
    assert_eq!(edges(&kernel, ONE), [(why, 2)]);
    kernel.state.borrow_mut().locks[0].readers = vec![ThreadIndex(3), ThreadIndex(0)];
    assert_eq!(edges(&kernel, ONE), [(why, 2), (why, 3), (why, 0)]);
    // A suspended thread waits for nothing else.
    let suspended = BlockReason::Suspended;
    kernel.runtime.threads.borrow_mut()[ONE].suspended = 2;
    kernel.state.borrow_mut().threads[ONE].suspended_by = vec![ThreadIndex(2); 2];
    kernel.state.borrow_mut().threads[THREE].walks = Some(ThreadIndex(1));
    assert_eq!(edges(&kernel, ONE), [(suspended, 2), (suspended, 2)]);
    // One suspension more is that of a walk.
    kernel.runtime.threads.borrow_mut()[ONE].suspended = 3;
    assert_eq!(edges(&kernel, ONE), [(suspended, 2), (suspended, 2), (suspended, 3)]);
    kernel.state.borrow_mut().threads[ONE].ended = true;
    assert_eq!(edges(&kernel, ONE), []);
}

#[test]
fn a_wait_for_the_runtime_is_one_for_the_thread_that_keeps_it() {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    begin(&kernel, id);
    let os = |thread: usize| kernel.state.borrow().threads[thread].os;
    let (owner, start) = (os(TWO), kernel.runtime.process.get());
    wait(&mut kernel.state.borrow_mut(), ONE, Waiting::Runtime(Wait::Lock(Lock::Loader)), None);
    assert_eq!(edges(&kernel, ONE), []);
    let mut process = start;
    assert!(process.try_acquire(Lock::Loader, owner));
    kernel.runtime.process.set(process);
    assert_eq!(edges(&kernel, ONE), [(BlockReason::Lock(LockName::Runtime(Lock::Loader)), 2)]);
    kernel
        .runtime
        .process
        .set(clr_runtime::Process { suspension: Suspension::Suspended(owner), ..start });
    wait(&mut kernel.state.borrow_mut(), ONE, Waiting::Runtime(Wait::GcWanted), None);
    assert_eq!(edges(&kernel, ONE), [], "no thread can help");
}

#[test]
fn a_thread_suspends_others_itself_by_a_walk_or_for_the_profiler() {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    let suspending =
        || [MAIN, ONE, TWO, THREE].map(|thread| kernel.suspends(ThreadIndex(thread as u32)));
    begin(&kernel, id);
    let start = kernel.runtime.process.get();
    assert_eq!(suspending(), [false; 4]);
    kernel.state.borrow_mut().threads[MAIN].suspended_by = vec![ThreadIndex(2)];
    kernel.state.borrow_mut().threads[THREE].walks = Some(ThreadIndex(0));
    assert_eq!(suspending(), [false, false, true, true]);
    let by = kernel.state.borrow().threads[ONE].os;
    let suspended = clr_runtime::Process { suspension: Suspension::Suspended(by), ..start };
    for (process, expected) in [
        (suspended, false),
        (clr_runtime::Process { suspended_by_profiler: true, ..suspended }, true),
        (clr_runtime::Process { profiler_suspensions: 1, ..suspended }, true),
        (clr_runtime::Process { suspended_by_profiler: true, ..start }, false),
    ] {
        kernel.runtime.process.set(process);
        assert_eq!(suspending(), [false, expected, true, true], "{process:?}");
    }
}

#[test]
fn the_first_verdict_counts_and_each_breach_once() {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    begin(&kernel, id);
    let (one, two) = (ThreadIndex(1), ThreadIndex(2));
    let (rule, other) = (ProfilerRule::LogWhileSuspended, ProfilerRule::ResumeDoubled);
    for (by, rule) in [(one, rule), (one, rule), (one, other), (two, rule)] {
        kernel.broke(by, rule);
    }
    assert_eq!(kernel.state.borrow().broken, [(one, rule), (one, other), (two, rule)]);
    kernel.end(Verdict::LostWakeUp(one));
    kernel.end(Verdict::LiveLock);
    assert_eq!(kernel.state.borrow().verdict, Some(Verdict::LostWakeUp(one)));
    // What is unwound changes nothing.
    begin(&kernel, id);
    assert!(!kernel.is_over());
    kernel.finish();
    assert!(kernel.is_over());
    kernel.broke(one, rule);
    kernel.end(Verdict::LiveLock);
    assert_eq!((&*kernel.state.borrow().broken, &kernel.state.borrow().verdict), (&[][..], &None));
}
