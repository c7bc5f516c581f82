use super::threads::{Process, THREADS};
use crate::hijacks::Hijacks;
use clr_unwind::{Gpr, Registers};

const FRAME: u64 = 0x8000;
const STACK: u64 = 0x9000;

fn at(rip: u64, rsp: u64) -> Registers {
    let mut registers = Registers { rip, ..Registers::default() };
    registers.set(Gpr::Rsp, rsp);
    registers
}

/// A thread with a HijackFrame for 0x1234, and that address on its stack, below what is taken for it.
fn hijacked() -> Process {
    let mut process = Process::net10();
    process.put(THREADS[0] + 8, FRAME).put(FRAME, 0x77).put(FRAME + 8, u64::MAX);
    process.put(FRAME + 16, 0x1234).add(STACK, 0x100).put(STACK + 0x20, 0x1234);
    process
}

#[test]
fn a_stub_that_was_entered_by_a_return_has_the_caller_of_the_hijack_frame() {
    let process = hijacked();
    let hijacks = Hijacks::read(&process.memory(), &process.runtime());
    let mut named = at(3, STACK + 0x30);
    hijacks.correct_stub(&process.memory(), &mut named);
    assert_eq!((named.rip, named.rsp()), (0x1234, STACK + 0x28));
    // Another word is there.
    let mut named = at(3, STACK + 0x38);
    hijacks.correct_stub(&process.memory(), &mut named);
    assert_eq!((named.rip, named.rsp()), (3, STACK + 0x38));
}

#[test]
fn a_return_address_that_was_replaced_is_in_the_thread() {
    let mut process = hijacked();
    process.put(THREADS[1] + 0x50, 0x5678).put(THREADS[1] + 0x58, STACK + 0x40);
    process.add(THREADS[1] + 0x80, 0x780).add(THREADS[0] + 0x80, 0x780);
    let hijacks = Hijacks::read(&process.memory(), &process.runtime());
    let mut caller = at(3, STACK + 0x48);
    hijacks.correct_return(&process.memory(), &mut caller);
    assert_eq!((caller.rip, caller.rsp()), (0x5678, STACK + 0x48));
    let mut caller = at(3, STACK + 0x50);
    hijacks.correct_return(&process.memory(), &mut caller);
    assert_eq!(caller.rip, 3);
}
