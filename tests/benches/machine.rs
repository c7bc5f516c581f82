//! Benchmark of the machine in instructions per second: calls, stack traffic and arithmetic, alone
//! and with observers.

mod programs;

use clr_machine::{Cpu, Machine, Observer};
use iced_x86::IcedError;
use programs::{Program, begin, load, run, run_with_truth};
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

const ROUNDS: usize = 31;

/// An observer of every instruction.
struct Steps(u64);

impl Observer for Steps {
    const STEPS: bool = true;

    fn on_step(&mut self, cpu: &Cpu) -> ControlFlow<()> {
        self.0 = self.0.wrapping_add(cpu.rip());
        ControlFlow::Continue(())
    }
}

/// A rate in millions of instructions per second.
struct Rate {
    median: f64,
    /// The best rate, which is the one with the least disturbance.
    best: f64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6.0} ({:3.0})", self.median, self.best)
    }
}

/// Measures the rate at which `round` executes instructions. `round` returns their number.
fn measure(program: &Program, mut round: impl FnMut(&mut Machine) -> u64) -> Rate {
    let mut machine = load(program);
    let mut rates = [0.0; ROUNDS];
    for rate in &mut rates {
        begin(&mut machine, program);
        let start = Instant::now();
        let count = round(&mut machine);
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate_now = count as f64 / start.elapsed().as_secs_f64() / 1e6;
        *rate = rate_now;
    }
    rates.sort_by(f64::total_cmp);
    Rate { median: rates[ROUNDS / 2], best: rates[ROUNDS - 1] }
}

/// Executes instruction by instruction, from outside.
fn step(machine: &mut Machine) -> u64 {
    (0..1_000_000).take_while(|_| machine.step().is_ok()).count() as u64
}

/// Saves the machine before every instruction, and restores every hundredth save point.
fn save(machine: &mut Machine) -> u64 {
    for n in 0..100_000 {
        let before = machine.save();
        assert_eq!(machine.step(), Ok(()));
        if n % 100 == 0 {
            assert_eq!(machine.restore(&before), Ok(()));
        }
    }
    machine.forget_snapshots();
    100_000
}

fn main() -> Result<(), IcedError> {
    println!("M instructions/s: median (best)");
    let header = ["plain", "truth", "every step", "step()", "save()"];
    println!("{:10} {}", "", header.map(|name| format!("{name:>12}")).join("  "));
    for program in &programs::all()? {
        let rates = [
            measure(program, |machine| run(machine, &mut ())),
            measure(program, run_with_truth),
            measure(program, |machine| run(machine, &mut Steps(0))),
            measure(program, step),
            measure(program, save),
        ];
        println!("{:10} {}", program.name, rates.map(|rate| rate.to_string()).join("  "));
    }
    Ok(())
}
