//! Shadow stack: the true callers of each frame, with their registers.
//!
//! A machine with a [`ShadowStack`] as its observer reports calls and returns to it; the host reports the
//! interrupts that it makes. So each frame's exact caller is known at any instruction boundary
//! without an unwinder.

use crate::CallingConvention;
use clr_machine::{Cpu, Observer};
use clr_unwind::{Gpr, Position, Registers};
use thiserror::Error;

/// A caller of a frame: the expected result of unwinding the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallerState {
    /// Registers of the caller when control returns to it. After a call only the nonvolatile
    /// registers must have these values; after an interrupt, all of them.
    pub registers: Registers,
    /// Call or breakpoint instruction (VA) of the caller; `None` if it was interrupted at any other
    /// place.
    pub from: Option<u64>,
    /// Kind of position that rip is.
    pub position: Position,
}

/// A violation of the calling convention by a callee, which is a bug in the executed code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Broken {
    /// There was no call to return from.
    #[error("the return at {from:#x} has no call")]
    NoCall {
        /// The return instruction (VA).
        from: u64,
    },
    /// Control returned to another address.
    #[error("the return at {from:#x} goes to {rip:#x} instead of {expected:#x}")]
    Place {
        /// The return instruction (VA).
        from: u64,
        /// Actual target of the return (VA).
        rip: u64,
        /// Return address of the call (VA).
        expected: u64,
    },
    /// A register was not preserved.
    #[error("the return at {from:#x} leaves {} changed", register.name())]
    Register {
        /// The return instruction (VA).
        from: u64,
        /// Register.
        register: Gpr,
    },
    /// A vector register was not preserved.
    #[error("the return at {from:#x} leaves xmm{number} changed")]
    Xmm {
        /// The return instruction (VA).
        from: u64,
        /// Number of the register.
        number: u8,
    },
}

/// The shadow stack of one thread.
#[derive(Clone, Debug, Hash)]
pub struct ShadowStack {
    convention: CallingConvention,
    /// Callers, the innermost frame's caller last.
    callers: Vec<CallerState>,
    broken: Option<Broken>,
}

impl ShadowStack {
    /// Creates the shadow stack of a thread that has called nothing.
    pub const fn new(convention: CallingConvention) -> Self {
        Self { convention, callers: Vec::new(), broken: None }
    }

    /// Returns the callers, outermost first: the last one is the caller of the innermost frame.
    pub fn callers(&self) -> &[CallerState] {
        &self.callers
    }

    /// Returns the first violation of the calling convention, if any.
    pub const fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Records a call made by the host: control will return to `registers`.
    pub fn call(&mut self, registers: Registers) {
        self.callers.push(CallerState { registers, from: None, position: Position::ReturnAddress });
    }

    /// Records again a call whose caller was [cut](Self::cut) off: control will return to `caller`.
    pub fn call_again(&mut self, caller: CallerState) {
        self.callers.push(caller);
    }

    /// Records an interrupt: control will return to `registers`, all unchanged except vector
    /// registers that the convention makes volatile. `from` is the instruction that raised the
    /// interrupt (VA).
    pub fn interrupt(&mut self, registers: Registers, from: Option<u64>) {
        self.callers.push(CallerState { registers, from, position: Position::Interrupted });
    }

    /// Records that the stack is cut: only the `count` outermost callers remain.
    pub fn cut(&mut self, count: usize) {
        self.callers.truncate(count);
    }

    /// Records that the innermost frame's return address is replaced by `rip`, the address of code
    /// that returns to the caller later (contract §2.4, hijacking).
    pub fn divert(&mut self, rip: u64) {
        if let Some(mut caller) = self.callers.last().copied() {
            caller.registers.rip = rip;
            caller.from = None;
            self.callers.push(caller);
        }
    }

    /// Undoes [`divert`](Self::divert) for the caller at `index`.
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

    fn difference(&self, caller: &CallerState, cpu: &Cpu, from: u64) -> Option<Broken> {
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

impl Observer for ShadowStack {
    fn on_call(&mut self, cpu: &Cpu, from: u64, return_address: u64) {
        let mut registers = cpu.registers();
        registers.rip = return_address;
        registers.set(Gpr::Rsp, cpu.rsp().wrapping_add(8));
        let position = Position::ReturnAddress;
        self.callers.push(CallerState { registers, from: Some(from), position });
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
