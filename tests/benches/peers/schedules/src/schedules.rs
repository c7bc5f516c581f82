//! Benchmark of schedules per second of one program: several threads repeatedly take two nested
//! locks and count. clr-sim and shuttle choose random schedules; clr-sim and loom enumerate all
//! schedules. Every round runs all contenders, one after the other.
//!
//! ```console
//! $ cargo bench --manifest-path tests/benches/peers/Cargo.toml --bench schedules
//! ```

mod contender;
mod ours;
mod peers;
#[path = "../../../shared/summary.rs"]
mod summary;

use contender::Contender;

/// A program, given by its size.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Program {
    threads: u32,
    /// Number of times that each thread takes the locks.
    rounds: u32,
}

impl Program {
    /// Returns the count at the end of each schedule.
    const fn total(self) -> u32 {
        self.threads * self.rounds
    }
}

/// The program for random schedules.
const DRAWN: Program = Program { threads: 3, rounds: 4 };
/// The program for exhaustive search, small enough to enumerate all schedules with at most
/// [`PREEMPTIONS`] preemptions.
const WHOLE: Program = Program { threads: 2, rounds: 2 };
const PREEMPTIONS: u32 = 2;

/// Maximum number of schedules in one sample.
const SCHEDULES: usize = 1000;
/// Number of exhaustive searches in one sample.
const REPEATS: u32 = 20;
const ROUNDS: usize = 31;

/// Ways of choosing schedules.
const RANDOM: &str = "random";
const EXHAUSTIVE: &str = "exhaustive, 2 preemptions";

fn main() {
    let rounds = if std::env::args().any(|it| it == "--bench") { ROUNDS } else { 1 };
    let mut contenders = [
        Contender::new("clr-sim", RANDOM, DRAWN, |n| ours::random(DRAWN, SCHEDULES, n)),
        Contender::new("shuttle 0.9", RANDOM, DRAWN, |n| peers::shuttle(DRAWN, SCHEDULES, n)),
        Contender::new("loom 0.7", "the first ones of all", DRAWN, |_| {
            peers::loom(DRAWN, None, Some(SCHEDULES))
        }),
        Contender::new("clr-sim", EXHAUSTIVE, WHOLE, |_| {
            (0..REPEATS).map(|_| ours::exhaustive(WHOLE, PREEMPTIONS)).sum()
        }),
        Contender::new("loom 0.7", EXHAUSTIVE, WHOLE, |_| {
            (0..REPEATS).map(|_| peers::loom(WHOLE, Some(PREEMPTIONS), None)).sum()
        }),
    ];
    for round in 0..rounds {
        for contender in &mut contenders {
            contender.sample(round as u64);
        }
    }

    println!("medians of {rounds} interleaved rounds");
    println!("| contender | threads × locks × rounds | schedules | in a sample | schedules/s |");
    println!("| --- | --- | --- | --: | --: |");
    for contender in &mut contenders {
        println!("{contender}");
    }
    let turns = ours::turns(DRAWN, SCHEDULES);
    let choices = peers::choices_of_shuttle(DRAWN, SCHEDULES);
    println!(
        "In a schedule of the first program, clr-sim has {turns:.1} turns and shuttle makes \
         {choices:.1} choices, on average. The contenders that enumerate all schedules of the second one \
         do so {REPEATS} times in a sample. One enumeration takes:"
    );
    for contender in contenders.iter().filter(|contender| contender.way == EXHAUSTIVE) {
        println!("- {}: {:.2} ms", contender.name, contender.milliseconds() / f64::from(REPEATS));
    }
}
