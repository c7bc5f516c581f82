//! Rules for valid bodies.

use super::super::guarded::EhClause;
use super::super::primitive::{Primitive, Value, Word};
use super::super::program::{
    CallForm, CodeKind, Exit, Function, FunctionIndex, Program, ReturnForm, Statement, TailCallForm,
};
use super::super::runtime_call::{CallTarget, RuntimeCall};
use super::super::shape::{CallingConvention, EntryForm, Realign, Release, UnwindData};
use super::{MAX_CLAUSES, MAX_NESTING, ProgramRule};
use clr_unwind::Gpr;

/// The checker of a function's body.
pub(super) struct Body<'a> {
    program: &'a Program,
    index: usize,
    function: &'a Function,
    /// Index of the statement being checked, in text order.
    pub(super) statement: u32,
    next: u32,
    first_exit: Option<Exit>,
}

/// The enclosing statements.
#[derive(Clone, Copy, Default)]
pub(super) struct Context<'a> {
    depth: u32,
    in_funclet: bool,
    in_region: bool,
    in_guarded: bool,
    saved: Option<&'a Saved<'a>>,
}

/// The registers saved by enclosing regions.
struct Saved<'a> {
    registers: &'a [Gpr],
    outer: Option<&'a Saved<'a>>,
}

impl Saved<'_> {
    fn contains(&self, register: Gpr) -> bool {
        self.registers.contains(&register)
            || self.outer.is_some_and(|outer| outer.contains(register))
    }
}

impl<'a> Body<'a> {
    pub(super) const fn new(program: &'a Program, index: usize, function: &'a Function) -> Self {
        Self { program, index, function, statement: 0, next: 0, first_exit: None }
    }

    pub(super) fn check(
        &mut self,
        body: &[Statement],
        context: Context<'_>,
    ) -> Result<(), ProgramRule> {
        for statement in body {
            self.statement = self.next;
            self.next += 1;
            self.check_one(statement, context)?;
        }
        Ok(())
    }

    fn check_one(
        &mut self,
        statement: &Statement,
        context: Context<'_>,
    ) -> Result<(), ProgramRule> {
        let shape = &self.function.shape;
        let leaf = shape.unwind == UnwindData::None;
        let inner = Context { depth: context.depth + 1, ..context };
        if inner.depth > MAX_NESTING {
            return Err(ProgramRule::Nesting);
        }
        let needs_frame = |allowed| if leaf { Err(ProgramRule::Leaf) } else { allowed };
        match statement {
            Statement::Work(_) | Statement::Stop => Ok(()),
            Statement::Runtime(call) => {
                if call.kind.leaves() && (context.in_funclet || context.in_region) {
                    return Err(ProgramRule::ExitHere);
                }
                needs_frame(self.check_runtime_call(*call))
            }
            Statement::Primitive(primitive) => self.check_primitive(primitive, inner),
            Statement::Throw => needs_frame(Ok(())),
            Statement::Clobber(register) => self.check_clobber(*register, context),
            Statement::ClobberXmm(n) => self.check_clobber_xmm(*n, context),
            Statement::Call(form, callee) => {
                if *form == CallForm::Plt && !self.is_of_unix() {
                    return Err(ProgramRule::Unix);
                }
                needs_frame(self.check_callee(*callee))
            }
            Statement::Trap(handler) => self.check_handler(*handler),
            Statement::Store(offset) => {
                let end = offset.checked_add(8);
                let within = end.is_some_and(|end| end <= shape.locals);
                if within && offset.is_multiple_of(8) { Ok(()) } else { Err(ProgramRule::Store) }
            }
            Statement::If(_, body) => self.check(body, inner),
            Statement::Loop(times, body) => {
                if *times == 0 {
                    return Err(ProgramRule::Loop);
                }
                needs_frame(Ok(()))?;
                self.check(body, inner)
            }
            Statement::Cold(body) => {
                needs_frame(Ok(()))?;
                self.check(body, inner)
            }
            Statement::Try(body, catch) => {
                needs_frame(Ok(()))?;
                self.check(body, inner)?;
                self.check(catch, inner)
            }
            Statement::Exit(exit) => {
                if context.in_funclet || context.in_region || context.in_guarded {
                    return Err(ProgramRule::ExitHere);
                }
                self.check_exit(*exit)
            }
            Statement::Alloca(_) => {
                if context.in_funclet || !shape.has_described_frame() {
                    return Err(ProgramRule::Dynamic);
                }
                let fixed = !matches!(
                    shape.release,
                    Release::Lea | Release::LeaDisp32 | Release::Mov | Release::Leave
                );
                if fixed { Err(ProgramRule::Release) } else { Ok(()) }
            }
            Statement::SwitchStack(callee) => {
                if context.in_guarded {
                    return Err(ProgramRule::SwitchHere);
                }
                if context.in_funclet || !shape.has_described_frame() {
                    return Err(ProgramRule::Dynamic);
                }
                self.check_callee(*callee)
            }
            Statement::Region(registers, body) => {
                needs_frame(Ok(()))?;
                self.check_region(registers, context)?;
                let saved = Saved { registers, outer: context.saved };
                self.check(body, Context { in_region: true, saved: Some(&saved), ..inner })
            }
            Statement::Funclet(body) => {
                let on_rbp = shape.frame.is_some_and(|frame| frame.register == Gpr::Rbp);
                let realigned = shape.realign != Realign::No;
                if !on_rbp || context.in_funclet || shape.entry != EntryForm::Call || realigned {
                    return Err(ProgramRule::Funclet);
                }
                self.check(body, Context { in_funclet: true, saved: None, ..inner })
            }
            Statement::Guarded(body, clauses) => {
                self.check_guarded(clauses)?;
                self.check(body, Context { in_guarded: true, ..inner })?;
                for body in clauses.iter().flat_map(EhClause::bodies) {
                    self.check(body, Context { in_funclet: true, saved: None, ..inner })?;
                }
                Ok(())
            }
        }
    }

    fn is_of_unix(&self) -> bool {
        self.function.kind == CodeKind::Native
            && self.program.convention == CallingConvention::SystemV
    }

    fn check_guarded(&self, clauses: &[EhClause]) -> Result<(), ProgramRule> {
        let Function { kind, shape, .. } = self.function;
        let on_rbp = shape.frame.is_some_and(|frame| frame.register == Gpr::Rbp);
        if *kind == CodeKind::Native || !on_rbp || shape.entry != EntryForm::Call {
            return Err(ProgramRule::Guarded);
        }
        match clauses {
            [_] => Ok(()),
            [_, ..] if clauses.len() <= MAX_CLAUSES && clauses.iter().all(EhClause::catches) => {
                Ok(())
            }
            _ => Err(ProgramRule::Clauses),
        }
    }

    fn check_runtime_call(&self, call: RuntimeCall) -> Result<(), ProgramRule> {
        let managed = |function: &Function| function.kind != CodeKind::Native;
        let target = match call.target {
            Some(target) => {
                self.check_callee(target)?;
                self.program.functions.get(target.index())
            }
            None => None,
        };
        let names = call.kind.target().map(|target| target == CallTarget::Managed);
        let names =
            names.or_else(|| (target.is_some() && call.kind.may_name_method()).then_some(true));
        let right = managed(self.function) == call.kind.is_in_managed_code()
            && target.map(managed) == names;
        if right { Ok(()) } else { Err(ProgramRule::Runtime(call.kind)) }
    }

    fn check_primitive(
        &mut self,
        primitive: &Primitive,
        inner: Context<'_>,
    ) -> Result<(), ProgramRule> {
        let local = |offset: u32| {
            let end = offset.checked_add(8);
            let within = end.is_some_and(|end| end <= self.function.shape.locals);
            if within && offset.is_multiple_of(8) { Ok(()) } else { Err(ProgramRule::Store) }
        };
        if let Primitive::Set(word, value) = primitive {
            if let Word::Local(offset) = word {
                local(*offset)?;
            }
            match value {
                Value::Local(offset) | Value::LocalAddress(offset) => local(*offset)?,
                Value::Function(function) if self.program.functions.len() <= function.index() => {
                    return Err(ProgramRule::Callee);
                }
                _ => {}
            }
        }
        if primitive.calls() && self.function.shape.unwind == UnwindData::None {
            return Err(ProgramRule::Leaf);
        }
        self.check(primitive.body().unwrap_or_default(), inner)
    }

    fn check_region(&self, registers: &[Gpr], context: Context<'_>) -> Result<(), ProgramRule> {
        let shape = &self.function.shape;
        if context.in_funclet || context.in_guarded {
            return Err(ProgramRule::Region);
        }
        if !registers.is_empty() && shape.saves_lie_below_frame() {
            return Err(ProgramRule::SavesBelowFrame);
        }
        for (index, &register) in registers.iter().enumerate() {
            let again = registers[..index].contains(&register)
                || shape.saves_register(register)
                || context.saved.is_some_and(|saved| saved.contains(register));
            if again || !self.program.convention.is_nonvolatile(register) {
                return Err(ProgramRule::Saved(register));
            }
        }
        Ok(())
    }

    fn check_clobber(&self, register: Gpr, context: Context<'_>) -> Result<(), ProgramRule> {
        let shape = &self.function.shape;
        let saved = if context.in_funclet {
            shape.pushes.contains(&register)
        } else {
            shape.saves_register(register)
                || context.saved.is_some_and(|saved| saved.contains(register))
        };
        let free = register != Gpr::Rsp
            && shape.frame.is_none_or(|frame| frame.register != register)
            && (saved || !self.program.convention.is_nonvolatile(register));
        if free { Ok(()) } else { Err(ProgramRule::Clobber(register)) }
    }

    fn check_clobber_xmm(&self, n: u8, context: Context<'_>) -> Result<(), ProgramRule> {
        let volatile = n < 6 || !self.program.convention.has_nonvolatile_xmm();
        let saved = !context.in_funclet && self.function.shape.xmm_saves.contains(&n);
        if n < 16 && (volatile || saved) { Ok(()) } else { Err(ProgramRule::ClobberXmm(n)) }
    }

    fn check_callee(&self, callee: FunctionIndex) -> Result<(), ProgramRule> {
        match self.program.functions.get(callee.index()) {
            Some(function) if callee.index() > self.index => match function.shape.entry {
                EntryForm::Call => Ok(()),
                _ => Err(ProgramRule::CalledInterrupt),
            },
            _ => Err(ProgramRule::Callee),
        }
    }

    fn check_handler(&self, handler: FunctionIndex) -> Result<(), ProgramRule> {
        match self.program.functions.get(handler.index()) {
            Some(function) if handler.index() > self.index => match function.shape.entry {
                EntryForm::Call => Err(ProgramRule::Handler),
                _ => Ok(()),
            },
            _ => Err(ProgramRule::Callee),
        }
    }

    pub(super) fn check_exit(&mut self, exit: Exit) -> Result<(), ProgramRule> {
        let shape = &self.function.shape;
        if shape.entry != EntryForm::Call && exit != Exit::Return(ReturnForm::Ret) {
            return Err(ProgramRule::InterruptExit);
        }
        if let Exit::TailCall(_, callee) = exit {
            self.check_callee(callee)?;
        }
        if shape.unwind == UnwindData::Version2 {
            let size_varies = matches!(exit, Exit::TailCall(TailCallForm::Near, _));
            let same = match (self.first_exit, exit) {
                (None, _) => true,
                (Some(Exit::TailCall(first, _)), Exit::TailCall(form, _)) => first == form,
                (Some(first), _) => first == exit,
            };
            if size_varies || !same {
                return Err(ProgramRule::Version2);
            }
            self.first_exit = Some(exit);
        }
        Ok(())
    }
}
