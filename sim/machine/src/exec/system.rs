//! Execution of instructions on flags as a whole, traps, and other instructions without arithmetic.

use super::{Halted, Reason};
use crate::Machine;
use crate::cpu::{MXCSR_START, slot};
use crate::flags::{AF, CF, DF, Flags, OF, PF, SF, ZF};
use crate::op::{PackedOp, System};
use clr_unwind::Gpr;

/// The exception flags of mxcsr, which have no effect.
const MXCSR_STICKY: u32 = 0x3F;
/// The selectors of 64-bit user code and of its stack.
const CODE_SELECTOR: u64 = 0x33;
const STACK_SELECTOR: u64 = 0x2B;
/// The flags of lahf and sahf.
const LOW_FLAGS: u64 = SF | ZF | AF | PF | CF;
const AH: u8 = slot::HIGH;

impl Machine {
    /// Executes the operation with the given index, and returns the address of the next
    /// instruction.
    #[inline(never)]
    pub(super) fn system(&mut self, system: System, index: u32, next: u64) -> Result<u64, Halted> {
        let op = self.code.op(index);
        match system {
            System::Pushfq => self.push::<64>(self.cpu.rflags())?,
            System::Popfq => {
                let flags = self.pop::<64>()?;
                self.cpu.set_rflags(flags);
            }
            System::Lahf => self.set_reg::<8>(AH, self.cpu.rflags()),
            System::Sahf => {
                let flags = self.cpu.rflags() & !LOW_FLAGS | self.reg::<8>(AH) & LOW_FLAGS;
                self.cpu.set_rflags(flags);
            }
            System::Clc => self.cpu.flags = self.cpu.flags.with_carry(false),
            System::Stc => self.cpu.flags = self.cpu.flags.with_carry(true),
            System::Cmc => {
                let flags = self.cpu.flags;
                self.cpu.flags = flags.with_carry(!flags.carry());
            }
            System::Cld => self.cpu.set_rflags(self.cpu.rflags() & !DF),
            System::Std => self.cpu.set_rflags(self.cpu.rflags() | DF),
            System::Ldmxcsr => {
                let value = self.read_mem::<32>(self.address(op))? as u32;
                // Other rounding modes and unmasked exceptions are not implemented.
                if value & !MXCSR_STICKY != MXCSR_START {
                    return self.halt(Reason::Unimplemented(iced_x86::Code::Ldmxcsr_m32));
                }
                self.cpu.mxcsr = value;
            }
            System::Stmxcsr => self.write_mem::<32>(self.address(op), self.cpu.mxcsr.into())?,
            System::StoreX4 => {
                self.write_mem::<32>(self.address(op), self.cpu.xmm(op.reg()) as u64)?;
            }
            System::StoreXHigh => {
                self.write_mem::<64>(self.address(op), (self.cpu.xmm(op.reg()) >> 64) as u64)?;
            }
            System::JumpZero64 => return Ok(jump(self.cpu.get(Gpr::Rcx) == 0, op, next)),
            System::JumpZero32 => return Ok(jump(self.cpu.get(Gpr::Rcx) as u32 == 0, op, next)),
            System::Loop | System::LoopEqual | System::LoopNotEqual => {
                let count = self.cpu.get(Gpr::Rcx).wrapping_sub(1);
                self.cpu.set(Gpr::Rcx, count);
                let zero = self.cpu.flags.zero();
                let goes_on = match system {
                    System::LoopEqual => zero,
                    System::LoopNotEqual => !zero,
                    _ => true,
                };
                return Ok(jump(count != 0 && goes_on, op, next));
            }
            System::Int3 => return self.halt(Reason::Int3),
            System::Interrupt => return self.halt(Reason::System),
            System::Privileged => return self.halt(Reason::Protection),
            System::Invalid => return self.halt(Reason::Invalid),
        }
        Ok(next)
    }

    /// Pops rip, cs, rflags, rsp and ss.
    #[inline(never)]
    pub(super) fn interrupt_return(&mut self) -> Result<u64, Halted> {
        let rsp = self.cpu.rsp();
        let mut frame = [0; 5];
        for (place, at) in frame.iter_mut().zip((0..).step_by(8)) {
            *place = self.read_mem::<64>(rsp.wrapping_add(at))?;
        }
        let [rip, code, flags, rsp, stack] = frame;
        // A selector is the low 16 bits of its slot.
        if code & 0xFFFF != CODE_SELECTOR || stack & 0xFFFF != STACK_SELECTOR {
            return self.halt(Reason::Protection);
        }
        self.cpu.set(Gpr::Rsp, rsp);
        self.cpu.set_rflags(flags);
        Ok(rip)
    }

    /// Sets ZF, PF and CF, and clears the others, as comisd does.
    pub(super) fn set_comparison(&mut self, zero: bool, parity: bool, carry: bool) {
        let bit = |holds, flag| if holds { flag } else { 0 };
        let set = bit(zero, ZF) | bit(parity, PF) | bit(carry, CF);
        let kept = self.cpu.rflags() & !(LOW_FLAGS | OF);
        self.cpu.flags = Flags::from_bits(kept | set);
    }
}

fn jump(taken: bool, op: PackedOp, next: u64) -> u64 {
    if taken { next.wrapping_add(op.imm()) } else { next }
}
