//! Tests that worlds report waits before they happen, and that without a profiler no thread waits
//! forever.

use super::*;

/// Steps threads at random until all have ended. In every other world, waiting threads are not
/// stepped: stepping them must not be the reason why others can continue.
#[test]
fn waits_are_announced_before_they_start() {
    let (mut waits, mut ends, mut limits) = (0_u32, 0_u32, 0_u32);
    let programs = cases(300);
    for seed in 0..u64::from(programs) {
        let choices = &mut Seeded::new(seed);
        let program = world_program(choices);
        let Ok(build) = program.build() else { continue };
        let mut world = program.world(&build).unwrap();
        let count = world.thread_count();
        // True if the thread has ended; true if it has waited for something that ends by itself.
        let mut threads = vec![(false, false); count];
        for step in 0..60_000_u32 {
            let at = || format!("seed {seed}, step {step}");
            let open: Vec<_> = (0..count).filter(|thread| !threads[*thread].0).collect();
            // An exception that is not caught ends the process.
            if open.is_empty() || (0..count).any(|thread| world.is_unhandled(thread)) {
                ends += 1;
                break;
            }
            assert!(
                open.iter().any(|thread| world.waits_for(*thread).is_none()),
                "{}: all threads wait, {:?}",
                at(),
                open.iter().map(|t| (t, world.waits_for(*t), world.others(*t))).collect::<Vec<_>>()
            );
            let thread = open[choices.below(open.len() as u32) as usize];
            let wait = world.waits_for(thread);
            let others = world.others(thread);
            assert_eq!(wait.is_some(), !others.is_empty(), "{}: {wait:?}", at());
            if wait.is_some() && seed % 2 == 0 {
                continue;
            }
            let Ok(event) = world.step(thread) else { break };
            let (ended, slept) = &mut threads[thread];
            if let Some(wait) = wait {
                assert_eq!(event, StepEvent::Waits, "{}: {wait:?}", at());
                assert_eq!(world.waits_for(thread), Some(wait), "{}", at());
                waits += 1;
                continue;
            }
            // A wait that ends by itself happens once, and is not reported.
            assert!(!(event == StepEvent::Waits && *slept), "{}: the wait was not reported", at());
            *slept = event == StepEvent::Waits;
            *ended = event == StepEvent::Ended;
            limits += u32::from(step == 59_999);
        }
    }
    println!("{waits} waits; {ends} of {programs} ended, {limits} reached the limit");
    assert!(waits > 10 * programs && 10 * ends > 8 * programs, "{waits} waits, {ends} ends");
}
