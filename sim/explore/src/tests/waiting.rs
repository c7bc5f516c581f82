//! Tests of time: sleeping threads may wake early or late, and timed waits are patient.

use super::*;
use crate::LimitBound;

/// Returns the outcomes of all interleavings, as the texts that the threads have logged.
fn said<'p>(load: impl Fn(&mut Setup<'p>, Rc<RefCell<Vec<&'static str>>>) + 'p) -> Vec<String> {
    let said = Rc::new(RefCell::new(Vec::new()));
    let again = Rc::clone(&said);
    let load = move |setup: &mut Setup<'p>| {
        again.take();
        load(setup, Rc::clone(&again));
    };
    let reported = |verdict: Option<Verdict>| {
        format!("{}{}", said.take().join(" "), if verdict.is_none() { "" } else { "!" })
    };
    outcomes(&load, false, reported).into_iter().collect()
}

#[test]
fn a_sleeping_thread_can_wake_before_others_have_run() {
    let orders = said(|setup, said| {
        let also = Rc::clone(&said);
        setup.thread("", move |me| {
            me.sleep(1_000_000);
            said.borrow_mut().push("slept");
        });
        setup.thread("", move |me| {
            me.point();
            also.borrow_mut().push("worked");
        });
    });
    assert_eq!(orders, ["slept worked", "worked slept"]);
}

/// Of several sleeping threads the one that has to wake first wakes first.
#[test]
fn a_longer_sleep_ends_later() {
    let orders = said(|setup, said| {
        for (micros, word) in [(2_000, "second"), (1_000, "first"), (3_000, "third")] {
            let said = Rc::clone(&said);
            setup.thread("", move |me| {
                me.sleep(micros);
                assert!(me.now() >= micros);
                said.borrow_mut().push(word);
            });
        }
    });
    assert!(orders.contains(&"first second third".to_owned()));
    // The other thread can only be earlier if the first has not begun to sleep.
    let report = search(
        &|setup| {
            let (begun, woken) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            for (micros, place) in [(5_000, 1), (1_000, 0)] {
                let (begun, woken) = (Rc::clone(&begun), Rc::clone(&woken));
                setup.thread("", move |me| {
                    begun.set(begun.get() + 1);
                    let both = begun.get() == 2;
                    me.sleep(micros);
                    if place == 1 && both && woken.get() == 0 {
                        me.fail("too early");
                    }
                    woken.set(woken.get() + 1);
                });
            }
        },
        &Budget::exhaustive(1_000),
    );
    assert!(report.covered.unwrap().everything);
    assert!(report.survives(), "{:?}", report.failure);
}

/// While a thread is suspended its timed wait does not end: after it the event counts, which was
/// set meanwhile.
#[test]
fn the_timed_wait_of_a_suspended_thread_does_not_end() {
    let load: &Load<'_> = &|setup| {
        let (event, never) = (setup.event(), setup.event());
        let suspended = Rc::new(Cell::new(false));
        let also = Rc::clone(&suspended);
        setup.thread("waits", move |me| {
            if !me.wait_at_most(event, 10) && suspended.get() {
                me.fail("the time was over while the thread was suspended");
            }
        });
        setup.thread("suspends", move |me| {
            let other = me.target(ThreadIndex(0)).unwrap();
            if other.suspend().is_ok() {
                also.set(true);
                me.wait_at_most(never, 1_000);
                me.set(event);
                other.resume().unwrap();
            }
        });
    };
    assert_eq!(verdict(load), None);
}

/// A thread that waits in code of the profiler handles its signals.
#[test]
fn a_waiting_thread_handles_signals() {
    let process = on(Generation::Net9Unix, &Program::default(), &[]);
    let load = |setup: &mut Setup<'_>| {
        let (event, signalled) = (setup.event(), setup.event());
        let handled = Rc::new(Cell::new(false));
        let now = Rc::clone(&handled);
        setup.on_signal(move |me| {
            now.set(true);
            me.set(event);
        });
        setup.thread("waits", move |me| {
            me.set(signalled);
            me.wait_for(event);
            if !handled.get() {
                me.fail("the wait is over, and the event is not set");
            }
        });
        setup.thread("sends", move |me| {
            me.wait_for(signalled);
            me.signal(ThreadIndex(0));
            me.join(ThreadIndex(0));
        });
    };
    let report = check(&process, &load, &Budget::exhaustive(10_000)).unwrap();
    assert!(report.survives(), "{:?}", report.failure);
    assert!(report.covered.unwrap().everything);
}

/// A timed wait succeeds if its condition is satisfied at all.
#[test]
fn a_wait_with_a_limit_ends_only_when_no_thread_can_run() {
    let load: &Load<'_> = &|setup| {
        let (lock, event) = (setup.lock(""), setup.event());
        setup.thread("owner", move |me| {
            let _lock = me.lock(lock);
            me.sleep(1_000);
            me.set(event);
        });
        setup.thread("patient", move |me| {
            if !me.wait_at_most(event, 100_000) || !me.try_acquire(lock, 100_000) {
                me.fail("there was time enough");
            }
        });
    };
    assert_eq!(verdict(load), None);
    // If the condition is never satisfied, the wait ends: here two threads want each other's lock,
    // and neither waits forever.
    let ends = said(|setup, said| {
        let locks = [setup.lock(""), setup.lock("")];
        for (index, word) in ["first", "second"].into_iter().enumerate() {
            let said = Rc::clone(&said);
            setup.thread("", move |me| {
                let _own = me.lock(locks[index]);
                if me.try_acquire(locks[1 - index], 1_000) {
                    me.unlock(locks[1 - index]);
                }
                said.borrow_mut().push(word);
            });
        }
    });
    assert_eq!(ends, ["first second", "second first"]);
}

#[test]
fn to_try_a_lock_takes_no_time() {
    let tries = said(|setup, said| {
        let lock = setup.lock("");
        setup.thread("", move |me| drop(me.lock(lock)));
        setup.thread("", move |me| {
            let had = me.try_acquire(lock, 0);
            said.borrow_mut().push(if had { "had" } else { "not" });
            me.unlock(lock);
        });
    });
    assert_eq!(tries, ["had", "not"]);
}

/// An exhaustive search says what bounds the passing of limits, if there are some.
#[test]
fn an_exhaustive_search_says_the_bound_of_limits() {
    let bound = |early: bool, wait: fn(&CurrentThread<'_, '_>, EventObject)| {
        let load: &Load<'_> = &|setup| {
            if early {
                setup.expire_limits();
            }
            let event = setup.event();
            setup.thread("waits", move |me| wait(me, event));
            setup.thread("sets", move |me| me.set(event));
        };
        let covered = search(load, &Budget::exhaustive(100)).covered.unwrap();
        assert!(covered.everything);
        covered.limits
    };
    let limited = |me: &CurrentThread<'_, '_>, event| {
        let _ = me.wait_at_most(event, 1_000);
    };
    assert_eq!(bound(false, limited), Some(LimitBound::Last));
    assert_eq!(bound(true, limited), Some(LimitBound::Early));
    assert_eq!(bound(true, |me, event| me.wait_for(event)), None);
}

#[test]
fn a_sampler_that_only_sleeps_lets_limits_pass() {
    let report = search(
        &|setup| {
            let never = setup.event();
            setup.thread("waits", move |me| {
                if !me.wait_at_most(never, 5_500) {
                    me.bark();
                }
            });
            setup.thread("sampler", |me| {
                loop {
                    me.sleep(1_000);
                }
            });
        },
        &Budget { limits: Limits { turns: 100, ..Limits::default() }, ..Budget::random(0, 20) },
    );
    let failure = report.failure.unwrap();
    assert_eq!(failure.verdict, Verdict::Watchdog(ThreadIndex(0)));
    let waits =
        |turn: &&Turn| turn.thread == ThreadIndex(0) && turn.events.contains(&TurnEvent::Waits);
    let from = failure.history.turns.iter().find(waits).unwrap().at;
    let took = failure.history.turns.last().unwrap().at - from;
    // The thread may be woken late, but not early.
    assert!((5_501..100_000).contains(&took), "{took}");
}

#[test]
fn a_wait_with_a_limit_at_the_end_of_the_program_is_no_deadlock() {
    let process = executing(&[("Main", vec![Statement::Work(3)])]);
    let wants = |limit: Option<u64>| {
        let load = move |setup: &mut Setup<'_>| {
            let locks = [setup.lock(""), setup.lock("")];
            for index in 0..2 {
                setup.thread("", move |me| {
                    let _own = me.lock(locks[index]);
                    match limit {
                        Some(micros) => drop(me.try_acquire(locks[1 - index], micros)),
                        None => me.acquire(locks[1 - index]),
                    }
                    me.unlock(locks[1 - index]);
                });
            }
        };
        check(&process, &load, &Budget::random(1, 200)).unwrap()
    };
    assert!(wants(Some(1_000)).survives());
    let failure = wants(None).failure.unwrap();
    assert_eq!(cycle(Some(failure.verdict)), [(1, 2), (2, 1)]);
}
