//! Steps by general rules: registers, memory and expressions in any combination.

use super::expression::{Failure, Machine};
use super::{Place, below};
use crate::cfi::{
    self, CfaRule, CfiError, CfiProblem, CfiTable, Column, Expression, GeneralRule, NONVOLATILE,
    RegisterRule,
};
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};
use crate::unwind::{Position, Step, Trust, UnwindError};

impl GeneralRule {
    /// Makes the step.
    pub(super) fn apply<M: Memory + ?Sized>(
        &self,
        place: Place<'_, '_>,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let table = place.table;
        let slide = place.region.base().wrapping_sub(table.preferred_base());
        let machine = Machine::new(registers, memory, slide);
        let frame = Frame { table, place: self.place, machine };
        let cfa = match self.cfa {
            CfaRule::Register { register, offset } => {
                frame.register(register)?.wrapping_add_signed(offset.into())
            }
            CfaRule::Expression(expression) => frame.evaluate(expression, None)?,
        };
        let rsp = registers.rsp();
        let mut gpr = registers.gpr;
        gpr[Gpr::Rsp as usize] = cfa;
        let mut found = RegisterSet::of(&[Gpr::Rsp]);
        // An interruption at any instruction must preserve everything.
        let preserved = if self.signal_frame { RegisterSet::of(&Gpr::ALL) } else { NONVOLATILE };
        let mut kept = preserved.without(Gpr::Rsp);
        for (register, rule) in table.register_rules(self.registers) {
            let (register, before) = (*register, registers.get(*register));
            let value = match *rule {
                RegisterRule::Offset(offset) if cfa.wrapping_add_signed(offset.into()) < rsp => {
                    let address = cfa.wrapping_add_signed(offset.into());
                    below::saved(address, rsp, place.interrupted(position), memory)?
                }
                rule => frame.value(rule, cfa)?,
            };
            // An undefined register is lost; its old value is no worse than any other.
            gpr[register as usize] = value.unwrap_or(before);
            (found, kept) = (found.without(register), kept.without(register));
            match (rule, value) {
                (RegisterRule::Undefined, _) => {}
                (_, None) => kept = kept.with(register),
                (_, Some(_)) => found = found.with(register),
            }
        }
        let rip = match self.return_address {
            Some(RegisterRule::Undefined) => {
                return Err(UnwindError::EndOfStack { address: registers.rip });
            }
            Some(RegisterRule::SameValue) | None => {
                return Err(self.place.error(CfiProblem::NoReturnAddress).into());
            }
            Some(rule) => frame.value(rule, cfa)?.unwrap_or(0),
        };
        let caller_rsp = gpr[Gpr::Rsp as usize];
        // Code that a signal interrupted may use another stack. A function that was interrupted may
        // have taken its return address off the stack, as vfork does.
        let stays = position == Position::Interrupted
            && matches!(self.return_address, Some(RegisterRule::Register(_)));
        let goes_up = caller_rsp > rsp || (stays && caller_rsp == rsp);
        if !goes_up && !self.signal_frame {
            return Err(UnwindError::NoProgress { rsp, caller_rsp });
        }
        let needed = frame.machine.needed();
        (registers.gpr, registers.rip) = (gpr, rip);
        Ok(Step {
            trust: if self.signal_frame { Trust::SignalFrame } else { Trust::Cfi },
            establisher_frame: cfa,
            handler: None,
            caller: Position::below(self.signal_frame),
            found,
            kept,
            needed,
        })
    }
}

/// A frame whose caller's values are computed.
struct Frame<'f, 't, M: ?Sized> {
    table: &'f CfiTable<'t>,
    place: cfi::Place,
    machine: Machine<'f, M>,
}

impl<M: Memory + ?Sized> Frame<'_, '_, M> {
    fn register(&self, column: Column) -> Result<u64, UnwindError> {
        Ok(self.machine.register(column).map_err(|problem| self.place.error(problem))?)
    }

    /// Returns the caller's value of a register; `None` if it is undefined or the same.
    fn value(&self, rule: RegisterRule, cfa: u64) -> Result<Option<u64>, UnwindError> {
        let read = |address| self.machine.memory.read_u64(address);
        Ok(Some(match rule {
            RegisterRule::Undefined | RegisterRule::SameValue => return Ok(None),
            RegisterRule::Offset(offset) => read(cfa.wrapping_add_signed(offset.into()))?,
            RegisterRule::ValOffset(offset) => cfa.wrapping_add_signed(offset.into()),
            RegisterRule::Register(column) => self.register(column)?,
            RegisterRule::Expression(expression) => read(self.evaluate(expression, Some(cfa))?)?,
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(cfa))?,
        }))
    }

    fn evaluate(&self, expression: Expression, cfa: Option<u64>) -> Result<u64, UnwindError> {
        let code = self.table.expression(expression);
        self.machine.evaluate(code, cfa).map_err(|failure| match failure {
            Failure::Memory(error) => error,
            Failure::Expression(problem) => {
                let Expression { section, offset, .. } = expression;
                CfiError { problem, section, offset }.into()
            }
        })
    }
}
