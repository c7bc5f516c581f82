//! Watching a run.

use super::cpu::Cpu;
use core::ops::ControlFlow;

/// Told of what happens while a machine runs: the place for a shadow stack, a trace, a condition
/// to stop at.
///
/// A run is compiled for its observer, so what is left out here costs nothing. `from` is always the
/// address of the instruction (VA).
pub trait Observer {
    /// Whether [`on_step`](Self::on_step) is wanted.
    const STEPS: bool = false;

    /// The instruction at [`Cpu::rip`] is about to be executed; `Break` stops before it. A string
    /// instruction that repeats is executed once per element.
    #[inline]
    fn on_step(&mut self, cpu: &Cpu) -> ControlFlow<()> {
        let _: &Cpu = cpu;
        ControlFlow::Continue(())
    }

    /// A call has been made: [`Cpu::rip`] is the callee's first instruction, and the stack pointer
    /// is at the return address.
    #[inline]
    fn on_call(&mut self, cpu: &Cpu, from: u64, return_address: u64) {
        let _: (&Cpu, u64, u64) = (cpu, from, return_address);
    }

    /// A ret has been executed: [`Cpu::rip`] is where it went, and the stack pointer is above the
    /// return address and the arguments that it removes.
    #[inline]
    fn on_return(&mut self, cpu: &Cpu, from: u64) {
        let _: (&Cpu, u64) = (cpu, from);
    }

    /// A jump has been made, a conditional one among them: [`Cpu::rip`] is where it went.
    #[inline]
    fn on_jump(&mut self, cpu: &Cpu, from: u64) {
        let _: (&Cpu, u64) = (cpu, from);
    }

    /// An iretq has been executed: [`Cpu::rip`] is where it went, and the stack pointer is what it
    /// loaded.
    #[inline]
    fn on_interrupt_return(&mut self, cpu: &Cpu, from: u64) {
        let _: (&Cpu, u64) = (cpu, from);
    }
}

/// Watches nothing.
impl Observer for () {}

/// Stops where a condition holds.
#[derive(Clone, Copy, Debug)]
pub struct Until<F>(
    /// Whether to stop before the instruction at [`Cpu::rip`].
    pub F,
);

impl<F: FnMut(&Cpu) -> bool> Observer for Until<F> {
    const STEPS: bool = true;

    #[inline]
    fn on_step(&mut self, cpu: &Cpu) -> ControlFlow<()> {
        if (self.0)(cpu) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
