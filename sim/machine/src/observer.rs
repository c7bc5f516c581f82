//! Observation of an execution.

use super::cpu::Cpu;
use core::ops::ControlFlow;

/// An observer of a machine's execution, for example a shadow stack, a trace, or a condition to
/// stop at.
///
/// The interpreter is compiled for each observer type, so methods that are not implemented cost
/// nothing. `from` is always the address of the instruction (VA).
pub trait Observer {
    /// True if [`on_step`](Self::on_step) is to be called.
    const STEPS: bool = false;

    /// Called before the instruction at [`Cpu::rip`] is executed; `Break` stops before it. Called
    /// once per element of a repeating string instruction.
    #[inline]
    fn on_step(&mut self, cpu: &Cpu) -> ControlFlow<()> {
        let _: &Cpu = cpu;
        ControlFlow::Continue(())
    }

    /// Called after a call: [`Cpu::rip`] is the callee's first instruction, and the stack pointer
    /// is at the return address.
    #[inline]
    fn on_call(&mut self, cpu: &Cpu, from: u64, return_address: u64) {
        let _: (&Cpu, u64, u64) = (cpu, from, return_address);
    }

    /// Called after a ret: [`Cpu::rip`] is its target, and the stack pointer is above the return
    /// address and the arguments that it removes.
    #[inline]
    fn on_return(&mut self, cpu: &Cpu, from: u64) {
        let _: (&Cpu, u64) = (cpu, from);
    }

    /// Called after a jump, or a conditional jump that is taken: [`Cpu::rip`] is its target.
    #[inline]
    fn on_jump(&mut self, cpu: &Cpu, from: u64) {
        let _: (&Cpu, u64) = (cpu, from);
    }

    /// Called after an iretq: [`Cpu::rip`] is its target, and the stack pointer has the loaded
    /// value.
    #[inline]
    fn on_interrupt_return(&mut self, cpu: &Cpu, from: u64) {
        let _: (&Cpu, u64) = (cpu, from);
    }
}

/// The observer that ignores everything.
impl Observer for () {}

/// An observer that stops when a condition holds.
#[derive(Clone, Copy, Debug)]
pub struct Until<F>(
    /// Returns true to stop before the instruction at [`Cpu::rip`].
    pub F,
);

impl<F: FnMut(&Cpu) -> bool> Observer for Until<F> {
    const STEPS: bool = true;

    #[inline]
    fn on_step(&mut self, cpu: &Cpu) -> ControlFlow<()> {
        if (self.0)(cpu) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
