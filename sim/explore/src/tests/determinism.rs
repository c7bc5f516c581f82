//! Tests that the same seed gives the same histories, on every system and independent of earlier
//! ones.

use super::executing;
use crate::ThreadIndex;
use crate::{Budget, Ending, Explorer, HistoryDetail, Limits, Setup, Strategy, TestedProcess};
use clr_codegen::{RuntimeCall, RuntimeCallKind, Statement};
use clr_runtime::profiling::CallbackKind;
use clr_walker::profiling::{
    HResult, ProfilerInfo as _, SnapshotFlags, SnapshotFrame, TargetThread,
};
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
            let _ =
                me.info().do_stack_snapshot(target.id(), Some(&mut callback), flags, 0, None, 0);
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

/// Executes the histories with these numbers, recording all events.
fn histories(
    explorer: &mut Explorer<'_>,
    strategy: Strategy,
    numbers: core::ops::Range<u64>,
) -> Vec<Ending> {
    let budget = Budget::random(42, 0).by(strategy);
    let mut search = explorer.prepare(&profiler, &budget);
    let mut run = |number| {
        assert!(search.begin(number));
        let ending =
            explorer.run(&profiler, &mut *search, Limits::default(), HistoryDetail::Statuses);
        search.end(&ending);
        ending
    };
    numbers.map(&mut run).collect()
}

pub(super) fn same_twice() {
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

#[test]
fn the_same_seed_makes_the_same_histories() {
    same_twice();
}

#[test]
fn a_history_depends_on_its_number_alone() {
    let process = process();
    for strategy in STRATEGIES.into_iter().filter(|strategy| strategy.can_be_shared()) {
        let all = histories(&mut Explorer::new(&process).unwrap(), strategy, 0..24);
        // As if three machines had shared the histories, the last part first.
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

/// Returns the FNV-1a hash of the texts of all events in histories.
fn digest(endings: &[Ending]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let mut words = |words: String| words.bytes().chain([b'\n']).for_each(&mut add);
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
    hash
}

/// A history is the same on every system, with words of each size. The digests change if turns or
/// choices change: then schedule strings of earlier releases have another meaning, and their
/// version must change.
#[test]
fn histories_are_the_same_on_every_system() {
    if !clr_coroutine::SUPPORTED {
        return;
    }
    let process = process();
    let mut told = String::new();
    for strategy in STRATEGIES {
        let endings = histories(&mut Explorer::new(&process).unwrap(), strategy, 0..50);
        let turns: u64 = endings.iter().map(|ending| ending.turns).sum();
        let failed = endings.iter().filter(|ending| ending.verdict.is_some()).count();
        writeln!(told, "{strategy:?}: {:016x}, {turns} turns, {failed} failed", digest(&endings))
            .unwrap();
    }
    insta::assert_snapshot!(told);
}
