//! Whole stacks of programs that run through the runtime, by each policy: nothing is in them that is not
//! there, and what they claim is so.

use clr_sim::strategy::{Seeded, world_program};
use clr_tests::cases;
use clr_tests::mixed::{Examined, Failure, examine};

/// How many walks a plain run makes.
const WALKS: u32 = 100_000;
/// The most of one program.
const WALKS_OF_PROGRAM: u64 = 400;

/// Another number gives other programs.
fn first_seed() -> u64 {
    let seed = std::env::var("CLR_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.unwrap_or(0_u64).wrapping_mul(1 << 40)
}

#[test]
fn walks_are_as_complete_as_they_claim() {
    let wanted = u64::from(cases(WALKS));
    let mut sum = Examined::default();
    for seed in first_seed().. {
        if sum.walks >= wanted {
            break;
        }
        let program = world_program(&mut Seeded::new(seed));
        match examine(&program, seed, WALKS_OF_PROGRAM, |_| ()) {
            Ok(examined) => sum.add(&examined),
            // A few are too large for the formats.
            Err(Failure::Build(_)) => {}
            Err(failure) => panic!("seed {seed}, after {} walks: {failure}", sum.walks),
        }
    }
    println!("{sum:#?}");
}
