//! Steps by general rules: registers, memory and expressions in any combination.

use super::expression::{Failure, Machine};
use super::{Place, below, entered_by_return};
use crate::cfi::{
    self, CfaRule, CfiError, CfiProblem, CfiTable, Column, Expression, Found, General, NONVOLATILE,
    RegisterRule,
};
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};
use crate::unwinder::{Position, Step, Trust, UnwindError};

impl General {
    /// Makes the step; on an error `registers` stay as they were.
    pub(super) fn apply<M: Memory + ?Sized>(
        &self,
        place: Place<'_, '_>,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let (gpr, rip, rsp) = (registers.gpr, registers.rip, registers.rsp());
        let step = self.move_to_caller(place, registers, position, memory)?;
        let caller_rsp = registers.rsp();
        // Code that a signal interrupted may use another stack. A function that was interrupted may
        // have taken its return address off the stack, as vfork does; it is in a register then, or still
        // below rsp.
        let is_off_the_stack = match self.row.return_address {
            Some(RegisterRule::Register(_)) => true,
            Some(RegisterRule::Offset(_)) => step.establisher_frame == rsp,
            _ => false,
        };
        let stays = position == Position::Interrupted && is_off_the_stack;
        if caller_rsp > rsp || (stays && caller_rsp == rsp) || self.row.signal_frame {
            return Ok(step);
        }
        let whole = self.leave_outlined(step, place, registers, position, memory);
        if let Some(whole) = whole.filter(|_| registers.rsp() >= rsp) {
            return Ok(whole);
        }
        (registers.gpr, registers.rip) = (gpr, rip);
        Err(UnwindError::NoProgress { rsp, caller_rsp })
    }

    /// Makes the second half of a step that led from one part of a function to another.
    ///
    /// glibc 2.4 to 2.19 waits for locks in parts that it jumps to: `sub rsp, 128`, a call, `add
    /// rsp, 128`, and a jump back (`_L_lock_…`, described in its `lowlevellock.h`). By their call
    /// frame information, all instructions but `add` were called from `add`, with the stack as it is
    /// there, and `add` from where the jump goes. So two of these steps lead back into
    /// the function, whose stack pointer is as it was or higher.
    #[cold]
    fn leave_outlined<M: Memory + ?Sized>(
        &self,
        first: Step,
        place: Place<'_, '_>,
        registers: &mut Registers,
        position: Position,
        memory: &M,
    ) -> Option<Step> {
        let computes_rip =
            |rule: &Self| matches!(rule.row.return_address, Some(RegisterRule::ValExpression(_)));
        if position != Position::Interrupted || !computes_rip(self) {
            return None;
        }
        let rva = place.region.rva(registers.rip.wrapping_sub(1))?;
        let Found::General = place.table.find(rva) else { return None };
        let mut rule = Self::new();
        if !place.table.general(rva, &mut rule) || !computes_rip(&rule) {
            return None;
        }
        let step = rule.move_to_caller(place, registers, Position::ReturnAddress, memory).ok()?;
        Some(Step {
            found: first.found.union(step.found),
            kept: first.kept.intersection(step.kept),
            needed: first.needed.union(step.needed.difference(first.found)),
            ..step
        })
    }

    /// Moves `registers` to the caller, wherever its stack pointer is; on an error they stay as they
    /// were.
    fn move_to_caller<M: Memory + ?Sized>(
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
        let cfa = match self.row.cfa {
            CfaRule::Register { register, offset } => {
                frame.register(register)?.wrapping_add_signed(offset.into())
            }
            CfaRule::Expression(expression) => frame.evaluate(expression, None)?,
        };
        let rsp = registers.rsp();
        let mut gpr = registers.gpr;
        let mut found = RegisterSet::of(&[Gpr::Rsp]);
        // An interruption at any instruction must preserve everything.
        let preserved =
            if self.row.signal_frame { RegisterSet::of(&Gpr::ALL) } else { NONVOLATILE };
        let mut kept = preserved.without(Gpr::Rsp);
        for (register, rule) in Gpr::ALL.into_iter().zip(&self.row.registers) {
            let (Some(rule), before) = (rule, registers.get(register)) else { continue };
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
        let is_entered_by_return =
            self.may_be_entered_by_return && entered_by_return::is_entered_by_return(place);
        // The word that the function's `ret` takes is below the one that the row names.
        let cfa = if is_entered_by_return { cfa.wrapping_sub(8) } else { cfa };
        gpr[Gpr::Rsp as usize] = cfa;
        let rip = match self.row.return_address {
            Some(RegisterRule::Undefined) => {
                return Err(UnwindError::EndOfStack { address: registers.rip });
            }
            Some(RegisterRule::SameValue) | None => {
                return Err(self.place.error(CfiProblem::NoReturnAddress).into());
            }
            Some(rule) => frame.value(rule, cfa)?.unwrap_or(0),
        };
        let needed = frame.machine.needed();
        (registers.gpr, registers.rip) = (gpr, rip);
        Ok(Step {
            trust: match (self.row.signal_frame, is_entered_by_return) {
                (true, _) => Trust::SignalFrame,
                (_, true) => Trust::ReturnInstruction,
                (false, false) => Trust::Cfi,
            },
            establisher_frame: cfa,
            handler: None,
            caller: Position::below(self.row.signal_frame),
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
