//! Tests of condition variables, shared and reentrant locks, and of threads and locks that are made
//! during an interleaving.

use super::*;
use crate::Explorer;

/// Loads a thread that waits until another one is ready, and joins it. The other one changes the
/// variable with or without the lock.
fn hand_over(setup: &mut Setup<'_>, locked: bool) {
    let (lock, condition) = (setup.lock("ready"), setup.condition());
    let ready = Rc::new(Cell::new(false));
    let now = Rc::clone(&ready);
    setup.thread("waits", move |me| {
        let guard = me.lock(lock);
        while !ready.get() && !me.is_over() {
            me.wait_on(condition, lock, None);
        }
        drop(guard);
    });
    setup.thread("notifies", move |me| {
        let guard = locked.then(|| me.lock(lock));
        me.point();
        now.set(true);
        me.notify_one(condition);
        drop(guard);
        me.join(ThreadIndex(0));
    });
}

/// The other thread notifies between the test of the variable and the wait.
#[test]
fn a_notification_without_the_lock_can_be_missed() {
    let verdict_of = |locked| verdict(&move |setup: &mut Setup<'_>| hand_over(setup, locked));
    assert_eq!(verdict_of(false), Some(Verdict::LostWakeUp(ThreadIndex(0))));
    assert_eq!(verdict_of(true), None);
}

/// Returns the orders in which the threads have logged their words.
fn orders<'p>(
    load: impl Fn(&mut Setup<'p>, &Rc<RefCell<Vec<&'static str>>>) + 'p,
    sleeping: bool,
) -> Vec<String> {
    let log = Rc::new(RefCell::new(Vec::new()));
    let again = Rc::clone(&log);
    let load = move |setup: &mut Setup<'p>| {
        again.take();
        load(setup, &again);
    };
    let found = outcomes(&load, sleeping, |verdict| match verdict {
        None => log.take().join(" "),
        Some(verdict) => format!("{} {verdict:?}", log.take().join(" ")),
    });
    found.into_iter().collect()
}

/// One notification wakes the first or the second of two threads that wait.
#[test]
fn a_notification_wakes_any_of_those_that_wait() {
    for sleeping in [false, true] {
        let found = orders(
            |setup, log| {
                let (lock, condition) = (setup.lock(""), setup.condition());
                let waiting = Rc::new(Cell::new(0));
                for _ in 0..2 {
                    let (log, waiting) = (Rc::clone(log), Rc::clone(&waiting));
                    setup.thread("waits", move |me| {
                        let guard = me.lock(lock);
                        let earlier = waiting.replace(waiting.get() + 1);
                        let woken = me.wait_on(condition, lock, None);
                        if woken {
                            log.borrow_mut().push(["first", "second"][earlier]);
                        }
                        drop(guard);
                    });
                }
                let log = Rc::clone(log);
                setup.thread("notifies", move |me| {
                    let guard = me.lock(lock);
                    if waiting.get() == 2 {
                        me.notify_one(condition);
                        log.borrow_mut().push("notified");
                    }
                    drop(guard);
                });
            },
            sleeping,
        );
        assert_eq!(found, ["", "notified first", "notified second"]);
    }
}

#[test]
fn a_timed_wait_ends_and_owns_its_lock_again() {
    let found = orders(
        |setup, log| {
            let (lock, condition) = (setup.lock(""), setup.condition());
            let (said, also) = (Rc::clone(log), Rc::clone(log));
            setup.thread("waits", move |me| {
                let guard = me.lock(lock);
                let woken = me.wait_on(condition, lock, Some(50));
                assert!(!me.try_acquire(lock, 0), "the lock is owned");
                said.borrow_mut().push(if woken { "woken" } else { "late" });
                drop(guard);
            });
            setup.thread("notifies", move |me| {
                let guard = me.lock(lock);
                also.borrow_mut().push("notifies");
                me.notify_one(condition);
                drop(guard);
            });
        },
        true,
    );
    assert_eq!(found, ["notifies late", "notifies woken"]);
}

#[test]
fn waiting_without_the_lock_is_an_error() {
    let verdict = verdict(&|setup| {
        let (lock, condition) = (setup.lock(""), setup.condition());
        setup.thread("", move |me| {
            me.wait_on(condition, lock, None);
        });
    });
    let words = "a thread waits on a condition variable, and does not own the lock".to_owned();
    assert_eq!(verdict, Some(Verdict::Failed { by: ThreadIndex(0), words }));
}

/// Takes a lock twice, releases it once, and lets another thread look if it is free.
fn twice(setup: &mut Setup<'_>, kind: LockKind, releases: u32) {
    let lock = setup.lock_of("", kind);
    let event = setup.event();
    setup.thread("owner", move |me| {
        me.acquire(lock);
        me.acquire(lock);
        for _ in 0..releases {
            me.unlock(lock);
        }
        me.set(event);
    });
    setup.thread("other", move |me| {
        me.wait_for(event);
        me.acquire(lock);
    });
}

#[test]
fn a_reentrant_lock_is_released_as_often_as_it_was_taken() {
    let with = |kind, releases| verdict(&move |setup: &mut Setup<'_>| twice(setup, kind, releases));
    assert_eq!(cycle(with(LockKind::Plain, 2)), [(0, 0)]);
    assert_eq!(with(LockKind::Reentrant, 2), None);
    assert_eq!(cycle(with(LockKind::Reentrant, 1)), [(1, 0)]);
}

#[test]
fn a_wait_releases_a_reentrant_lock_altogether() {
    let notified = Rc::new(Cell::new(false));
    let known = Rc::clone(&notified);
    let verdict = verdict(&move |setup| {
        let lock = setup.lock_of("", LockKind::Reentrant);
        let condition = setup.condition();
        let waiting = Rc::new(Cell::new(false));
        let (seen, now) = (Rc::clone(&waiting), Rc::clone(&known));
        setup.thread("waits", move |me| {
            me.acquire(lock);
            me.acquire(lock);
            waiting.set(true);
            me.wait_on(condition, lock, Some(50));
            me.unlock(lock);
            assert!(me.is_over() || me.try_acquire(lock, 0), "it was taken twice");
            me.unlock(lock);
            me.unlock(lock);
        });
        setup.thread("notifies", move |me| {
            let guard = me.lock(lock);
            if seen.get() {
                now.set(true);
                me.notify_one(condition);
            }
            drop(guard);
        });
    });
    assert_eq!(verdict, None);
    assert!(notified.get(), "no other thread ever owned the lock");
}

#[test]
fn readers_share_a_lock_and_exclude_an_owner() {
    // Both readers are in at once in some interleavings, the owner never with one of them.
    let most = Rc::new(Cell::new(0));
    let known = Rc::clone(&most);
    let report = search(
        &move |setup| {
            let lock = setup.lock("");
            let inside = Rc::new(Cell::new(0));
            for _ in 0..2 {
                let (inside, known) = (Rc::clone(&inside), Rc::clone(&known));
                setup.thread("reader", move |me| {
                    me.share(lock);
                    inside.set(inside.get() + 1);
                    known.set(known.get().max(inside.get()));
                    me.point();
                    inside.set(inside.get() - 1);
                    me.unlock(lock);
                });
            }
            setup.thread("writer", move |me| {
                let _guard = me.lock(lock);
                if inside.get() != 0 {
                    me.fail("not alone");
                }
            });
        },
        &Budget::exhaustive(100_000),
    );
    assert!(report.survives() && report.covered.unwrap().everything, "{:?}", report.failure);
    assert_eq!(most.get(), 2);
}

#[test]
fn an_owner_waits_for_each_reader() {
    let verdict = verdict(&|setup| {
        let (tables, names) = (setup.lock("tables"), setup.lock("names"));
        setup.thread("reader", move |me| {
            me.share(tables);
            me.acquire(names);
            me.unlock(names);
            me.unlock(tables);
        });
        setup.thread("writer", move |me| {
            let _names = me.lock(names);
            let _tables = me.lock(tables);
        });
    });
    assert_eq!(cycle(verdict), [(0, 1), (1, 0)]);
}

/// Starts a thread from a callback of the program, which takes a lock made there.
fn spawns(me: &CurrentThread<'_, '_>, word: &'static str) -> ThreadIndex {
    let lock = me.new_lock("made late", LockKind::Plain);
    let guard = me.lock(lock);
    let thread = me.spawn("late", move |me| {
        let _guard = me.lock(lock);
        me.say(word);
    });
    drop(guard);
    thread
}

/// A thread that is started later runs, and can be waited for.
#[test]
fn a_thread_can_be_started_by_a_callback() {
    let load = |setup: &mut Setup<'_>| {
        setup.on(CallbackKind::ThreadCreated, |me| {
            let thread = spawns(me, "is there");
            me.join(thread);
        });
    };
    let process = executing(&[("main", vec![Statement::Work(1)])]);
    let report = check(&process, &load, &Budget::exhaustive(10_000)).unwrap();
    assert!(report.survives() && report.covered.unwrap().everything, "{:?}", report.failure);
    let mut explorer = Explorer::new(&process).unwrap();
    let mut histories = Vec::new();
    for seed in 0..4 {
        for _ in 0..2 {
            let mut search = Random::new(seed);
            assert!(search.begin(0));
            let detail = HistoryDetail::Statuses;
            let ending = explorer.run(&load, &mut search, Limits::default(), detail);
            assert_eq!(ending.verdict, None);
            histories.push(ending.history.unwrap());
        }
        let last = histories.last().unwrap();
        assert_eq!(histories[histories.len() - 2], *last, "the same seed, the same history");
        assert_eq!(last.threads[1].name, "late");
        assert_eq!(last.locks, ["made late"]);
        let events: Vec<_> = last.turns.iter().flat_map(|turn| &turn.events).collect();
        for event in [TurnEvent::Started(ThreadIndex(1)), TurnEvent::Says("is there")] {
            assert!(events.contains(&&event), "{events:?}");
        }
    }
}

/// A thread is found by its number from its start on: a search that counts the question as no access misses one of the two.
#[test]
fn a_thread_is_found_by_its_number_from_its_start_on() {
    let questions: [fn(&CurrentThread<'_, '_>) -> bool; 2] = [
        |me| me.thread_with(OsThreadId(0x2002)).is_some(),
        |me| me.os_of(ThreadIndex(2)).is_some(),
    ];
    for question in questions {
        for expected in [false, true] {
            let report = search(
                &|setup| {
                    setup.thread("starts", |me| {
                        me.spawn("late", |_| {});
                    });
                    setup.thread("asks", move |me| {
                        if question(me) == expected {
                            me.fail("found");
                        }
                    });
                },
                &Budget::exhaustive(10_000),
            );
            assert!(!report.survives(), "{expected}");
        }
    }
}

#[test]
fn threads_that_are_started_run_in_any_order() {
    let load = |setup: &mut Setup<'_>| {
        setup.thread("starts", |me| {
            for _ in 0..2 {
                me.spawn("", |me| {
                    me.shares();
                });
            }
        });
    };
    // The two threads touch the same, the starting thread has ended or not: both orders.
    assert!(count(&load) >= 2);
}

/// The program begins when the thread that starts the runtime has ended, and not before.
#[test]
fn the_program_waits_for_the_thread_that_starts_the_runtime() {
    let process = executing(&[("main", vec![Statement::Work(1)])]);
    let load = |setup: &mut Setup<'_>| {
        let started = Rc::new(Cell::new(false));
        let seen = Rc::clone(&started);
        let event = setup.event();
        setup.thread("helper", move |me| me.set(event));
        setup.before_program("startup", move |me| {
            me.wait_for(event);
            me.sleep(10);
            started.set(true);
        });
        setup.on(CallbackKind::ThreadCreated, move |me| {
            if !seen.get() {
                me.fail("the program runs already");
            }
            let callback = me.callback().unwrap();
            assert_eq!(callback.kind, CallbackKind::ThreadCreated);
            assert_ne!(callback.thread.0, 0, "it is about this thread");
        });
    };
    let report = check(&process, &load, &Budget::exhaustive(10_000)).unwrap();
    assert!(report.survives() && report.covered.unwrap().everything, "{:?}", report.failure);
    assert!(report.schedules > 1);
}
