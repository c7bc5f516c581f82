//! The seeds of the fuzz targets, run as tests.

use super::*;
use arbitrary::{Arbitrary as _, Unstructured};
use clr_explore::{Ending, Verdict};
use clr_generate::{SyntheticCall, WorldCase};
use clr_recording::vectors::fuzz::stack_word;
use clr_tests::fragments::{self, Image};
use clr_tests::mixed;
use clr_tests::snapshot::{Checked, check, is_whole};
use clr_tests::world::{Plan, examine};
use std::path::{Path, PathBuf};

/// Maximum size of a seed in bytes. A recorded walk with a Frame that holds a CONTEXT has some KiB.
const SIZE_LIMIT: usize = 8 << 10;

fn seeds(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(name)
}

/// Runs `target` on each of its seeds, and returns their number.
fn replay(name: &str, target: fn(&[u8])) -> usize {
    let directory = seeds(name);
    let mut seeds: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    seeds.sort();
    for seed in &seeds {
        let bytes = std::fs::read(seed).unwrap();
        assert!(!bytes.is_empty() && bytes.len() <= SIZE_LIMIT, "{}", seed.display());
        // The output is shown only if the target fails.
        println!("{}", seed.display());
        target(&bytes);
    }
    seeds.len()
}

/// Returns an input of `unwind_info` with functions of version 3, without the padding behind them.
fn version_3(n: u64) -> Vec<u8> {
    let mut seed = n << 40;
    let mut random = |below: usize| {
        seed += 8;
        (stack_word(seed) >> 32) as usize % below
    };
    let Image { bytes, table } = fragments::image(&mut random);
    let end = bytes.iter().rposition(|byte| *byte != 0xCC).map_or(0, |last| last + 1);
    let header = [0x20 + random(0xA0) as u8, 0, (table.len() / 12) as u8, random(64) as u8];
    [&header, &[n as u8; 4][..], &table, &bytes[..end]].concat()
}

#[test]
fn unwind_info() {
    if std::env::var_os("CLR_BLESS").is_some() {
        for n in 0..16 {
            std::fs::write(seeds("unwind_info").join(format!("version_3_{n}")), version_3(n))
                .unwrap();
        }
    }
    assert!(replay("unwind_info", clr_tests::fuzz::unwind_info) >= 20);
}

#[test]
fn pe_image() {
    assert!(replay("pe_image", clr_tests::fuzz::pe_image) >= 5);
}

#[test]
fn eh_frame() {
    assert!(replay("eh_frame", clr_tests::fuzz::eh_frame) >= 10);
}

#[test]
fn compact_unwind() {
    assert!(replay("compact_unwind", clr_tests::fuzz::compact_unwind) >= 8);
}

#[test]
fn elf_image() {
    assert!(replay("elf_image", clr_tests::fuzz::elf_image) >= 5);
}

#[test]
fn dump() {
    assert!(replay("dump", clr_tests::fuzz::dump) >= 5);
}

#[test]
fn vector_file() {
    assert!(replay("vector_file", clr_tests::fuzz::vector_file) >= 5);
}

#[test]
fn lint() {
    assert!(replay("lint", clr_tests::fuzz::lint) >= 5);
}

#[test]
fn trace() {
    assert!(replay("trace", clr_tests::fuzz::trace) >= 5);
}

#[test]
fn fixture_text() {
    assert!(replay("fixture_text", clr_tests::fuzz::fixture_text) >= 5);
}

#[test]
fn program() {
    assert!(replay("program", clr_tests::fuzz::program) >= 10);
}

/// A target that fails for ordinary input is of no use to a campaign, whatever it does with the seeds.
#[test]
fn drawn_inputs() {
    let targets: [fn(&[u8]); 5] = [
        clr_tests::fuzz::mixed_walk,
        clr_tests::fuzz::program,
        clr_tests::fuzz::scenario,
        clr_tests::fuzz::schedule,
        clr_tests::fuzz::snapshot,
    ];
    for bytes in (0..40).map(long_random_bytes) {
        for target in targets {
            target(&bytes);
        }
    }
}

#[test]
fn recording() {
    assert!(replay("recording", clr_tests::fuzz::recording) >= 5);
}

/// `CLR_BLESS=1` writes seeds. For each generation these are the first random bytes that yield a
/// whole thread and a call with some callbacks, and the first that yield a damaged one.
#[test]
fn snapshot() {
    if std::env::var_os("CLR_BLESS").is_some() {
        for generation in Generation::ALL {
            for (name, whole) in [("whole", true), ("damaged", false)] {
                let wanted = |checked: &Checked| checked.whole == whole && checked.callbacks > 3;
                let mut bytes = (0..).map(random_bytes);
                let found = bytes.find(|bytes| {
                    let case = SyntheticCall::arbitrary(&mut Unstructured::new(bytes)).unwrap();
                    case.target.generation == generation && wanted(&check(&case).unwrap())
                });
                let file = seeds("snapshot").join(format!("{generation}_{name}"));
                std::fs::write(file, found.unwrap()).unwrap();
            }
        }
    }
    assert!(replay("snapshot", clr_tests::fuzz::snapshot) >= 2 * Generation::ALL.len());
}

/// `CLR_BLESS=1` writes seeds. For each generation these are the first random bytes that yield a
/// program with some functions, and a call in it that makes some callbacks.
#[test]
fn scenario() {
    if std::env::var_os("CLR_BLESS").is_some() {
        for generation in Generation::ALL {
            let mut bytes = (0..).map(long_random_bytes);
            let found = bytes.find(|bytes| {
                let program = WorldProgram::arbitrary(&mut Unstructured::new(bytes)).unwrap();
                let plan = Plan { seed: 1, cases: 50, thorough: false };
                let size = 3..8;
                program.generation == generation
                    && size.contains(&program.program.functions.len())
                    && examine(&program, plan, |_| ()).is_ok_and(|done| done.callbacks > 60)
            });
            let file = seeds("scenario").join(generation.to_string());
            std::fs::write(file, found.unwrap()).unwrap();
        }
    }
    assert!(replay("scenario", clr_tests::fuzz::scenario) >= Generation::ALL.len());
}

/// `CLR_BLESS=1` writes seeds. For each generation these are the first random bytes that yield a
/// whole thread with some rows and a Frame, a damaged one, and a program whose walks find some
/// frames.
#[test]
fn mixed_walk() {
    if std::env::var_os("CLR_BLESS").is_some() {
        for generation in Generation::ALL {
            for (name, whole) in [("whole", true), ("damaged", false)] {
                write_mixed(&format!("{generation}_{name}"), 0x80, random_bytes, |bytes| {
                    let target = SyntheticCall::arbitrary(bytes).unwrap().target;
                    target.generation == generation
                        && is_whole(&target) == whole
                        && target.activations.len() > 5
                        && !target.frames.is_empty()
                });
            }
            write_mixed(&format!("{generation}_program"), 0x81, long_random_bytes, |bytes| {
                let program = WorldCase::arbitrary(bytes).unwrap().program;
                program.generation == generation
                    && (3..8).contains(&program.program.functions.len())
                    && {
                        let plan = mixed::Plan { seed: 1, walks: 50, stride: 20, only: None };
                        let way = &mut mixed::First::default();
                        mixed::examine(&program, plan, way, |_| ())
                            .is_ok_and(|done| done.frames > 100)
                    }
            });
        }
    }
    assert!(replay("mixed_walk", clr_tests::fuzz::mixed_walk) >= 3 * Generation::ALL.len());
}

/// `CLR_BLESS=1` writes seeds. These are, for each generation, the first random bytes that yield an
/// interleaving of some length with choices in it; and, for each kind of verdict, the first that yield
/// one.
#[test]
fn schedule() {
    if std::env::var_os("CLR_BLESS").is_some() {
        let write = |name: &str, wanted: &dyn Fn(Generation, &Ending) -> bool| {
            // A quarter of the bytes is the schedule.
            let mut bytes = (0..20_000).map(|seed| [&[0x40], &*long_random_bytes(seed)].concat());
            let found = bytes.find(|bytes| {
                let ending = clr_tests::fuzz::ending_of_schedule(bytes);
                ending.is_some_and(|(generation, ending)| wanted(generation, &ending))
            });
            let found = found.unwrap_or_else(|| panic!("no {name}"));
            std::fs::write(seeds("schedule").join(name), found).unwrap();
        };
        for generation in Generation::ALL {
            write(&generation.to_string(), &|on, ending| {
                on == generation && ending.turns > 60 && ending.schedule.len() > 10
            });
        }
        for (name, is) in VERDICTS {
            write(name, &|_, ending| ending.turns > 8 && ending.verdict.as_ref().is_some_and(is));
        }
    }
    let count = replay("schedule", clr_tests::fuzz::schedule);
    assert!(count >= Generation::ALL.len() + VERDICTS.len());
}

/// The other seeds of `host_calls`: file names, and words that the stories of their calls contain.
const HOST_CALLS: [(&str, &[&str]); 8] = [
    ("hooks", &["hook FunctionEnter 0x"]),
    ("hooks_2", &["hook FunctionLeave2 0x"]),
    ("hooks_3", &["hook FunctionLeave3 0x"]),
    ("mapper", &["callback FunctionIDMapper", "hook Function"]),
    ("events", &["callback EventPipeEventDelivered", "called: EventPipeStopSession"]),
    ("detach", &["RequestProfilerDetach", "callback ProfilerDetachSucceeded"]),
    ("assembly", &["called: EnumAssemblyRefs"]),
    ("emit", &["not simulated: Define", "not simulated: Set"]),
];

/// `CLR_BLESS=1` writes seeds. These are, for each runtime, the first random bytes with a walk, and the
/// first with callbacks of a program; and the first with each of [`HOST_CALLS`].
#[test]
fn host_calls() {
    let bytes = |head: [u8; 2], seed: u64| [&head[..], &random_bytes(seed)].concat();
    if std::env::var_os("CLR_BLESS").is_some() {
        let runtimes = Generation::ALL.len() as u64;
        let head = |seed: u64| [(seed / 2 % runtimes) as u8, 0x80 | (seed % 2) as u8];
        let mut missing = HOST_CALLS.to_vec();
        for bytes in (0..200_000).map(|seed| bytes(head(seed), seed)) {
            let story = clr_tests::fuzz::story_of_host_calls(&bytes);
            missing.retain(|(name, wanted)| {
                let found = wanted.iter().all(|words| story.contains(words));
                if found {
                    std::fs::write(seeds("host_calls").join(name), &bytes).unwrap();
                }
                !found
            });
            if missing.is_empty() {
                break;
            }
        }
        assert!(missing.is_empty(), "no seeds for {missing:?}");
        for (number, generation) in (0_u8..).zip(Generation::ALL) {
            for (name, wanted) in [("walk", "frame 0x7"), ("callbacks", "callback JIT")] {
                // One of the texts; everything is done twice.
                let head = |seed: u64| [number, 0x80 | (seed % 2) as u8];
                let mut bytes = (0..20_000).map(|seed| bytes(head(seed), seed));
                let found = bytes.find(|bytes| {
                    let story = clr_tests::fuzz::story_of_host_calls(bytes);
                    story.contains(wanted) && story.contains(": 0x80070057")
                });
                let found = found.unwrap_or_else(|| panic!("no {generation} {name}"));
                let file = format!("{generation}_{name}");
                std::fs::write(seeds("host_calls").join(file), found).unwrap();
            }
        }
    }
    let count = replay("host_calls", clr_tests::fuzz::host_calls);
    assert!(count >= 2 * Generation::ALL.len() + HOST_CALLS.len());
}

/// A predicate that returns true for one kind of verdict.
type Is = fn(&Verdict) -> bool;

/// Kinds of verdicts for which there are seeds.
const VERDICTS: [(&str, Is); 6] = [
    ("deadlock-of-two", |it| matches!(it, Verdict::Deadlock(cycle) if cycle.len() == 2)),
    ("deadlock-of-more", |it| matches!(it, Verdict::Deadlock(cycle) if cycle.len() > 2)),
    ("lost-wake-up", |it| matches!(it, Verdict::LostWakeUp(_))),
    ("destroyed-thread", |it| matches!(it, Verdict::DestroyedThread { .. })),
    ("process-killed", |it| matches!(it, Verdict::ProcessKilled { .. })),
    ("live-lock", |it| matches!(it, Verdict::LiveLock)),
];

/// Writes a first byte, followed by the first random bytes that are `wanted`.
fn write_mixed(
    name: &str,
    first: u8,
    random: fn(u64) -> Vec<u8>,
    wanted: impl Fn(&mut Unstructured<'_>) -> bool,
) {
    let mut bytes = (0..).map(random);
    let found = bytes.find(|bytes| wanted(&mut Unstructured::new(bytes))).unwrap();
    std::fs::write(seeds("mixed_walk").join(name), [&[first], found.as_slice()].concat()).unwrap();
}

/// Returns enough bytes for programs of some functions.
fn long_random_bytes(seed: u64) -> Vec<u8> {
    let mut random = Seeded::new(seed);
    (0..200).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// Returns enough bytes for most stages.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut random = Seeded::new(seed);
    (0..60).flat_map(|_| random.bits().to_le_bytes()).collect()
}
