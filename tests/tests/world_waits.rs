//! What threads of worlds wait for is told before they do, and without a profiler no wait is for ever.

use clr_sim::runtime::{Lock, Wait};
use clr_sim::strategy::{Choices as _, Seeded, world_program};
use clr_sim::world::{Event, Waiting};
use clr_tests::cases;
use std::collections::BTreeSet;

/// Steps threads at random.
#[test]
fn waits_are_told_before_they_happen() {
    let mut seen = BTreeSet::new();
    let mut ended = 0;
    for seed in 0..u64::from(cases(300)) {
        let choices = &mut Seeded::new(seed);
        let program = world_program(choices);
        let Ok(build) = program.build() else { continue };
        let mut world = program.world(&build).unwrap();
        let count = world.thread_count() as u32;
        let mut waiting = vec![Waiting::default(); count as usize];
        let mut told = vec![false; count as usize];
        for step in 0..20_000_u32 {
            let thread = choices.below(count) as usize;
            let wait = world.waits_for(thread);
            let others = world.others(thread);
            assert_eq!(wait.is_some(), !others.is_empty(), "seed {seed}, {step}: {wait:?}");
            let Ok(event) = world.step(thread) else { break };
            // What ends by itself waits once, and is not told.
            let waits = match waiting.get_mut(thread) {
                Some(waiting) => waiting.is_for_others(event),
                None => false,
            };
            if let Some(wait) = wait {
                assert_eq!(event, Event::Waits, "seed {seed}, {step}: {wait:?}");
                seen.insert(wait);
            } else {
                assert!(!waits || told[thread], "seed {seed}, {step}: nobody said so");
            }
            told[thread] = wait.is_some();
            if (0..count as usize).all(|thread| matches!(world.step(thread), Ok(Event::Ended))) {
                ended += 1;
                break;
            }
        }
    }
    println!("{seen:?}, {ended} ended");
}
