//! Generation of programs for worlds.

use super::guards::{Around, Throws};
use super::{WorldProgram, constrain};
use crate::choices::Choices;
use crate::{repair, shape};
use clr_codegen::{
    CallForm, CallTarget, CallingConvention, CodeKind, EntryForm, Exit, Function, FunctionIndex,
    FunctionShape, Program, ReturnForm, RuntimeCall, RuntimeCallKind, Statement, TailCallForm,
    UnwindData, estimate,
};
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;
use clr_unwind::Gpr;
use clr_world::stubs::Hooks;
use clr_world::{StopBy, ThreadStart};
use std::collections::BTreeMap;

/// Maximum number of instructions that the functions of a program execute, each called once; the
/// cost of the runtime's code is a guess.
const INSTRUCTIONS: u64 = 4000;
/// Estimated cost of a call through the runtime, in instructions.
const RUNTIME_CALL: u64 = 120;
/// Maximum nesting of statements.
const NESTING: u32 = 2;

/// Draws a program with threads.
///
/// The program depends only on the choices, and is the same on all platforms.
pub fn world_program<C: Choices>(choices: &mut C) -> WorldProgram {
    let generation = choices.one(Generation::ALL);
    let convention = if generation.is_unix() {
        CallingConvention::SystemV
    } else {
        CallingConvention::WindowsX64
    };
    let deep = choices.chance(1, 3);
    let count = if deep { choices.between(12, 44) } else { choices.between(1, 10) };
    let mut drawn = Draw {
        choices,
        convention,
        deep,
        exceptions: 0,
        collects: false,
        kinds: Vec::new(),
        functions: Vec::new(),
        costs: vec![0; count as usize],
        plain: vec![false; count as usize],
        escapes: vec![false; count as usize],
    };
    drawn.collects = drawn.choices.chance(1, 4);
    drawn.exceptions = drawn.choices.one([0, 1, 2, 3, 3]);
    drawn.kinds(count);
    for index in (0..count).rev() {
        let function = drawn.function(index);
        drawn.functions.push(function);
    }
    let Draw { mut functions, kinds, collects, .. } = drawn;
    functions.reverse();
    let methods = methods(choices, &functions);
    let threads = threads(choices, &kinds, collects);
    let hooks = [Hooks::None, Hooks::Slow, Hooks::Fast];
    let hooks = hooks.get(choices.weighted(&[6, 1, 1])).copied().unwrap_or_default();
    let stop_by = choices.one([StopBy::Redirection, StopBy::Hijack]);
    let program = Program { convention, functions, ..Program::default() };
    let mut world = WorldProgram { generation, program, methods, threads, hooks, stop_by };
    constrain::repair(&mut world);
    world
}

/// Draws the kinds of the methods that are not ordinary.
fn methods<C: Choices>(
    choices: &mut C,
    functions: &[Function],
) -> BTreeMap<FunctionIndex, MethodKind> {
    let guards = |statement: &Statement| matches!(statement, Statement::Guarded(..));
    let often = choices.one([0, 1, 3]);
    let mut methods = BTreeMap::new();
    for (function, index) in functions.iter().zip(0..) {
        if function.kind != CodeKind::Native && choices.chance(often, 8) {
            let guards = function.body.iter().any(|statement| statement.contains(&guards));
            // Exceptions do not pass through methods that handle them.
            let kinds = if guards {
                [MethodKind::Dynamic, MethodKind::IlStub, MethodKind::Dynamic]
            } else {
                [MethodKind::Dynamic, MethodKind::IlStub, MethodKind::ExceptionHandling]
            };
            methods.insert(FunctionIndex(index), choices.one(kinds));
        }
    }
    methods
}

fn threads<C: Choices>(choices: &mut C, kinds: &[CodeKind], collects: bool) -> Vec<ThreadStart> {
    let mut threads = vec![ThreadStart::Managed(FunctionIndex(0))];
    for _ in 0..choices.one(if collects { [1, 1, 2, 3, 3] } else { [0, 0, 1, 2, 3] }) {
        let index = choices.below(kinds.len() as u32);
        threads.push(match kinds.get(index as usize) {
            Some(CodeKind::Native) => ThreadStart::Native(FunctionIndex(index)),
            _ => ThreadStart::Managed(FunctionIndex(index)),
        });
    }
    if choices.chance(1, 8) {
        threads.push(ThreadStart::ServerGc);
    }
    threads
}

pub(super) struct Draw<'c, C> {
    pub(super) choices: &'c mut C,
    convention: CallingConvention,
    deep: bool,
    /// The program has several threads, and they trigger GCs that suspend the others.
    collects: bool,
    /// Frequency of exceptions: from 0 for none to 3.
    pub(super) exceptions: u32,
    kinds: Vec<CodeKind>,
    /// Functions drawn so far, the last one first.
    functions: Vec<Function>,
    costs: Vec<u64>,
    /// Native functions that never enter the runtime: these can be called directly.
    plain: Vec<bool>,
    /// Functions that exceptions leave.
    escapes: Vec<bool>,
}

impl<C: Choices> Draw<'_, C> {
    pub(super) fn count(&self) -> u32 {
        self.kinds.len() as u32
    }

    pub(super) fn kind_of(&self, index: u32) -> CodeKind {
        self.kinds.get(index as usize).copied().unwrap_or_default()
    }

    pub(super) fn escapes_from(&self, index: u32) -> bool {
        self.escapes.get(index as usize).copied().unwrap_or_default()
    }

    fn kinds(&mut self, count: u32) {
        // Some programs switch between managed and native code all the time, some hardly ever.
        let often = self.choices.one([1, 2, 4]);
        let mut kind = self.choices.one([CodeKind::Jit, CodeKind::ReadyToRun]);
        for _ in 0..count {
            self.kinds.push(kind);
            if self.choices.chance(often, 5) {
                let kinds = [CodeKind::Jit, CodeKind::ReadyToRun, CodeKind::Native];
                kind = kinds.get(self.choices.weighted(&[3, 2, 4])).copied().unwrap_or_default();
            }
        }
    }

    fn is_managed(&self, index: u32) -> bool {
        self.kinds.get(index as usize).is_some_and(|kind| *kind != CodeKind::Native)
    }

    fn is_plain(&self, index: u32) -> bool {
        self.plain.get(index as usize).copied().unwrap_or_default()
    }

    fn function(&mut self, index: u32) -> Function {
        let kind = self.kind_of(index);
        let behind = index + 1..self.kinds.len() as u32;
        // A leaf ends a chain.
        let calls = !behind.is_empty() && (self.deep || self.choices.chance(9, 10));
        let shape = self.shape(kind, calls);
        // Exceptions do not pass through native code on Unix.
        let passes = kind != CodeKind::Native || self.convention == CallingConvention::WindowsX64;
        let throws = if self.exceptions > 0 && passes { Throws::Rarely } else { Throws::Never };
        let mut body = Body {
            statements: self.clobbers(&shape),
            cost: estimate::overhead(&shape),
            plain: kind == CodeKind::Native,
            around: Around { throws, in_catch: false },
            escapes: false,
        };
        let mut end = Exit::Return(self.return_form());
        let at = At { index, shape: &shape, depth: 0, times: 1 };
        self.list(at, &mut body);
        if calls {
            let next = if self.deep || self.choices.chance(2, 3) {
                index + 1
            } else {
                index + 1 + self.choices.below(behind.len() as u32)
            };
            let often = if self.deep { 30 } else { 8 };
            if self.goes_directly(index, next) && self.choices.chance(1, often) {
                end = Exit::TailCall(self.tail_call_form(), FunctionIndex(next));
                body.cost += self.cost(next);
                body.plain &= self.is_plain(next);
                body.escapes |= self.escapes_from(next);
            } else {
                let mut call = Vec::new();
                let often = if self.escapes_from(next) { 4 } else { 1 };
                let guards = self.may_guard(index, &shape) && self.choices.chance(often, 6);
                if guards {
                    body.around.throws = Throws::Often;
                }
                self.call(index, next, &mut body, &mut call, 1);
                body.around.throws = throws;
                if guards {
                    call = vec![self.caught(call, at, &mut body)];
                }
                if self.choices.chance(1, 6) {
                    call = vec![Statement::If(true, call)];
                } else if kind != CodeKind::ReadyToRun && self.choices.chance(1, 8) {
                    call = vec![Statement::Cold(call)];
                }
                body.statements.append(&mut call);
                self.list(at, &mut body);
            }
        }
        let throws = if calls { self.exceptions } else { 3 * self.exceptions };
        if kind != CodeKind::Native && self.choices.chance(throws, 16) {
            self.throw(&mut body, 1);
        }
        let from_native = index == 0 || !self.is_managed(index - 1);
        if body.escapes
            && self.may_guard(index, &shape)
            && self.choices.chance(if from_native { 7 } else { 1 }, 8)
        {
            let statements = std::mem::take(&mut body.statements);
            body.around.throws = Throws::Never;
            body.escapes = false;
            body.statements = vec![self.caught(statements, at, &mut body)];
        }
        let Body { statements, cost, plain, escapes, .. } = body;
        if let Some(own) = self.escapes.get_mut(index as usize) {
            *own = escapes;
        }
        if let Some(own) = self.costs.get_mut(index as usize) {
            *own = cost;
        }
        if let Some(own) = self.plain.get_mut(index as usize) {
            *own = plain;
        }
        let prefix = if kind == CodeKind::Native { "Lib.N" } else { "App.M" };
        Function { name: format!("{prefix}{index}"), kind, shape, body: statements, end: Some(end) }
    }

    /// Returns true if a function may call another one without the runtime.
    fn goes_directly(&self, from: u32, to: u32) -> bool {
        self.is_managed(from) == self.is_managed(to)
    }

    fn cost(&self, index: u32) -> u64 {
        self.costs.get(index as usize).copied().unwrap_or_default()
    }

    fn shape(&mut self, kind: CodeKind, calls: bool) -> FunctionShape {
        if kind == CodeKind::Native && !calls && self.choices.chance(1, 2) {
            return repair::leaf(self.choices.chance(1, 4));
        }
        let most = match (self.deep, self.choices.chance(1, 10)) {
            (true, _) => 0x180,
            (false, false) => 0x400,
            (false, true) => 0x3000,
        };
        let mut shape =
            shape::any_shape(self.choices, kind, self.convention, EntryForm::Call, most);
        if kind == CodeKind::Native {
            constrain::native_shape(&mut shape);
        } else {
            if self.exceptions > 0 && self.choices.chance(3, 4) {
                self.framed(&mut shape);
            }
            constrain::managed_shape(&mut shape, self.convention);
        }
        if self.deep && shape.locals > most {
            shape.locals = most;
        }
        shape
    }

    fn return_form(&mut self) -> ReturnForm {
        let forms = [ReturnForm::Ret, ReturnForm::RepRet, ReturnForm::BndRet, ReturnForm::RetImm];
        forms.get(self.choices.weighted(&[12, 1, 1, 1])).copied().unwrap_or_default()
    }

    fn call_form(&mut self, managed: bool) -> CallForm {
        // Native code on Unix also calls through its procedure linkage table.
        if !managed && self.convention == CallingConvention::SystemV && self.choices.chance(1, 4) {
            return CallForm::Plt;
        }
        self.choices.one([CallForm::Near, CallForm::Near, CallForm::Register, CallForm::Memory])
    }

    fn tail_call_form(&mut self) -> TailCallForm {
        self.choices.one([
            TailCallForm::Near,
            TailCallForm::Register,
            TailCallForm::RegisterMemory,
            TailCallForm::Memory,
        ])
    }

    /// Overwrites most of the saved registers, so that a wrong restore is visible.
    fn clobbers(&mut self, shape: &FunctionShape) -> Vec<Statement> {
        let mut body = Vec::new();
        let saved = shape.pushes.iter().chain(shape.home.iter().flatten()).chain(&shape.saves);
        for register in saved {
            if self.choices.chance(3, 4) {
                body.push(Statement::Clobber(*register));
            }
        }
        for register in &shape.xmm_saves {
            if self.choices.chance(1, 2) {
                body.push(Statement::ClobberXmm(*register));
            }
        }
        body
    }

    /// Draws some statements that are not part of the chain of calls.
    pub(super) fn list(&mut self, at: At<'_>, body: &mut Body) {
        let most = if self.deep { 1 } else { 3 };
        for _ in 0..self.choices.between(0, most) {
            self.statement(at, body);
        }
    }

    fn statement(&mut self, at: At<'_>, body: &mut Body) {
        let At { index, shape, depth, times } = at;
        let framed = shape.unwind != UnwindData::None;
        let nests = u32::from(depth < NESTING);
        let framed = u32::from(framed);
        let apart = nests * framed * u32::from(self.is_managed(index));
        let guards = 4 * nests * u32::from(self.may_guard(index, shape));
        let throws = framed * u32::from(self.is_managed(index)) * self.throw_weight(body);
        let weights = [
            4,
            5,
            1,
            2,
            6 * framed,
            4 * framed,
            2 * nests,
            nests * framed,
            2 * framed,
            apart,
            guards,
            throws,
        ];
        let may_throw = body.around.throws != Throws::Never;
        let statement = match self.choices.weighted(&weights) {
            0 => Statement::Work(self.choices.below(6) as u8),
            1 => Statement::Clobber(self.choices.pick(&Gpr::ALL).unwrap_or(Gpr::Rax)),
            2 => Statement::ClobberXmm(self.choices.below(16) as u8),
            3 => Statement::Store(8 * self.choices.below(shape.locals / 8)),
            4 => return self.helper(index, body, times),
            5 => {
                let behind = self.kinds.len() as u32 - index - 1;
                let callee = index + 1 + self.choices.below(behind);
                if behind > 0 && (may_throw || !self.escapes_from(callee)) {
                    self.call_if_cheap(index, callee, body, times);
                }
                return;
            }
            6 => {
                let taken = self.choices.chance(2, 3);
                let inner = self.inside(at, body, |_, _| ());
                Statement::If(taken, inner)
            }
            7 => {
                let n = self.choices.between(1, 3);
                let times = times * u64::from(n);
                let inner = self.inside(At { times, ..at }, body, |_, _| ());
                Statement::Loop(n as u8, inner)
            }
            8 => Statement::Alloca(self.choices.between(1, 0x20) as u16),
            10 => return self.guarded(at, body),
            11 => return self.throw(body, times),
            _ => Statement::Funclet(self.inside(at, body, |_, _| ())),
        };
        body.cost += estimate::step(&statement, shape) * times;
        body.statements.push(statement);
    }

    /// Calls a function with a higher index, unless that makes the program too long.
    pub(super) fn call_if_cheap(&mut self, index: u32, callee: u32, body: &mut Body, times: u64) {
        let cost = (self.cost(callee) + RUNTIME_CALL) * times;
        let share = if self.exceptions > 0 { 2 } else { 4 };
        if body.cost + cost <= INSTRUCTIONS / share {
            let mut call = Vec::new();
            self.call(index, callee, body, &mut call, times);
            body.statements.append(&mut call);
        }
    }

    /// Draws statements one level deeper, followed by those that `then` adds.
    pub(super) fn inside(
        &mut self,
        at: At<'_>,
        body: &mut Body,
        then: impl FnOnce(&mut Self, &mut Body),
    ) -> Vec<Statement> {
        let outer = std::mem::take(&mut body.statements);
        self.list(At { depth: at.depth + 1, ..at }, body);
        then(self, body);
        std::mem::replace(&mut body.statements, outer)
    }

    /// Calls a service of the runtime that calls no function of the program.
    pub(super) fn helper(&mut self, index: u32, body: &mut Body, times: u64) {
        let managed = self.is_managed(index);
        let kind = self.kind(|kind| {
            kind.is_in_managed_code() == managed && kind.target().is_none() && !kind.throws()
        });
        let collects = managed && self.collects && self.choices.chance(1, 3);
        let kind = if collects { Some(RuntimeCallKind::Collect) } else { kind };
        if let Some(kind) = kind {
            body.cost += RUNTIME_CALL * times;
            body.plain = false;
            body.statements.push(Statement::Runtime(RuntimeCall { kind, target: None }));
        }
    }

    fn kind(&mut self, fits: impl Fn(RuntimeCallKind) -> bool) -> Option<RuntimeCallKind> {
        let kinds = RuntimeCallKind::ALL.iter().copied().filter(|kind| fits(*kind));
        let kinds: Vec<_> = kinds.collect();
        self.choices.pick(&kinds)
    }

    /// Calls a function with a higher index, in one of the possible ways.
    fn call(
        &mut self,
        from: u32,
        to: u32,
        body: &mut Body,
        statements: &mut Vec<Statement>,
        times: u64,
    ) {
        let target = FunctionIndex(to);
        let (managed, to_managed) = (self.is_managed(from), self.is_managed(to));
        let side = if to_managed { CallTarget::Managed } else { CallTarget::Unmanaged };
        let is_plain = self.is_plain(to);
        let kind = self.kind(|kind| {
            kind.is_in_managed_code() == managed
                && kind.target() == Some(side)
                // A handler that throws is notified of its own exception, and so on without end.
                && kind != RuntimeCallKind::HandleFirstChance
                && (is_plain || kind != RuntimeCallKind::PInvokeSuppressed)
        });
        let directly = match (managed, to_managed) {
            (true, true) => self.choices.chance(2, 3),
            (true, false) => self.is_plain(to) && self.choices.chance(1, 4),
            (false, true) => false,
            (false, false) => true,
        };
        let cost = (self.cost(to) + if directly { 4 } else { RUNTIME_CALL }) * times;
        body.cost += cost;
        body.escapes |= self.escapes_from(to) && body.around.throws != Throws::Often;
        body.plain &= directly && self.is_plain(to);
        match kind {
            Some(kind) if !directly => {
                let target = Some(target);
                statements.push(Statement::Runtime(RuntimeCall { kind, target }));
            }
            _ => {
                statements.push(Statement::Call(self.call_form(managed), target));
            }
        }
    }
}

/// The position of a statement.
#[derive(Clone, Copy)]
pub(super) struct At<'s> {
    /// Index of the function.
    pub index: u32,
    /// Shape of the function.
    pub shape: &'s FunctionShape,
    /// Number of enclosing statements.
    pub depth: u32,
    /// Number of times that the statement is executed in one call.
    pub times: u64,
}

/// The part of a function that has been drawn.
pub(super) struct Body {
    pub(super) statements: Vec<Statement>,
    /// Instructions, including all callees.
    pub(super) cost: u64,
    /// The function is native and never enters the runtime.
    pub(super) plain: bool,
    pub(super) around: Around,
    /// Exceptions leave the function.
    pub(super) escapes: bool,
}
