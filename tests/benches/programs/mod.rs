//! Programs executed by the benchmarks: calls, stack traffic and arithmetic.

use clr_codegen::CallingConvention;
use clr_codegen::shadow_stack::ShadowStack;
use clr_machine::{Machine, Observer, PAGE_SIZE, Protection, StopReason};
use clr_unwind::Gpr;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, eax, ptr, qword_ptr, r8, r9, r10, r11, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use std::hint::black_box;

/// Start address of programs, at the start of a page.
pub(crate) const CODE: u64 = 0x1_4000_1000;
pub(crate) const STACK: u64 = 0x20_0000;
pub(crate) const STACK_SIZE: u64 = 16 * PAGE_SIZE;
/// Address (VA) of the slot with the return address when a program begins.
pub(crate) const TOP: u64 = STACK + STACK_SIZE - 0x100;
/// Return address of programs.
pub(crate) const BACK: u64 = 0x7FFF_0000;

/// Code that takes a number in rcx and returns.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) code: Vec<u8>,
    pub(crate) argument: u64,
}

/// Returns all programs, each of some millions of instructions.
pub(crate) fn all() -> Result<[Program; 3], IcedError> {
    Ok([
        Program { name: "fib(27)", code: fib()?, argument: 27 },
        Program { name: "push/pop", code: pushes()?, argument: 400_000 },
        Program { name: "mixed", code: mixed()?, argument: 800_000 },
    ])
}

/// Returns the shadow stack of a program that is about to begin.
fn truth(machine: &Machine) -> ShadowStack {
    let mut registers = machine.cpu().registers();
    registers.rip = BACK;
    registers.set(Gpr::Rsp, TOP + 8);
    let mut truth = ShadowStack::new(CallingConvention::WindowsX64);
    truth.call(registers);
    truth
}

/// Assembles fib(rcx), recursive, with a frame that saves the registers it uses.
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

/// Assembles a loop of rcx iterations that pushes and pops eight registers.
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

/// Assembles a loop of rcx iterations, similar to compiled code over an array.
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

/// Creates a machine with the program in its memory.
pub(crate) fn load(program: &Program) -> Machine {
    let mut machine = Machine::new();
    let pages = STACK_SIZE / PAGE_SIZE;
    machine.map(CODE, 1, Protection::READ_EXECUTE).expect("the addresses are free");
    machine.map(STACK, pages, Protection::READ_WRITE).expect("the addresses are free");
    machine.write(CODE, &program.code).expect("the page is mapped");
    machine.add_trap(BACK, 0);
    machine
}

/// Sets the machine to the start of the program, with the trap as return address.
pub(crate) fn begin(machine: &mut Machine, program: &Program) {
    machine.write(TOP, &BACK.to_le_bytes()).expect("the stack is mapped");
    machine.cpu_mut().set(Gpr::Rsp, TOP);
    machine.cpu_mut().set(Gpr::Rcx, program.argument);
    machine.cpu_mut().set_rip(CODE);
}

/// Executes to the return with an observer, and returns the number of instructions.
pub(crate) fn run<O: Observer>(machine: &mut Machine, observer: &mut O) -> u64 {
    let before = machine.executed();
    let stop = machine.run_with(observer, u64::MAX);
    assert_eq!(stop, StopReason::Trap { address: BACK, id: 0 });
    black_box(observer);
    machine.executed() - before
}

/// Executes to the return with the shadow stack, which checks every return.
pub(crate) fn run_with_truth(machine: &mut Machine) -> u64 {
    let mut truth = truth(machine);
    let count = run(machine, &mut truth);
    assert_eq!((truth.broken(), truth.callers().len()), (None, 0));
    count
}
