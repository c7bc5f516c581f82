//! Tests of the ends of histories: their limits, and who waits for whom when no thread can run.

use super::*;
use crate::deadlock::verdict;
use crate::tests::kernels::MAIN;
use crate::{Explorer, LastPlace, ThreadEnd, ThreadWaits, WaitedFor};

/// Executes an interleaving with this number of turns at most, before all threads get turns round-robin.
fn limited(load: &super::Load<'_>, turns: u64) -> Ending {
    let process = nothing();
    let mut explorer = Explorer::new(&process).unwrap();
    let limits = Limits { turns, ..Limits::default() };
    explorer.run(load, &mut Random::new(1), limits, HistoryDetail::Events)
}

#[test]
fn a_history_exceeds_its_limit_with_the_turn_behind_it() {
    let load: &super::Load<'_> = &|setup| {
        for _ in 0..2 {
            setup.thread("", |me| (0..4).for_each(|_| me.point()));
        }
    };
    let turns = limited(load, 1_000).turns;
    assert_eq!(turns, 10, "each thread begins, and goes on four times");
    for (limit, expected) in [(turns + 1, false), (turns, false), (turns - 1, true), (6, true)] {
        let ending = limited(load, limit);
        assert_eq!(
            (ending.turns, ending.in_turn, ending.verdict),
            (turns, expected, None),
            "{limit}"
        );
    }
}

#[test]
fn beyond_the_limit_threads_have_turns_one_after_the_other() {
    let load: &super::Load<'_> = &|setup| {
        for _ in 0..3 {
            setup.thread("", |me| {
                while !me.is_over() {
                    me.point();
                }
            });
        }
    };
    let ending = limited(load, 10);
    assert_eq!(ending.verdict, Some(Verdict::LiveLock));
    let turns: Vec<_> = ending.history.unwrap().turns.iter().map(|turn| turn.thread.0).collect();
    assert_eq!(turns.len(), 20);
    let expected: Vec<_> = (1..=10).map(|turn| (turns[9] + turn) % 3).collect();
    assert_eq!(turns[10..], expected);
}

type Change<'c> = &'c dyn Fn(&mut State);

/// Asserts the verdict when no thread can run, and if it stays the same after the end of the program: then only waits
/// for each other count, and those for threads that have ended.
fn assert_verdicts(cases: &[(&str, Change<'_>, Option<Verdict>, bool)]) {
    let (build, id) = (build(), coroutine());
    let kernel = kernel(&build);
    for (case, change, expected, stays) in cases {
        begin(&kernel, id);
        change(&mut kernel.state.borrow_mut());
        assert_eq!(verdict(&kernel, false), *expected, "{case}");
        let later = expected.clone().filter(|_| *stays);
        assert_eq!(verdict(&kernel, true), later, "{case}");
    }
}

const fn index(thread: usize) -> ThreadIndex {
    ThreadIndex(thread as u32)
}

/// Puts the thread of the program into code of the profiler, in which it waits.
fn main_waits(state: &mut State, waiting: Waiting) {
    only(state, &[MAIN]);
    state.threads[MAIN].activities = vec![state.threads[ONE].activities[0]];
    wait(state, MAIN, waiting, None);
}

#[test]
fn an_event_that_no_thread_can_set_is_lost_if_it_matters() {
    assert_verdicts(&[
        ("all have ended", &|state| only(state, &[]), None, true),
        (
            "a thread of the profiler may wait forever",
            &|state| {
                only(state, &[ONE]);
                wait(state, ONE, Waiting::Event(0), None);
            },
            None,
            true,
        ),
        (
            "unless another one waits for it",
            &|state| {
                only(state, &[ONE, TWO]);
                wait(state, ONE, Waiting::Event(0), None);
                wait(state, TWO, Waiting::Join(index(ONE)), None);
            },
            Some(Verdict::LostWakeUp(index(ONE))),
            false,
        ),
        (
            "a thread of the program may not",
            &|state| main_waits(state, Waiting::Event(0)),
            Some(Verdict::LostWakeUp(index(MAIN))),
            false,
        ),
        (
            "a thread of the program is left",
            &|state| main_waits(state, Waiting::Time),
            Some(Verdict::Deadlock(Vec::new())),
            false,
        ),
    ]);
}

#[test]
fn waits_for_each_other_or_for_what_has_ended_are_a_deadlock() {
    let edge = |waits: usize, why: BlockReason, for_whom: usize| Edge {
        waits: index(waits),
        why,
        for_whom: index(for_whom),
    };
    let lock = BlockReason::Lock(LockName::Profiler(0));
    let owned = |state: &mut State, by: usize| {
        state.locks[0].owner = Some(index(by));
        wait(state, ONE, Waiting::Lock(0), None);
    };
    let deadlock = |edges: &[Edge]| Some(Verdict::Deadlock(edges.to_vec()));
    let rule = ProfilerRule::ResumeForgotten;
    assert_verdicts(&[
        (
            "an owner that has ended",
            &|state| {
                only(state, &[ONE]);
                owned(state, THREE);
            },
            deadlock(&[edge(ONE, lock, THREE)]),
            true,
        ),
        (
            "an owner that waits for nothing",
            &|state| {
                only(state, &[ONE, THREE]);
                owned(state, THREE);
                wait(state, THREE, Waiting::Time, None);
            },
            deadlock(&[edge(ONE, lock, THREE)]),
            false,
        ),
        (
            "a suspender that has ended",
            &|state| {
                only(state, &[ONE]);
                state.threads[ONE].suspended_by = vec![index(TWO)];
            },
            Some(Verdict::Broken { by: index(TWO), rule }),
            true,
        ),
        (
            "a cycle beside another wait",
            &|state| {
                owned(state, TWO);
                wait(state, TWO, Waiting::Join(index(ONE)), None);
                wait(state, THREE, Waiting::Join(index(TWO)), None);
            },
            deadlock(&[edge(ONE, lock, TWO), edge(TWO, BlockReason::Join, ONE)]),
            true,
        ),
        (
            "a timed wait is no part of a cycle",
            &|state| {
                only(state, &[ONE, TWO]);
                state.locks[0].owner = Some(index(TWO));
                wait(state, ONE, Waiting::Lock(0), Some(500));
                wait(state, TWO, Waiting::Join(index(ONE)), None);
            },
            deadlock(&[edge(TWO, BlockReason::Join, ONE)]),
            false,
        ),
    ]);
}

#[test]
fn a_setup_counts_its_threads() {
    let mut setup = Setup::default();
    setup.thread("", |_| {});
    assert_eq!(format!("{setup:?}"), "Setup { threads: 1, .. }");
}

#[test]
fn an_ending_says_where_each_thread_was() {
    let load: &super::Load<'_> = &|setup| {
        let (never, once) = (setup.event(), setup.event());
        setup.thread("sampler", move |me| me.wait_for(never));
        setup.thread("worker", move |me| {
            me.wait_for(once);
            me.wait_for(never);
        });
        setup.thread("starter", move |me| {
            me.sleep(10);
            me.set(once);
        });
        setup.thread("idle", |_| {});
    };
    let ends = limited(load, 1_000).threads;
    let at: Vec<_> = ends.iter().map(|end| end.at).collect();
    let never = LastPlace::Waits(WaitedFor::Event(0));
    assert_eq!(at, [never, never, LastPlace::Ended, LastPlace::Ended]);
    let waits: Vec<_> = ends.iter().map(|end| (end.waits, end.went_on)).collect();
    assert_eq!(waits, [(1, 0), (2, 1), (1, 1), (0, 0)]);
    let stuck = ends.iter().map(ThreadEnd::is_stuck_at_once);
    assert_eq!(stuck.collect::<Vec<_>>(), [true, false, false, false]);
}

/// Searches side by side know the same of threads that wait for ever as one search, and a failure has nothing of it.
#[test]
fn a_report_counts_the_threads_that_are_left_waiting() {
    let load: &super::Load<'_> = &|setup| {
        let (never, maybe) = (setup.event(), setup.event());
        setup.thread("sampler", move |me| me.wait_for(never));
        setup.thread("worker", move |me| me.wait_for(maybe));
        setup.thread("starter", move |me| {
            me.reset(maybe);
            me.point();
            me.set(maybe);
            me.reset(maybe);
        });
    };
    let of =
        |first, schedules| super::search(load, &Budget { first, ..Budget::random(1, schedules) });
    let whole = of(0, 60);
    let waits: Vec<_> =
        whole.waiting.iter().map(|it| (it.thread, it.what, it.interleavings)).collect();
    let [sampler, (worker, what, some)] = waits[..] else { panic!("{waits:?}") };
    assert_eq!(sampler, (index(0), WaitedFor::Event(0), 60));
    assert_eq!((worker, what), (index(1), WaitedFor::Event(1)));
    assert!((1..60).contains(&some), "{some}");
    assert_eq!(whole.threads[0], ThreadWaits { waited: 60, stuck: 60 });
    // An event that was set when a wait for it began, and reset before the thread ran on, has not blocked it then.
    assert!((1..=some).contains(&whole.threads[1].stuck), "{:?}", whole.threads[1]);
    assert_eq!(whole.stuck_at_once().collect::<Vec<_>>(), [index(0)]);
    assert_eq!(of(0, 20).and(of(20, 40)), whole);
    let words = whole.to_string();
    let line = format!("\nat the end of {some} thread 1 still waits for event 1, as in clr1:");
    assert!(words.contains(&line), "{words}");
}
