//! Profilers that walk by each policy, while programs run through the runtime under random
//! schedules: no thread waits forever, and the process survives.

use super::*;
use clr_explore::{Budget, Explorer, Strategy};
use clr_runtime::profiling::Policy;
use clr_story::Hazard;
use clr_tests::scheduled::{Sampler, process};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Number of interleavings in a full run.
const HISTORIES: u32 = 4_000;
/// Number of interleavings per program and policy.
const OF_PROGRAM: u64 = 20;

const POLICIES: [Policy; 7] = [
    Policy::Unseeded,
    Policy::Seeded,
    Policy::RuntimeSuspended,
    Policy::Signal,
    Policy::SignalSnapshot,
    Policy::Synchronous,
    Policy::FramePointers,
];

#[test]
fn no_thread_waits_forever() {
    let wanted = u64::from(cases(HISTORIES));
    let (mut histories, mut turns, mut programs) = (0, 0, 0);
    let (mut unavoidable, mut asked) = (0, 0);
    let mut walks: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first_seed().. {
        if histories >= wanted {
            break;
        }
        let program = world_program(&mut Seeded::new(seed));
        // A few programs are too large for the formats.
        let Ok(process) = process(&program) else { continue };
        let Ok(mut explorer) = Explorer::new(&process) else { continue };
        programs += 1;
        for policy in POLICIES {
            let sampler = Sampler { policy, rounds: 3 };
            if !sampler.is_for(process.generation()) {
                continue;
            }
            let walked = Cell::new(0);
            let strategy = match seed % 3 {
                0 => Strategy::Random,
                1 => Strategy::Pct { depth: 3 },
                _ => Strategy::Guided,
            };
            let mut budget = Budget::random(seed, OF_PROGRAM).by(strategy);
            // Some programs allocate often, and each time a whole walk is made.
            budget.limits.turns = 1_000_000;
            while budget.schedules > 0 {
                let report =
                    explorer.search(&|setup| sampler.load(setup, &walked), &budget, |_| true);
                histories += report.schedules;
                turns += report.turns;
                budget.first += report.schedules;
                budget.schedules -= report.schedules;
                let Some(failure) = report.failure else { break };
                let hazard = Hazard::of(&failure.verdict, &failure.history);
                // The runtime itself looks up unwind data of frames in its helpers while it has the
                // target suspended. A profiler that calls DoStackSnapshot for another thread cannot
                // avoid this (H-11).
                if hazard == Some(Hazard::FunctionTables) {
                    unavoidable += 1;
                    continue;
                }
                // So can no handler that asks the runtime (H-28, H-31).
                let asks = policy == Policy::SignalSnapshot;
                if asks && matches!(hazard, Some(Hazard::AskedInHandler | Hazard::SignalHandler)) {
                    asked += 1;
                    continue;
                }
                let text = Scenario::of_world(&program);
                panic!(
                    "seed {seed}, {policy:?}, {}, {}: {:?}\n{text}",
                    program.generation, failure.schedule, failure.verdict
                );
            }
            *walks.entry(format!("{policy:?}")).or_default() += walked.get();
        }
    }
    println!("{unavoidable} deadlocks of the runtime itself (H-11)");
    println!("{asked} deadlocks of handlers that ask the runtime (H-28, H-31)");
    assert!(wanted < u64::from(HISTORIES) || asked > 0);
    println!("{histories} interleavings of {programs} programs, {turns} turns; walks: {walks:?}");
    assert!(walks.values().all(|count| *count > 0), "{walks:?}");
}
