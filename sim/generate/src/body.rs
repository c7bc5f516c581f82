//! Generation of a function: its shape, its statements, and its end.

use super::budget::Budget;
use super::choices::Choices;
use super::exits::Form;
use super::generate::Surroundings;
use super::repair;
use super::shape;
use clr_codegen::estimate;
use clr_codegen::{
    EntryForm, Exit, Function, FunctionIndex, FunctionShape, MAX_LOCALS, Statement, UnwindData,
};
use clr_unwind::Gpr;

/// Generates the function with the index of `around`, and marks the functions that it calls.
pub(super) fn function<C: Choices>(
    choices: &mut C,
    around: &Surroundings<'_>,
    called: &mut [bool],
) -> Function {
    let behind = around.index + 1..around.entries.len() as u32;
    let (callees, handlers): (Vec<u32>, Vec<u32>) =
        behind.partition(|&index| around.entries[index as usize] == EntryForm::Call);
    let must = must_call(choices, around, &callees, called);
    let shape = choose_shape(choices, around, must.is_some() || !callees.is_empty());
    let budget = Budget::new(around, &shape);
    let mut draw = Draw {
        choices,
        around,
        shape: &shape,
        budget,
        callees: &callees,
        handlers: &handlers,
        called,
        saved: Vec::new(),
        form: None,
    };
    let (body, end) = draw.body_and_end(must);
    let mut shape = shape;
    // An exit of the form drawn first may have been too expensive at another place.
    if shape.unwind == UnwindData::Version2 && repair::exits_vary(&body, end) {
        shape.unwind = UnwindData::Version1;
    }
    Function { name: String::new(), kind: around.kind, shape, body, end }
}

/// Returns a function that should be called, so that most functions have a caller.
fn must_call<C: Choices>(
    choices: &mut C,
    around: &Surroundings<'_>,
    callees: &[u32],
    called: &[bool],
) -> Option<FunctionIndex> {
    let uncalled = callees.iter().copied().find(|&callee| !called[callee as usize]);
    let next = callees.first().copied();
    let must = if around.size.chain {
        next
    } else if around.index == 0 {
        uncalled.or(next)
    } else {
        uncalled.filter(|_| choices.chance(3, 4))
    };
    must.map(FunctionIndex)
}

fn choose_shape<C: Choices>(
    choices: &mut C,
    around: &Surroundings<'_>,
    calls: bool,
) -> FunctionShape {
    let entry = around.entries[around.index as usize];
    let leaf = if calls { choices.chance(1, 10) } else { choices.below(3) == 0 };
    // A leaf ends a chain.
    if leaf && entry == EntryForm::Call && !(calls && around.size.chain) {
        return repair::leaf(choices.chance(1, 4));
    }
    let most_locals = u64::from(MAX_LOCALS).min((around.own_stack / 2).saturating_sub(1024));
    let most_locals = most_locals as u32;
    let mut shape = shape::any_shape(choices, around.kind, around.convention, entry, most_locals);
    let most = around.own_instructions / 2;
    if estimate::overhead(&shape) > most {
        shape.locals = shape.locals.min(0x2000);
    }
    if estimate::overhead(&shape) > most {
        shape = FunctionShape { entry, ..FunctionShape::default() };
    }
    shape
}

/// The context of a statement.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
pub(super) struct Context {
    pub(super) depth: u32,
    pub(super) times: u64,
    pub(super) in_funclet: bool,
    pub(super) in_region: bool,
    pub(super) in_guarded: bool,
    pub(super) in_try: bool,
}

impl Context {
    pub(super) const TOP: Self = Self {
        depth: 0,
        times: 1,
        in_funclet: false,
        in_region: false,
        in_guarded: false,
        in_try: false,
    };

    pub(super) const fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

pub(super) struct Draw<'a, C> {
    pub(super) choices: &'a mut C,
    pub(super) around: &'a Surroundings<'a>,
    pub(super) shape: &'a FunctionShape,
    pub(super) budget: Budget<'a>,
    pub(super) callees: &'a [u32],
    pub(super) handlers: &'a [u32],
    pub(super) called: &'a mut [bool],
    /// Registers saved by enclosing regions.
    pub(super) saved: Vec<Gpr>,
    pub(super) form: Option<Form>,
}

impl<C: Choices> Draw<'_, C> {
    pub(super) fn body_and_end(
        &mut self,
        must: Option<FunctionIndex>,
    ) -> (Vec<Statement>, Option<Exit>) {
        let leaf = self.is_leaf();
        // The call that must be made takes its cost first.
        let often = if self.around.size.chain { 20 } else { 5 };
        let by_jump = must.filter(|_| leaf || self.tail_calls() && self.choices.chance(1, often));
        let by_call = must.filter(|_| by_jump.is_none());
        let call = by_call.and_then(|callee| self.call(callee, Context::TOP));
        let end = self.end(by_jump);
        let mut body = self.clobbers();
        self.list(&mut body, Context::TOP);
        if let Some(call) = call {
            let call = self.wrap(call);
            body.push(call);
            self.list(&mut body, Context::TOP);
        }
        body.extend(self.last(Context::TOP));
        let never_ends = !estimate::flow(&body, self.around.estimates).completes;
        let end = if never_ends && self.choices.chance(3, 4) { None } else { Some(end) };
        (body, end)
    }

    pub(super) const fn is_leaf(&self) -> bool {
        matches!(self.shape.unwind, UnwindData::None)
    }

    pub(super) const fn is_called(&self) -> bool {
        matches!(self.shape.entry, EntryForm::Call)
    }

    pub(super) const fn tail_calls(&self) -> bool {
        self.around.features.tail_calls && self.is_called()
    }

    /// Overwrites most of the saved registers, so that a wrong restore is visible.
    pub(super) fn clobbers(&mut self) -> Vec<Statement> {
        let mut body = Vec::new();
        let shape = self.shape;
        let saved = shape.pushes.iter().chain(shape.home.iter().flatten()).chain(&shape.saves);
        for &register in saved {
            if self.may_clobber(register, Context::TOP) && self.choices.chance(3, 4) {
                body.extend(self.paid(Statement::Clobber(register), Context::TOP));
            }
        }
        for &register in &shape.xmm_saves {
            if self.choices.chance(1, 2) {
                body.extend(self.paid(Statement::ClobberXmm(register), Context::TOP));
            }
        }
        body
    }

    pub(super) fn paid(&mut self, statement: Statement, context: Context) -> Option<Statement> {
        let cost = estimate::step(&statement, self.shape);
        self.budget.pay(cost, context.times).then_some(statement)
    }

    pub(super) fn may_clobber(&self, register: Gpr, context: Context) -> bool {
        let saved = if context.in_funclet {
            self.shape.pushes.contains(&register)
        } else {
            self.shape.saves_register(register) || self.saved.contains(&register)
        };
        register != Gpr::Rsp
            && self.shape.frame.is_none_or(|frame| frame.register != register)
            && (saved || !self.around.convention.is_nonvolatile(register))
    }

    pub(super) fn list(&mut self, body: &mut Vec<Statement>, context: Context) {
        for _ in 0..self.choices.between(0, self.around.size.statements) {
            body.extend(self.statement(context));
        }
    }

    pub(super) fn body(&mut self, context: Context) -> Vec<Statement> {
        let mut body = Vec::new();
        self.list(&mut body, context);
        body.extend(self.last(context));
        body
    }

    /// Draws the last statement of a body, which may leave it, or `None`.
    pub(super) fn last(&mut self, context: Context) -> Option<Statement> {
        let features = self.around.features;
        let inner = context.depth > 0;
        let throw = match (features.exceptions && !self.is_leaf(), context.in_try) {
            (false, _) => 0,
            (true, true) => 6,
            (true, false) => 2,
        };
        let stop = u32::from(features.stops);
        let exits = !context.in_funclet && !context.in_region && !context.in_guarded;
        let exit = if exits { 1 + u32::from(inner) } else { 0 };
        let statement = match self.choices.weighted(&[16, throw, stop, exit]) {
            0 => return None,
            1 => Statement::Throw,
            2 => Statement::Stop,
            _ => return self.exit(context).map(Statement::Exit),
        };
        self.paid(statement, context)
    }

    /// Sometimes moves a call of the top level into another statement.
    pub(super) fn wrap(&mut self, call: Statement) -> Statement {
        let features = self.around.features;
        let alone = matches!(call, Statement::Call(..));
        if !alone || self.around.size.nesting() < 2 || !self.choices.chance(1, 3) {
            return call;
        }
        let funclet = features.funclets
            && self.has_funclets(Context::TOP)
            && self.shape.frame.is_some_and(|frame| frame.register == Gpr::Rbp);
        let apart = 2 * u32::from(features.apart);
        let kinds = [2, apart, apart, if funclet { 4 } else { 0 }];
        let mut outer = match self.choices.weighted(&kinds) {
            0 => Statement::If(true, Vec::new()),
            1 => Statement::Cold(Vec::new()),
            2 => Statement::Region(self.region(Context::TOP), Vec::new()),
            _ => Statement::Funclet(Vec::new()),
        };
        let cost = estimate::step(&outer, self.shape);
        let stack =
            if matches!(outer, Statement::Funclet(_)) { estimate::funclet(self.shape) } else { 0 };
        if !self.budget.grow(stack) || !self.budget.pay(cost, 1) {
            return call;
        }
        if let Some(body) = outer.bodies_mut().next() {
            body.push(call);
        }
        outer
    }
}
