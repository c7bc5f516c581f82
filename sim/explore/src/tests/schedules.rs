//! Tests of schedule strings.

use super::*;
use crate::Explorer;
use crate::schedule_string::{InjectedFault, ScheduleString, ScheduleStringError};
use clr_generate::Choices;

fn drawn(seed: u64) -> ScheduleString {
    let mut seeded = Seeded::new(seed);
    let mut turn = 0;
    let count = seeded.below(12);
    let turns = (0..count).map(|place| {
        let wide = seeded.below(10) == 0;
        let gap = seeded.below(if wide { u32::MAX } else { 40 });
        turn += u64::from(gap) + u64::from(place > 0);
        let threads = if seeded.below(3) == 0 { 26 * 27 } else { 4 };
        (turn, ThreadIndex(seeded.below(threads)))
    });
    let turns = turns.collect();
    let faults = (0..seeded.below(3)).map(|_| InjectedFault {
        thread: ThreadIndex(seeded.below(26 * 27)),
        call: seeded.below(300),
        result: HResult(seeded.below(u32::MAX)),
        frames: seeded.below(2),
    });
    ScheduleString { turns, faults: faults.collect() }
}

#[test]
fn every_schedule_string_is_parsed_back() {
    for seed in 0..5_000 {
        let schedule = drawn(seed);
        let string = schedule.to_string();
        assert_eq!(string.parse(), Ok(schedule), "{string}");
    }
}

#[test]
fn schedule_strings_have_this_form() {
    let of = |turns: &[(u64, u32)]| {
        let turns = turns.iter().map(|(turn, thread)| (*turn, ThreadIndex(*thread)));
        ScheduleString { turns: turns.collect(), faults: Vec::new() }.to_string()
    };
    assert_eq!(of(&[]), "clr1:");
    assert_eq!(of(&[(14, 1), (17, 0)]), "clr1:14b3a");
    assert_eq!(of(&[(0, 25), (1, 26), (9, 27), (10, 701)]), "clr1:0z1aa8ab1zz");
}

#[test]
fn each_wrong_string_has_an_error_with_its_position() {
    use ScheduleStringError::{Failure, Thread, Turns, Version};
    for (text, error) in [
        ("clr1:+", Failure(6)),
        ("clr1:1a+b2.80131360.0+b", Failure(22)),
        ("clr1:1a+b2.80131360", Failure(8)),
        ("clr1:1a+b+2.80131360.0", Failure(8)),
        ("clr1:1a+2.80131360.0", Failure(8)),
        ("", Version),
        ("clr1", Version),
        ("clr2:1a", Version),
        (" clr1:1a", Version),
        ("clr1:a", Turns(5)),
        ("clr1:1a2", Thread(8)),
        ("clr1:1a2B", Thread(8)),
        ("clr1:1a0b", Turns(7)),
        ("clr1:1a-1b", Turns(7)),
        ("clr1:1aaa", Thread(6)),
        ("clr1:7é", Thread(6)),
        ("clr1:99999999999999999999a", Turns(5)),
        ("clr1:18446744073709551615a1b", Turns(26)),
    ] {
        assert_eq!(text.parse::<ScheduleString>(), Err(error), "{text}");
    }
}

fn quarrel(setup: &mut Setup<'_>) {
    let (first, second) = (setup.lock("first"), setup.lock("second"));
    let done = setup.event();
    setup.thread("a", move |me| {
        let _first = me.lock(first);
        me.sleep(3);
        let _second = me.lock(second);
        me.set(done);
    });
    setup.thread("b", move |me| {
        let _second = me.lock(second);
        if me.try_acquire(first, 5) {
            me.unlock(first);
        }
    });
    setup.thread("c", move |me| {
        let target = me.target(ThreadIndex(0)).unwrap();
        clr_walker::profiling::TargetThread::suspend(&target).unwrap();
        me.point();
        clr_walker::profiling::TargetThread::resume(&target).unwrap();
        me.wait_at_most(done, 50);
    });
}

/// An interleaving that is replayed from its string has the same events.
#[test]
fn histories_come_back_from_their_strings() {
    let collect = RuntimeCall { kind: RuntimeCallKind::Collect, target: None };
    let busy = vec![Statement::Runtime(collect), Statement::Work(9)];
    for process in [nothing(), executing(&[("Main", busy.clone()), ("Other", busy)])] {
        let mut explorer = Explorer::new(&process).unwrap();
        let mut strings = std::collections::BTreeSet::new();
        for number in 0..60 {
            let mut random = Random::new(11);
            assert!(random.begin(number));
            let limits = Limits::default();
            let ending = explorer.run(&quarrel, &mut random, limits, HistoryDetail::Statuses);
            let string = ending.schedule.to_string();
            let schedule: ScheduleString = string.parse().unwrap();
            let again = explorer.replay(&quarrel, &schedule, limits, HistoryDetail::Statuses);
            assert_eq!(again.as_ref(), Some(&ending), "{string}");
            strings.insert(string);
        }
        assert!(strings.len() > 30, "{strings:?}");
    }
}

#[test]
fn failures_that_no_string_repeats_are_reported() {
    let budget = Budget::random(3, 100);
    let failure = search(&quarrel, &budget).failure.unwrap();
    assert!(failure.repeats, "{failure:?}");
    // The profiler's behavior depends on the number of times it was loaded.
    let loads = Cell::new(0);
    let fickle: &Load<'_> = &|setup| {
        loads.set(loads.get() + 1);
        let fails = loads.get() == 5;
        setup.thread("", move |me| {
            if fails {
                me.fail("the fifth");
            }
        });
    };
    let failure = search(fickle, &budget).failure.unwrap();
    assert!(!failure.repeats, "{failure:?}");
    // The set of threads may depend on it, too.
    let loads = Cell::new(0);
    let few: &Load<'_> = &|setup| {
        loads.set(loads.get() + 1);
        if loads.get() == 1 {
            setup.thread("", |_| {});
            setup.thread("", |me| me.fail("the first"));
        }
    };
    let failure = search(few, &budget).failure.unwrap();
    assert!(!failure.repeats, "{failure:?}");
}

#[test]
fn the_string_of_another_history_is_refused() {
    let process = nothing();
    let mut explorer = Explorer::new(&process).unwrap();
    for string in ["clr1:0z", "clr1:5000a"] {
        let schedule = string.parse().unwrap();
        let again = explorer.replay(&quarrel, &schedule, Limits::default(), HistoryDetail::Nothing);
        assert_eq!(again, None, "{string}");
    }
}

#[test]
fn a_schedule_is_shortened_by_choices() {
    let schedule: ScheduleString = "clr1:1b2c3a".parse().unwrap();
    assert_eq!((schedule.len(), schedule.is_empty()), (3, false));
    assert!(ScheduleString::default().is_empty());
    // Later choices keep their turns.
    let without = |place| schedule.without(place).to_string();
    assert_eq!([0, 1, 2].map(without), ["clr1:3c3a", "clr1:1b5a", "clr1:1b2c"]);
    assert_eq!((schedule.without(3), schedule.without(9)), (schedule.clone(), schedule.clone()));
    let first = |count| schedule.first(count).to_string();
    assert_eq!([0, 1, 3, 9].map(first), ["clr1:", "clr1:1b", "clr1:1b2c3a", "clr1:1b2c3a"]);
}
