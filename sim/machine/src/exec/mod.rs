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
use clr_walker::registers::Gpr;
use iced_x86::Code;

/// Error: the present instruction cannot be executed; [`Machine::reason`] has the reason.
#[derive(Clone, Copy, Debug)]
struct Halted;

/// The reason why an instruction cannot be executed. Together with its address it becomes a
/// [`StopReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
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
            let flow = match op.kind {
                Kind::Undecoded => match self.prepare(rip) {
                    Ok(found) => {
                        self.cpu.set_rip(rip);
                        index = found;
                        continue;
                    }
                    Err(stop) => break stop,
                },
                Kind::Breakpoint => break StopReason::Breakpoint { address: rip },
                Kind::Trap => break StopReason::Trap { address: rip, id: op.imm.cast_unsigned() },
                Kind::Call => {
                    let target = next.wrapping_add(op.imm());
                    self.call(observer, rip, next, target).map(|()| Flow::Direct(target))
                }
                Kind::CallR => {
                    let target = self.reg::<64>(op.rm());
                    self.call(observer, rip, next, target).map(|()| Flow::To(target))
                }
                Kind::CallM => match self.read_mem::<64>(self.address(op)) {
                    Ok(target) => self.call(observer, rip, next, target).map(|()| Flow::To(target)),
                    Err(halted) => Err(halted),
                },
                Kind::Ret => self.ret(observer, rip, op).map(Flow::To),
                Kind::Jmp => {
                    let target = next.wrapping_add(op.imm());
                    self.jump(observer, rip, target);
                    Ok(Flow::Direct(target))
                }
                Kind::JmpR => {
                    let target = self.reg::<64>(op.rm());
                    self.jump(observer, rip, target);
                    Ok(Flow::To(target))
                }
                Kind::JmpM => self.read_mem::<64>(self.address(op)).map(|target| {
                    self.jump(observer, rip, target);
                    Flow::To(target)
                }),
                Kind::Jcc(condition) => {
                    if self.cpu.flags.condition(condition) {
                        let target = next.wrapping_add(op.imm());
                        self.jump(observer, rip, target);
                        Ok(Flow::Direct(target))
                    } else {
                        Ok(Flow::Next)
                    }
                }
                Kind::Iretq => self.interrupt_return().map(|target| {
                    self.cpu.set_rip(target);
                    observer.on_interrupt_return(&self.cpu, rip);
                    Flow::To(target)
                }),
                Kind::System(system) => self.system(system, index, next).map(Flow::To),
                Kind::String8(string) => self.string::<8>(string, index, rip, next).map(Flow::To),
                Kind::String16(string) => self.string::<16>(string, index, rip, next).map(Flow::To),
                Kind::String32(string) => self.string::<32>(string, index, rip, next).map(Flow::To),
                Kind::String64(string) => self.string::<64>(string, index, rip, next).map(Flow::To),
                kind => self.sequential(kind, op, index).map(|()| Flow::Next),
            };
            match flow {
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

    #[inline(always)]
    fn jump<O: Observer>(&mut self, observer: &mut O, at: u64, target: u64) {
        self.cpu.set_rip(target);
        observer.on_jump(&self.cpu, at);
    }
}
