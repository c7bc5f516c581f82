//! Benchmark of schedules per second of one program: several threads repeatedly take two nested
//! locks and count. clr-sim and shuttle choose random schedules; clr-sim and loom enumerate all
//! schedules, also those of two programs more: threads that wait on a condition variable for one that notifies them, and
//! threads that count with a lock each, and with one for all. Every round runs all contenders, one after the other.
//!
//! ```console
//! $ cargo bench --manifest-path tests/benches/peers/Cargo.toml --bench schedules
//! ```

mod contender;
mod ours;
mod peers;
#[path = "../../shared/summary.rs"]
mod summary;

use contender::Contender;

/// What the threads of a program do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Each thread takes two nested locks, counts, and releases them.
    Nested,
    /// The first thread sets a flag, and notifies the others, which wait for it, and count.
    Notified,
    /// Each thread counts with a lock of its own, then with one that all share.
    Apart,
}

/// A program, given by its kind and its size.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Program {
    kind: Kind,
    threads: u32,
    /// Number of times that each thread takes the locks.
    rounds: u32,
}

impl Program {
    /// Returns the count at the end of each schedule.
    const fn total(self) -> u32 {
        match self.kind {
            Kind::Nested | Kind::Apart => self.threads * self.rounds,
            Kind::Notified => (self.threads - 1) * self.rounds,
        }
    }
}

/// Formats the program for a table.
impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            Kind::Nested => "two nested locks",
            Kind::Notified => "a condition variable",
            Kind::Apart => "a lock each, and one for all",
        };
        write!(f, "{kind}, {} × {}", self.threads, self.rounds)
    }
}

/// The program for random schedules.
const DRAWN: Program = Program { kind: Kind::Nested, threads: 3, rounds: 4 };
/// The programs for exhaustive search, small enough to enumerate all schedules with at most
/// [`PREEMPTIONS`] preemptions.
const WHOLE: [Program; 3] = [
    Program { kind: Kind::Nested, threads: 2, rounds: 2 },
    Program { kind: Kind::Notified, threads: 3, rounds: 1 },
    Program { kind: Kind::Apart, threads: 3, rounds: 1 },
];
const PREEMPTIONS: u32 = 2;

/// Maximum number of schedules in one sample.
const SCHEDULES: usize = 5000;
/// Number of exhaustive searches in one sample.
const REPEATS: u32 = 20;
const ROUNDS: usize = 31;

/// Ways of choosing schedules.
const RANDOM: &str = "random";
const EXHAUSTIVE: &str = "exhaustive, 2 preemptions";

fn main() {
    let rounds = if std::env::args().any(|it| it == "--bench") { ROUNDS } else { 1 };
    let mut contenders = vec![
        Contender::new("clr-sim", RANDOM, DRAWN, |n| ours::random(DRAWN, SCHEDULES, n)),
        Contender::new("shuttle 0.9", RANDOM, DRAWN, |n| peers::shuttle(DRAWN, SCHEDULES, n)),
        Contender::new("loom 0.7", "the first ones of all", DRAWN, |_| {
            peers::loom(DRAWN, None, Some(SCHEDULES))
        }),
    ];
    for whole in WHOLE {
        for (name, declares) in [("clr-sim", false), ("clr-sim, data declared", true)] {
            contenders.push(Contender::new(name, EXHAUSTIVE, whole, move |_| {
                (0..REPEATS).map(|_| ours::exhaustive(whole, PREEMPTIONS, declares)).sum()
            }));
        }
        contenders.push(Contender::new("loom 0.7", EXHAUSTIVE, whole, move |_| {
            (0..REPEATS).map(|_| peers::loom(whole, Some(PREEMPTIONS), None)).sum()
        }));
    }
    for round in 0..rounds {
        for contender in &mut contenders {
            contender.sample(round as u64);
        }
    }

    println!("medians of {rounds} interleaved rounds");
    println!("| contender | program, threads × rounds | schedules | in a sample | schedules/s |");
    println!("| --- | --- | --- | --: | --: |");
    for contender in &mut contenders {
        println!("{contender}");
    }
    let turns = ours::turns(DRAWN, SCHEDULES);
    let choices = peers::choices_of_shuttle(DRAWN, SCHEDULES);
    println!(
        "In a schedule of the first program, clr-sim has {turns:.1} turns and shuttle makes \
         {choices:.1} choices, on average. The contenders that enumerate all schedules do so {REPEATS} times in a \
         sample. One enumeration takes:"
    );
    for contender in contenders.iter().filter(|contender| contender.way == EXHAUSTIVE) {
        let Contender { name, program, schedules, .. } = contender;
        let milliseconds = contender.milliseconds() / f64::from(REPEATS);
        let schedules = schedules / REPEATS as usize;
        println!("- {program}, {name}: {schedules} schedules in {milliseconds:.2} ms");
    }
}
