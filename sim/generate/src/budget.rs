//! What a function may still cost while it is being generated.

use super::generate::Surroundings;
use clr_codegen::estimate::{self, Estimate};
use clr_codegen::{FunctionId, FunctionShape, Statement};

/// What is left of a function's instructions and stack.
pub(super) struct Budget<'a> {
    estimates: &'a [Estimate],
    shape: &'a FunctionShape,
    instructions: u64,
    stack: u64,
    /// Bytes of the function's own, and of the callee that takes the most.
    own: u64,
    callee: u64,
}

impl<'a> Budget<'a> {
    /// All that a function of this shape may cost.
    pub(super) fn new(around: &Surroundings<'a>, shape: &'a FunctionShape) -> Self {
        Self {
            estimates: around.estimates,
            shape,
            instructions: around.instructions.saturating_sub(estimate::overhead(shape)),
            stack: around.stack,
            own: estimate::frame(shape),
            callee: 0,
        }
    }

    /// Takes instructions, or says that there are not so many.
    pub(super) fn pay(&mut self, instructions: u64, times: u64) -> bool {
        let left = self.instructions.checked_sub(instructions.saturating_mul(times));
        self.instructions = left.unwrap_or(self.instructions);
        left.is_some()
    }

    /// Takes bytes of dynamic stack, or says that there are not so many.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let fits = self.own + bytes + self.callee <= self.stack;
        self.own += if fits { bytes } else { 0 };
        fits
    }

    /// Takes what a statement that calls a function costs, or says that it costs too much.
    pub(super) fn call(&mut self, statement: &Statement, callee: FunctionId, times: u64) -> bool {
        let estimate = estimate::of(self.estimates, callee);
        let stack = self.callee.max(estimate.stack);
        let fits = self.own + stack <= self.stack
            && self.pay(estimate::step(statement, self.shape) + estimate.instructions, times);
        if fits {
            self.callee = stack;
        }
        fits
    }
}
