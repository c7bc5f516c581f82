//! The truth: a shadow stack of who really called whom, with which registers.
//!
//! A machine that runs with a [`Truth`] as its observer tells it of calls and returns; interrupts,
//! which the host makes, are told by the host. So at any instruction boundary each frame's exact
//! caller is known, and no unwinder was asked.

use crate::Convention;
use clr_machine::{Cpu, Observer};
use clr_walker::registers::{Gpr, Registers};
use clr_walker::unwind::Position;
use thiserror::Error;

/// A caller of a frame: what unwinding the frame must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its registers as they are when control comes back to it. Only nonvolatile registers must be
    /// so then; below an interrupt all are.
    pub registers: Registers,
    /// The call or breakpoint instruction (VA) that it is in; `None` if it was interrupted at will.
    pub from: Option<u64>,
    /// What its rip is.
    pub position: Position,
}

/// A callee that did not keep to the calling convention: a mistake in the code that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    /// There was nothing to return to.
    #[error("the return at {from:#x} has no call")]
    NoCall {
        /// The return instruction (VA).
        from: u64,
    },
    /// Control came back to another place.
    #[error("the return at {from:#x} goes to {rip:#x}, the call was before {expected:#x}")]
    Place {
        /// The return instruction (VA).
        from: u64,
        /// Where it goes (VA).
        rip: u64,
        /// The return address of the call (VA).
        expected: u64,
    },
    /// A register was not preserved.
    #[error("the return at {from:#x} leaves {} changed", register.name())]
    Register {
        /// The return instruction (VA).
        from: u64,
        /// The register.
        register: Gpr,
    },
    /// A vector register was not preserved.
    #[error("the return at {from:#x} leaves xmm{number} changed")]
    Xmm {
        /// The return instruction (VA).
        from: u64,
        /// The register's number.
        number: u8,
    },
}

/// The shadow stack of one thread.
#[derive(Clone, Debug)]
pub struct Truth {
    convention: Convention,
    /// The innermost frame's caller is the last one.
    callers: Vec<Caller>,
    broken: Option<Broken>,
}

impl Truth {
    /// Of a thread that has called nothing.
    #[must_use]
    pub const fn new(convention: Convention) -> Self {
        Self { convention, callers: Vec::new(), broken: None }
    }

    /// The callers, the outermost one first: the last one is the caller of the innermost frame.
    #[must_use]
    pub fn callers(&self) -> &[Caller] {
        &self.callers
    }

    /// The first breach of the convention, if there was one.
    #[must_use]
    pub const fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// A call made by the host: control will come back to `registers`.
    pub fn call(&mut self, registers: Registers) {
        self.callers.push(Caller { registers, from: None, position: Position::ReturnAddress });
    }

    /// An interrupt: control will come back to `registers`, all of them unchanged but vector registers
    /// that the convention makes volatile. `from` is the
    /// instruction that made it (VA).
    pub fn interrupt(&mut self, registers: Registers, from: Option<u64>) {
        self.callers.push(Caller { registers, from, position: Position::Interrupted });
    }

    /// The stack is cut: only the `count` outermost callers remain.
    pub fn cut(&mut self, count: usize) {
        self.callers.truncate(count);
    }

    /// The innermost frame's return address is replaced by `rip`, where somebody will wait who then
    /// returns to the caller (contract §2.4, hijacking).
    pub fn divert(&mut self, rip: u64) {
        if let Some(mut caller) = self.callers.last().copied() {
            caller.registers.rip = rip;
            caller.from = None;
            self.callers.push(caller);
        }
    }

    /// What [`divert`](Self::divert) has done to the caller at `index` is undone.
    pub fn undivert(&mut self, index: usize) {
        if index < self.callers.len() {
            self.callers.remove(index);
        }
    }

    fn come_back(&mut self, cpu: &Cpu, from: u64) {
        let Some(caller) = self.callers.pop() else {
            self.broken.get_or_insert(Broken::NoCall { from });
            return;
        };
        if self.broken.is_none() {
            self.broken = self.difference(&caller, cpu, from);
        }
    }

    fn difference(&self, caller: &Caller, cpu: &Cpu, from: u64) -> Option<Broken> {
        let expected = &caller.registers;
        if cpu.rip() != expected.rip {
            return Some(Broken::Place { from, rip: cpu.rip(), expected: expected.rip });
        }
        let kept: &[Gpr] = match caller.position {
            Position::ReturnAddress => self.convention.nonvolatile(),
            Position::Interrupted => &Gpr::ALL,
        };
        for &register in kept.iter().chain(&[Gpr::Rsp]) {
            if cpu.get(register) != expected.get(register) {
                return Some(Broken::Register { from, register });
            }
        }
        if self.convention.has_nonvolatile_xmm() {
            for (number, value) in (6..).zip(expected.xmm) {
                if cpu.xmm(number) != value {
                    return Some(Broken::Xmm { from, number });
                }
            }
        }
        None
    }
}

impl Observer for Truth {
    fn on_call(&mut self, cpu: &Cpu, from: u64, return_address: u64) {
        let mut registers = cpu.registers();
        registers.rip = return_address;
        registers.set(Gpr::Rsp, cpu.rsp().wrapping_add(8));
        let position = Position::ReturnAddress;
        self.callers.push(Caller { registers, from: Some(from), position });
    }

    fn on_return(&mut self, cpu: &Cpu, from: u64) {
        self.come_back(cpu, from);
    }

    fn on_interrupt_return(&mut self, cpu: &Cpu, from: u64) {
        self.come_back(cpu, from);
    }
}

#[cfg(test)]
mod tests;
