//! Tests that the number of interleavings is right, and that each is explored.

use super::*;
use crate::tests::priorities::in_order;

/// Loads threads that each take a lock `times` times; `which` assigns a lock to each thread.
fn taking(which: &'static [usize], times: u32) -> impl Fn(&mut Setup<'_>) {
    move |setup| {
        let locks = [setup.lock("0"), setup.lock("1"), setup.lock("2")];
        for index in which {
            let lock = locks[*index];
            setup.thread("", move |me| {
                for _ in 0..times {
                    drop(me.lock(lock));
                }
            });
        }
    }
}

#[test]
fn there_is_one_history_for_each_order_of_dependent_steps() {
    // Independent threads: every order is the same interleaving.
    assert_eq!(count(&taking(&[0, 1], 1)), 1);
    assert_eq!(count(&taking(&[0, 1, 2], 3)), 1);
    // One lock: as many interleavings as orders of its owners.
    assert_eq!(count(&taking(&[0, 0], 1)), 2);
    assert_eq!(count(&taking(&[0, 0, 0], 1)), 6);
    assert_eq!(count(&taking(&[0, 0], 2)), 6);
    assert_eq!(count(&taking(&[0, 0], 3)), 20);
    assert_eq!(count(&taking(&[0, 0, 0], 2)), 90);
    // Two independent pairs.
    assert_eq!(count(&taking(&[0, 1, 0, 1], 1)), 4);
}

#[test]
fn without_sleeping_steps_there_are_as_many_as_interleavings() {
    // Three turns of each thread: it begins and reaches the lock, owns it, releases it.
    let brute =
        |load: &dyn Fn(&mut Setup<'_>)| all(&nothing(), load, Interleavings::new(None), drop);
    assert_eq!(brute(&taking(&[0, 1], 1)), (20, 0));
    let (a, b) = (brute(&taking(&[0, 0], 1)), brute(&taking(&[0, 0, 0], 1)));
    // One thread goes through its section, and the beginning of the other is before, between or
    // after its three turns. With a third thread: 6 orders; the second one's beginning is anywhere
    // before its section, and so is the third one's, which has 7 or 8 turns before it.
    assert_eq!(a, (8, 0));
    assert_eq!(b, (6 * 4 * 7, 0));
}

#[test]
fn the_unexplored_part_is_reported() {
    let load = taking(&[0, 0, 0], 2);
    let whole = search(&load, &Budget::exhaustive(100_000));
    let covered = whole.covered.unwrap();
    assert!(covered.everything && covered.millionths == 1_000_000, "{covered:?}");
    assert_eq!(whole.schedules, 90 + covered.cut);
    let mut last = 0;
    for schedules in [10, 40, 80] {
        let part = search(&load, &Budget::exhaustive(schedules)).covered.unwrap();
        assert!(!part.everything && part.millionths > last && part.millionths < 1_000_000);
        last = part.millionths;
    }
    // A search that begins later has not explored the earlier interleavings.
    let later = Budget { first: 7, ..Budget::exhaustive(5) };
    let later = search(&load, &later);
    assert_eq!((later.schedules, later.covered.unwrap().everything), (5, false));
}

#[test]
fn a_bound_on_preemptions_keeps_to_it() {
    const TWO: &[&[u32]] = &[&[1, 2], &[3, 4]];
    const THREE: &[&[u32]] = &[&[1, 2, 3], &[4, 5, 6]];
    type Order = (&'static [&'static [u32]], &'static [u32], u32);
    const ORDERS: [Order; 4] = [
        (TWO, &[1, 3, 4, 2], 1),
        (TWO, &[1, 3, 2, 4], 2),
        (THREE, &[1, 4, 2, 5, 6, 3], 3),
        (THREE, &[1, 4, 2, 5, 3, 6], 4),
    ];
    for (steps, wrong, needed) in ORDERS {
        for bound in 0..6 {
            let strategy = Strategy::Exhaustive { preemptions: Some(bound) };
            let budget = Budget::exhaustive(1_000_000).by(strategy);
            let report = search(&in_order(steps, wrong), &budget);
            let covered = report.covered.unwrap();
            assert_eq!(covered.preemptions, Some(bound));
            assert_eq!(report.failure.is_some(), bound >= needed, "{wrong:?} {bound}");
            assert_eq!(covered.everything, bound < needed);
        }
    }
}

#[test]
fn code_that_depends_on_something_else_is_noticed() {
    let calls = core::cell::Cell::new(0);
    let report = search(
        &|setup| {
            let lock = setup.lock("");
            calls.set(calls.get() + 1);
            let even = calls.get() % 2 == 0;
            for index in 0..2 {
                setup.thread("", move |me| {
                    if even && index == 0 {
                        me.join(ThreadIndex(1));
                    }
                    drop(me.lock(lock));
                });
            }
        },
        &Budget::exhaustive(1_000),
    );
    assert_eq!(report.covered, None);
    assert!(!matches!(report.failure, Some(failure) if failure.verdict == Verdict::LiveLock));
}

/// A search that keeps going counts the interleavings of each fault, and finds the first one at the same
/// number.
#[test]
fn a_search_that_keeps_going_counts_each_fault() {
    let load = |profiler: &mut Setup<'_>| {
        let locks: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| profiler.lock(name)).into();
        for (name, outer, inner) in
            [("v", 0, 1), ("w", 1, 0), ("x", 2, 3), ("y", 3, 4), ("z", 4, 2)]
        {
            let (outer, inner) = (locks[outer], locks[inner]);
            profiler.thread(name, move |me| {
                let _outer = me.lock(outer);
                let _inner = me.lock(inner);
            });
        }
    };
    let process = nothing();
    let budget = Budget { keep_going: true, ..Budget::random(3, 400) };
    let first = check(&process, &load, &Budget::random(3, 400)).unwrap().failure.unwrap();
    let all = check(&process, &load, &budget).unwrap();
    assert_eq!(all.schedules, 400);
    let failures: Vec<_> = all.failures().collect();
    assert!(failures.len() > 1);
    assert_eq!((failures[0].number, &failures[0].verdict), (first.number, &first.verdict));
    assert!(failures.windows(2).all(|pair| pair[0].number < pair[1].number));
    let keys: BTreeSet<_> = failures.iter().map(|one| one.verdict.fingerprint()).collect();
    assert_eq!(keys.len(), failures.len(), "each fault once");
    // As many interleavings fail as single searches find one after the other.
    let (mut number, mut failed) = (0, 0);
    while number < 400 {
        let rest = Budget { first: number, schedules: 400 - number, ..Budget::random(3, 0) };
        let Some(failure) = check(&process, &load, &rest).unwrap().failure else { break };
        failed += 1;
        number = failure.number + 1;
    }
    assert_eq!(failures.iter().map(|one| one.times).sum::<u64>(), failed);
    // Two halves joined are the whole.
    let half = |first| check(&process, &load, &Budget { first, schedules: 200, ..budget }).unwrap();
    assert_eq!(half(0).and(half(200)), all);
}
