//! Repair of programs: removes everything that breaks a rule.
//!
//! Nothing is added: invalid parts are dropped or replaced by their plainest form, so that a
//! repaired program is never larger.

use super::clauses;
use clr_codegen::estimate::{self, Estimate};
use clr_codegen::{
    Allocation, CallForm, CallTarget, CallingConvention, CodeKind, EhClause, EntryForm,
    EpilogueCfi, Exit, FrameSet, Function, FunctionIndex, FunctionShape, MAX_ARGUMENTS, MAX_LOCALS,
    MAX_NESTING, MAX_PUSHES, MAX_SIGNAL_STACK, Program, Realign, Release, ReturnForm, RuntimeCall,
    Statement, TailCallForm, UnwindData, Wrap, may_realign,
};
use clr_unwind::Gpr;

/// Signal stacks consist of whole pages.
const PAGE: u64 = 0x1000;

/// Repairs a program's functions and interrupts. Names and the number of functions do not change.
pub(super) fn program(program: &mut Program) {
    let convention = program.convention;
    if let Some(first) = program.functions.first_mut() {
        first.shape.entry = EntryForm::Call;
    }
    let entries: Vec<EntryForm> = program.functions.iter().map(|f| f.shape.entry).collect();
    let kinds: Vec<CodeKind> = program.functions.iter().map(|f| f.kind).collect();
    let mut estimates = vec![Estimate::default(); entries.len()];
    for (index, function) in program.functions.iter_mut().enumerate().rev() {
        shape(&mut function.shape, convention, function.kind);
        body(function, index, convention, &entries, &kinds);
        end(function, &estimates);
        estimates[index] = estimate::function(function, &estimates);
    }
    program.interrupts.retain(|interrupt| {
        entries.get(interrupt.handler.index()).is_some_and(|entry| *entry != EntryForm::Call)
    });
    program.interrupts.sort_by_key(|interrupt| interrupt.after);
    if program.signal_stack > 0
        && least_signal_stack(program).is_none_or(|least| program.signal_stack < least)
    {
        program.signal_stack = 0;
    }
}

/// Returns the minimum size of the alternate signal stack, if the program may have one: all
/// handlers fit, and none of them switches to another stack, from where the next signal would start
/// at the top of the alternate stack again.
pub(super) fn least_signal_stack(program: &Program) -> Option<u32> {
    let Program { functions, .. } = program;
    let mut leaves = vec![false; functions.len()];
    // Callees have higher indices.
    for (index, function) in functions.iter().enumerate().rev() {
        let callee_leaves = |callee: &FunctionIndex| leaves.get(callee.index()) == Some(&true);
        let is_way = |statement: &Statement| match statement {
            Statement::SwitchStack(_) => true,
            Statement::Call(_, callee)
            | Statement::Trap(callee)
            | Statement::Exit(Exit::TailCall(_, callee)) => callee_leaves(callee),
            _ => false,
        };
        let by_jump =
            matches!(&function.end, Some(Exit::TailCall(_, callee)) if callee_leaves(callee));
        leaves[index] = by_jump || function.body.iter().any(|one| one.contains(&is_way));
    }
    let mut handlers =
        functions.iter().zip(&leaves).filter(|(f, _)| f.shape.entry != EntryForm::Call);
    let signals = functions.iter().any(|function| function.shape.entry == EntryForm::Signal);
    let stays = handlers.all(|(_, leaves)| !*leaves);
    let least = estimate::program(program).stack.next_multiple_of(PAGE);
    let least = u32::try_from(least).ok().filter(|least| *least <= MAX_SIGNAL_STACK);
    least.filter(|_| signals && stays)
}

/// Returns true if unwind codes could not describe the place of saves by mov.
pub(super) fn forbids_saves(shape: &FunctionShape) -> bool {
    shape.frame.is_some_and(|frame| frame.described && frame.set == FrameSet::BeforeAllocation)
}

/// Returns true if a release works for any change of rsp.
pub(super) const fn is_by_frame(release: Release) -> bool {
    matches!(release, Release::Lea | Release::LeaDisp32 | Release::Mov | Release::Leave)
}

/// Repairs a shape.
pub(super) fn shape(shape: &mut FunctionShape, convention: CallingConvention, kind: CodeKind) {
    let unix = kind == CodeKind::Native && convention == CallingConvention::SystemV;
    if !unix {
        shape.wrap = Wrap::Whole;
        shape.realign = Realign::No;
        shape.arguments = 0;
        shape.epilogue_cfi = EpilogueCfi::Restored;
        if shape.entry == EntryForm::Signal {
            shape.entry = EntryForm::Interrupt;
        }
        if let Some(frame) = &mut shape.frame
            && frame.set == FrameSet::BehindPush
        {
            frame.set = FrameSet::AfterAllocation;
        }
    }
    let called = shape.entry == EntryForm::Call;
    if !called {
        shape.wrap = Wrap::Whole;
    }
    shape.arguments = shape.arguments.min(MAX_ARGUMENTS) & !1;
    let windows = convention.home_space() > 0;
    shape.locals = shape.locals.min(MAX_LOCALS) & !7;
    let mut seen = 0_u16;
    let mut is_new = |register: Gpr| {
        let bit = 1 << (register as u32);
        let new = seen & bit == 0 || !convention.is_nonvolatile(register);
        seen |= bit;
        new && register != Gpr::Rsp
    };
    shape.pushes.retain(|&register| is_new(register));
    shape.pushes.truncate(MAX_PUSHES);
    for slot in &mut shape.home {
        *slot = slot.filter(|&register| called && windows && is_new(register));
    }
    shape.saves.retain(|&register| convention.is_nonvolatile(register) && is_new(register));
    let mut seen = 0_u16;
    shape.xmm_saves.retain(|&n| {
        let fits = convention.has_nonvolatile_xmm() && (6..=15).contains(&n);
        let new = fits && seen & (1 << n) == 0;
        seen |= if fits { 1 << n } else { 0 };
        new
    });
    shape.frame = shape.frame.filter(|frame| {
        let register = frame.register;
        frame.offset <= 15
            && convention.is_nonvolatile(register)
            && shape.pushes.contains(&register)
    });
    if forbids_saves(shape) {
        shape.saves.clear();
        shape.xmm_saves.clear();
    }
    if shape.allocation == Allocation::Chkstk && !(called && windows) {
        shape.allocation = Allocation::Sub;
    }
    if !is_possible(shape.release, shape) {
        shape.release = Release::Add;
    }
    if shape.realign != Realign::No && !may_realign(shape) {
        shape.realign = Realign::No;
    }
    if shape.realign != Realign::No {
        shape.wrap = Wrap::Whole;
    }
    let volatile = |register: &Gpr| !convention.is_nonvolatile(*register);
    match shape.unwind {
        UnwindData::None => {
            let leaf = leaf(shape.scheduled);
            if *shape != leaf {
                shape.unwind = UnwindData::Version1;
            }
        }
        UnwindData::Version2
            if !called
                || matches!(shape.release, Release::Pop | Release::Leave)
                || shape.allocation == Allocation::Push
                || shape.pushes.iter().any(volatile) =>
        {
            shape.unwind = UnwindData::Version1;
        }
        _ => {}
    }
}

/// Returns the shape of a leaf.
pub(super) fn leaf(scheduled: bool) -> FunctionShape {
    FunctionShape { unwind: UnwindData::None, scheduled, ..FunctionShape::default() }
}

/// Returns true if the code or the unwind data show where an epilogue of this shape ends, even with
/// an ending that in other places is the jump of a switch. The code does if it undoes exactly what
/// version 1 describes.
pub(super) fn shows_its_end(
    shape: &FunctionShape,
    convention: CallingConvention,
    kind: CodeKind,
) -> bool {
    let has_cfi = kind == CodeKind::Native && convention == CallingConvention::SystemV;
    let is_listed = shape.unwind == UnwindData::Version3;
    let described = shape.has_described_frame();
    let releases = match shape.release {
        Release::Add | Release::AddImm32 => true,
        Release::Lea | Release::LeaDisp32 | Release::Mov => described,
        Release::Leave => described && shape.pushes.len() > 1,
        Release::Pop | Release::R11 => false,
    };
    // Such a push is popped into another register.
    let same = shape.pushes.iter().all(|register| convention.is_nonvolatile(*register));
    has_cfi || is_listed || releases && same && shape.allocation != Allocation::Push
}

/// Returns true if a shape can be released in this way.
pub(super) fn is_possible(release: Release, shape: &FunctionShape) -> bool {
    let at_pushes =
        shape.frame.filter(|frame| frame.set == FrameSet::BeforeAllocation && frame.offset == 0);
    match release {
        Release::Lea | Release::LeaDisp32 => shape.frame.is_some(),
        Release::Mov => at_pushes.is_some(),
        Release::Leave if shape.frame.is_some_and(|frame| frame.set == FrameSet::BehindPush) => {
            shape.entry == EntryForm::Call
                && shape.frame.is_some_and(|frame| frame.offset == 0 && frame.register == Gpr::Rbp)
        }
        Release::Leave => {
            at_pushes.is_some_and(|frame| frame.register == Gpr::Rbp)
                && shape.pushes.last() == Some(&Gpr::Rbp)
        }
        _ => true,
    }
}

fn body(
    function: &mut Function,
    index: usize,
    convention: CallingConvention,
    entries: &[EntryForm],
    kinds: &[CodeKind],
) {
    let Function { kind, shape, body, end, .. } = function;
    let mut saved = Vec::new();
    let kind = *kind;
    let mut walk = Walk { shape, kind, convention, index, entries, kinds, saved: &mut saved };
    walk.list(body, Context::default());
    if let Some(exit) = end {
        walk.exit(exit);
    }
    let exits_vary = exits_vary(body, *end);
    if exits_vary && shape.unwind == UnwindData::Version2 {
        shape.unwind = UnwindData::Version1;
    }
}

/// Adds a plain return to a function that reaches its missing end.
fn end(function: &mut Function, estimates: &[Estimate]) {
    if function.end.is_some() || !estimate::flow(&function.body, estimates).completes {
        return;
    }
    function.end = Some(Exit::Return(ReturnForm::Ret));
    if exits_vary(&function.body, function.end) && function.shape.unwind == UnwindData::Version2 {
        function.shape.unwind = UnwindData::Version1;
    }
}

/// Returns true if version 2 could not list the exits of this body and end, because their sizes
/// differ.
pub(super) fn exits_vary(body: &[Statement], end: Option<Exit>) -> bool {
    fn collect(body: &[Statement], exits: &mut Vec<Exit>) {
        for statement in body {
            match statement {
                Statement::Exit(exit) => exits.push(*exit),
                _ => statement.bodies().for_each(|inner| collect(inner, exits)),
            }
        }
    }
    let mut exits = Vec::from_iter(end);
    collect(body, &mut exits);
    let is_alike = |exit: &Exit| match (exit, &exits[0]) {
        (Exit::TailCall(TailCallForm::Near, _), _) => false,
        (Exit::TailCall(form, _), Exit::TailCall(first, _)) => form == first,
        (exit, first) => exit == first,
    };
    !exits.iter().all(is_alike)
}

#[derive(Clone, Copy, Default)]
struct Context {
    depth: u32,
    in_funclet: bool,
    in_region: bool,
    in_guarded: bool,
}

struct Walk<'a> {
    shape: &'a FunctionShape,
    kind: CodeKind,
    convention: CallingConvention,
    index: usize,
    entries: &'a [EntryForm],
    kinds: &'a [CodeKind],
    /// Registers saved by enclosing regions.
    saved: &'a mut Vec<Gpr>,
}

impl Walk<'_> {
    fn list(&mut self, body: &mut Vec<Statement>, context: Context) {
        body.retain_mut(|statement| self.repair_statement(statement, context));
    }

    /// Repairs a statement. Returns false if it must be removed.
    fn repair_statement(&mut self, statement: &mut Statement, context: Context) -> bool {
        let leaf = self.shape.unwind == UnwindData::None;
        let inner = Context { depth: context.depth + 1, ..context };
        let moves = !context.in_funclet && self.shape.has_described_frame();
        let possible = inner.depth <= MAX_NESTING
            && match statement {
                Statement::Work(_) | Statement::Stop | Statement::If(..) => true,
                Statement::Runtime(call) => !leaf && self.is_runtime_call(*call),
                // Only the runtime's own code has these.
                Statement::Primitive(_) => false,
                Statement::Throw | Statement::Cold(_) | Statement::Try(..) => !leaf,
                Statement::Loop(times, _) => *times > 0 && !leaf,
                Statement::Clobber(register) => self.may_clobber(*register, context),
                Statement::ClobberXmm(n) => self.may_clobber_xmm(*n, context),
                Statement::Store(offset) => {
                    offset.is_multiple_of(8)
                        && offset.checked_add(8).is_some_and(|end| end <= self.shape.locals)
                }
                Statement::Call(_, callee) => !leaf && self.is_callee(*callee, true),
                Statement::Trap(handler) => self.is_callee(*handler, false),
                Statement::Alloca(_) => moves && is_by_frame(self.shape.release),
                Statement::SwitchStack(callee) => {
                    moves && !context.in_guarded && self.is_callee(*callee, true)
                }
                Statement::Exit(_) => {
                    !context.in_funclet && !context.in_region && !context.in_guarded
                }
                Statement::Region(..) => !leaf && !context.in_funclet && !context.in_guarded,
                Statement::Guarded(_, clauses) => {
                    clauses::may_guard(self.shape, self.kind) && !clauses.is_empty()
                }
                Statement::Funclet(_) => {
                    self.shape.frame.is_some_and(|frame| frame.register == Gpr::Rbp)
                        && !context.in_funclet
                        && self.shape.entry == EntryForm::Call
                        && self.shape.realign == Realign::No
                }
            };
        if possible {
            self.inside(statement, inner);
        }
        possible
    }

    fn inside(&mut self, statement: &mut Statement, inner: Context) {
        match statement {
            Statement::Exit(exit) => self.exit(exit),
            Statement::Call(form, _) => self.call(form),
            Statement::Funclet(body) => self.list(body, Context { in_funclet: true, ..inner }),
            Statement::Guarded(body, clauses) => {
                clauses::go_together(clauses);
                self.list(body, Context { in_guarded: true, ..inner });
                for body in clauses.iter_mut().flat_map(EhClause::bodies_mut) {
                    self.list(body, Context { in_funclet: true, ..inner });
                }
            }
            Statement::Region(registers, body) => {
                let outer = self.saved.len();
                registers.retain(|&register| {
                    let may = !forbids_saves(self.shape)
                        && !self.shape.saves_register(register)
                        && !self.saved.contains(&register)
                        && self.convention.is_nonvolatile(register);
                    if may {
                        self.saved.push(register);
                    }
                    may
                });
                self.list(body, Context { in_region: true, ..inner });
                self.saved.truncate(outer);
            }
            _ => {
                for body in statement.bodies_mut() {
                    self.list(body, inner);
                }
            }
        }
    }

    fn may_clobber(&self, register: Gpr, context: Context) -> bool {
        let saved = if context.in_funclet {
            self.shape.pushes.contains(&register)
        } else {
            self.shape.saves_register(register) || self.saved.contains(&register)
        };
        register != Gpr::Rsp
            && self.shape.frame.is_none_or(|frame| frame.register != register)
            && (saved || !self.convention.is_nonvolatile(register))
    }

    fn may_clobber_xmm(&self, n: u8, context: Context) -> bool {
        let volatile = n < 6 || !self.convention.has_nonvolatile_xmm();
        n < 16 && (volatile || !context.in_funclet && self.shape.xmm_saves.contains(&n))
    }

    fn is_callee(&self, callee: FunctionIndex, by_call: bool) -> bool {
        let entry = self.entries.get(callee.index());
        callee.index() > self.index
            && entry.is_some_and(|entry| (*entry == EntryForm::Call) == by_call)
    }

    fn is_runtime_call(&self, call: RuntimeCall) -> bool {
        let managed =
            |index: usize| self.kinds.get(index).is_some_and(|kind| *kind != CodeKind::Native);
        let reachable = call.target.is_none_or(|target| self.is_callee(target, true));
        let target = call.target.map(|target| managed(target.index()));
        let wanted = call.kind.target().map(|target| target == CallTarget::Managed);
        let wanted =
            wanted.or_else(|| (target.is_some() && call.kind.may_name_method()).then_some(true));
        reachable && managed(self.index) == call.kind.is_in_managed_code() && target == wanted
    }

    fn call(&self, form: &mut CallForm) {
        let unix = self.kind == CodeKind::Native && self.convention == CallingConvention::SystemV;
        if *form == CallForm::Plt && !unix {
            *form = CallForm::Near;
        }
    }

    fn exit(&mut self, exit: &mut Exit) {
        let plain = Exit::Return(ReturnForm::Ret);
        if let Exit::TailCall(_, callee) = *exit
            && !self.is_callee(callee, true)
        {
            *exit = plain;
        }
        if self.shape.entry != EntryForm::Call {
            *exit = plain;
        }
        if let Exit::TailCall(form @ TailCallForm::RegisterWithoutRex, _) = exit
            && !shows_its_end(self.shape, self.convention, self.kind)
        {
            *form = TailCallForm::Register;
        }
    }
}
