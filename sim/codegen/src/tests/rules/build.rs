//! Minimal programs to be changed, and assertions about them.

use crate::{
    CallingConvention, CodeKind, EhClause, EhClauseKind, EntryForm, Exit, FrameRegister, FrameSet,
    Function, FunctionIndex, FunctionPart, FunctionShape, Program, ProgramError, ProgramRule,
    Realign, Release, ReturnForm, Statement, UnwindData,
};
use clr_unwind::Gpr::{self, Rbp, Rbx};

/// The functions of the programs: the function under test, one to be called, one for interrupts.
pub(super) const MAIN: FunctionIndex = FunctionIndex(0);
pub(super) const CALLEE: FunctionIndex = FunctionIndex(1);
pub(super) const ISR: FunctionIndex = FunctionIndex(2);
pub(super) const NOBODY: FunctionIndex = FunctionIndex(3);

pub(super) const RET: Exit = Exit::Return(ReturnForm::Ret);

pub(super) fn function(name: &str, shape: FunctionShape) -> Function {
    Function { name: name.into(), kind: CodeKind::Native, shape, body: Vec::new(), end: Some(RET) }
}

/// Returns the shape of a function in which any statement is allowed.
pub(super) fn shape() -> FunctionShape {
    FunctionShape {
        pushes: vec![Rbx, Rbp],
        locals: 0x40,
        frame: Some(frame(Rbp)),
        release: Release::Lea,
        ..FunctionShape::default()
    }
}

pub(super) fn frame(register: Gpr) -> FrameRegister {
    FrameRegister { register, offset: 0, set: FrameSet::AfterAllocation, described: true }
}

/// Returns the fields of a shape that realigns its stack.
pub(super) fn realigned() -> (Realign, Vec<Gpr>, Option<FrameRegister>) {
    let frame = FrameRegister { set: FrameSet::BehindPush, ..frame(Rbp) };
    (Realign::To32, vec![Rbp, Rbx], Some(frame))
}

pub(super) fn program(change: impl FnOnce(&mut Program)) -> Program {
    let isr = FunctionShape { entry: EntryForm::Interrupt, ..FunctionShape::default() };
    let functions = vec![
        function("main", shape()),
        function("callee", FunctionShape::default()),
        function("isr", isr),
    ];
    let mut program = Program { functions, ..Program::default() };
    assert_eq!(program.check(), Ok(()));
    change(&mut program);
    program
}

/// Returns a program whose first function has the default shape, changed.
pub(super) fn shaped(change: impl FnOnce(&mut FunctionShape)) -> Program {
    program(|program| {
        program.functions[0].shape = FunctionShape::default();
        change(&mut program.functions[0].shape);
    })
}

pub(super) fn body(body: Vec<Statement>) -> Program {
    program(|program| program.functions[0].body = body)
}

/// Returns a program whose first function is managed.
pub(super) fn managed(body: Vec<Statement>) -> Program {
    program(|program| {
        program.functions[0].kind = CodeKind::Jit;
        program.functions[0].body = body;
    })
}

/// Returns an EH clause that does nothing.
pub(super) fn clause(kind: EhClauseKind) -> EhClause {
    EhClause { kind, body: Vec::new() }
}

/// Returns a program whose first function is a leaf without unwind data.
pub(super) fn leaf(statement: Statement) -> Program {
    let mut program = shaped(|shape| shape.unwind = UnwindData::None);
    program.functions[0].body = vec![statement];
    program
}

pub(super) fn ending(end: Option<Exit>, body: Vec<Statement>) -> Program {
    program(|program| {
        program.functions[0].body = body;
        program.functions[0].end = end;
    })
}

pub(super) fn system_v(mut program: Program) -> Program {
    program.convention = CallingConvention::SystemV;
    program
}

/// Returns a program whose interrupt handler is changed.
pub(super) fn isr(change: impl FnOnce(&mut Function)) -> Program {
    program(|program| change(&mut program.functions[2]))
}

#[track_caller]
pub(super) fn breach(
    program: &Program,
    function: FunctionIndex,
    place: FunctionPart,
    rule: ProgramRule,
) {
    assert_eq!(program.check(), Err(ProgramError { function, place, rule }));
    let error = program.link().expect_err("it is not valid");
    assert!(!error.is_size(), "{error}");
}

#[track_caller]
pub(super) fn shape_breach(program: &Program, rule: ProgramRule) {
    breach(program, MAIN, FunctionPart::Shape, rule);
}

/// Asserts that the statement with this number in the first function violates the rule.
#[track_caller]
pub(super) fn body_breach(statement: u32, program: &Program, rule: ProgramRule) {
    breach(program, MAIN, FunctionPart::Statement(statement), rule);
}

#[track_caller]
pub(super) fn fine(program: &Program) {
    assert_eq!(program.check(), Ok(()));
    program.link().unwrap();
}
