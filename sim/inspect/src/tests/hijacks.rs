use super::threads::{Process, THREADS};
use crate::hijacks::Hijacks;
use clr_unwind::{Gpr, Registers};

const STACK: u64 = 0x9000;

fn at(rip: u64, rsp: u64) -> Registers {
    let mut registers = Registers { rip, ..Registers::default() };
    registers.set(Gpr::Rsp, rsp);
    registers
}

#[test]
fn a_return_address_that_was_replaced_is_in_the_thread() {
    let mut process = Process::net10();
    process.add(STACK, 0x100);
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
