//! Benchmark of snapshots: a stack of 32 frames on two runtimes, from a seed and from the Frame
//! chain, with and without explanations; unwinding the same stack alone; and all embedded
//! recordings.

use clr_recording::vectors::decompress;
use clr_recording::{RecordedCode, Recording, RecordingReplay};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{Call, HResult};
use clr_runtime::{Context, Outcome};
use clr_runtime::{FrameKind, Runtime};
use clr_walker::profiling::{SnapshotCallback, SnapshotFlags};
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::{Cache, Position, Unwinder};
use clr_world::synthetic::{SELF, SyntheticProcess, SyntheticThread};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 301;
/// Number of snapshots in one round.
const SNAPSHOTS: u32 = 200;
/// Number of callbacks of a snapshot: a marker, and managed frames.
const FRAMES: u32 = 32;

/// A time in microseconds.
#[derive(Clone, Copy)]
struct Time {
    median: f64,
    /// The best time, which is the one with the least disturbance.
    best: f64,
}

impl Time {
    fn activation(self, name: &str) {
        let Self { median, best } = self;
        let (frame, rate) = (1000.0 * median / f64::from(FRAMES), 1e6 / median);
        println!("{name:48} {median:8.2} ({best:6.2}) {frame:8.1} {rate:12.0}");
    }
}

/// Measures the median and the best time of one call of `once`.
fn measure(rounds: usize, mut once: impl FnMut()) -> Time {
    let mut samples: Vec<_> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..SNAPSHOTS {
                once();
            }
            1e6 * start.elapsed().as_secs_f64() / f64::from(SNAPSHOTS)
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    Time { median: samples[rounds / 2], best: samples[0] }
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

fn snapshot(runtime: &Runtime<'_>, call: &Call<'_>) -> u32 {
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

fn snapshots(rounds: usize, generation: Generation) {
    let set = target(generation, false).build().expect("the stack is consistent");
    let runtime = set.runtime();
    let seed = set.seed("App.F1").as_ref().map(Context::to_bytes).map(|seed| {
        let mut bytes = [0; 0xC20];
        bytes[..seed.len()].copy_from_slice(&seed);
        bytes
    });
    for (seeded, seed) in [("unseeded", None), ("seeded", seed.as_ref())] {
        for (contexts, flags) in
            [("", SnapshotFlags::DEFAULT), (", contexts", SnapshotFlags::REGISTER_CONTEXT)]
        {
            let call = Call { seed: seed.map(|seed| &seed[..]), flags, ..set.call() };
            assert_eq!(snapshot(&runtime, &call), FRAMES);
            let plain = measure(rounds, || assert_eq!(snapshot(&runtime, &call), FRAMES));
            plain.activation(&format!("{generation}, {seeded}{contexts}"));
            if flags == SnapshotFlags::REGISTER_CONTEXT {
                let explained = measure(rounds, || {
                    runtime.log.listen();
                    snapshot(&runtime, &call);
                    black_box(runtime.log.take());
                });
                explained.activation(&format!("{generation}, {seeded}{contexts}, explained"));
            }
        }
    }
    unwinding_alone(rounds, &target(generation, true).build().expect("the stack is consistent"));
}

/// Measures the walker's own unwinder on the same frames.
fn unwinding_alone(rounds: usize, set: &SyntheticProcess) {
    let generation = set.synthetic_thread().generation;
    let runtime = set.runtime();
    let memory = &*runtime.memory.borrow();
    let unwinder = Unwinder::new(runtime.native.map()).with_rules(generation.unwind_rules());
    let start = set.registers(1).expect("there are 33 activations");
    let end = set.registers(FRAMES as usize).expect("there are 33 activations");
    let steps = |step: &mut dyn FnMut(&mut Registers)| {
        let mut registers = black_box(start);
        for _ in 1..FRAMES {
            step(&mut registers);
        }
        assert_eq!(registers.rsp(), end.rsp());
    };
    let mut plain = |registers: &mut Registers| {
        let step = unwinder.step(registers, Position::Interrupted, memory);
        black_box(step.expect("the stack can be unwound"));
    };
    measure(rounds, || steps(&mut plain)).activation(&format!("{generation}, unwinding alone"));
    // As in a profiler, which knows that all these frames have made a call.
    let unwinder = Unwinder::new(runtime.native.map());
    let mut cache = Cache::new();
    let mut cached = |registers: &mut Registers| {
        let step = unwinder.step_cached(&mut cache, registers, Position::ReturnAddress, memory);
        black_box(step.expect("the stack can be unwound"));
    };
    measure(rounds, || steps(&mut cached))
        .activation(&format!("{generation}, unwinding alone, cached"));
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
    println!("{} recordings, {walks} walks: {time:.3} s", recordings.len());
}

fn main() {
    // One round is enough without `--bench`, as with `cargo test --benches`.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    println!("{:48} {:>17} {:>8} {:>12}", "", "us: median (best)", "ns/frame", "1/s");
    for generation in [Generation::CoreClr31Windows, Generation::Net9Unix] {
        snapshots(rounds, generation);
    }
    recordings();
}
