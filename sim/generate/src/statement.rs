//! Choice of the statements of a generated function.

use super::body::{Context, Draw};
use super::choices::Choices;
use super::repair;
use clr_codegen::estimate;
use clr_codegen::{CallForm, CallingConvention, CodeKind, FunctionIndex, Realign, Statement};
use clr_unwind::Gpr;

impl<C: Choices> Draw<'_, C> {
    pub(super) fn statement(&mut self, context: Context) -> Option<Statement> {
        let features = self.around.features;
        let framed = !self.is_leaf();
        let nests = context.depth < self.around.size.nesting();
        let on_rbp = self.shape.frame.is_some_and(|frame| frame.register == Gpr::Rbp);
        let moves = features.dynamic && self.shape.has_described_frame() && !context.in_funclet;
        let regions = !context.in_funclet && !context.in_guarded;
        let when = |condition: bool, weight: u32| if condition { weight } else { 0 };
        let weights = [
            4,
            8,
            2,
            when(self.shape.locals > 0, 3),
            when(framed && !self.callees.is_empty(), 8),
            when(!self.handlers.is_empty(), 5),
            when(nests, 2),
            when(nests && framed, 1),
            when(nests && framed && features.apart, 3),
            when(nests && framed && features.apart && regions, 3),
            when(nests && features.funclets && self.has_funclets(context) && on_rbp, 4),
            when(nests && framed && features.exceptions, 3),
            when(moves && repair::is_by_frame(self.shape.release), 5),
            when(moves && !context.in_guarded && !self.callees.is_empty(), 3),
            when(nests && features.funclets && self.may_guard(), 6),
        ];
        match self.choices.weighted(&weights) {
            0 => self.work(context),
            1 => self.clobber(context),
            2 => self.clobber_xmm(context),
            3 => {
                let offset = 8 * self.choices.below(self.shape.locals / 8);
                self.paid(Statement::Store(offset), context)
            }
            4 => self.callee(context).and_then(|callee| self.call(callee, context)),
            5 => self.trap(context),
            kind @ 6..=11 => self.compound(kind, context),
            12 => self.alloca(context),
            13 => self.switch_stack(context),
            _ => self.guarded(context),
        }
    }

    pub(super) const fn has_funclets(&self, context: Context) -> bool {
        self.is_called() && !context.in_funclet && matches!(self.shape.realign, Realign::No)
    }

    pub(super) fn work(&mut self, context: Context) -> Option<Statement> {
        let n = if self.choices.chance(1, 16) { 60 } else { 6 };
        let n = self.choices.below(n) as u8;
        self.paid(Statement::Work(n), context)
    }

    pub(super) fn clobber(&mut self, context: Context) -> Option<Statement> {
        let register = self.choices.pick(&Gpr::ALL)?;
        // Half of the registers are not free: a second try makes the statement more likely.
        let register = if self.may_clobber(register, context) {
            register
        } else {
            let from = register as usize;
            *Gpr::ALL[from..].iter().find(|register| self.may_clobber(**register, context))?
        };
        self.paid(Statement::Clobber(register), context)
    }

    pub(super) fn clobber_xmm(&mut self, context: Context) -> Option<Statement> {
        let saved = if context.in_funclet { &[] } else { self.shape.xmm_saves.as_slice() };
        let volatile = if self.around.convention.has_nonvolatile_xmm() { 6 } else { 16 };
        let other = self.choices.below(volatile) as u8;
        let register = match self.choices.pick(saved) {
            Some(register) if self.choices.chance(1, 2) => register,
            _ => other,
        };
        self.paid(Statement::ClobberXmm(register), context)
    }

    pub(super) fn callee(&mut self, context: Context) -> Option<FunctionIndex> {
        let throws = |callee: &u32| self.around.estimates[*callee as usize].throws;
        if context.in_try
            && self.choices.chance(1, 2)
            && let Some(callee) = self.callees.iter().copied().find(throws)
        {
            return Some(FunctionIndex(callee));
        }
        let near = self.choices.chance(1, 2);
        let callee = if near { self.callees.first().copied() } else { None };
        let callee = callee.or_else(|| self.choices.pick(self.callees)).map(FunctionIndex)?;
        let estimate = estimate::of(self.around.estimates, callee);
        // A callee that never returns makes the rest of the body unreachable.
        let idles = estimate.never_returns && !context.in_try;
        (!idles || self.choices.chance(1, 3)).then_some(callee)
    }

    /// Draws a call and takes its cost from the budget; a call that might throw is mostly put in a
    /// `Try`.
    pub(super) fn call(&mut self, callee: FunctionIndex, context: Context) -> Option<Statement> {
        let form = self.choices.one([
            CallForm::Near,
            CallForm::Near,
            CallForm::Register,
            CallForm::Memory,
        ]);
        let unix = self.around.kind == CodeKind::Native
            && self.around.convention == CallingConvention::SystemV;
        let form = if unix && self.choices.chance(1, 4) { CallForm::Plt } else { form };
        let call = Statement::Call(form, callee);
        if !self.budget.call(&call, callee, context.times) {
            return None;
        }
        self.mark(callee);
        let throws = estimate::of(self.around.estimates, callee).throws;
        // The further from the first function a throw is caught, the more frames it cuts.
        let often = if self.around.index == 0 { 7 } else { 3 };
        let nests = context.depth < self.around.size.nesting();
        if throws && !context.in_try && nests && self.choices.chance(often, 8) {
            let attempt = Statement::Try(Vec::new(), Vec::new());
            if self.paid(attempt, context).is_some() {
                let mut catch = Vec::new();
                self.list(&mut catch, context.deeper());
                return Some(Statement::Try(vec![call], catch));
            }
        }
        Some(call)
    }

    pub(super) fn mark(&mut self, callee: FunctionIndex) {
        if let Some(called) = self.called.get_mut(callee.index()) {
            *called = true;
        }
    }

    pub(super) fn trap(&mut self, context: Context) -> Option<Statement> {
        let handler = FunctionIndex(self.choices.pick(self.handlers)?);
        let trap = Statement::Trap(handler);
        if !self.budget.call(&trap, handler, context.times) {
            return None;
        }
        self.mark(handler);
        Some(trap)
    }

    pub(super) fn compound(&mut self, kind: usize, context: Context) -> Option<Statement> {
        let inner = context.deeper();
        Some(match kind {
            6 => {
                let taken = self.choices.chance(1, 2);
                self.paid(Statement::If(taken, Vec::new()), context)?;
                Statement::If(taken, self.body(inner))
            }
            7 => {
                let most = if self.choices.chance(1, 16) { 40 } else { 4 };
                let times = self.choices.between(1, most) as u8;
                self.paid(Statement::Loop(times, Vec::new()), context)?;
                let times_in_all = context.times * u64::from(times);
                Statement::Loop(times, self.body(Context { times: times_in_all, ..inner }))
            }
            8 => {
                self.paid(Statement::Cold(Vec::new()), context)?;
                Statement::Cold(self.body(inner))
            }
            9 => {
                let registers = self.region(context);
                let outer = self.saved.len();
                self.paid(Statement::Region(registers.clone(), Vec::new()), context)?;
                let mut body = Vec::new();
                self.saved.extend(&registers);
                for &register in &registers {
                    body.extend(self.paid(Statement::Clobber(register), context));
                }
                body.extend(self.body(Context { in_region: true, ..inner }));
                self.saved.truncate(outer);
                Statement::Region(registers, body)
            }
            10 => {
                if !self.budget.grow(estimate::funclet(self.shape)) {
                    return None;
                }
                self.paid(Statement::Funclet(Vec::new()), context)?;
                Statement::Funclet(self.body(Context { in_funclet: true, ..inner }))
            }
            _ => {
                self.paid(Statement::Try(Vec::new(), Vec::new()), context)?;
                let body = self.body(Context { in_try: true, ..inner });
                Statement::Try(body, self.body(inner))
            }
        })
    }

    /// Draws the registers that a region saves.
    pub(super) fn region(&mut self, context: Context) -> Vec<Gpr> {
        if repair::forbids_saves(self.shape) || context.in_funclet {
            return Vec::new();
        }
        let mut registers = self.choices.subset(self.around.convention.nonvolatile(), 1, 3);
        registers.retain(|register| {
            !self.shape.saves_register(*register) && !self.saved.contains(register)
        });
        registers
    }

    pub(super) fn alloca(&mut self, context: Context) -> Option<Statement> {
        let units = match self.choices.weighted(&[8, 3, 1]) {
            0 => self.choices.between(1, 8),
            1 => self.choices.between(8, 0x100),
            _ => self.choices.between(0x100, 0xFFFF),
        };
        let alloca = Statement::Alloca(units as u16);
        let bytes = u64::from(units) * 16 * context.times;
        (self.budget.grow(bytes) && self.paid(alloca.clone(), context).is_some()).then_some(alloca)
    }

    pub(super) fn switch_stack(&mut self, context: Context) -> Option<Statement> {
        let callee = self.callee(context)?;
        let switch = Statement::SwitchStack(callee);
        if !self.budget.call(&switch, callee, context.times) {
            return None;
        }
        self.mark(callee);
        Some(switch)
    }
}
