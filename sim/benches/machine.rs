//! How many instructions the machine executes a second: calls, stack traffic and arithmetic, alone
//! and with observers.

use clr_sim::machine::{Cpu, Machine, Observer, Protection, Stop};
use clr_walker::registers::Gpr;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, eax, ptr, qword_ptr, r8, r9, r10, r11, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use std::fmt;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

const CODE: u64 = 0x1_4000_1000;
const STACK: u64 = 0x20_0000;
const STACK_PAGES: u64 = 16;
const BACK: u64 = 0x7FFF_0000;
const ROUNDS: usize = 31;

/// The shadow stack that a truth needs: where every frame will return to, and with which rsp.
#[derive(Default)]
struct ShadowStack {
    frames: Vec<(u64, u64)>,
    mismatches: u64,
}

impl Observer for ShadowStack {
    fn on_call(&mut self, cpu: &Cpu, _from: u64, return_address: u64) {
        self.frames.push((return_address, cpu.rsp().wrapping_add(8)));
    }

    fn on_return(&mut self, cpu: &Cpu, _from: u64) {
        if self.frames.pop() != Some((cpu.rip(), cpu.rsp())) {
            self.mismatches += 1;
        }
    }
}

/// Looks at every instruction.
struct Steps(u64);

impl Observer for Steps {
    const STEPS: bool = true;

    fn on_step(&mut self, cpu: &Cpu) -> ControlFlow<()> {
        self.0 = self.0.wrapping_add(cpu.rip());
        ControlFlow::Continue(())
    }
}

/// fib(rcx), recursively, with a frame that saves what it uses.
fn fib() -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(64)?;
    let (mut start, mut done) = (a.create_label(), a.create_label());
    a.set_label(&mut start)?;
    a.push(rbx)?;
    a.push(rsi)?;
    a.sub(rsp, 40)?;
    a.mov(rbx, rcx)?;
    a.mov(rax, rcx)?;
    a.cmp(rcx, 2)?;
    a.jb(done)?;
    a.lea(rcx, ptr(rbx - 1))?;
    a.call(start)?;
    a.mov(rsi, rax)?;
    a.lea(rcx, ptr(rbx - 2))?;
    a.call(start)?;
    a.add(rax, rsi)?;
    a.set_label(&mut done)?;
    a.add(rsp, 40)?;
    a.pop(rsi)?;
    a.pop(rbx)?;
    a.ret()?;
    a.assemble(CODE)
}

/// rcx times: eight registers onto the stack and back.
fn pushes() -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(64)?;
    let mut start = a.create_label();
    a.set_label(&mut start)?;
    for register in [rbx, rbp, rsi, rdi, r8, r9, r10, r11] {
        a.push(register)?;
    }
    for register in [r11, r10, r9, r8, rdi, rsi, rbp, rbx] {
        a.pop(register)?;
    }
    a.dec(rcx)?;
    a.jne(start)?;
    a.ret()?;
    a.assemble(CODE)
}

/// rcx times: what compilers make of a loop over an array.
fn mixed() -> Result<Vec<u8>, IcedError> {
    let mut a = CodeAssembler::new(64)?;
    let (mut start, mut even) = (a.create_label(), a.create_label());
    a.xor(eax, eax)?;
    a.set_label(&mut start)?;
    a.mov(rdx, qword_ptr(rsp + 8))?;
    a.imul_2(rdx, rcx)?;
    a.shr(rdx, 3)?;
    a.xor(rax, rdx)?;
    a.test(rcx, 1)?;
    a.je(even)?;
    a.add(rax, qword_ptr(rsp + 16))?;
    a.set_label(&mut even)?;
    a.mov(qword_ptr(rsp + 8), rax)?;
    a.sub(rcx, 1)?;
    a.jne(start)?;
    a.ret()?;
    a.assemble(CODE)
}

/// Millions of instructions a second.
struct Rate {
    median: f64,
    /// What the machine can do if nothing disturbs it.
    best: f64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6.0} ({:3.0})", self.median, self.best)
    }
}

/// How fast `round` executes instructions, of which it gives the number.
fn measure(code: &[u8], argument: u64, mut round: impl FnMut(&mut Machine) -> u64) -> Rate {
    let mut machine = Machine::new();
    machine.map(CODE & !0xFFF, 1, Protection::READ_EXECUTE).expect("nothing is there");
    machine.map(STACK, STACK_PAGES, Protection::READ_WRITE).expect("nothing is there");
    machine.write(CODE, code).expect("it is mapped");
    machine.add_trap(BACK, 0);
    let mut rates = [0.0; ROUNDS];
    for rate in &mut rates {
        begin(&mut machine, argument);
        let start = Instant::now();
        let count = round(&mut machine);
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate_now = count as f64 / start.elapsed().as_secs_f64() / 1e6;
        *rate = rate_now;
    }
    rates.sort_by(f64::total_cmp);
    Rate { median: rates[ROUNDS / 2], best: rates[ROUNDS - 1] }
}

/// Sets the machine to the start of the code, about to return to the trap.
fn begin(machine: &mut Machine, argument: u64) {
    let top = STACK + STACK_PAGES * 0x1000 - 0x100;
    machine.write(top, &BACK.to_le_bytes()).expect("the stack is mapped");
    machine.cpu_mut().set(Gpr::Rsp, top);
    machine.cpu_mut().set(Gpr::Rcx, argument);
    machine.cpu_mut().set_rip(CODE);
}

/// Runs to the return, watched.
fn run<O: Observer>(machine: &mut Machine, mut observer: O) -> u64 {
    let before = machine.executed();
    let stop = machine.run_with(&mut observer, u64::MAX);
    assert_eq!(stop, Stop::Trap { address: BACK, id: 0 });
    black_box(&mut observer);
    machine.executed() - before
}

/// Runs instruction by instruction, from outside.
fn step(machine: &mut Machine) -> u64 {
    (0..1_000_000).take_while(|_| machine.step().is_ok()).count() as u64
}

/// Saves the machine before every instruction, and goes back to every hundredth.
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
    let cases =
        [("fib(27)", fib()?, 27), ("push/pop", pushes()?, 400_000), ("mixed", mixed()?, 800_000)];
    println!("M instructions/s: median (best)");
    let header = ["plain", "shadow stack", "every step", "step()", "save()"];
    println!("{:10} {}", "", header.map(|name| format!("{name:>12}")).join("  "));
    for (name, code, argument) in &cases {
        let rates = [
            measure(code, *argument, |machine| run(machine, ())),
            measure(code, *argument, |machine| run(machine, ShadowStack::default())),
            measure(code, *argument, |machine| run(machine, Steps(0))),
            measure(code, *argument, step),
            measure(code, *argument, save),
        ];
        println!("{name:10} {}", rates.map(|rate| rate.to_string()).join("  "));
    }
    Ok(())
}
