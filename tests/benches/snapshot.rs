//! Benchmark of snapshots: a stack of 32 frames on two runtimes, from a seed and from the Frame
//! chain, with and without explanations; unwinding the same stack alone; and all embedded
//! recordings.

#[path = "shared/summary.rs"]
mod summary;

use clr_recording::vectors::decompress;
use clr_recording::{RecordedCode, Recording, RecordingReplay};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{HResult, SnapshotRequest};
use clr_runtime::{Context, Outcome};
use clr_runtime::{FrameKind, Runtime};
use clr_unwind::{Cache, Gpr, Position, Registers, Step, UnwindError, Unwinder};
use clr_walker::profiling::{SnapshotCallback, SnapshotFlags};
use clr_world::synthetic::{SELF, SyntheticProcess, SyntheticThread};
use std::hint::black_box;
use std::time::Instant;
use summary::Summary;

const ROUNDS: usize = 301;
/// Number of snapshots in one round.
const SNAPSHOTS: u32 = 200;
/// Number of callbacks of a snapshot: a marker, and managed frames.
const FRAMES: u32 = 32;

/// Measures a round of all contenders, one after the other, as often as `rounds`. Returns the
/// microseconds of one call of each.
fn measure<const N: usize>(rounds: usize, contenders: [&mut dyn FnMut(); N]) -> [Summary; N] {
    let mut samples = [const { Vec::new() }; N];
    let mut contenders = contenders;
    for _ in 0..rounds {
        for (once, samples) in contenders.iter_mut().zip(&mut samples) {
            let start = Instant::now();
            for _ in 0..SNAPSHOTS {
                once();
            }
            samples.push(1e6 * start.elapsed().as_secs_f64() / f64::from(SNAPSHOTS));
        }
    }
    samples.map(Summary::of)
}

/// Builds a helper called by 31 methods, with its Frame; or the same stack of native functions
/// only.
fn target(generation: Generation, native: bool) -> SyntheticThread {
    let mut sp = 0x1F_0300;
    let mut target =
        SyntheticThread::new(generation).cooperative().native("coreclr!JIT_New+0x80", 0x1F_0000);
    for n in 1..FRAMES {
        let label = format!("App.F{n}+0x40");
        target = if native { target.native(&label, sp) } else { target.jit(&label, sp) };
        target = match n % 4 {
            0 => target.saves_all(),
            1 => target.saves(&[Gpr::Rbx, Gpr::R14]),
            2 => target.saves(&[Gpr::Rbp]),
            _ => target,
        };
        sp += 0x60 + u64::from(n % 5) * 0x28;
    }
    target = target.native("coreclr!CallDescrWorkerInternal+0x7c", sp);
    if native { target } else { target.frame(FrameKind::Hijack, 0x1F_0100, "App.F1") }
}

fn snapshot(runtime: &Runtime<'_>, call: &SnapshotRequest<'_>) -> u32 {
    let mut frames = 0;
    let callback: &mut SnapshotCallback<'_> = &mut |frame| {
        black_box(frame.ip);
        frames += 1;
        HResult::OK
    };
    let outcome = runtime.on(SELF).do_stack_snapshot(call, Some(callback));
    assert_eq!(outcome, Outcome::Returned(HResult::OK));
    frames
}

/// The contenders, in the order of their columns.
const NAMES: [&str; 7] = [
    "a snapshot from the Frame chain",
    "the same, with contexts",
    "the same, with contexts and explained",
    "a snapshot from a seed",
    "the runtime's unwinding of the same methods, without a walk",
    "clr-walker's unwinding of native functions with the same frames",
    "the same, warm cache",
];

/// Measures all contenders on a runtime.
fn measure_on(rounds: usize, generation: Generation) -> [Summary; NAMES.len()] {
    let set = target(generation, false).build().expect("the stack is consistent");
    let runtime = set.runtime();
    let seed = set.seed("App.F1").as_ref().map(Context::to_bytes).map(|seed| {
        let mut bytes = [0; 0xC20];
        bytes[..seed.len()].copy_from_slice(&seed);
        bytes
    });
    let plain = SnapshotRequest { flags: SnapshotFlags::DEFAULT, ..set.call() };
    let contexts = SnapshotRequest { flags: SnapshotFlags::REGISTER_CONTEXT, ..set.call() };
    let seeded = SnapshotRequest { seed: seed.as_ref().map(|seed| &seed[..]), ..plain };
    let methods = Frames::of(&set, 1);

    let of_native = target(generation, true).build().expect("the stack is consistent");
    let native_runtime = of_native.runtime();
    let native = Frames::of(&of_native, 1);
    let unwinder = Unwinder::new(native_runtime.native.map()).with_rules(generation.unwind_rules());
    // As in a profiler, which knows that all these frames have made a call.
    let caching = Unwinder::new(native_runtime.native.map());
    let mut cache = Cache::new();
    let memory = &*native_runtime.memory.borrow();
    measure(
        rounds,
        [
            &mut || assert_eq!(snapshot(&runtime, &plain), FRAMES),
            &mut || assert_eq!(snapshot(&runtime, &contexts), FRAMES),
            &mut || {
                runtime.log.listen();
                snapshot(&runtime, &contexts);
                black_box(runtime.log.take());
            },
            &mut || assert_eq!(snapshot(&runtime, &seeded), FRAMES),
            &mut || {
                let memory = &*runtime.memory.borrow();
                methods.unwind(|registers| {
                    let managed = runtime.code.find(registers.rip).expect("it is a method");
                    let rules = generation.unwind_rules();
                    runtime.code.unwind(managed, rules, registers, memory)
                });
            },
            &mut || native.unwind(|it| unwinder.step(it, Position::Interrupted, memory)),
            &mut || {
                native.unwind(|it| {
                    caching.step_cached(&mut cache, it, Position::ReturnAddress, memory)
                });
            },
        ],
    )
}

/// A stack's frames that are unwound one after the other.
struct Frames {
    start: Registers,
    end: Registers,
}

impl Frames {
    fn of(set: &SyntheticProcess, first: usize) -> Self {
        let registers = |at| set.registers(at).expect("there are 33 activations");
        Self { start: registers(first), end: registers(FRAMES as usize) }
    }

    fn unwind(&self, mut step: impl FnMut(&mut Registers) -> Result<Step, UnwindError>) {
        let mut registers = black_box(self.start);
        for _ in 1..FRAMES {
            black_box(step(&mut registers).expect("the stack can be unwound"));
        }
        assert_eq!(registers.rsp(), self.end.rsp());
    }
}

/// Replays all embedded recordings, and prints the number of walks and the time.
fn recordings() {
    let files = clr_fixtures::all().iter().filter(|fixture| fixture.name.starts_with("clr/"));
    let recordings: Vec<_> = files
        .map(|fixture| {
            let text = decompress(fixture.bytes, 1 << 28).expect("recordings are gzip files");
            Recording::parse(&String::from_utf8(text).expect("recordings are UTF-8"))
                .expect("recordings are valid")
        })
        .collect();
    let start = Instant::now();
    let mut walks = 0;
    for recording in &recordings {
        let code = RecordedCode::new(recording);
        let mut replay =
            RecordingReplay::new(recording, &code).expect("the recorded code is consistent");
        for walk in &recording.walks {
            black_box(replay.walk(walk, |_| {}));
            walks += 1;
        }
    }
    let time = start.elapsed().as_secs_f64();
    println!("All {} recordings, {walks} walks, are replayed in {time:.3} s.", recordings.len());
}

const RUNTIMES: [Generation; 2] = [Generation::CoreClr31Windows, Generation::Net9Unix];

fn main() {
    // One round is enough without `--bench`, as with `cargo test --benches`.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    let columns = RUNTIMES.map(|generation| measure_on(rounds, generation));
    println!("| µs for {FRAMES} frames | {} | {} |\n| --- | --: | --: |", RUNTIMES[0], RUNTIMES[1]);
    for (at, name) in NAMES.iter().enumerate() {
        let [first, second] = columns.map(|column| format!("{:.2}", column[at]));
        println!("| {name} | {first} | {second} |");
    }
    println!(
        "\nMedians of {rounds} interleaved rounds, ± half the distance between the quartiles."
    );
    recordings();
}
