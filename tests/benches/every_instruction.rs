//! Benchmark of the every-instruction property: generating programs, linking them, and unwinding at
//! every instruction.

use clr_codegen::execution::{BASE, Execution};
use clr_codegen::{CallingConvention, FunctionIndex, LinkedProgram, Program};
use clr_generate::{Seeded, Size, program};
use clr_scenario::Scenario;
use clr_tests::every_instruction::{self, Checked};
use clr_walker::unwind::{Position, Unwinder};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 31;

/// The fourth function has 100 instructions; all save registers.
const DEPTH_4: &str = r#"
function "main" { push "rbx"; locals 0x40; body { call "second" } }
function "second" { push "rbp" "rsi"; frame "rbp"; body { call "third" } }
function "third" { push "rdi"; save "rbx" "r14"; body { call "fourth" } }
function "fourth" { push "rbx" "rsi" "rdi"; save "xmm6" "xmm7"; locals 0x20; body { work 83 } }
"#;

/// Returns the median of [`ROUNDS`] results of `round`.
fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut samples = [0.0; ROUNDS];
    samples.fill_with(&mut round);
    samples.sort_by(f64::total_cmp);
    samples[ROUNDS / 2]
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(count: u64, duration: Duration) -> f64 {
    count as f64 / duration.as_secs_f64()
}

/// Executes the fourth function and walks all four frames before each of its instructions. Returns
/// the median duration in microseconds and the number of instructions.
fn unwind_the_fourth(program: &Program, linked: &LinkedProgram) -> (f64, u32) {
    let map = linked.code_map().expect("the program was linked");
    let unwinder = Unwinder::new(&map);
    let mut run =
        Execution::new(program, linked, FunctionIndex(0), 0).expect("the program can be loaded");
    let entry = linked.entries[3];
    while run.machine().cpu().rip() != entry {
        run.step().expect("the entry is reached");
    }
    let machine = run.machine_mut();
    let begin = machine.save();
    let mut count = 0;
    let time = median(|| {
        machine.restore(&begin).expect("this is the last save point");
        count = 0;
        let start = Instant::now();
        while linked.instruction(machine.cpu().rip()).and_then(|i| i.function)
            == Some(FunctionIndex(3))
        {
            let mut registers = machine.cpu().registers();
            let mut position = Position::Interrupted;
            while registers.rip != BASE {
                let step = unwinder.step(&mut registers, position, machine);
                position = step.expect("all frames are known").caller;
            }
            black_box(&registers);
            machine.step().expect("the code is valid");
            count += 1;
        }
        micros(start.elapsed())
    });
    (time, count)
}

fn check(programs: &[Program]) -> Checked {
    let mut sum = Checked::default();
    for program in programs {
        let checked = every_instruction::precise(program, 20_000).expect("the property holds");
        sum.boundaries += checked.boundaries;
        sum.frames += checked.frames;
    }
    sum
}

fn main() {
    let scenario = Scenario::parse(DEPTH_4).expect("the text is valid");
    let linked = scenario.program.link().expect("the program can be linked");
    let (time, count) = unwind_the_fourth(&scenario.program, &linked);
    println!("a function of {count} instructions at depth 4, unwound before each: {time:.1} us");

    let small: Vec<_> =
        (0..300).map(|seed| program(&mut Seeded::new(seed), &Size::SMALL)).collect();
    let deep: Vec<_> = (0..8).map(|seed| program(&mut Seeded::new(seed), &Size::DEEP)).collect();
    let rate = median(|| {
        let start = Instant::now();
        for seed in 0..300 {
            black_box(program(&mut Seeded::new(seed), &Size::SMALL));
        }
        per_second(300, start.elapsed())
    });
    println!("programs generated: {rate:.0} a second");
    let rate = median(|| {
        let start = Instant::now();
        for program in &small {
            black_box(program.link().is_ok());
        }
        per_second(300, start.elapsed())
    });
    println!("programs linked: {rate:.0} a second");
    let size = Size::SMALL.of(CallingConvention::SystemV);
    let unix = (0..300).map(|seed| program(&mut Seeded::new(seed), &size)).collect();
    for (name, programs) in [("small", small), ("33 functions", deep), ("small, of Unix", unix)] {
        let checked = check(&programs);
        let depth = per_second(checked.frames, Duration::from_secs(checked.boundaries));
        let rate = median(|| {
            let start = Instant::now();
            black_box(check(&programs));
            per_second(checked.boundaries, start.elapsed())
        });
        println!("{name}: {rate:.0} stacks of {depth:.1} frames checked a second");
    }
}
