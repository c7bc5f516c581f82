//! Steps that make a program smaller, from large to small.

use super::clauses;
use clr_codegen::{CallForm, CodeKind, EntryForm, Exit, Function, Program, ReturnForm, Statement};

/// A step. It consists of a few numbers, so that listing steps is cheap; only the steps that are
/// tried are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Drops functions and all calls of them.
    DropFunctions {
        first: u32,
        count: u32,
    },
    /// Drops a function; its callers call its first callee instead.
    Bypass {
        function: u32,
    },
    DropInterrupts {
        first: u32,
        count: u32,
    },
    /// Drops adjacent statements; `first` is the number of the first one in textual order.
    DropStatements {
        function: u32,
        first: u32,
        count: u32,
    },
    /// Replaces a statement by one of its bodies.
    Unwrap {
        function: u32,
        statement: u32,
        body: u32,
    },
    Shape {
        function: u32,
        part: Part,
    },
    /// Simplifies a statement in the way with this number.
    Plainer {
        function: u32,
        statement: u32,
        way: u8,
    },
    End {
        function: u32,
        plain: bool,
    },
    Kind {
        function: u32,
        to: CodeKind,
    },
    Convention,
    /// Removes the alternate stack for signals, or makes it as small as possible.
    SignalStack {
        least: bool,
    },
    Earlier {
        interrupt: u32,
        half: bool,
    },
}

/// A part of a shape that is simplified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the entry; a leaf has no unwind data either.
    Leaf,
    Default,
    /// All saves except those that the frame register needs.
    Saves,
    Entry,
    Pushes,
    Push(u8),
    MovSaves,
    MovSave(u8),
    XmmSaves,
    XmmSave(u8),
    Home,
    HomeSlot(u8),
    Locals(u32),
    HalfLocals,
    Frame,
    FrameOffset,
    HalfFrameOffset,
    FrameSet,
    Described,
    ReleaseAdd,
    ReleaseLea,
    AllocationSub,
    SaveArea,
    Scheduled,
    Handler,
    Cold,
    Wrap,
    WrapInside,
    Realign,
    Realign32,
    Arguments,
    FewArguments,
    EpilogueCfi,
    Version1,
    Version2WithoutEpilogs,
}

const PARTS: [Part; 31] = [
    Part::Leaf,
    Part::Default,
    Part::Saves,
    Part::Entry,
    Part::Pushes,
    Part::MovSaves,
    Part::XmmSaves,
    Part::Home,
    Part::Locals(0),
    Part::Locals(8),
    Part::Locals(0x28),
    Part::HalfLocals,
    Part::Frame,
    Part::FrameOffset,
    Part::HalfFrameOffset,
    Part::FrameSet,
    Part::Described,
    Part::ReleaseAdd,
    Part::ReleaseLea,
    Part::AllocationSub,
    Part::SaveArea,
    Part::Scheduled,
    Part::Handler,
    Part::Cold,
    Part::Wrap,
    Part::WrapInside,
    Part::Realign,
    Part::Realign32,
    Part::Arguments,
    Part::FewArguments,
    Part::EpilogueCfi,
];

/// Returns all steps of a program. Some lead nowhere.
pub(super) fn steps(program: &Program) -> Vec<Step> {
    let mut steps = Vec::new();
    let functions = program.functions.len() as u32;
    chunks(functions, |first, count| {
        if count < functions {
            steps.push(Step::DropFunctions { first, count });
        }
    });
    steps
        .extend((0..functions).filter(|_| functions > 1).map(|function| Step::Bypass { function }));
    chunks(program.interrupts.len() as u32, |first, count| {
        steps.push(Step::DropInterrupts { first, count });
    });
    for (index, function) in program.functions.iter().enumerate() {
        let mut unwraps = Vec::new();
        drops(&function.body, &mut 0, index as u32, &mut steps, &mut unwraps);
        steps.append(&mut unwraps);
    }
    for (index, function) in program.functions.iter().enumerate() {
        shape_steps(index as u32, function, &mut steps);
    }
    for (index, function) in program.functions.iter().enumerate() {
        plainer_steps(index as u32, function, &mut steps);
    }
    for interrupt in 0..program.interrupts.len() as u32 {
        steps.extend([false, true].map(|half| Step::Earlier { interrupt, half }));
    }
    steps.extend([false, true].map(|least| Step::SignalStack { least }));
    steps.push(Step::Convention);
    steps
}

/// Calls `visit` with the parts of a list: the whole list, halves, quarters, down to single items.
fn chunks(len: u32, mut visit: impl FnMut(u32, u32)) {
    let mut count = len;
    while count > 0 {
        for first in (0..len).step_by(count as usize) {
            visit(first, count.min(len - first));
        }
        count = if count == 1 { 0 } else { count.div_ceil(2) };
    }
}

fn drops(
    body: &[Statement],
    next: &mut u32,
    function: u32,
    steps: &mut Vec<Step>,
    unwraps: &mut Vec<Step>,
) {
    // A statement's number is known after all earlier ones have been counted.
    let mut numbers = Vec::with_capacity(body.len());
    let mut number = *next;
    for statement in body {
        numbers.push(number);
        number += 1 + count(statement);
    }
    chunks(body.len() as u32, |first, count| {
        let first = numbers[first as usize];
        steps.push(Step::DropStatements { function, first, count });
    });
    for statement in body {
        let number = *next;
        *next += 1;
        for (body, inner) in (0..).zip(statement.bodies()) {
            unwraps.push(Step::Unwrap { function, statement: number, body });
            drops(inner, next, function, steps, unwraps);
        }
    }
}

/// Returns the number of statements inside a statement.
pub(super) fn count(statement: &Statement) -> u32 {
    statement.bodies().flatten().map(|inner| 1 + count(inner)).sum()
}

fn shape_steps(index: u32, function: &Function, steps: &mut Vec<Step>) {
    let shape = &function.shape;
    let mut push = |part| steps.push(Step::Shape { function: index, part });
    let count = |len: usize| 0..len as u8;
    PARTS.into_iter().for_each(&mut push);
    count(shape.pushes.len()).for_each(|n| push(Part::Push(n)));
    count(shape.saves.len()).for_each(|n| push(Part::MovSave(n)));
    count(shape.xmm_saves.len()).for_each(|n| push(Part::XmmSave(n)));
    count(shape.home.len()).for_each(|n| push(Part::HomeSlot(n)));
    [Part::Version1, Part::Version2WithoutEpilogs].into_iter().for_each(&mut push);
}

fn plainer_steps(function: u32, text: &Function, steps: &mut Vec<Step>) {
    if text.kind != CodeKind::Native {
        steps.push(Step::Kind { function, to: CodeKind::Native });
    }
    // Statements that only managed code can have keep a function managed.
    if text.kind == CodeKind::ReadyToRun {
        steps.push(Step::Kind { function, to: CodeKind::Jit });
    }
    if text.end != Some(Exit::Return(ReturnForm::Ret)) && text.shape.entry == EntryForm::Call {
        steps.extend([true, false].map(|plain| Step::End { function, plain }));
    }
    let mut number = 0;
    ways_of_list(&text.body, &mut number, function, steps);
}

fn ways_of_list(body: &[Statement], number: &mut u32, function: u32, steps: &mut Vec<Step>) {
    for statement in body {
        let ways = ways(statement);
        steps.extend((0..ways).map(|way| Step::Plainer { function, statement: *number, way }));
        *number += 1;
        for inner in statement.bodies() {
            ways_of_list(inner, number, function, steps);
        }
    }
}

/// Returns the number of ways to simplify a statement.
fn ways(statement: &Statement) -> u8 {
    match statement {
        Statement::Call(CallForm::Near, _)
        | Statement::Cold(_)
        | Statement::Funclet(_)
        | Statement::Try(..)
        | Statement::Throw
        | Statement::Trap(_)
        | Statement::Runtime(_)
        | Statement::Primitive(_)
        | Statement::Stop
        | Statement::If(true, _)
        | Statement::Store(0)
        | Statement::Work(0)
        | Statement::ClobberXmm(0) => 0,
        Statement::Call(..)
        | Statement::SwitchStack(_)
        | Statement::ClobberXmm(_)
        | Statement::Clobber(_)
        | Statement::If(false, _) => 1,
        Statement::Store(_)
        | Statement::Work(_)
        | Statement::Loop(..)
        | Statement::Alloca(_)
        | Statement::Exit(_) => 2,
        Statement::Region(registers, _) => registers.len() as u8,
        Statement::Guarded(_, clauses) => clauses::ways(clauses),
    }
}
