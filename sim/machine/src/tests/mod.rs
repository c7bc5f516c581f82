//! Whole programs, assembled in the tests and executed on the machine.

mod control;
mod integer;
mod memory;
mod random;
mod vector;

use crate::*;
use clr_unwind::Gpr;
use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, ah, al, ax, bl, byte_ptr, cl, cx, dh, dl, dword_ptr, dx, eax, ebx, ecx, edx,
    esi, ptr, qword_ptr, r8, r9, r10, r11, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp, word_ptr,
    xmm0, xmmword_ptr,
};

const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;
const STACK: u64 = 0x3_0000;
const RSP: u64 = STACK + 0x1800;

/// A program to be assembled.
type Program = fn(&mut CodeAssembler) -> Result<(), IcedError>;

/// Creates a machine with two pages each of code, data and stack. Each byte of data encodes its
/// offset.
fn machine(program: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Machine {
    let mut assembler = CodeAssembler::new(64).unwrap();
    program(&mut assembler).unwrap();
    assembler.int3().unwrap();
    let mut machine = with_code(&assembler.assemble(CODE).unwrap());
    machine.cpu_mut().set(Gpr::Rsp, RSP);
    machine
}

fn with_code(code: &[u8]) -> Machine {
    let mut machine = Machine::new();
    machine.map(CODE, 2, Protection::READ_EXECUTE).unwrap();
    machine.map(DATA, 2, Protection::READ_WRITE).unwrap();
    machine.map(STACK, 2, Protection::READ_WRITE).unwrap();
    machine.write(CODE, code).unwrap();
    let data: Vec<u8> = (0..0x2000_u32).map(|i| (i % 251) as u8).collect();
    machine.write(DATA, &data).unwrap();
    machine.cpu_mut().set_rip(CODE);
    machine
}

/// Executes up to the int3 at the end.
fn run(program: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Machine {
    let mut machine = machine(program);
    let stop = machine.run(10_000);
    assert!(matches!(stop, StopReason::Int3 { .. }), "{stop}");
    machine
}

fn value(machine: &Machine, address: u64) -> u64 {
    machine.read_u64(address).unwrap()
}
