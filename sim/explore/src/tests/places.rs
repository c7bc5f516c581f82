//! Places in the profiler's source, on its recorded stacks.

use super::*;

/// Returns the leaf of each thread's stack at the end of a deadlock of two locks.
fn leaves(load: &super::Load<'_>) -> Vec<String> {
    let failure = search(load, &Budget::exhaustive(10_000)).failure.unwrap();
    let process = nothing();
    let mut explorer = Explorer::new(&process).unwrap();
    let (limits, detail) = (Limits::default(), HistoryDetail::Statuses);
    let ending = explorer.replay(load, &failure.schedule, limits, detail).unwrap();
    let turns = ending.history.unwrap().turns;
    let statuses = &turns.last().unwrap().statuses;
    statuses.iter().map(|status| status.stack.first().cloned().unwrap_or_default()).collect()
}

#[test]
fn a_stack_has_the_place_where_the_profiler_waits() {
    let lines = Cell::new((0, 0));
    let load = |setup: &mut Setup<'_>, hidden: bool| {
        if hidden {
            setup.hide_places();
        }
        let (one, other) = (setup.lock("one"), setup.lock("other"));
        setup.thread("first", move |me| {
            let _one = me.lock(one);
            let _other = me.lock(other);
        });
        let first = line!() - 2;
        setup.thread("second", move |me| {
            let _other = me.lock(other);
            me.acquire(one);
            me.unlock(one);
        });
        lines.set((first, line!() - 3));
    };
    let found = leaves(&|setup| load(setup, false));
    let (first, second) = lines.get();
    let file = "sim/explore/src/tests/places.rs";
    let expected = [
        format!("profiler: first ({file}:{first})"),
        format!("profiler: second ({file}:{second})"),
    ];
    assert_eq!(found, expected);
    assert_eq!(leaves(&|setup| load(setup, true)), ["profiler: first", "profiler: second"]);
}

/// A guard that is dropped is no call in the source.
#[test]
fn the_end_of_a_guard_is_no_place_of_its_own() {
    let lines = Cell::new(0);
    let load: &super::Load<'_> = &|setup| {
        let lock = setup.lock("lock");
        let lines = &lines;
        setup.thread("only", move |me| {
            lines.set(line!() + 1);
            drop(me.lock(lock));
            let index = me.index();
            me.kernel.change_activity(index, |activity| {
                let place = activity.place.unwrap();
                assert_eq!((place.file(), place.line()), (file!(), lines.get()));
            });
        });
    };
    assert!(search(load, &Budget::exhaustive(10)).survives());
}
