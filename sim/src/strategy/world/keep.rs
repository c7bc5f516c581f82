//! Takes away what a program of a world cannot have.
//!
//! Beside what makes any program valid: managed code has the shapes that runtimes can unwind, native
//! code is left and entered through the runtime, and only the runtime stops a thread.

use super::WorldProgram;
use crate::code::{
    Allocation, CodeKind, ColdForm, Convention, Exit, FunctionId, FunctionShape, Program, Release,
    ReturnForm, RuntimeCallKind, SaveArea, Statement, Target, UnwindData,
};
use crate::strategy::repair;
use crate::world::Start;
use clr_walker::registers::Gpr;

/// Makes a shape one that runtimes unwind: such as compilers of managed code make, and others that are
/// described as well.
pub(super) fn managed_shape(shape: &mut FunctionShape, convention: Convention) {
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
    repair::shape(shape, convention);
    shape.unwind = UnwindData::Version1;
}

/// Repairs a program; nothing is added to it.
pub(super) fn repair(world: &mut WorldProgram) {
    let convention = world.program.convention;
    for function in &mut world.program.functions {
        if function.kind != CodeKind::Native {
            // Methods with inlined P/Invokes are framed by rbp (contract §3.5), for the Frame tells of
            // no other register.
            let leaves = |statement: &Statement| match statement {
                Statement::Runtime(call) => call.kind.target() == Some(Target::Unmanaged),
                _ => false,
            };
            if function.body.iter().any(|statement| statement.contains(&leaves)) {
                let frame = &mut function.shape.frame;
                *frame = frame.filter(|frame| frame.register == Gpr::Rbp);
            }
            managed_shape(&mut function.shape, convention);
        }
    }
    repair::program(&mut world.program);
    let WorldProgram { program, methods, threads, .. } = world;
    // What is called stands behind, so that it is known of it whether it is plain.
    let kinds: Vec<_> = program.functions.iter().map(|function| function.kind).collect();
    let mut plain = vec![false; kinds.len()];
    for index in (0..kinds.len()).rev() {
        let Some(function) = program.functions.get_mut(index) else { continue };
        let sides = Sides { kind: function.kind, kinds: &kinds, plain: &plain };
        sides.list(&mut function.body, false);
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
        |id: &FunctionId| kinds.get(id.index()).is_some_and(|kind| *kind != CodeKind::Native);
    methods.retain(|id, _| is_managed(id));
    threads.retain(|start| match start {
        Start::Managed(id) => is_managed(id),
        Start::Native(id) => plain.get(id.index()) == Some(&true),
    });
}

/// Whether a function has nothing to do with the runtime.
fn is_plain(program: &Program, index: usize, plain: &[bool]) -> bool {
    let Some(function) = program.functions.get(index) else { return false };
    let is_plain = |callee: &FunctionId| plain.get(callee.index()) == Some(&true);
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
    /// The kind of the function.
    kind: CodeKind,
    kinds: &'a [CodeKind],
    plain: &'a [bool],
}

impl Sides<'_> {
    fn is_managed(&self) -> bool {
        self.kind != CodeKind::Native
    }

    /// Whether a function is as managed as this one.
    fn is_same(&self, other: FunctionId) -> bool {
        let kind = self.kinds.get(other.index());
        kind.is_some_and(|kind| (*kind != CodeKind::Native) == self.is_managed())
    }

    fn list(&self, body: &mut Vec<Statement>, in_funclet: bool) {
        body.retain_mut(|statement| self.keeps(statement, in_funclet));
    }

    fn keeps(&self, statement: &mut Statement, in_funclet: bool) -> bool {
        let keeps = match statement {
            Statement::Call(_, callee) => {
                let is_plain = self.plain.get(callee.index()) == Some(&true);
                self.is_same(*callee) || self.is_managed() && is_plain
            }
            // A part of an image that lies apart is no method's.
            Statement::Cold(_) => self.kind != CodeKind::ReadyToRun,
            Statement::Region(..) => !self.is_managed(),
            Statement::Exit(exit) => !matches!(exit, Exit::TailCall(..)),
            // What a funclet saves, a method's frame does not tell: it has no Frames of its own.
            Statement::Funclet(_) => self.is_managed(),
            Statement::Runtime(call) => {
                let stays = call.kind.target() != Some(Target::Unmanaged) && !call.kind.leaves();
                let is_plain = |id: FunctionId| self.plain.get(id.index()) == Some(&true);
                // What is called in cooperative mode must not come back to managed code.
                let may = call.kind != RuntimeCallKind::PInvokeSuppressed
                    || call.target.is_some_and(is_plain);
                may && (!in_funclet || stays)
            }
            Statement::Guarded(..)
            | Statement::Try(..)
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
        let in_funclet = in_funclet || matches!(statement, Statement::Funclet(_));
        for body in statement.bodies_mut() {
            self.list(body, in_funclet);
        }
        keeps
    }
}
