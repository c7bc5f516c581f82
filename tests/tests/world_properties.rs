//! Programs that run through the runtime: whatever is called at any stop comes out as the model says.

use clr_sim::strategy::{Seeded, world_program};
use clr_tests::cases;
use clr_tests::world::{Examined, Failure, Plan, examine, shrink};

/// How many calls a plain run compares.
const CASES: u32 = 100_000;
/// The most of one program.
const CASES_OF_PROGRAM: u64 = 400;

/// Another number gives other cases.
fn seed() -> u64 {
    std::env::var("CLR_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

#[test]
fn snapshots_are_what_the_model_says() {
    let wanted = u64::from(cases(CASES));
    let first = seed().wrapping_mul(1 << 40);
    let mut sum = Examined::default();
    let mut programs = 0;
    let begin = std::time::Instant::now();
    while sum.cases < wanted {
        let seed = first.wrapping_add(programs);
        let program = world_program(&mut Seeded::new(seed));
        let plan = Plan { seed, cases: CASES_OF_PROGRAM, thorough: false };
        match examine(&program, plan, |_| ()) {
            Ok(examined) => sum.add(&examined),
            // A few are too large for the formats.
            Err(Failure::Build(_)) => {}
            Err(failure) => {
                println!("{seed}: {failure}");
                panic!("{}", shrink(&program, failure));
            }
        }
        programs += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{sum:#?}\n{programs} programs, {:.0} cases a second", sum.cases as f64 / seconds);
    assert!(sum.unsaid * 10 < sum.cases, "{} unsaid", sum.unsaid);
}
