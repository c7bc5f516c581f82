//! Execution of single steps towards a smaller program.

use super::measure::{self, Measure};
use super::shrink::Shrink;
use super::steps::{self, Part, Step};
use super::{clauses, repair};
use clr_codegen::{
    Allocation, CallForm, CallingConvention, ColdForm, EntryForm, EpilogueCfi, Exit, FrameSet,
    Function, FunctionIndex, FunctionShape, Program, Realign, Release, ReturnForm, SaveArea,
    Statement, TailCallForm, UnwindData, Wrap,
};
use clr_unwind::Gpr;

/// Each step leads to a repaired program with a smaller [`Measure`].
impl Shrink for Program {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        steps::steps(self)
    }

    fn take(&self, step: Step) -> Option<Self> {
        let mut smaller = self.clone();
        match step {
            Step::DropFunctions { first, count } => drop_functions(&mut smaller, first, count),
            Step::Bypass { function } => bypass(&mut smaller, function)?,
            Step::DropInterrupts { first, count } => {
                let first = first as usize;
                smaller.interrupts.drain(first..first + count as usize);
            }
            Step::DropStatements { function, first, count } => {
                at_statement(&mut smaller, function, first, |list, index| {
                    list.drain(index..index + count as usize);
                });
            }
            Step::Unwrap { function, statement, body } => {
                at_statement(&mut smaller, function, statement, |list, index| {
                    let body = list[index].bodies_mut().nth(body as usize);
                    let body = body.map(std::mem::take).unwrap_or_default();
                    list.splice(index..=index, body);
                });
            }
            Step::Shape { function, part } => plainer_shape(smaller.function(function)?, part),
            Step::Plainer { function, statement, way } => {
                at_statement(&mut smaller, function, statement, |list, index| {
                    plainer(&mut list[index], way);
                });
            }
            Step::End { function, plain } => {
                let end = &mut smaller.function(function)?.end;
                *end = Some(end.filter(|_| !plain).map_or(RETURN, plainer_exit));
            }
            Step::Kind { function, to } => smaller.function(function)?.kind = to,
            Step::Convention => smaller.convention = CallingConvention::WindowsX64,
            Step::SignalStack { least } => {
                let least = if least { repair::least_signal_stack(&smaller) } else { None };
                smaller.signal_stack = least.unwrap_or(0);
            }
            Step::Earlier { interrupt, half } => {
                let after = &mut smaller.interrupts.get_mut(interrupt as usize)?.after;
                *after = if half { *after / 2 } else { 0 };
            }
        }
        repair::program(&mut smaller);
        let takes = Measure::of(&smaller) < Measure::of(self) && smaller.check().is_ok();
        takes.then_some(smaller)
    }
}

const RETURN: Exit = Exit::Return(ReturnForm::Ret);

trait FunctionAt {
    fn function(&mut self, index: u32) -> Option<&mut Function>;
}

impl FunctionAt for Program {
    fn function(&mut self, index: u32) -> Option<&mut Function> {
        self.functions.get_mut(index as usize)
    }
}

/// The new target of calls of a function.
#[derive(Clone, Copy)]
enum Redirect {
    To(FunctionIndex),
    Nowhere,
}

fn drop_functions(program: &mut Program, first: u32, count: u32) {
    let end = first + count;
    program.functions.drain(first as usize..end as usize);
    redirect(program, |FunctionIndex(id)| {
        if id < first {
            Redirect::To(FunctionIndex(id))
        } else if id < end {
            Redirect::Nowhere
        } else {
            Redirect::To(FunctionIndex(id - count))
        }
    });
}

/// Drops a function; its callers call its first callee instead.
fn bypass(program: &mut Program, function: u32) -> Option<()> {
    let dropped = program.functions.get(function as usize)?;
    let jump = match dropped.end {
        Some(Exit::TailCall(_, callee)) => Some(callee),
        _ => None,
    };
    let FunctionIndex(callee) = first_callee(&dropped.body).or(jump)?;
    program.functions.remove(function as usize);
    redirect(program, |FunctionIndex(id)| {
        let id = if id == function { callee } else { id };
        Redirect::To(FunctionIndex(if id > function { id - 1 } else { id }))
    });
    Some(())
}

fn first_callee(body: &[Statement]) -> Option<FunctionIndex> {
    body.iter().find_map(|statement| match statement {
        Statement::Call(_, callee)
        | Statement::SwitchStack(callee)
        | Statement::Exit(Exit::TailCall(_, callee)) => Some(*callee),
        Statement::Runtime(call) => call.target,
        _ => statement.bodies().find_map(first_callee),
    })
}

fn redirect(program: &mut Program, mut to: impl FnMut(FunctionIndex) -> Redirect) {
    for function in &mut program.functions {
        redirect_body(&mut function.body, &mut to);
        if let Some(exit) = &mut function.end {
            redirect_exit(exit, &mut to);
        }
    }
    program.interrupts.retain_mut(|interrupt| redirect_one(&mut interrupt.handler, &mut to));
}

fn redirect_one(id: &mut FunctionIndex, to: &mut impl FnMut(FunctionIndex) -> Redirect) -> bool {
    match to(*id) {
        Redirect::To(other) => {
            *id = other;
            true
        }
        Redirect::Nowhere => false,
    }
}

fn redirect_exit(exit: &mut Exit, to: &mut impl FnMut(FunctionIndex) -> Redirect) {
    if let Exit::TailCall(_, callee) = exit
        && !redirect_one(callee, to)
    {
        *exit = RETURN;
    }
}

fn redirect_body(body: &mut Vec<Statement>, to: &mut impl FnMut(FunctionIndex) -> Redirect) {
    body.retain_mut(|statement| match statement {
        Statement::Call(_, callee) | Statement::Trap(callee) | Statement::SwitchStack(callee) => {
            redirect_one(callee, to)
        }
        Statement::Runtime(call) => {
            call.target.as_mut().is_none_or(|target| redirect_one(target, to))
        }
        Statement::Exit(exit) => {
            redirect_exit(exit, to);
            true
        }
        _ => {
            for body in statement.bodies_mut() {
                redirect_body(body, to);
            }
            true
        }
    });
}

/// Edits the list that contains a statement, given the statement's index in the list.
fn at_statement(
    program: &mut Program,
    function: u32,
    statement: u32,
    edit: impl FnOnce(&mut Vec<Statement>, usize),
) {
    let Some(function) = program.function(function) else { return };
    let mut left = statement;
    if let Some((list, index)) = find(&mut function.body, &mut left) {
        edit(list, index);
    }
}

fn find<'a>(
    list: &'a mut Vec<Statement>,
    left: &mut u32,
) -> Option<(&'a mut Vec<Statement>, usize)> {
    let mut index = 0;
    while index < list.len() {
        let inside = super::steps::count(&list[index]);
        if *left == 0 {
            return Some((list, index));
        }
        *left -= 1;
        if *left < inside {
            break;
        }
        *left -= inside;
        index += 1;
    }
    let inside =
        |body: &Vec<Statement>| body.iter().map(|one| 1 + super::steps::count(one)).sum::<u32>();
    for body in list.get_mut(index)?.bodies_mut() {
        let here = inside(body);
        if *left < here {
            return find(body, left);
        }
        *left -= here;
    }
    None
}

fn plainer(statement: &mut Statement, way: u8) {
    let half = way == 1;
    match statement {
        Statement::Call(form, _) => *form = CallForm::Near,
        Statement::SwitchStack(callee) => *statement = Statement::Call(CallForm::Near, *callee),
        Statement::Clobber(register) => *register = Gpr::Rax,
        Statement::ClobberXmm(n) => *n = 0,
        Statement::Store(offset) => *offset = if half { (*offset / 2) & !7 } else { 0 },
        Statement::Work(n) => *n = if half { *n / 2 } else { 0 },
        Statement::Loop(times, _) => *times = if half { *times / 2 } else { 1 },
        Statement::If(taken, _) => *taken = true,
        Statement::Exit(exit) => *exit = if half { plainer_exit(*exit) } else { RETURN },
        Statement::Alloca(units) => *units = if half { *units / 2 } else { 1 },
        Statement::Region(registers, _) => {
            registers.remove(way as usize);
        }
        Statement::Guarded(_, clauses) => clauses::plainer(clauses, way),
        Statement::Cold(_)
        | Statement::Funclet(_)
        | Statement::Try(..)
        | Statement::Throw
        | Statement::Trap(_)
        | Statement::Runtime(_)
        | Statement::Primitive(_)
        | Statement::Stop => {}
    }
}

fn plainer_exit(exit: Exit) -> Exit {
    match exit {
        Exit::Return(_) | Exit::Computed => RETURN,
        Exit::TailCall(_, callee) => Exit::TailCall(TailCallForm::Near, callee),
    }
}

fn plainer_shape(function: &mut Function, part: Part) {
    let shape = &mut function.shape;
    let entry = shape.entry;
    match part {
        Part::Leaf => *shape = repair::leaf(false),
        Part::Default => *shape = FunctionShape { entry, ..FunctionShape::default() },
        Part::Saves => {
            let frame = shape.frame;
            shape.pushes.retain(|push| frame.is_some_and(|frame| frame.register == *push));
            shape.saves.clear();
            shape.xmm_saves.clear();
            shape.home = [None; 4];
        }
        Part::Entry => shape.entry = EntryForm::Call,
        Part::Pushes => {
            let frame = shape.frame;
            shape.pushes.retain(|push| frame.is_some_and(|frame| frame.register == *push));
        }
        Part::Push(n) => {
            shape.pushes.remove(n.into());
        }
        Part::MovSaves => shape.saves.clear(),
        Part::MovSave(n) => {
            shape.saves.remove(n.into());
        }
        Part::XmmSaves => shape.xmm_saves.clear(),
        Part::XmmSave(n) => {
            shape.xmm_saves.remove(n.into());
        }
        Part::Home => shape.home = [None; 4],
        Part::HomeSlot(n) => shape.home[usize::from(n)] = None,
        Part::Locals(bytes) => shape.locals = bytes,
        Part::HalfLocals => shape.locals = (shape.locals / 2) & !7,
        Part::Frame => shape.frame = None,
        Part::FrameOffset => edit_frame(shape, |frame| frame.offset = 0),
        Part::HalfFrameOffset => edit_frame(shape, |frame| frame.offset /= 2),
        Part::FrameSet => edit_frame(shape, |frame| frame.set = FrameSet::AfterAllocation),
        Part::Described => edit_frame(shape, |frame| frame.described = true),
        Part::ReleaseAdd => shape.release = Release::Add,
        Part::ReleaseLea => shape.release = Release::Lea,
        Part::AllocationSub => shape.allocation = Allocation::Sub,
        Part::SaveArea => shape.save_area = SaveArea::AboveLocals,
        Part::Scheduled => shape.scheduled = false,
        Part::Handler => shape.handler = false,
        Part::Cold => shape.cold = ColdForm::Chained,
        Part::Wrap => shape.wrap = Wrap::Whole,
        Part::WrapInside => shape.wrap = Wrap::Inside,
        Part::Realign => shape.realign = Realign::No,
        Part::Realign32 => shape.realign = Realign::To32,
        Part::Arguments => shape.arguments = 0,
        Part::FewArguments => shape.arguments = 2,
        Part::EpilogueCfi => shape.epilogue_cfi = EpilogueCfi::Restored,
        Part::Version1 => shape.unwind = UnwindData::Version1,
        Part::Version2WithoutEpilogs => shape.unwind = UnwindData::Version2WithoutEpilogs,
    }
    // The old release may have become impossible; the plainest one that is still possible replaces
    // it.
    if !repair::is_possible(shape.release, shape) {
        let lea = shape.frame.is_some()
            && measure::release(Release::Lea) < measure::release(shape.release);
        shape.release = if lea { Release::Lea } else { Release::Add };
    }
}

fn edit_frame(shape: &mut FunctionShape, edit: impl FnOnce(&mut clr_codegen::FrameRegister)) {
    if let Some(frame) = &mut shape.frame {
        edit(frame);
    }
}
