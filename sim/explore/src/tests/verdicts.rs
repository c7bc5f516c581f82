//! Tests of the verdicts on interleavings in which threads wait forever.

use super::*;
use crate::NotSurvived;
use clr_runtime::profiling::HResult;

const fn thread(index: u32) -> ThreadIndex {
    ThreadIndex(index)
}

/// Loads `threads` threads, each of which takes its own lock and then the next one's.
fn ring(threads: usize) -> impl Fn(&mut Setup<'_>) {
    move |setup| {
        let locks: Vec<_> = (0..threads).map(|_| setup.lock("")).collect();
        for index in 0..threads {
            let (own, next) = (locks[index], locks[(index + 1) % threads]);
            setup.thread("", move |me| {
                let _own = me.lock(own);
                let _next = me.lock(next);
            });
        }
    }
}

#[test]
fn locks_in_a_ring_end_in_a_cycle_of_that_length() {
    assert_eq!(cycle(verdict(&ring(1))), [(0, 0)]);
    assert_eq!(cycle(verdict(&ring(2))), [(0, 1), (1, 0)]);
    assert_eq!(cycle(verdict(&ring(3))), [(0, 1), (1, 2), (2, 0)]);
}

#[test]
fn waiting_for_a_lock_that_is_never_released_is_a_deadlock() {
    let verdict = verdict(&|setup| {
        let lock = setup.lock("");
        setup.thread("", move |me| me.acquire(lock));
        setup.thread("", move |me| me.acquire(lock));
    });
    // Either thread may be first.
    assert!(matches!(cycle(verdict)[..], [(0, 1) | (1, 0)]));
}

/// Loads a sampler that takes a lock while the owner is suspended (H-08).
fn sampler(setup: &mut Setup<'_>) {
    let lock = setup.lock("");
    setup.thread("worker", move |me| drop(me.lock(lock)));
    setup.thread("sampler", move |me| {
        let worker = me.target(thread(0)).unwrap();
        if worker.suspend().is_ok() {
            drop(me.lock(lock));
            worker.resume().unwrap();
        }
    });
}

#[test]
fn a_thread_may_suspend_the_owner_of_the_lock_that_it_wants() {
    let Some(Verdict::Deadlock(mut edges)) = verdict(&sampler) else { panic!() };
    edges.sort_unstable();
    let edges: Vec<_> = edges.iter().map(|edge| (edge.waits.0, edge.why)).collect();
    assert_eq!(edges, [(0, BlockReason::Suspended), (1, BlockReason::Lock(LockName::Profiler(0)))]);
}

/// A sampler that only suspends and resumes, twice.
#[test]
fn a_resumed_thread_goes_on() {
    let load: &Load<'_> = &|setup| {
        let lock = setup.lock("");
        setup.thread("worker", move |me| drop(me.lock(lock)));
        setup.thread("sampler", move |me| {
            let worker = me.target(thread(0)).unwrap();
            for _ in 0..2 {
                if worker.suspend().is_ok() {
                    me.point();
                    worker.resume().unwrap();
                }
            }
            me.join(thread(0));
        });
    };
    assert_eq!(verdict(load), None);
}

/// A suspended thread does nothing.
#[test]
fn a_suspended_thread_does_not_run() {
    let load: &Load<'_> = &|setup| {
        let counted = std::rc::Rc::new(std::cell::Cell::new(0));
        let counts = std::rc::Rc::clone(&counted);
        setup.thread("worker", move |me| {
            for _ in 0..3 {
                me.point();
                counts.set(counts.get() + 1);
            }
        });
        setup.thread("sampler", move |me| {
            let worker = me.target(thread(0)).unwrap();
            if worker.suspend().is_ok() {
                let before = counted.get();
                me.point();
                if counted.get() != before {
                    me.fail("it goes on");
                }
                worker.resume().unwrap();
            }
        });
    };
    assert_eq!(verdict(load), None);
}

/// Loads two threads, each of which suspends the other one.
fn suspend_each_other(setup: &mut Setup<'_>) {
    for other in [1, 0] {
        setup.thread("", move |me| {
            let other = me.target(thread(other)).unwrap();
            if other.suspend().is_ok() {
                other.resume().unwrap();
            }
        });
    }
}

#[test]
fn a_suspended_thread_only_finishes_its_call_of_the_system() {
    let load: &Load<'_> = &suspend_each_other;
    let process = nothing();
    let failure = search(load, &Budget::exhaustive(100_000)).failure.unwrap();
    let mut explorer = Explorer::new(&process).unwrap();
    let (limits, detail) = (Limits::default(), HistoryDetail::Statuses);
    let ending = explorer.replay(load, &failure.schedule, limits, detail).unwrap();
    let turns = ending.history.unwrap().turns;
    let pairs = turns.iter().zip(turns.iter().skip(1));
    let suspended: Vec<_> = pairs
        .map(|(before, after)| &before.statuses[after.thread.index()])
        .filter(|status| !status.suspended_by.is_empty())
        .map(|status| status.in_system)
        .collect();
    assert_eq!(suspended, [true]);
}

#[test]
fn threads_may_suspend_each_other_and_themselves() {
    let each_other = verdict(&suspend_each_other);
    // A thread that is suspended in its own suspending call finishes the call (H-01).
    assert_eq!(cycle(each_other), [(0, 1), (1, 0)]);
    let itself = verdict(&|setup| {
        setup.thread("", |me| me.target(me.index()).unwrap().suspend().unwrap());
    });
    assert_eq!(cycle(itself), [(0, 0)]);
    // Three threads: one suspends the owner of a lock that another one wants, and waits for that
    // one.
    let three = verdict(&|setup| {
        let lock = setup.lock("");
        setup.thread("owner", move |me| drop(me.lock(lock)));
        setup.thread("wants", move |me| drop(me.lock(lock)));
        setup.thread("suspends", move |me| {
            let owner = me.target(thread(0)).unwrap();
            if owner.suspend().is_ok() {
                me.join(thread(1));
                owner.resume().unwrap();
            }
        });
    });
    assert_eq!(cycle(three), [(0, 2), (1, 0), (2, 1)]);
}

#[test]
fn threads_that_wait_for_the_end_of_each_other_deadlock() {
    let two = verdict(&|setup| {
        setup.thread("", |me| me.join(thread(1)));
        setup.thread("", |me| me.join(thread(0)));
    });
    assert_eq!(cycle(two), [(0, 1), (1, 0)]);
    assert_eq!(cycle(verdict(&|setup| setup.thread("", |me| me.join(me.index())))), [(0, 0)]);
    assert_eq!(
        verdict(&|setup| {
            setup.thread("", |me| me.join(thread(1)));
            setup.thread("", |_| {});
        }),
        None
    );
}

/// The thread that would set the event waits for a lock of the one that waits for it.
#[test]
fn threads_that_wait_for_each_other_through_an_event_are_a_deadlock() {
    let hangs = verdict(&|setup| {
        let (event, lock) = (setup.event(), setup.lock(""));
        setup.thread("waits", move |me| {
            let _lock = me.lock(lock);
            me.wait_for(event);
        });
        setup.thread("sets", move |me| {
            me.wait_at_most(event, 1);
            let _lock = me.lock(lock);
            me.set(event);
        });
        setup.thread("idle", move |me| me.wait_for(event));
    });
    let Some(Verdict::Deadlock(edges)) = hangs else { panic!("{hangs:?}") };
    let edges: Vec<_> = edges.iter().map(|it| (it.waits, it.why, it.for_whom)).collect();
    let by_lock = BlockReason::Lock(LockName::Profiler(0));
    let sets = (thread(1), by_lock, thread(0));
    assert!(edges.contains(&sets) && edges.contains(&(thread(0), BlockReason::WakeUp, thread(1))));
    assert_eq!(edges.len(), 2, "{edges:?}");
}

#[test]
fn a_wake_up_can_be_lost() {
    let lost = verdict(&|setup| {
        let event = setup.event();
        setup.thread("waits", move |me| me.wait_for(event));
        setup.thread("sets", move |me| {
            me.set(event);
            me.reset(event);
            me.join(thread(0));
        });
    });
    assert_eq!(lost, Some(Verdict::LostWakeUp(thread(0))));
    // A thread of the profiler may wait forever.
    assert_eq!(
        verdict(&|setup| {
            let event = setup.event();
            setup.thread("waits", move |me| me.wait_for(event));
        }),
        None
    );
}

#[test]
fn threads_without_progress_are_reported() {
    let spins: &Load<'_> = &|setup| {
        setup.thread("spins", |me| {
            loop {
                me.point();
            }
        });
    };
    assert_eq!(verdict(spins), Some(Verdict::LiveLock));
    // While one thread spins, two others may have reached a deadlock.
    let report = search(
        &|setup| {
            ring(2)(setup);
            setup.thread("spins", |me| {
                loop {
                    me.sleep(10);
                }
            });
        },
        &Budget::random(1, 300),
    );
    assert_eq!(cycle(report.failure.map(|failure| failure.verdict)), [(0, 1), (1, 0)]);
}

/// Returns the rules that are broken without harm in some interleaving; all interleavings succeed.
fn broken(process: &TestedProcess, load: &Load<'_>) -> BTreeSet<(u32, ProfilerRule)> {
    let mut budget = Budget::random(7, 300);
    budget.limits.every_instruction = true;
    let report = check(process, load, &budget).unwrap();
    assert_eq!(report.failure, None);
    report.broken.iter().map(|(by, rule, _)| (by.0, *rule)).collect()
}

#[test]
fn a_callback_takes_no_lock_that_the_target_takes() {
    let busy = executing(&[("Main", vec![Statement::Work(9)])]);
    let walk = |takes: bool| {
        move |setup: &mut Setup<'_>| {
            let lock = setup.lock("");
            let begun = setup.event();
            setup.on(CallbackKind::ThreadCreated, move |me| {
                if takes {
                    drop(me.lock(lock));
                }
                me.set(begun);
            });
            setup.on(CallbackKind::ThreadDestroyed, |me| me.join(thread(1)));
            setup.thread("sampler", move |me| {
                me.wait_for(begun);
                let target = me.target(thread(0)).unwrap().id();
                let flags = SnapshotFlags::DEFAULT;
                let callback: &mut SnapshotCallback<'_> = &mut |_| {
                    drop(me.lock(lock));
                    HResult::OK
                };
                let _ = me
                    .info()
                    .do_stack_snapshot(&SnapshotRequest::of(target, flags), Some(callback));
            });
        }
    };
    let taken = broken(&busy, &walk(true));
    assert!(taken.contains(&(1, ProfilerRule::CallbackTakesTargetsLock)), "{taken:?}");
    assert!(!taken.contains(&(1, ProfilerRule::LockWhileSuspended)), "{taken:?}");
    let others = broken(&busy, &walk(false));
    assert!(!others.contains(&(1, ProfilerRule::CallbackTakesTargetsLock)), "{others:?}");
    assert!(others.contains(&(1, ProfilerRule::LockWhileSuspended)), "{others:?}");
}

#[test]
fn a_walk_does_not_outlive_its_thread() {
    // On Unix such a walk does no harm.
    let on = |bodies| executing_on(Generation::Net10Unix, bodies);
    let busy = on(&[("Main", vec![Statement::Work(9)])]);
    let walk = |waits: bool| {
        move |setup: &mut Setup<'_>| {
            let begun = setup.event();
            setup.on(CallbackKind::ThreadCreated, move |me| me.set(begun));
            setup.on(CallbackKind::ThreadDestroyed, move |me| {
                if waits {
                    me.join(thread(1));
                }
            });
            setup.thread("sampler", move |me| {
                me.wait_for(begun);
                let target = me.target(thread(0)).unwrap().id();
                let callback: &mut SnapshotCallback<'_> = &mut |_| HResult::OK;
                let flags = SnapshotFlags::DEFAULT;
                let _ = me
                    .info()
                    .do_stack_snapshot(&SnapshotRequest::of(target, flags), Some(callback));
            });
        }
    };
    let rule = (1, ProfilerRule::WalkOutlivesThread);
    assert!(broken(&busy, &walk(false)).contains(&rule));
    assert!(!broken(&busy, &walk(true)).contains(&rule));
}

#[test]
fn resumes_can_be_forgotten_and_doubled() {
    let busy = executing(&[("Main", vec![Statement::Work(9)])]);
    let forgotten = check(
        &busy,
        &|setup| {
            setup.thread("sampler", |me| {
                let _ = me.target(thread(0)).unwrap().suspend();
            });
        },
        &Budget::exhaustive(1_000),
    );
    let forgotten = forgotten.unwrap().failure.map(|failure| failure.verdict);
    let rule = ProfilerRule::ResumeForgotten;
    assert_eq!(forgotten, Some(Verdict::Broken { by: thread(1), rule }));

    let doubled: &Load<'_> = &|setup| {
        setup.thread("worker", |me| me.sleep(10));
        setup.thread("sampler", |me| {
            let worker = me.target(thread(0)).unwrap();
            if worker.suspend().is_ok() {
                worker.resume().unwrap();
                assert!(worker.resume().is_err());
            }
        });
    };
    let report = search(doubled, &Budget::exhaustive(1_000));
    assert!(report.survives());
    let broken: Vec<_> = report.broken.iter().map(|(by, rule, _)| (*by, *rule)).collect();
    assert_eq!(broken, [(thread(1), ProfilerRule::ResumeDoubled)]);
    let rule = ProfilerRule::ResumeDoubled;
    let failure = search(doubled, &Budget::exhaustive(1_000).with_rules()).failure.unwrap();
    assert_eq!(failure.verdict, Verdict::Broken { by: thread(1), rule });
}

/// Guests call by name.
#[test]
fn a_lock_over_a_call_by_name_breaks_the_rule_too() {
    for (name, breaks) in [("EnumThreads", true), ("GetThreadInfo", false)] {
        let load: &Load<'_> = &|setup| {
            let lock = setup.lock("names");
            setup.thread("lists", move |me| {
                let _held = me.lock(lock);
                let listed = me.call_runtime(name, |caller| caller.enum_threads());
                assert!(listed.is_ok());
            });
        };
        let report = search(load, &Budget::exhaustive(1_000));
        let broken: Vec<_> = report.broken.iter().map(|(_, rule, _)| *rule).collect();
        let expected: &[_] = if breaks { &[ProfilerRule::LockOverGcTrigger] } else { &[] };
        assert_eq!(broken, expected, "{name}");
    }
}

#[test]
fn reports_have_texts() {
    let reported = |load: &Load<'_>| search(load, &Budget::exhaustive(1_000)).to_string();
    let load: &Load<'_> = &|setup| {
        setup.thread("a", |me| {
            me.allocate();
            me.point();
        });
        setup.thread("b", |me| {
            let a = me.target(thread(0)).unwrap();
            assert!(a.resume().is_err());
        });
    };
    let all = reported(load);
    let (count, rest) = all.strip_prefix("none of ").unwrap().split_once(' ').unwrap();
    assert!(count.parse::<u64>().unwrap() > 1, "{all}");
    let rest = rest.replace("clr1:", "").replace(|c: char| c.is_ascii_digit(), "");
    assert!(
        rest.starts_with(
            "interleavings fails, which are all up to the order of independent steps\n\
             a rule is broken without harm in "
        ),
        "{all}"
    );
    assert!(rest.ends_with(": only a suspended thread may be resumed"), "{all}");
    // An incomplete search.
    let few = search(load, &Budget::random(1, 3)).to_string();
    // As results, for tests of profilers: one that has looked at nothing shows nothing.
    assert!(search(load, &Budget::random(1, 3)).into_result().is_ok_and(|it| it.schedules == 3));
    let nothing = search(load, &Budget::random(1, 0)).into_result();
    assert_eq!(nothing, Err(NotSurvived::NothingExecuted));
    let failed = search(&ring(1), &Budget::exhaustive(1_000)).into_result().unwrap_err();
    assert!(
        matches!(failed, NotSurvived::Failed(_)) && failed.to_string().contains("again: clr1:")
    );
    assert!(few.starts_with("none of 3 interleavings fails\n"), "{few}");

    let deadlock = reported(&ring(1));
    assert_eq!(deadlock.lines().next(), Some("deadlock:  cannot go on"));
    assert_eq!(deadlock.lines().last(), Some("again: clr1:"));
    // The first interleaving fails, but its replay does not.
    let loads = std::cell::Cell::new(0);
    let fickle = reported(&|setup| {
        loads.set(loads.get() + 1);
        if loads.get() == 1 {
            setup.thread("a", |me| me.fail("the first"));
        }
    });
    assert_eq!(fickle.lines().last(), Some("not repeated by: clr1:"));
}

/// Calls may be nested in their own callbacks: the interleaving ends before the stack overflows.
#[test]
fn calls_in_callbacks_of_calls_come_to_an_end() {
    let load: &Load<'_> = &|setup| {
        setup.on(CallbackKind::RuntimeSuspendStarted, |me| {
            let _ = me.info().suspend_runtime();
        });
        setup.thread("sampler", |me| {
            let _ = me.info().suspend_runtime();
        });
    };
    let Some(Verdict::Failed { by, words }) = verdict(load) else { panic!() };
    assert_eq!((by, &*words), (thread(0), "calls are nested in callbacks without end"));
}

/// A thread that spins does not keep other threads from running, even if a search rarely chooses
/// them: this is no live-lock.
#[test]
fn a_waiting_thread_lets_others_go_on() {
    let load: &Load<'_> = &|setup| {
        let lock = setup.lock("");
        setup.thread("owner", move |me| drop(me.lock(lock)));
        setup.thread("spins", move |me| {
            while !me.try_acquire(lock, 0) {}
            me.unlock(lock);
        });
    };
    let mut budget = Budget::random(1, 50).by(Strategy::Pct { depth: 3 });
    budget.limits.turns = 50;
    assert_eq!(search(load, &budget).failure, None);
    // The search is not complete if some interleavings were brought to their end round-robin.
    let mut budget = Budget::exhaustive(3_000);
    budget.limits.turns = 20;
    let report = search(load, &budget);
    assert!(report.survives() && !report.covered.unwrap().everything, "{report:?}");
}

/// Windows has no signals, wherever the thread is.
#[test]
fn signals_are_for_unix() {
    let load: &Load<'_> = &|setup| {
        setup.on_signal(|me| me.fail("a signal"));
        setup.thread("target", |me| me.sleep(10));
        setup.thread("sampler", |me| me.signal(thread(0)));
    };
    assert_eq!(verdict(load), None);
    let unix = executing_on(Generation::Net10Unix, &[]);
    let found = check(&unix, load, &Budget::random(1, 100)).unwrap().failure.unwrap();
    assert!(matches!(found.verdict, Verdict::Failed { .. }), "{found:?}");
}
