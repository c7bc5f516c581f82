//! Tests that the parts of an exhaustive search are the whole.

use super::*;
use crate::join_parts;
use clr_world::content::ContentHasher;

/// Three threads that take a lock twice. `owners` gets them in order.
fn taking(owners: &Rc<RefCell<Vec<u32>>>) -> impl Fn(&mut Setup<'_>) + use<> {
    let owners = Rc::clone(owners);
    move |setup| {
        owners.borrow_mut().clear();
        let lock = setup.lock("lock");
        for number in 0..3 {
            let owners = Rc::clone(&owners);
            setup.thread("", move |me| {
                for _ in 0..2 {
                    let _guard = me.lock(lock);
                    owners.borrow_mut().push(number);
                }
            });
        }
    }
}

/// Two threads that take two locks in different order, after a while, and one that does nothing to them.
fn crossing(setup: &mut Setup<'_>) {
    let locks = [setup.lock("one"), setup.lock("other")];
    for (name, [first, second]) in [("up", [0, 1]), ("down", [1, 0]), ("aside", [0, 0])] {
        setup.thread(name, move |me| {
            for _ in 0..3 {
                me.point();
            }
            if first != second {
                let _first = me.lock(locks[first]);
                let _second = me.lock(locks[second]);
            }
        });
    }
}

fn parts(load: &Load<'_>, budget: &Budget) -> Vec<crate::Part> {
    Explorer::new(&nothing()).unwrap().parts(load, budget)
}

/// An interleaving has one beginning, so that it is in one part; all parts together have each order of the owners.
#[test]
fn each_interleaving_is_in_one_part() {
    for bound in [None, Some(1)] {
        let owners = Rc::default();
        let load = taking(&owners);
        let by = Strategy::Exhaustive { preemptions: bound };
        let parts = parts(&load, &Budget::exhaustive(100_000).by(by));
        assert!(parts.len() >= 16 || bound.is_some(), "{bound:?}: {}", parts.len());
        let begins = |one: &crate::Part, other: &crate::Part| {
            one != other && other.beginning().starts_with(one.beginning())
        };
        assert!(!parts.iter().any(|one| parts.iter().any(|other| begins(one, other))));
        let orders = |search: Exhaustive| {
            let tell = |_| format!("{:?}", owners.borrow());
            outcomes_of(search.to_each_end(), &load, tell).0
        };
        let whole = orders(Exhaustive::new(bound));
        let of_part = |part: &crate::Part| orders(Exhaustive::new(bound).after(part.beginning()));
        assert_eq!(parts.iter().flat_map(of_part).collect::<BTreeSet<_>>(), whole, "{bound:?}");
        if bound.is_none() {
            assert_eq!(whole.len(), 90);
        }
        let few = parts[..parts.len() / 4].iter().flat_map(of_part).collect::<BTreeSet<_>>();
        assert!(few.len() < whole.len(), "{bound:?}: some parts have everything");
    }
}

#[test]
fn a_part_is_searched_in_the_same_way_on_each_machine() {
    let budget = Budget { keep_going: true, ..Budget::exhaustive(100_000) };
    let parts = parts(&crossing, &budget);
    assert_eq!(parts, self::parts(&crossing, &budget));
    let (process, other) = (nothing(), nothing());
    let mut one = Explorer::new(&process).unwrap();
    for (place, part) in parts.iter().enumerate() {
        let found = one.search_part(&crossing, &budget, part, |_| true);
        let mut fresh = Explorer::new(&other).unwrap();
        assert_eq!(found, fresh.search_part(&crossing, &budget, part, |_| true), "{place}");
        let again = found.failures().next().map(|failure| {
            fresh.failure(&crossing, &budget, failure.number, failure.schedule.clone())
        });
        if let Some(again) = again {
            let first = again.as_ref().map(|it| (&it.verdict, &it.history));
            assert_eq!(first, found.failure.as_ref().map(|it| (&it.verdict, &it.history)));
        }
    }
}

#[test]
fn parts_find_what_the_whole_search_finds() {
    for keep_going in [false, true] {
        let budget = Budget { keep_going, ..Budget::exhaustive(100_000) };
        let process = nothing();
        let mut explorer = Explorer::new(&process).unwrap();
        let parts = explorer.parts(&crossing, &budget);
        let mut search = |part| explorer.search_part(&crossing, &budget, part, |_| true);
        let reports: Vec<_> = parts.iter().map(&mut search).collect();
        let joined = join_parts(reports.clone(), parts.len(), keep_going);
        let whole = super::search(&crossing, &budget);
        let verdicts = |report: &Report| {
            let keys = report.failures().map(|failure| failure.verdict.fingerprint());
            keys.collect::<BTreeSet<_>>()
        };
        assert_eq!(verdicts(&joined), verdicts(&whole), "{keep_going}");
        assert_eq!(joined.covered.unwrap().everything, keep_going);
        let turns: u64 = reports.iter().map(|report| report.turns).sum();
        assert_eq!(joined.turns == turns, keep_going);
        if keep_going {
            let missing = join_parts(reports[1..].to_vec(), parts.len(), keep_going);
            assert!(!missing.covered.unwrap().everything, "a part is missing");
            assert_eq!(joined.covered.unwrap().millionths, 1_000_000);
        } else {
            // The number of the interleaving counts those of the parts before.
            let failure = joined.failure.unwrap();
            assert_eq!(failure.number + 1, joined.schedules);
        }
    }
}

/// A part compares states of its own: those of its beginning have alternatives that are in other parts.
#[test]
fn a_state_of_the_beginning_that_comes_again_is_no_end() {
    let load = |setup: &mut Setup<'_>| {
        let lock = setup.lock("lock");
        setup.keeps(|| ContentHasher::of(&()));
        for name in ["a", "b"] {
            setup.thread(name, move |me| {
                for _ in 0..2 {
                    // Taken and released, all is as before.
                    drop(me.lock(lock));
                    me.is_at(0);
                }
            });
        }
    };
    let budget = Budget::exhaustive(100_000);
    let parts = parts(&load, &budget);
    let outcome = |search: Exhaustive| {
        outcomes_of(search.to_each_end(), &load, |verdict| format!("{verdict:?}")).0
    };
    let found: BTreeSet<_> = parts
        .iter()
        .flat_map(|part| outcome(Exhaustive::new(None).after(part.beginning())))
        .collect();
    assert_eq!(found, outcome(Exhaustive::new(None)));
}
