//! Benchmark of walks of whole stacks, managed and native, through `DoStackSnapshot` and the
//! walker's own unwinder.
//!
//! `cargo bench -p clr-tests --bench mixed` prints tables. Without `--bench`, as `cargo test --benches` runs it,
//! it takes one round only.
//!
//! Half of each stack is native, in runs of four. A scripted runtime only replays the reports of
//! the simulated one, so that the walker itself is measured; the simulated runtime walks as well.
//! framehop and the bare unwinder get all code, on Unix including that of the heap, and walk the
//! same memory.

mod handler;
mod process;
mod scripted;
#[path = "../shared/summary.rs"]
mod summary;
mod unwinders;

use allocation_counter::measure;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{Policy, PolicyWalker, SimulatedThread};
use clr_unwind::{Cache, CodeMap};
use clr_walker::mixed::{Completeness, MixedStack, WalkBuffer};
use clr_walker::profiling::{ProfilerInfo, TargetThread};
use clr_world::synthetic::{NATIVE_WALKER, SELF};
use framehop::x86_64::CacheX86_64;
use process::target;
use scripted::Scripted;
use std::hint::black_box;
use std::time::Instant;
use summary::Summary;
use unwinders::{all_code, bare, cached, framehop, framehop_unwinder};

const ROUNDS: u32 = 201;
const DEPTHS: [usize; 2] = [32, 256];
/// Minimum number of frames that one sample walks.
const FRAMES_PER_SAMPLE: usize = 2048;

/// Windows, where everybody knows the unwind data of jitted code, and Unix, where nobody does.
/// There only the calling thread can be seeded (C-019).
const SYSTEMS: [(Generation, Policy, Completeness); 2] = [
    (Generation::Net10Windows, Policy::Seeded, Completeness::Whole),
    (Generation::Net10Unix, Policy::SignalSnapshot, Completeness::Reportable),
];

const NAMES: [&str; 8] = [
    "scripted runtime, whole walk",
    "of it, while the thread stands still",
    "simulated runtime, whole walk",
    "of it, while the thread stands still",
    "clr-walker's unwinder alone, all code known",
    "the same, warm cache",
    "framehop 0.16, all code known, new cache for every walk",
    "framehop 0.16, all code known, warm cache",
];

/// Nanoseconds per frame by contender, one for each round.
type Samples = [Vec<f64>; NAMES.len()];

fn main() {
    let bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if bench { ROUNDS } else { 1 };
    println!("{}", handler::markdown(rounds));
    let mut table = Vec::new();
    for (generation, policy, expected) in SYSTEMS {
        for depth in DEPTHS {
            let mut samples = Samples::default();
            run(generation, policy, expected, depth, rounds, &mut samples);
            table.push((format!("{generation}, {depth}"), samples.map(Summary::of)));
        }
    }
    let heads: Vec<_> = table.iter().map(|(head, _)| head.as_str()).collect();
    println!("| ns per frame | {} |\n| --- | {} |", heads.join(" | "), ["--:"; 4].join(" | "));
    for (n, name) in NAMES.iter().enumerate() {
        let cells: Vec<_> = table.iter().map(|(_, all)| format!("{:.1}", all[n])).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!(
        "\nMedians of {rounds} interleaved rounds, ± half the distance between the quartiles; nothing is allocated while the thread stands still."
    );
}

/// Measures a system's stack of `depth` frames.
fn run(
    generation: Generation,
    policy: Policy,
    expected: Completeness,
    depth: usize,
    rounds: u32,
    samples: &mut Samples,
) {
    let set = target(generation, depth).build().expect("it fits together");
    let runtime = set.runtime();
    let map = runtime.profilers_code_map().expect("code does not overlap");
    let calling_thread = if policy.is_for_itself() { SELF } else { NATIVE_WALKER };
    let thread = SimulatedThread::new(&runtime, SELF, 0).expect("it is the runtime's");
    let (thread, caller) = (thread.called_by(calling_thread), runtime.on(calling_thread));
    let simulated = PolicyWalker::new(&caller, &map, policy);
    let script = Scripted::record(&set, &runtime);
    let scripted = PolicyWalker::new(&script, &map, policy);
    let all = all_code(&runtime);
    let unwinder = framehop_unwinder(&runtime);
    let start = set.registers(0).expect("there are rows");

    let mut buffer = WalkBuffer::new(depth);
    check(&scripted, &script, &mut buffer, depth, expected);
    check(&simulated, &thread, &mut buffer, depth, expected);
    assert_eq!(runtime.rule_violation(), None);

    let (mut warm, mut framehop_warm) = (Cache::new(), CacheX86_64::new());
    let mut walks: [Box<dyn FnMut() -> usize + '_>; NAMES.len()] = [
        walking(&scripted, &script, depth),
        taking(&scripted, &script, depth),
        walking(&simulated, &thread, depth),
        taking(&simulated, &thread, depth),
        Box::new(|| bare(&all, &start, &script)),
        Box::new(|| cached(&all, &start, &script, &mut warm)),
        Box::new(|| framehop(&unwinder, &start, &script, &mut CacheX86_64::new())),
        Box::new(|| framehop(&unwinder, &start, &script, &mut framehop_warm)),
    ];
    let passes = FRAMES_PER_SAMPLE / depth;
    for _ in 0..rounds {
        for (walk, samples) in walks.iter_mut().zip(samples.iter_mut()) {
            let start = Instant::now();
            for _ in 0..passes {
                assert_eq!(walk(), depth);
            }
            let frames = f64::from((passes * depth) as u32);
            samples.push(start.elapsed().as_secs_f64() * 1e9 / frames);
        }
    }
}

/// Checks that a walk finds the expected frames, and allocates nothing until the thread runs again:
/// every allocation of this thread is counted.
fn check<I: ProfilerInfo, T: TargetThread>(
    walker: &PolicyWalker<'_, I, CodeMap<'_>>,
    target: &T,
    buffer: &mut WalkBuffer,
    depth: usize,
    expected: Completeness,
) {
    let counted = measure(|| assert!(walker.take(target, buffer).is_ok()));
    assert_eq!(counted.count_total, 0, "allocated while the thread stands still");
    let Ok(stack) = walker.stitch(buffer) else { panic!("the process has ended") };
    assert_eq!((stack.frames.len(), stack.completeness()), (depth, expected), "{stack:#x?}");
}

fn walking<'w, I: ProfilerInfo, T: TargetThread>(
    walker: &'w PolicyWalker<'_, I, CodeMap<'_>>,
    target: &'w T,
    depth: usize,
) -> Box<dyn FnMut() -> usize + 'w> {
    let mut buffer = WalkBuffer::new(depth);
    Box::new(move || {
        let stack: Option<MixedStack> = walker.walk(target, &mut buffer).ok();
        black_box(stack).map_or(0, |stack| stack.frames.len())
    })
}

fn taking<'w, I: ProfilerInfo, T: TargetThread>(
    walker: &'w PolicyWalker<'_, I, CodeMap<'_>>,
    target: &'w T,
    depth: usize,
) -> Box<dyn FnMut() -> usize + 'w> {
    let mut buffer = WalkBuffer::new(depth);
    Box::new(move || {
        let taken = walker.take(target, &mut buffer).is_ok();
        black_box(&buffer);
        if taken { depth } else { 0 }
    })
}
