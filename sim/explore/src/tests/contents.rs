//! Tests of searches that compare states by their contents.

use super::*;

/// Creates a value that is all that the profiler keeps.
fn keep<T: Copy + Default + Into<u64> + 'static>(setup: &mut Setup<'_>) -> Rc<Cell<T>> {
    let value = Rc::new(Cell::new(T::default()));
    let kept = Rc::clone(&value);
    setup.keeps(move || kept.get().into());
    value
}

/// Loads threads that each count `times` times under a lock. The count is all that the profiler keeps.
fn counting(threads: u64, times: u64) -> impl Fn(&mut Setup<'_>) {
    move |setup| {
        let (lock, count) = (setup.lock("count"), keep::<u64>(setup));
        for _ in 0..threads {
            let count = Rc::clone(&count);
            setup.thread("counts", move |me| {
                for time in 0..times {
                    me.is_at(time);
                    let _count = me.lock(lock);
                    me.shares();
                    count.set(count.get() + 1);
                }
            });
        }
    }
}

#[test]
fn a_state_is_explored_once_however_it_was_reached() {
    for (threads, times) in [(2, 3), (3, 2), (3, 3)] {
        let load = counting(threads, times);
        let (by_steps, _) = all(&nothing(), &load, Exhaustive::new(None).by_steps(), drop);
        let (whole, cut) = all(&nothing(), &load, Exhaustive::new(None), drop);
        // Steps differ by the thread and the counts before: its own, and those of all others.
        let counts = |threads: u64, times: u64| (times + 1).pow(threads as u32);
        assert!(
            whole + cut <= threads * counts(threads, times),
            "{threads} × {times}: {whole} and {cut}"
        );
        assert!(
            2 * (whole + cut) < by_steps.max(40),
            "{threads} × {times}: {whole} and {cut}, {by_steps}"
        );
    }
}

#[test]
fn data_that_was_not_declared_is_noticed() {
    let load = |setup: &mut Setup<'_>| {
        let (lock, event, is_first) =
            (setup.lock("first"), setup.event(), Rc::new(Cell::new(true)));
        setup.keeps(|| 0);
        for _ in 0..2 {
            let is_first = Rc::clone(&is_first);
            setup.thread("sets", move |me| {
                let _first = me.lock(lock);
                if is_first.replace(false) {
                    me.set(event);
                }
            });
        }
    };
    let report = search(&load, &Budget::exhaustive(1000));
    assert!(!report.covered.unwrap().everything, "{report:?}");
}

#[test]
fn a_turn_that_depends_on_time_makes_the_search_compare_steps() {
    let load = |setup: &mut Setup<'_>| {
        let lock = setup.lock("slow");
        setup.keeps(|| 0);
        for micros in [3, 5] {
            setup.thread("sleeps", move |me| {
                let _slow = me.lock(lock);
                me.sleep(micros);
            });
        }
    };
    let covered = search(&load, &Budget::exhaustive(1000)).covered.unwrap();
    assert!(covered.everything && covered.cut > 0, "{covered:?}");
}

#[test]
fn a_loop_that_leads_to_the_same_state_is_a_live_lock() {
    let load = |setup: &mut Setup<'_>| {
        let (lock, taken) = (setup.lock("taken"), setup.event());
        setup.keeps(|| 0);
        setup.thread("keeps", move |me| {
            me.acquire(lock);
            me.set(taken);
        });
        setup.thread("tries", move |me| {
            me.wait_for(taken);
            while !me.try_acquire(lock, 0) {
                me.is_at(1);
            }
        });
    };
    let budget =
        Budget { limits: Limits { turns: 50, ..Limits::default() }, ..Budget::exhaustive(1000) };
    let failure = search(&load, &budget).failure.expect("no interleaving ends");
    assert!(matches!(failure.verdict, Verdict::LiveLock | Verdict::Deadlock(_)), "{failure:?}");
}

/// A thread that is started in the interleaving has its steps before and after those of the one that starts it, however states
/// are compared.
#[test]
fn a_started_thread_comes_first_or_last() {
    let load = |setup: &mut Setup<'_>| {
        let is_set = keep::<bool>(setup);
        setup.thread("starter", move |me| {
            let child = Rc::clone(&is_set);
            me.spawn("child", move |me| {
                me.point();
                child.set(true);
            });
            me.point();
            if is_set.get() {
                me.fail("the child was first");
            }
        });
    };
    for search in [Exhaustive::new(None), Exhaustive::new(None).by_steps()] {
        let mut failures = Vec::new();
        all(&nothing(), &load, search, |ending| failures.push(ending.verdict.is_some()));
        failures.sort_unstable();
        failures.dedup();
        assert_eq!(failures, [false, true]);
    }
}

/// Loads threads that take two nested locks `times` times, and one that waits for them.
fn nested(threads: u32, times: u64) -> impl Fn(&mut Setup<'_>) {
    move |setup| {
        let (outer, inner) = (setup.lock("outer"), setup.lock("inner"));
        let total = keep::<u64>(setup);
        for _ in 0..threads {
            let total = Rc::clone(&total);
            setup.thread("counts", move |me| {
                for time in 0..times {
                    me.is_at(time);
                    let _outer = me.lock(outer);
                    let _inner = me.lock(inner);
                    me.shares();
                    total.set(total.get() + 1);
                }
            });
        }
        join(setup, threads);
    }
}

/// Loads a thread that sets a flag and notifies the others, which wait for it.
fn notified(threads: u32) -> impl Fn(&mut Setup<'_>) {
    move |setup| {
        let (lock, condition) = (setup.lock("lock"), setup.condition());
        let is_set = keep::<bool>(setup);
        for number in 0..threads {
            let is_set = Rc::clone(&is_set);
            setup.thread("waits", move |me| {
                let guard = me.lock(lock);
                me.shares();
                if number == 0 {
                    is_set.set(true);
                    drop(guard);
                    return me.notify_all(condition);
                }
                while !is_set.get() {
                    me.wait_on(condition, lock, None);
                    me.shares();
                }
            });
        }
        join(setup, threads);
    }
}

/// Loads threads that count with a lock each, and then with one that all share.
fn apart(threads: u32) -> impl Fn(&mut Setup<'_>) {
    move |setup| {
        let (shared, total) = (setup.lock("shared"), keep::<u64>(setup));
        for _ in 0..threads {
            let (own, total) = (setup.lock("own"), Rc::clone(&total));
            setup.thread("counts", move |me| {
                drop(me.lock(own));
                let _shared = me.lock(shared);
                me.shares();
                total.set(total.get() + 1);
            });
        }
        join(setup, threads);
    }
}

/// Loads a thread that waits for the end of the first ones.
fn join(setup: &mut Setup<'_>, threads: u32) {
    setup.thread("joins", move |me| (0..threads).for_each(|thread| me.join(ThreadIndex(thread))));
}

/// A search takes no more interleavings than it has to: with at most two preemptions, loom 0.7 takes 46, 824 and 290 for
/// programs like these (`tests/benches/peers`). A change that lowers a number may well be right.
#[test]
fn searches_of_small_programs_take_few_histories() {
    let programs: [(&str, Box<Load<'_>>, [u64; 3]); 3] = [
        ("nested", Box::new(nested(2, 2)), [36, 48, 36]),
        ("notified", Box::new(notified(3)), [55, 75, 55]),
        ("apart", Box::new(apart(3)), [31, 41, 31]),
    ];
    for (name, load, expected) in programs {
        let count = |search: Exhaustive| {
            let (whole, cut) = all(&nothing(), &*load, search, drop);
            whole + cut
        };
        let found = [
            count(Exhaustive::new(Some(2))),
            count(Exhaustive::new(Some(2)).by_steps()),
            count(Exhaustive::new(None)),
        ];
        assert_eq!(found, expected, "{name}");
    }
}
