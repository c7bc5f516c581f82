//! Tests of the probability bound of the search by priorities.

use super::*;
use crate::Explorer;

/// Returns the number of failing interleavings in a search by priorities, and the minimum that is
/// expected: 1 of n·k^(d-1) for n threads and k turns, where k may be guessed twice too long; a
/// tenth less, because of chance.
fn hits(load: &Load<'_>, threads: u64, depth: u32) -> (u64, u64) {
    const HISTORIES: u64 = 20_000;
    let process = nothing();
    let mut explorer = Explorer::new(&process).unwrap();
    let budget = |first| Budget {
        first,
        schedules: HISTORIES - first,
        ..Budget::random(3, 0).by(Strategy::Pct { depth })
    };
    let length = explorer.search(load, &Budget::exhaustive(1), |_| true).turns;
    let (mut first, mut failed) = (0, 0);
    while first < HISTORIES {
        let Some(failure) = explorer.search(load, &budget(first), |_| true).failure else { break };
        failed += 1;
        first = failure.number + 1;
    }
    (failed, HISTORIES * 9 / 10 / (threads * (2 * length).pow(depth - 1)))
}

/// Loads threads that log their steps one by one; the interleaving fails if they come in this order.
pub(super) fn in_order(
    steps: &'static [&'static [u32]],
    wrong: &'static [u32],
) -> impl Fn(&mut Setup<'_>) {
    move |setup| {
        let said = Rc::new(RefCell::new(Vec::new()));
        for steps in steps {
            let said = Rc::clone(&said);
            setup.thread("", move |me| {
                for (place, step) in steps.iter().enumerate() {
                    if place > 0 {
                        me.point();
                    }
                    me.shares();
                    said.borrow_mut().push(*step);
                    if *said.borrow() == wrong {
                        me.fail("in this order");
                    }
                }
            });
        }
    }
}

#[track_caller]
fn holds(steps: &'static [&'static [u32]], wrong: &'static [u32], depth: u32) {
    let (failed, promised) = hits(&in_order(steps, wrong), steps.len() as u64, depth);
    assert!(promised > 0 && failed >= promised, "{failed} of at least {promised}");
}

#[test]
fn bugs_are_found_as_often_as_promised() {
    // The second thread comes first.
    holds(&[&[1], &[2]], &[2, 1], 1);
    holds(&[&[1], &[2], &[3]], &[3], 1);
    // One thread is interrupted once.
    holds(&[&[1, 2], &[3, 4]], &[1, 3, 4, 2], 2);
    // Two interruptions: the threads interrupt each other, and continue in an order different from
    // that of the interruptions.
    holds(&[&[1, 2], &[3, 4]], &[1, 3, 2, 4], 3);
    holds(&[&[1, 2], &[3, 4], &[5]], &[1, 3, 5, 4, 2], 3);
    holds(&[&[1, 2], &[3, 4], &[5]], &[1, 3, 5, 2, 4], 3);
}

#[test]
fn bugs_that_need_more_changes_are_not_found() {
    let order = in_order(&[&[1, 2], &[3, 4]], &[1, 3, 2, 4]);
    assert_eq!(hits(&order, 2, 1).0, 0);
    assert_eq!(hits(&order, 2, 2).0, 0);
}
