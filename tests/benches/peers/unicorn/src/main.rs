//! Benchmark of instructions per second of clr-sim's machine and of Unicorn, each alone and with an
//! observer. Every round runs all contenders, one after the other.
//!
//! ```console
//! $ cargo bench --manifest-path tests/benches/peers/Cargo.toml --bench unicorn
//! ```
//!
//! Unicorn is built from source, which requires cmake, a C compiler and libclang.

#[path = "../../../programs/mod.rs"]
mod programs;
#[path = "../../../shared/summary.rs"]
mod summary;

use clr_machine::{Machine, PAGE_SIZE};
use clr_walker::registers::Gpr;
use programs::{BACK, CODE, Program, STACK, STACK_SIZE, TOP};
use std::error::Error;
use std::time::Instant;
use summary::Summary;
use unicorn_engine::{Arch, Mode, Prot, RegisterX86, Unicorn, uc_error};

const ROUNDS: usize = 31;
const CONTENDERS: [&str; 4] =
    ["clr-machine", "with the shadow stack", "Unicorn", "Unicorn with a code hook"];

/// Unicorn, with the number of instructions that its code hook has counted.
type Emulator = Unicorn<'static, u64>;

/// Creates a Unicorn emulator with the program in its memory.
fn load(program: &Program) -> Result<Emulator, uc_error> {
    let mut emulator = Unicorn::new_with_data(Arch::X86, Mode::MODE_64, 0)?;
    emulator.mem_map(CODE, PAGE_SIZE, Prot::READ | Prot::EXEC)?;
    emulator.mem_map(STACK, STACK_SIZE, Prot::READ | Prot::WRITE)?;
    emulator.mem_map(BACK, PAGE_SIZE, Prot::READ | Prot::EXEC)?;
    emulator.mem_write(CODE, &program.code)?;
    Ok(emulator)
}

/// Sets Unicorn to the start of the program, with its return address on the stack.
fn begin(emulator: &mut Emulator, program: &Program) -> Result<(), uc_error> {
    emulator.mem_write(TOP, &BACK.to_le_bytes())?;
    emulator.reg_write(RegisterX86::RSP, TOP)?;
    emulator.reg_write(RegisterX86::RCX, program.argument)?;
    *emulator.get_data_mut() = 0;
    Ok(())
}

/// Executes to the return.
fn run(emulator: &mut Emulator) -> Result<(), uc_error> {
    emulator.emu_start(CODE, BACK, 0, 0)
}

/// The result of a program: rax and rsp at its return.
type Outcome = (u64, u64);

fn outcome_of_unicorn(emulator: &Emulator) -> Result<Outcome, uc_error> {
    Ok((emulator.reg_read(RegisterX86::RAX)?, emulator.reg_read(RegisterX86::RSP)?))
}

fn outcome_of_machine(machine: &Machine) -> Outcome {
    (machine.cpu().get(Gpr::Rax), machine.cpu().rsp())
}

/// Returns the duration of `work` in seconds, and its result.
fn time<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

/// Returns the rate of every contender in millions of instructions per second.
fn measure(program: &Program) -> Result<[Summary; CONTENDERS.len()], Box<dyn Error>> {
    let mut machine = programs::load(program);
    let mut plain = load(program)?;
    let mut hooked = load(program)?;
    hooked.add_code_hook(CODE, CODE + PAGE_SIZE - 1, |emulator, _, _| {
        *emulator.get_data_mut() += 1;
    })?;
    let mut rates = [[0.0; ROUNDS]; CONTENDERS.len()];
    for round in 0..ROUNDS {
        programs::begin(&mut machine, program);
        let (alone, count) = time(|| programs::run(&mut machine, &mut ()));
        let expected = outcome_of_machine(&machine);
        programs::begin(&mut machine, program);
        let (shadowed, _) = time(|| programs::run_with_truth(&mut machine));
        begin(&mut plain, program)?;
        let (emulated, result) = time(|| run(&mut plain));
        result?;
        begin(&mut hooked, program)?;
        let (counted, result) = time(|| run(&mut hooked));
        result?;
        // A contender that does less would win.
        assert_eq!(outcome_of_unicorn(&plain)?, expected, "{}", program.name);
        assert_eq!(outcome_of_unicorn(&hooked)?, expected, "{}", program.name);
        assert_eq!(*hooked.get_data(), count, "{}: instructions", program.name);
        for (rates, seconds) in rates.iter_mut().zip([alone, shadowed, emulated, counted]) {
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            let rate = count as f64 / seconds / 1e6;
            rates[round] = rate;
        }
    }
    Ok(rates.map(Summary::of))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| M instructions/s | {} | times Unicorn |", CONTENDERS.join(" | "));
    println!("| --- | {} | --: |", ["--:"; CONTENDERS.len()].join(" | "));
    for program in &programs::all()? {
        let rates = measure(program)?;
        let [machine, _, unicorn, _] = rates.map(|rate| rate.median);
        let rates = rates.map(|rate| format!("{rate:.0}"));
        println!("| {} | {} | {:.2} |", program.name, rates.join(" | "), machine / unicorn);
    }
    println!(
        "\nMedians of {ROUNDS} interleaved rounds, ± half the distance between the quartiles."
    );
    Ok(())
}
