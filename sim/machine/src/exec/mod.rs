//! Execution of operations.

mod alu;
mod cold;
mod hot;
mod operand;
mod simd;
mod string;
mod system;

use super::Machine;
use super::code::UNKNOWN;
use super::flags::low;
use super::observer::Observer;
use super::op::{Kind, PackedOp};
use super::stop::{Fault, InstructionForm, StopReason};
use clr_unwind::Gpr;
use iced_x86::Code;

/// Error: the present instruction cannot be executed; [`Machine::reason`] has the reason.
#[derive(Clone, Copy, Debug)]
struct Halted;

/// The reason why an instruction cannot be executed. Together with its address it becomes a
/// [`StopReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Breakpoint,
    Trap(u32),
    Fault(Fault),
    Divide,
    Protection,
    Invalid,
    Int3,
    System,
    Unimplemented(Code),
}

impl Reason {
    pub(super) const fn at(self, address: u64) -> StopReason {
        match self {
            Self::Breakpoint => StopReason::Breakpoint { address },
            Self::Trap(id) => StopReason::Trap { address, id },
            Self::Fault(fault) => StopReason::Fault { at: address, fault },
            Self::Divide => StopReason::DivideError { address },
            Self::Protection => StopReason::GeneralProtection { address },
            Self::Invalid => StopReason::InvalidInstruction { address },
            Self::Int3 => StopReason::Int3 { address },
            Self::System => StopReason::System { address },
            Self::Unimplemented(code) => {
                StopReason::Unimplemented { address, instruction: InstructionForm::new(code) }
            }
        }
    }
}

/// The place where execution continues.
enum Flow {
    /// The same instruction, once it is decoded.
    Decode,
    /// The next instruction.
    Next,
    /// The target of a direct jump or call.
    Direct(u64),
    To(u64),
}

impl Machine {
    /// Executes up to `limit` instructions.
    pub(super) fn execute<O: Observer>(&mut self, observer: &mut O, limit: u64) -> StopReason {
        let mut left = limit;
        let mut rip = self.cpu.rip();
        let mut index = self.code.find(rip);
        let stop = loop {
            if left == 0 {
                break StopReason::Limit;
            }
            let op = self.code.op(index);
            if O::STEPS
                && !matches!(op.kind, Kind::Undecoded | Kind::Breakpoint | Kind::Trap)
                && observer.on_step(&self.cpu).is_break()
            {
                break StopReason::Observer { address: rip };
            }
            let next = rip.wrapping_add(op.len.into());
            // Addresses may be relative to the next instruction.
            self.cpu.set_rip(next);
            match self.operation(observer, rip, next, op, index) {
                Ok(Flow::Decode) => match self.prepare(rip) {
                    Ok(found) => {
                        self.cpu.set_rip(rip);
                        index = found;
                        continue;
                    }
                    Err(stop) => break stop,
                },
                Ok(Flow::Next) => {
                    index = if op.followed { index + 1 } else { self.code.find(next) };
                    rip = next;
                }
                Ok(Flow::Direct(target)) => {
                    index = match op.link() {
                        UNKNOWN => self.link(index, target),
                        known => known,
                    };
                    rip = target;
                }
                Ok(Flow::To(target)) => {
                    index = self.code.find(target);
                    self.cpu.set_rip(target);
                    rip = target;
                }
                Err(Halted) => break self.reason.at(rip),
            }
            left -= 1;
        };
        self.cpu.set_rip(rip);
        self.executed += limit - left;
        stop
    }

    /// Finds the operation at the target of the direct jump with the given index, and stores it in
    /// the jump.
    #[cold]
    #[inline(never)]
    fn link(&mut self, index: u32, target: u64) -> u32 {
        let found = self.code.enter(target);
        self.code.link(index, found);
        found
    }

    #[inline(always)]
    fn call<O: Observer>(
        &mut self,
        observer: &mut O,
        at: u64,
        return_address: u64,
        target: u64,
    ) -> Result<(), Halted> {
        self.push::<64>(return_address)?;
        self.cpu.set_rip(target);
        observer.on_call(&self.cpu, at, return_address);
        Ok(())
    }

    #[inline(always)]
    fn ret<O: Observer>(&mut self, observer: &mut O, at: u64, op: PackedOp) -> Result<u64, Halted> {
        let target = self.pop::<64>()?;
        // The number of argument bytes is not negative.
        let rsp = self.cpu.rsp().wrapping_add(low::<16>(op.imm()));
        self.cpu.set(Gpr::Rsp, rsp);
        self.cpu.set_rip(target);
        observer.on_return(&self.cpu, at);
        Ok(target)
    }

    /// Jumps if the condition holds (encoded as for [`Flags::condition`](crate::flags::Flags::condition)).
    #[inline(always)]
    fn branch<O: Observer>(
        &mut self,
        observer: &mut O,
        at: u64,
        next: u64,
        op: PackedOp,
        condition: u8,
    ) -> Flow {
        if self.cpu.flags.condition(condition) {
            let target = next.wrapping_add(op.imm());
            self.jump(observer, at, target);
            Flow::Direct(target)
        } else {
            Flow::Next
        }
    }

    #[inline(always)]
    fn jump<O: Observer>(&mut self, observer: &mut O, at: u64, target: u64) {
        self.cpu.set_rip(target);
        observer.on_jump(&self.cpu, at);
    }
}
