//! Whole stacks of programs that run through the runtime, by each policy: they contain no invented
//! frames, their claims are true, and where frames are missing the reason is the true one.

use super::*;

/// Number of walks in a full run.
const WALKS: u32 = 100_000;
/// Maximum number of steps between two stops.
const STRIDE: u32 = 20;
/// Maximum number of walks of one program.
const WALKS_OF_PROGRAM: u64 = 400;
/// Number of walks in a full run that stops at every step.
const THOROUGH_WALKS: u32 = 50_000;
/// Number of walks in a full run by the second walker.
const SECOND_WALKS: u32 = 50_000;

/// Examines generated programs until `wanted` walks have been made.
fn campaign<W: Way>(wanted: u64, stride: u32, way: &mut W) -> Examined {
    let walks = if stride == 1 { 10 * WALKS_OF_PROGRAM } else { WALKS_OF_PROGRAM };
    let mut sum = Examined::default();
    for seed in first_seed().. {
        if sum.walks >= wanted {
            break;
        }
        let program = world_program(&mut Seeded::new(seed));
        let plan = Plan { seed, walks, stride, only: None };
        match examine(&program, plan, way, |_| ()) {
            Ok(examined) => sum.add(&examined),
            // A few programs are too large for the formats.
            Err(Failure::Build(_)) => {}
            Err(Failure::Walk(wrong)) => {
                let after = sum.walks;
                println!("{}", wrong.what);
                let small = shrink(*wrong, way);
                let text = Scenario::of_case(&small.case).map(|text| text.to_string());
                panic!("seed {seed}, after {after} walks: {}\n{text:?}", small.what);
            }
            Err(failure) => panic!("seed {seed}, after {} walks: {failure}", sum.walks),
        }
    }
    println!("{sum}");
    sum
}

#[test]
fn walks_are_as_complete_as_they_claim() {
    let sum = campaign(u64::from(cases(WALKS)), STRIDE, &mut First::default());
    assert!(sum.claims.len() > 30, "{sum}");
}

#[test]
fn walks_are_so_at_every_step() {
    campaign(u64::from(cases(THOROUGH_WALKS)), 1, &mut First::default());
}

#[test]
fn a_second_walker_is_held_to_the_same() {
    campaign(u64::from(cases(SECOND_WALKS)), STRIDE, &mut ReferenceWalker::default());
}
