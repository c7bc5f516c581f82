//! Calls of funclets that a normal run does not call. Handlers and filters are called as by a
//! runtime, while their function is stopped in the code that they guard.

use crate::every_instruction::{Failure, check_stack, walkers};
use clr_codegen::execution::{Execution, ExecutionEnd, ProgramLoadError};
use clr_codegen::{
    CallingConvention, FrameLayout, FunctionIndex, LinkedProgram, PlacedEhClause, Program, Role,
};
use clr_unwind::{Gpr, Unwinder};
use std::collections::BTreeSet;
use thiserror::Error;

/// Counts of the calls made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// Filters.
    pub filters: u32,
    /// Filters among them that accepted.
    pub accepted: u32,
    /// Handlers that caught, after which the run continued to its end.
    pub catches: u32,
    /// Finally and fault handlers.
    pub others: u32,
    /// Handlers whose clause protects another funclet.
    pub from_funclets: u32,
    /// Checked instruction boundaries.
    pub boundaries: u64,
}

/// A failed call of a funclet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FuncletFailure {
    /// Unwinding or the run failed.
    #[error(transparent)]
    Run(#[from] Failure),
    /// The funclet returned a value other than a runtime expects.
    #[error("{clause:?} returned {rax:#x}")]
    Result {
        /// The funclet's clause.
        clause: PlacedEhClause,
        /// The returned value.
        rax: u64,
    },
    /// The funclet did not return.
    #[error("{clause:?} does not return")]
    NoReturn {
        /// The funclet's clause.
        clause: PlacedEhClause,
    },
}

/// Calls the funclets of each clause from the places that it protects, as far as the first `limit`
/// boundaries of the run reach them. Unwinds the whole stack at each instruction of a funclet and
/// its callees. After a catch, the run continues at the address that the handler returned.
///
/// # Errors
/// The first [`FuncletFailure`].
pub fn call_all(program: &Program, limit: u64) -> Result<Called, FuncletFailure> {
    let linked = program.link().map_err(Failure::from)?;
    let map = linked.code_map().map_err(ProgramLoadError::ReadBack).map_err(Failure::from)?;
    let unwinder = Unwinder::new(&map).with_convention(walkers(program.convention));
    let mut called = Called::default();
    if linked.clauses.is_empty() {
        return Ok(called);
    }
    let mut seen = BTreeSet::new();
    let mut run = start(program, &linked, 0)?;
    for boundary in 0..limit {
        let rip = run.machine().cpu().rip();
        for (index, clause) in linked.clauses.iter().enumerate() {
            if clause.protects(rip) && is_inside(&linked, rip) && seen.insert((rip, index)) {
                let call = |target| {
                    let mut run = start(program, &linked, boundary)?;
                    set_establisher(&mut run, program, &linked);
                    run.call(target).map_err(|outcome| code(&run, outcome))?;
                    Ok::<_, Failure>(Call {
                        run,
                        unwinder: &unwinder,
                        program,
                        clause,
                        boundaries: 0,
                    })
                };
                if let Some(filter) = clause.filter {
                    let mut call = call(filter)?;
                    match call.finish()? {
                        None | Some(0) => {}
                        Some(1) => called.accepted += 1,
                        Some(rax) => return Err(FuncletFailure::Result { clause: *clause, rax }),
                    }
                    called.filters += 1;
                    called.boundaries += call.boundaries;
                }
                let mut call = call(clause.handler)?;
                let result = call.finish()?;
                match (result, clause.resume) {
                    (Some(rax), Some(resume)) if rax != resume => {
                        return Err(FuncletFailure::Result { clause: *clause, rax });
                    }
                    // After a handler of another frame, that frame's registers would be needed.
                    (Some(_), Some(resume)) if is_same_frame(&linked, rip, resume) => {
                        call.go_on(resume)?;
                        called.catches += 1;
                    }
                    _ => called.others += u32::from(!clause.kind.catches()),
                }
                let from_funclet = linked.part(rip).is_some_and(|part| part.funclet.is_some());
                called.from_funclets += u32::from(from_funclet);
                called.boundaries += call.boundaries;
            }
        }
        if run.step().is_err() {
            break;
        }
    }
    Ok(called)
}

/// Creates a run and executes N steps.
fn start<'p>(
    program: &'p Program,
    linked: &'p LinkedProgram,
    steps: u64,
) -> Result<Execution<'p>, Failure> {
    let mut run = Execution::new(program, linked, FunctionIndex(0), 0)?;
    for _ in 0..steps {
        run.step().map_err(|outcome| code(&run, outcome))?;
    }
    Ok(run)
}

fn code(run: &Execution<'_>, outcome: ExecutionEnd) -> Failure {
    Failure::Code { executed: run.machine().executed(), outcome }
}

/// Returns true if a call could end before `rip`: the byte before is in the body of the same part,
/// and a funclet has established its function's frame, which takes three instructions.
fn is_inside(linked: &LinkedProgram, rip: u64) -> bool {
    let before = rip.wrapping_sub(1);
    let Some(part) = linked.part(rip) else { return false };
    let done = linked
        .instructions
        .iter()
        .filter(|placed| placed.role == Role::Body && (part.begin..rip).contains(&placed.address));
    let needed = if part.funclet.is_some() && part.begin == part.root { 3 } else { 0 };
    let in_body = linked.instruction(before).is_some_and(|placed| placed.role == Role::Body);
    in_body && part.begin <= before && done.count() >= needed
}

/// Returns true if two addresses are in the same function or funclet, cold parts included.
fn is_same_frame(linked: &LinkedProgram, one: u64, other: u64) -> bool {
    let funclet = |address| linked.part(address).map(|part| (part.root, part.funclet));
    let is_function = |address| linked.part(address).is_some_and(|part| part.funclet.is_none());
    funclet(one) == funclet(other) || is_function(one) && is_function(other)
}

/// Sets the argument of a funclet called from the current instruction: the address of the current
/// frame, which is the function's or a funclet's.
fn set_establisher(run: &mut Execution<'_>, program: &Program, linked: &LinkedProgram) {
    let rip = run.machine().cpu().rip();
    let Some(part) = linked.part(rip) else { return };
    let Some(function) = program.functions.get(part.function.index()) else { return };
    let layout = FrameLayout::new(function, program.convention);
    let caller = run.shadow_stack().callers().last().map_or(0, |caller| caller.registers.rsp());
    let establisher = match part.funclet {
        Some(_) => layout.funclet_establisher(caller),
        None => layout.establisher(caller),
    };
    let argument = match program.convention {
        CallingConvention::WindowsX64 => Gpr::Rcx,
        CallingConvention::SystemV => Gpr::Rdi,
    };
    run.machine_mut().cpu_mut().set(argument, establisher);
}

/// Maximum number of instructions of a funclet, and of the code after it.
const LONGEST: u32 = 20_000;

/// A funclet that has been called.
struct Call<'a, 'p> {
    run: Execution<'p>,
    unwinder: &'a Unwinder<'a, 'a>,
    program: &'p Program,
    clause: &'a PlacedEhClause,
    boundaries: u64,
}

impl Call<'_, '_> {
    /// Unwinds the stack and executes an instruction. Returns the outcome if the run ended.
    fn step(&mut self) -> Result<Option<ExecutionEnd>, FuncletFailure> {
        check_stack(&self.run, self.unwinder, self.program.convention).map_err(Failure::from)?;
        self.boundaries += 1;
        match self.run.step() {
            Ok(()) => Ok(None),
            Err(
                outcome @ (ExecutionEnd::Returned | ExecutionEnd::Stopped | ExecutionEnd::Uncaught),
            ) => Ok(Some(outcome)),
            Err(outcome) => Err(code(&self.run, outcome).into()),
        }
    }

    /// Executes the funclet to its end and returns its result; `None` if the funclet or a callee
    /// ends the program or throws out of the funclet.
    fn finish(&mut self) -> Result<Option<u64>, FuncletFailure> {
        let depth = self.run.shadow_stack().callers().len();
        let back = self.run.shadow_stack().callers().last().map(|caller| caller.registers);
        for _ in 0..LONGEST {
            match self.step()? {
                None => {}
                Some(outcome @ ExecutionEnd::Returned) => {
                    return Err(code(&self.run, outcome).into());
                }
                Some(_) => return Ok(None),
            }
            if self.run.shadow_stack().callers().len() < depth {
                let cpu = self.run.machine().cpu();
                let returned =
                    back.is_some_and(|back| (back.rip, back.rsp()) == (cpu.rip(), cpu.rsp()));
                return Ok(returned.then(|| cpu.get(Gpr::Rax)));
            }
        }
        Err(FuncletFailure::NoReturn { clause: *self.clause })
    }

    /// Continues after the guarded statement, to the end of the program.
    fn go_on(&mut self, resume: u64) -> Result<(), FuncletFailure> {
        self.run.machine_mut().cpu_mut().set_rip(resume);
        for _ in 0..LONGEST {
            if self.step()?.is_some() {
                break;
            }
        }
        Ok(())
    }
}
