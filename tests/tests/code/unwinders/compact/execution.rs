//! Execution of the sample's functions: at each instruction the true caller is known.

use super::*;
use clr_machine::{Machine, Protection};

/// Code outside the image (VA): the functions that the sample imports, and the caller.
const OUTSIDE: u64 = 0x2_0000_0000;
/// Data for pointers (VA).
const DATA: u64 = 0x3_0000_0000;
const STACK: u64 = 0x7FFF_0000_0000;
const STACK_PAGES: u64 = 16;
const RETURN_ADDRESS: u64 = OUTSIDE + 0x800;

/// `lea rax, [rdi+1]; xor edi, edi; xor esi, esi; xor ecx, ecx; ret`: what is imported overwrites the
/// registers that it may.
const IMPORTED: &[u8] = b"\x48\x8D\x47\x01\x31\xFF\x31\xF6\x31\xC9\xC3";

/// Returns the machine with the sample, bound to the imported code.
fn machine(image: &MachoImage<'_>) -> Machine {
    let mut machine = Machine::new();
    let pages = u64::from(image.size()).div_ceil(0x1000);
    machine.map(BASE, pages, Protection::READ_WRITE | Protection::EXECUTE).unwrap();
    for segment in image.sections().as_slice() {
        machine.write(BASE + u64::from(segment.rva), segment.bytes).unwrap();
    }
    // __la_symbol_ptr has a slot for each import, and __got is before it.
    for slot in (0x3000..0x3008).step_by(8).chain((0x4000..0x4020).step_by(8)) {
        machine.write(BASE + slot, &OUTSIDE.to_le_bytes()).unwrap();
    }
    machine.map(OUTSIDE, 1, Protection::READ_EXECUTE).unwrap();
    machine.write(OUTSIDE, IMPORTED).unwrap();
    machine.map(DATA, 1, Protection::READ_WRITE).unwrap();
    for n in 0..64_u64 {
        machine.write(DATA + 8 * n, &(n * 5 + 2).to_le_bytes()).unwrap();
    }
    machine.map(STACK, STACK_PAGES, Protection::READ_WRITE).unwrap();
    machine
}

/// Arguments for the sample's functions: numbers, or pointers where their names say so.
fn arguments(name: &str, round: u64) -> [u64; 5] {
    match name.split('_').next().unwrap() {
        "early" => [if round == 0 { 0 } else { DATA }, 0, 0, 0, 0],
        "pure" => [DATA, 8, DATA + 0x400, 0, 0],
        "pointer" => [OUTSIDE, round, 0, 0, 0],
        "large" => [round, 0, 0, 0, 0],
        _ => [round, round + 2, 4, 5, 6],
    }
}

#[test]
fn executed_functions_are_unwound_to_their_callers_at_every_instruction() {
    let image = MachoImage::parse(sample()).unwrap();
    let mut map = CodeMap::new();
    map.insert_macho(BASE, &image).unwrap();
    let unwinder = Unwinder::new(&map);
    let mut machine = machine(&image);
    let (mut interrupted, mut calls) = (0, 0);
    for (name, rva, _) in functions(&image) {
        for round in 0..9 {
            let mut caller = Registers { rip: RETURN_ADDRESS, ..Registers::default() };
            for register in Gpr::ALL {
                caller.set(register, 0x5EED_0000 + u64::from(register.number()));
            }
            let top = STACK + STACK_PAGES * 0x1000 - 0x100;
            caller.set(Gpr::Rsp, top);
            let mut start = caller;
            start.rip = BASE + u64::from(rva);
            start.set(Gpr::Rsp, top - 8);
            let order = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8];
            for (register, value) in order.into_iter().zip(arguments(name, round)) {
                start.set(register, value);
            }
            machine.write(top - 8, &RETURN_ADDRESS.to_le_bytes()).unwrap();
            machine.cpu_mut().set_registers(&start);
            // Functions that the sample calls within itself are frames too.
            let mut depth = vec![caller];
            for _ in 0..200_000 {
                let now = machine.cpu().registers();
                if now.rip == RETURN_ADDRESS {
                    break;
                }
                let inside = now.rip.wrapping_sub(BASE) < u64::from(image.size());
                let mut frame = now;
                let mut position = Position::Interrupted;
                if !inside {
                    // The imported code has no frame.
                    frame.rip = machine_word(&machine, now.rsp());
                    frame.set(Gpr::Rsp, now.rsp() + 8);
                    position = Position::ReturnAddress;
                    if frame.rip == RETURN_ADDRESS {
                        machine.step().unwrap();
                        continue;
                    }
                }
                // Below imported code that was jumped to, the frame is already the next one.
                let expected = expected(&depth, &frame);
                let place = format!("{name}, round {round}, {:#x} {position:?}", frame.rip - BASE);
                let step = unwinder
                    .step(&mut frame, position, &machine)
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!((frame.rip, frame.rsp()), (expected.rip, expected.rsp()), "{place}");
                for register in GPRS {
                    let values = (frame.get(register), expected.get(register));
                    assert_eq!(values.0, values.1, "{place}: {} {step:?}", register.name());
                }
                match position {
                    Position::Interrupted => interrupted += 1,
                    Position::ReturnAddress => calls += 1,
                }
                machine.step().unwrap_or_else(|reason| panic!("{place}: {reason:?}"));
                follow(&mut depth, &now, &machine);
            }
            assert_eq!(machine.cpu().rip(), RETURN_ADDRESS, "{name}, round {round}");
            let end = machine.cpu().registers();
            assert_eq!(end.rsp(), top, "{name}, round {round}");
        }
    }
    println!("{interrupted} interrupted instructions, {calls} calls");
    assert!(interrupted > 50_000 && calls > 5_000, "{interrupted} {calls}");
}

fn machine_word(machine: &Machine, address: u64) -> u64 {
    clr_unwind::Memory::read_u64(machine, address).unwrap()
}

/// Returns the caller of the frame: the last of `depth` whose stack is above it.
fn expected(depth: &[Registers], frame: &Registers) -> Registers {
    *depth.iter().rev().find(|caller| caller.rsp() > frame.rsp()).unwrap()
}

/// Adds a caller after a call, and removes it after its return.
fn follow(depth: &mut Vec<Registers>, before: &Registers, machine: &Machine) {
    let now = machine.cpu().registers();
    while depth.len() > 1 && depth.last().is_some_and(|caller| now.rsp() >= caller.rsp()) {
        depth.pop();
    }
    let is_call = now.rsp() == before.rsp() - 8
        && now.rip.wrapping_sub(before.rip) > 15
        && machine_word(machine, now.rsp()).wrapping_sub(before.rip) <= 15;
    if is_call {
        let rip = machine_word(machine, now.rsp());
        depth.push(Registers { rip, ..*before });
    }
}
