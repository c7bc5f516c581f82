//! Tests that the same seed gives the same interleavings, on every system and independent of earlier
//! ones.

use super::*;
use crate::Explorer;
use clr_machine::Fnv1a;
use std::fmt::Write as _;

/// Creates a process with threads that allocate and trigger GCs, a sampler that walks with the
/// runtime, one that suspends threads itself, and an exporter.
fn process() -> TestedProcess {
    let runtime = |kind| Statement::Runtime(RuntimeCall { kind, target: None });
    let new = runtime(RuntimeCallKind::New);
    let collect = runtime(RuntimeCallKind::Collect);
    executing(&[
        ("Main", vec![Statement::Work(5), new.clone(), Statement::Work(5), collect]),
        ("Other", vec![new.clone(), Statement::Work(9), new]),
    ])
}

fn profiler(setup: &mut Setup<'_>) {
    setup.hide_places();
    let (names, stacks) = (setup.lock("names"), setup.lock("stacks"));
    let full = setup.event();
    setup.on(CallbackKind::ObjectAllocated, move |me| drop(me.lock(names)));
    setup.on(CallbackKind::GarbageCollectionStarted, move |me| me.set(full));
    setup.thread("sampler", move |me| {
        for round in 0..3 {
            me.sleep(100);
            let Some(target) = me.target(ThreadIndex(round % 2)) else { continue };
            if round == 2 {
                if target.suspend().is_ok() {
                    let _ = target.context();
                    let _ = target.resume();
                }
                continue;
            }
            let _stacks = me.lock(stacks);
            let mut callback = |_: &mut SnapshotFrame<'_>| HResult::OK;
            let flags = SnapshotFlags::DEFAULT;
            let _ = me
                .info()
                .do_stack_snapshot(&SnapshotRequest::of(target.id(), flags), Some(&mut callback));
        }
    });
    setup.thread("exporter", move |me| {
        if me.wait_at_most(full, 1_000) {
            let _stacks = me.lock(stacks);
            let _ = me.try_acquire(names, 5).then(|| me.unlock(names));
            me.allocate();
        }
    });
}

const STRATEGIES: [Strategy; 5] = [
    Strategy::Random,
    Strategy::Pct { depth: 3 },
    Strategy::Guided,
    Strategy::Exhaustive { preemptions: None },
    Strategy::Exhaustive { preemptions: Some(2) },
];

/// Executes the interleavings with these numbers, recording all events.
fn histories(
    explorer: &mut Explorer<'_>,
    strategy: Strategy,
    numbers: core::ops::Range<u64>,
) -> Vec<Ending> {
    let (limits, detail) = (Limits::default(), HistoryDetail::Statuses);
    histories_of(explorer, profiler, strategy, numbers, (limits, detail))
}

/// Executes the interleavings of a profiler with these numbers.
fn histories_of(
    explorer: &mut Explorer<'_>,
    load: fn(&mut Setup<'_>),
    strategy: Strategy,
    numbers: core::ops::Range<u64>,
    (limits, detail): (Limits, HistoryDetail),
) -> Vec<Ending> {
    let budget = Budget::random(42, 0).by(strategy);
    let mut search = explorer.prepare(&load, &budget);
    let mut run = |number| {
        assert!(search.begin(number));
        let ending = explorer.run(&load, &mut *search, limits, detail);
        search.end(&ending);
        ending
    };
    numbers.map(&mut run).collect()
}

#[test]
fn the_same_seed_makes_the_same_histories() {
    let process = process();
    for strategy in STRATEGIES {
        let mut explorer = Explorer::new(&process).unwrap();
        let once = histories(&mut explorer, strategy, 0..60);
        // In the same arena, which has executed those, and in a new one.
        assert!(once == histories(&mut explorer, strategy, 0..60), "{strategy:?}");
        let mut explorer = Explorer::new(&process).unwrap();
        assert!(once == histories(&mut explorer, strategy, 0..60), "{strategy:?}");
        let turns: u64 = once.iter().map(|ending| ending.turns).sum();
        assert!(turns > 60 * 20, "{turns}");
    }
}

/// Starts threads, and sends signals to the program's threads, to threads of the profiler in the middle of waits, and to the
/// thread itself.
fn signaller(setup: &mut Setup<'_>) {
    profiler(setup);
    let names = setup.lock_of("table", LockKind::Reentrant);
    setup.on_signal(move |me| drop(me.lock(names)));
    setup.thread("signaller", move |me| {
        for number in 0..4 {
            let started = me.spawn("started", move |me| {
                let _names = me.lock(names);
                me.sleep(10);
                me.point();
            });
            me.signal(ThreadIndex(number));
            me.signal(started);
            me.signal(me.index());
            me.join(started);
        }
    });
}

/// A thread goes on without a switch only in interleavings that are not recorded.
#[test]
fn a_recorded_history_is_the_same_as_one_that_is_not() {
    let new = Statement::Runtime(RuntimeCall { kind: RuntimeCallKind::New, target: None });
    let body = vec![Statement::Work(9), new, Statement::Work(9)];
    for generation in [Generation::Net8Unix, Generation::CoreClr31Windows] {
        let process = executing_on(generation, &[("Main", body.clone()), ("Other", body.clone())]);
        let mut explorer = Explorer::new(&process).unwrap();
        for strategy in STRATEGIES {
            let limits = Limits { turns: 60, ..Limits::default() };
            let mut of =
                |detail| histories_of(&mut explorer, signaller, strategy, 0..100, (limits, detail));
            let recorded = of(HistoryDetail::Events);
            for (number, ending) in of(HistoryDetail::Nothing).iter().enumerate() {
                assert!(ending.is_like(&recorded[number]), "{strategy:?}, {number}: {ending:?}");
            }
            let longer = recorded.iter().filter(|ending| ending.in_turn).count();
            let signals =
                recorded.iter().flat_map(|ending| &ending.history.as_ref().unwrap().turns);
            let signals = signals.filter(|turn| turn.events.contains(&TurnEvent::Signal)).count();
            let learns = !strategy.can_be_shared();
            assert!(longer > 0 || learns, "{generation}, {strategy:?}: {longer}");
            assert!(signals > 0 || !generation.is_unix(), "{generation}, {strategy:?}: {signals}");
        }
    }
}

#[test]
fn a_history_depends_on_its_number_alone() {
    let process = process();
    for strategy in STRATEGIES.into_iter().filter(|strategy| strategy.can_be_shared()) {
        let all = histories(&mut Explorer::new(&process).unwrap(), strategy, 0..24);
        // As if three machines had shared the interleavings, the last part first.
        for part in [16..24, 8..16, 0..8] {
            let mut explorer = Explorer::new(&process).unwrap();
            let place = part.start as usize;
            assert!(
                all[place..place + 8] == histories(&mut explorer, strategy, part),
                "{strategy:?}"
            );
        }
    }
}

/// Returns the FNV-1a hash of the texts of all events in interleavings.
fn digest(endings: &[Ending]) -> u64 {
    let mut hash = Fnv1a::default();
    let mut words = |words: String| hash.write(format!("{words}\n").as_bytes());
    for ending in endings {
        words(ending.schedule.to_string());
        words(format!("{} {}", ending.turns, ending.verdict.is_some()));
        for turn in ending.history.iter().flat_map(|history| &history.turns) {
            words(format!("{} {}", turn.at, turn.thread.0));
            turn.events.iter().for_each(|event| words(event.to_string()));
            for status in &turn.statuses {
                status.stack.iter().for_each(|function| words(function.clone()));
                status.holds.iter().for_each(|lock| words(lock.to_string()));
            }
        }
    }
    hash.finish()
}

/// An interleaving is the same on every system, with words of each size. The digests change if turns or
/// choices change: then schedule strings of earlier releases have another meaning, and their
/// version must change.
#[test]
fn histories_are_the_same_on_every_system() {
    if !clr_coroutine::SUPPORTED {
        return;
    }
    let process = process();
    let mut reported = String::new();
    for strategy in STRATEGIES {
        let endings = histories(&mut Explorer::new(&process).unwrap(), strategy, 0..50);
        let turns: u64 = endings.iter().map(|ending| ending.turns).sum();
        let failed = endings.iter().filter(|ending| ending.verdict.is_some()).count();
        writeln!(
            reported,
            "{strategy:?}: {:016x}, {turns} turns, {failed} failed",
            digest(&endings)
        )
        .unwrap();
    }
    insta::assert_snapshot!(reported);
}
