//! Limits on the cost of a function while it is being generated.

use super::generate::Surroundings;
use clr_codegen::estimate::{self, Estimate};
use clr_codegen::{FunctionIndex, FunctionShape, Statement};

/// The remaining instructions and stack of a function.
pub(super) struct Budget<'a> {
    estimates: &'a [Estimate],
    shape: &'a FunctionShape,
    instructions: u64,
    stack: u64,
    /// Bytes of the function itself, and of its most expensive callee.
    own: u64,
    callee: u64,
}

impl<'a> Budget<'a> {
    /// Creates the budget of a function of this shape.
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

    /// Takes instructions. Returns false if too few are left.
    pub(super) fn pay(&mut self, instructions: u64, times: u64) -> bool {
        let left = self.instructions.checked_sub(instructions.saturating_mul(times));
        self.instructions = left.unwrap_or(self.instructions);
        left.is_some()
    }

    /// Takes bytes of dynamic stack. Returns false if too few are left.
    pub(super) fn grow(&mut self, bytes: u64) -> bool {
        let fits = self.own + bytes + self.callee <= self.stack;
        self.own += if fits { bytes } else { 0 };
        fits
    }

    /// Takes the cost of a statement that calls a function. Returns false if it costs too much.
    pub(super) fn call(
        &mut self,
        statement: &Statement,
        callee: FunctionIndex,
        times: u64,
    ) -> bool {
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
