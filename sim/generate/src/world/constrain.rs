//! Repair of generated programs: removes everything that a program of a world cannot have.
//!
//! In addition to the rules for all programs: managed code has shapes that runtimes can unwind,
//! native code is left and entered through the runtime, and only the runtime stops a thread.

use super::WorldProgram;
use crate::repair;
use clr_codegen::{
    Allocation, CallTarget, CallingConvention, CodeKind, ColdForm, EhClauseKind, Exit, FrameSet,
    FunctionIndex, FunctionShape, Program, Release, ReturnForm, RuntimeCall, RuntimeCallKind,
    SaveArea, Statement, UnwindData,
};
use clr_unwind::Gpr;
use clr_world::ThreadStart;

/// Turns a shape into one that runtimes can unwind: a shape of a compiler of managed code, or
/// another one that is described equally well.
pub(super) fn managed_shape(shape: &mut FunctionShape, convention: CallingConvention) {
    shape.unwind = UnwindData::Version1;
    shape.cold = ColdForm::Chained;
    shape.save_area = SaveArea::AboveLocals;
    shape.pushes.retain(|register| convention.is_nonvolatile(*register));
    if shape.allocation == Allocation::Chkstk {
        shape.allocation = Allocation::Sub;
    }
    // Executed forward, such an epilogue would set a volatile register (C-139).
    if shape.release == Release::Pop {
        shape.release = Release::Add;
    }
    repair::shape(shape, convention, CodeKind::Jit);
    shape.unwind = UnwindData::Version1;
}

/// Does the same for native code: runtimes unwind their own helpers by CoreCLR's rules, which know
/// no version 3.
pub(super) fn native_shape(shape: &mut FunctionShape) {
    if shape.unwind == UnwindData::Version3 {
        shape.unwind = UnwindData::Version1;
    }
}

/// Repairs a program; nothing is added.
pub(crate) fn repair(world: &mut WorldProgram) {
    let convention = world.program.convention;
    for function in &mut world.program.functions {
        if function.kind == CodeKind::Native {
            native_shape(&mut function.shape);
        } else {
            // Methods with inlined P/Invokes have a frame on rbp (contract §3.5), because the Frame
            // provides no other register.
            let leaves = |statement: &Statement| match statement {
                Statement::Runtime(call) => call.kind.target() == Some(CallTarget::Unmanaged),
                _ => false,
            };
            if function.body.iter().any(|statement| statement.contains(&leaves)) {
                let frame = &mut function.shape.frame;
                *frame = frame.filter(|frame| frame.register == Gpr::Rbp);
            }
            let guards = |statement: &Statement| matches!(statement, Statement::Guarded(..));
            if function.body.iter().any(|statement| statement.contains(&guards))
                && let Some(frame) = &mut function.shape.frame
                && frame.set == FrameSet::BeforeAllocation
            {
                // A funclet's argument is the end of its method's locals.
                frame.set = FrameSet::AfterAllocation;
            }
            managed_shape(&mut function.shape, convention);
        }
    }
    repair::program(&mut world.program);
    let WorldProgram { program, methods, threads, .. } = world;
    // Callees have higher indices, so walking backwards we already know whether each is plain.
    let kinds: Vec<_> = program.functions.iter().map(|function| function.kind).collect();
    let mut plain = vec![false; kinds.len()];
    for index in (0..kinds.len()).rev() {
        let Some(function) = program.functions.get_mut(index) else { continue };
        let sides = Sides { kind: function.kind, kinds: &kinds, plain: &plain };
        sides.list(&mut function.body, Place::default());
        if let Some(Exit::TailCall(_, callee)) = function.end
            && !sides.is_same(callee)
        {
            function.end = Some(Exit::Return(ReturnForm::Ret));
        }
        let is_plain = function.kind == CodeKind::Native && is_plain(program, index, &plain);
        if let Some(own) = plain.get_mut(index) {
            *own = is_plain;
        }
    }
    let is_managed =
        |id: &FunctionIndex| kinds.get(id.index()).is_some_and(|kind| *kind != CodeKind::Native);
    methods.retain(|id, _| is_managed(id));
    threads.retain(|start| match start {
        ThreadStart::Managed(id) | ThreadStart::ByProgram(id) | ThreadStart::OfPool(id) => {
            is_managed(id)
        }
        ThreadStart::Native(id) => kinds.get(id.index()) == Some(&CodeKind::Native),
        ThreadStart::ServerGc | ThreadStart::Finalizer | ThreadStart::Tiering => true,
    });
}

/// Returns true if a function never enters the runtime.
fn is_plain(program: &Program, index: usize, plain: &[bool]) -> bool {
    let Some(function) = program.functions.get(index) else { return false };
    let is_plain = |callee: &FunctionIndex| plain.get(callee.index()) == Some(&true);
    let leads_to_runtime = |statement: &Statement| match statement {
        Statement::Runtime(_) => true,
        Statement::Call(_, callee) => !is_plain(callee),
        _ => false,
    };
    let jumps = match &function.end {
        Some(Exit::TailCall(_, callee)) => is_plain(callee),
        _ => true,
    };
    jumps && !function.body.iter().any(|statement| statement.contains(&leads_to_runtime))
}

struct Sides<'a> {
    /// Kind of the function.
    kind: CodeKind,
    kinds: &'a [CodeKind],
    plain: &'a [bool],
}

impl Sides<'_> {
    fn is_managed(&self) -> bool {
        self.kind != CodeKind::Native
    }

    /// Returns true if a function is on the same side as this one: both managed, or both native.
    fn is_same(&self, other: FunctionIndex) -> bool {
        let kind = self.kinds.get(other.index());
        kind.is_some_and(|kind| (*kind != CodeKind::Native) == self.is_managed())
    }

    fn list(&self, body: &mut Vec<Statement>, place: Place) {
        body.retain_mut(|statement| self.constrain_statement(statement, place));
    }

    fn constrain_statement(&self, statement: &mut Statement, place: Place) -> bool {
        let constrain_statement = match statement {
            Statement::Call(_, callee) => {
                let is_plain = self.plain.get(callee.index()) == Some(&true);
                self.is_same(*callee) || self.is_managed() && is_plain
            }
            // A cold part of an image, apart from its function, does not belong to any method.
            Statement::Cold(_) => self.kind != CodeKind::ReadyToRun,
            Statement::Region(..) => !self.is_managed(),
            Statement::Exit(exit) => !matches!(exit, Exit::TailCall(..)),
            Statement::Funclet(_) | Statement::Guarded(..) => self.is_managed(),
            Statement::Runtime(call) => self.keeps_runtime_call(call, place),
            Statement::Try(..)
            | Statement::Throw
            | Statement::Trap(_)
            | Statement::SwitchStack(_)
            | Statement::Stop
            | Statement::Primitive(_) => false,
            Statement::Clobber(_)
            | Statement::ClobberXmm(_)
            | Statement::Store(_)
            | Statement::Work(_)
            | Statement::Loop(..)
            | Statement::If(..)
            | Statement::Alloca(_) => true,
        };
        match statement {
            Statement::Guarded(body, clauses) => {
                self.list(body, Place { is_guarded: true, ..place });
                for clause in clauses {
                    let funclet = Place { in_funclet: true, ..Place::default() };
                    if let EhClauseKind::Filtered { filter, .. } = &mut clause.kind {
                        self.list(filter, funclet);
                    }
                    let in_catch = clause.kind.handler().catches();
                    self.list(&mut clause.body, Place { in_catch, ..funclet });
                }
            }
            Statement::Funclet(body) => self.list(body, Place { in_funclet: true, ..place }),
            _ => {
                for body in statement.bodies_mut() {
                    self.list(body, place);
                }
            }
        }
        constrain_statement
    }

    /// Returns false if a call through the runtime must be removed.
    fn keeps_runtime_call(&self, call: &RuntimeCall, place: Place) -> bool {
        use RuntimeCallKind::{PInvokeSuppressed, Rethrow};
        let is_plain = |id: FunctionIndex| self.plain.get(id.index()) == Some(&true);
        match call.kind {
            // A function called in cooperative mode must not call back into managed code.
            PInvokeSuppressed => call.target.is_some_and(is_plain),
            Rethrow => place.in_catch,
            kind if kind.leaves() => !place.in_funclet && !place.is_guarded,
            _ => true,
        }
    }
}

/// The context of a statement.
#[derive(Clone, Copy, Default)]
struct Place {
    in_funclet: bool,
    is_guarded: bool,
    in_catch: bool,
}
