//! Jitted code of real processes, executed on the emulated machine: its unwind data, as the reader of
//! jitted code finds it, must give the caller at each instruction.

#[path = "../../../../walker/tests/it/jitted/recording.rs"]
mod recording;

use super::*;
use clr_machine::{PAGE_SIZE, Protection};
use clr_walker::jitted::{CodeHeaderLayout, JittedMethod};
use recording::Recording;

const STACK: u64 = 0x10_0000;
const STACK_PAGES: u64 = 16;
/// The memory that arguments point to: readable zeroes, a page for each register.
const DATA: u64 = 0x40_0000;
const RETURN_ADDRESS: u64 = 0xE000;
/// rsp at the function's first instruction.
const RSP: u64 = STACK + (STACK_PAGES - 2) * PAGE_SIZE - 8;
const PRESERVED: [Gpr; 6] = [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];
const RECORDINGS: [(&str, Convention); 5] = [
    ("coreclr-3.1.23-linux", Convention::SystemV),
    ("net-9.0.7-linux", Convention::SystemV),
    ("net-10.0.9-linux", Convention::SystemV),
    ("net-10.0.9-windows", Convention::WindowsX64),
    ("net-11.0.0-linux", Convention::SystemV),
];

/// Executes a function from its start to the first instruction that needs more of its process, and
/// unwinds before each. Returns the number of instructions executed, and the offset of the last.
fn execute(method: &JittedMethod, function: RuntimeFunction, convention: Convention) -> (u32, u32) {
    let mut map = CodeMap::new();
    map.insert(method.region(convention).unwrap()).unwrap();
    let begin = method.base() + u64::from(function.begin);
    let mut machine = machine(method, begin);
    let caller = machine.cpu().registers();
    for count in 0..500 {
        let at = machine.cpu().rip();
        let mut registers: Registers = machine.cpu().registers();
        let unwinder = Unwinder::new(&map);
        let step = unwinder.step(&mut registers, Position::Interrupted, &machine);
        let place = format!("{:#x} in {method:?}", at - begin);
        step.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!((registers.rip, registers.rsp()), (RETURN_ADDRESS, RSP + 8), "{place}");
        let windows =
            [Gpr::Rdi, Gpr::Rsi].into_iter().filter(|_| convention == Convention::WindowsX64);
        for register in PRESERVED.into_iter().chain(windows) {
            assert_eq!(registers.get(register), caller.get(register), "{register:?} at {place}");
        }
        let offset = (at - begin) as u32;
        if machine.step().is_err() || !method.code_range().contains(&machine.cpu().rip()) {
            return (count, offset);
        }
    }
    panic!("{method:?} does not end")
}

fn machine(method: &JittedMethod, begin: u64) -> Machine {
    let mut machine = Machine::new();
    let code = method.code_range();
    let page = code.start / PAGE_SIZE * PAGE_SIZE;
    let pages = (code.end - page).div_ceil(PAGE_SIZE);
    machine.map(page, pages, Protection::READ_EXECUTE).unwrap();
    machine.write(code.start, method.code().bytes).unwrap();
    machine.map(STACK, STACK_PAGES, Protection::READ_WRITE).unwrap();
    machine.map(DATA, 8, Protection::READ_WRITE).unwrap();
    machine.write(RSP, &RETURN_ADDRESS.to_le_bytes()).unwrap();
    let cpu = machine.cpu_mut();
    let arguments = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8, Gpr::R9];
    for (register, page) in arguments.into_iter().zip(0..) {
        cpu.set(register, DATA + page * PAGE_SIZE);
    }
    for (register, value) in PRESERVED.into_iter().zip(1..) {
        cpu.set(register, 0x5AFE_0000 + value);
    }
    // A funclet gets the frame of its method, and saves its own caller's.
    cpu.set(Gpr::Rbp, STACK + PAGE_SIZE);
    cpu.set(Gpr::Rsp, RSP);
    cpu.set_rip(begin);
    machine
}

#[test]
fn recorded_jitted_code_is_unwound_at_each_instruction_that_executes() {
    let mut executed = Vec::new();
    for (name, convention) in RECORDINGS {
        let recording = Recording::new(name);
        // A method entered by on-stack replacement begins on the frame of the method that it
        // replaces.
        let methods = recording.methods.iter().filter(|code| !code.name.contains("OSR"));
        let (mut functions, mut instructions, mut beyond_prologues) = (0, 0, 0);
        for code in methods {
            let layout = CodeHeaderLayout::CORE_3_1_TO_10;
            let (start, size) = (code.start, Some(code.size));
            let method = JittedMethod::read(&recording, &layout, start, size).unwrap();
            for function in method.functions().iter() {
                let (count, last) = execute(&method, function, convention);
                let info = method.unwind_data().bytes;
                let header = &info[(function.unwind_info - method.unwind_data().rva) as usize..];
                functions += 1;
                instructions += count;
                beyond_prologues += u32::from(last >= u32::from(header[1]));
            }
        }
        assert_eq!(functions, beyond_prologues, "{name}: all prologues execute");
        executed.push((functions, instructions));
    }
    // Functions, and instructions before which they were unwound.
    assert_eq!(executed, [(18, 249), (22, 221), (23, 127), (22, 172), (19, 137)]);
}
