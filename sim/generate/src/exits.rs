//! Choice of the exits of a generated function.

use super::body::{Context, Draw};
use super::choices::Choices;
use super::repair;
use clr_codegen::{Exit, FunctionIndex, ReturnForm, Statement, TailCallForm, UnwindData};

/// The form that UNWIND_INFO version 2 requires of all exits of a function.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Return(ReturnForm),
    TailCall(TailCallForm),
}

impl<C: Choices> Draw<'_, C> {
    /// Draws the end of a function: a jump to `by_jump`, if there is one.
    pub(super) fn end(&mut self, by_jump: Option<FunctionIndex>) -> Exit {
        if let Some(callee) = by_jump
            && let Some(exit) = self.jump(callee, Context::TOP)
        {
            return exit;
        }
        self.exit(Context::TOP).unwrap_or_else(|| {
            self.form = Some(Form::Return(ReturnForm::Ret));
            Exit::Return(ReturnForm::Ret)
        })
    }

    /// Draws an exit in the form of the earlier ones, if version 2 requires that.
    pub(super) fn exit(&mut self, context: Context) -> Option<Exit> {
        if !self.is_called() {
            return Some(Exit::Return(ReturnForm::Ret));
        }
        let form = self.form.filter(|_| self.shape.unwind == UnwindData::Version2);
        let jumps = match form {
            Some(Form::Return(form)) => return Some(Exit::Return(form)),
            Some(Form::TailCall(_)) => true,
            None => self.tail_calls() && self.choices.chance(1, 4),
        };
        if jumps
            && !self.callees.is_empty()
            && let Some(callee) = self.callee(context)
            && let Some(exit) = self.jump(callee, context)
        {
            return Some(exit);
        }
        if matches!(form, Some(Form::TailCall(_))) {
            return None;
        }
        let form = match self.choices.below(9) {
            4 => ReturnForm::RetImm,
            5 => ReturnForm::RepRet,
            6 => ReturnForm::BndRet,
            7 => ReturnForm::RexRet,
            8 => ReturnForm::VzeroupperRet,
            _ => ReturnForm::Ret,
        };
        self.form = Some(Form::Return(form));
        Some(Exit::Return(form))
    }

    pub(super) fn jump(&mut self, callee: FunctionIndex, context: Context) -> Option<Exit> {
        let near = self.shape.unwind != UnwindData::Version2;
        let kind = self.around.kind;
        let without_rex = repair::shows_its_end(self.shape, self.around.convention, kind);
        let forms: Vec<TailCallForm> = [
            Some(TailCallForm::Register),
            Some(TailCallForm::RegisterMemory),
            Some(TailCallForm::Memory),
            near.then_some(TailCallForm::Near),
            without_rex.then_some(TailCallForm::RegisterWithoutRex),
        ]
        .into_iter()
        .flatten()
        .collect();
        let form = match self.form.filter(|_| !near) {
            Some(Form::TailCall(form)) => form,
            // Version 2 requires the same form of all exits.
            Some(Form::Return(_)) => return None,
            None => self.choices.pick(&forms)?,
        };
        let exit = Exit::TailCall(form, callee);
        if !self.budget.call(&Statement::Exit(exit), callee, context.times) {
            return None;
        }
        self.mark(callee);
        self.form = Some(Form::TailCall(form));
        Some(exit)
    }
}
