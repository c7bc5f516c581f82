//! The every-instruction property: at each instruction boundary of a program's run, unwinding the
//! whole stack yields the true frames.

mod wrong;

pub use wrong::{Mistake, Wrong};

use crate::{dwarf, mutants};
use clr_codegen::execution::{Execution, ExecutionEnd, ProgramLoadError, SIGNAL_STACK_TOP};
use clr_codegen::shadow_stack::CallerState;
use clr_codegen::{
    CallingConvention, CfiMistake, FrameLayout, FunctionIndex, LinkError, LinkedProgram, Program,
    UnwindData, WindowsMistake,
};
use clr_machine::Machine;
use clr_unwind::compat::Rules;
use clr_unwind::{CodeMap, Gpr, Position, RegisterSet, Registers, Trust, UnwindError, Unwinder};
use thiserror::Error;

/// The result of a step: the position of the caller's rip, with the walker's description of the step if there
/// is one; or a description of the failure.
pub type Stepped = Result<(Position, Option<clr_unwind::Step>), String>;

/// An unwinder under test.
pub trait Step {
    /// Unwinds `registers` from a frame to its caller.
    ///
    /// # Errors
    /// Returns the unwinder's reason as text.
    fn step(&self, registers: &mut Registers, position: Position, memory: &Machine) -> Stepped;
}

impl Step for Unwinder<'_, '_> {
    fn step(&self, registers: &mut Registers, position: Position, memory: &Machine) -> Stepped {
        let step = Unwinder::step(self, registers, position, memory);
        step.map(|step| (step.caller, Some(step))).map_err(|error| error.to_string())
    }
}

impl Step for mutants::Unwinder<'_, '_> {
    fn step(&self, registers: &mut Registers, position: Position, memory: &Machine) -> Stepped {
        let step = mutants::Unwinder::step(self, registers, position, memory);
        step.map(|caller| (caller, None)).map_err(|error| format!("{error:?}"))
    }
}

/// The second unwinder of UNWIND_INFO together with the second reader of CFI, each for its own
/// images.
#[derive(Clone, Debug)]
pub struct ReferenceUnwinder<'c, 'a> {
    windows: mutants::Unwinder<'c, 'a>,
    unix: dwarf::Unwinder<'a>,
}

impl<'c, 'a> ReferenceUnwinder<'c, 'a> {
    /// Creates the unwinder of a linked program with its map.
    ///
    /// # Errors
    /// [`dwarf::Error`] if an ELF file cannot be parsed.
    pub fn new(linked: &'a LinkedProgram, map: &'c CodeMap<'a>) -> Result<Self, dwarf::Error> {
        Ok(Self { windows: mutants::Unwinder::new(map), unix: dwarf::Unwinder::new(linked)? })
    }

    /// Plants a bug in the unwinder of UNWIND_INFO.
    #[must_use]
    pub fn with_bug(self, bug: mutants::Bug) -> Self {
        Self { windows: self.windows.with_bug(bug), ..self }
    }

    /// Plants a bug in the reader of CFI.
    #[must_use]
    pub fn with_dwarf_bug(self, bug: dwarf::Bug) -> Self {
        Self { unix: self.unix.with_bug(bug), ..self }
    }
}

impl Step for ReferenceUnwinder<'_, '_> {
    fn step(&self, registers: &mut Registers, position: Position, memory: &Machine) -> Stepped {
        if self.unix.knows(registers.rip, position) {
            let step = self.unix.step(registers, position, memory);
            return step.map(|caller| (caller, None)).map_err(|error| format!("{error:?}"));
        }
        Step::step(&self.windows, registers, position, memory)
    }
}

/// Counts of a checked run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Instruction boundaries.
    pub boundaries: u64,
    /// Frames unwound.
    pub frames: u64,
    /// Frames among them where the call frame information is wrong on purpose.
    pub misdescribed: u64,
    /// Boundaries among them on the alternate signal stack.
    pub on_signal_stack: u64,
    /// Outcome of the run; `None` if the run reached its limit.
    pub outcome: Option<ExecutionEnd>,
}

/// A failed check.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The program cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The program cannot be loaded.
    #[error(transparent)]
    Load(#[from] ProgramLoadError),
    /// The program's own code failed.
    #[error("after {executed} instructions: {outcome}")]
    Code {
        /// Number of instructions executed before.
        executed: u64,
        /// Outcome of the run.
        outcome: ExecutionEnd,
    },
    /// Unwinding yielded something other than the truth.
    #[error(transparent)]
    Wrong(#[from] Box<Wrong>),
}

/// Returns true if `answer` equals `truth` in all registers that a callee preserves.
fn is_right(answer: &Registers, truth: &CallerState, convention: CallingConvention) -> bool {
    let kept: &[Gpr] = match truth.position {
        Position::ReturnAddress => convention.nonvolatile(),
        Position::Interrupted => &Gpr::ALL,
    };
    answer.rip == truth.registers.rip
        && answer.rsp() == truth.registers.rsp()
        && kept.iter().all(|register| answer.get(*register) == truth.registers.get(*register))
        && (!convention.has_nonvolatile_xmm() || answer.xmm == truth.registers.xmm)
}

/// Checks the registers of a true caller that the walker reports as known: each must have its true
/// value, and all nonvolatile registers of the convention must be among them.
fn claim(
    known: RegisterSet,
    step: &clr_unwind::Step,
    answer: &Registers,
    truth: &CallerState,
    convention: CallingConvention,
) -> Result<(), String> {
    let promised = walkers(convention).nonvolatile();
    if !known.contains_all(promised) {
        let lost = promised.difference(known);
        return Err(format!("{lost:?} reported as unknown: {step:?}"));
    }
    for register in known.gprs() {
        let (got, truly) = (answer.get(register), truth.registers.get(register));
        if got != truly {
            let name = register.name();
            return Err(format!("{name} reported as known, with {got:#x}, truly {truly:#x}"));
        }
    }
    for (n, (got, truly)) in (6..).zip(answer.xmm.iter().zip(truth.registers.xmm)) {
        if known.contains_xmm(n) && *got != truly {
            return Err(format!("xmm{n} reported as known, with {got:#x}, truly {truly:#x}"));
        }
    }
    Ok(())
}

/// Converts the convention to the walker's type.
#[must_use]
pub const fn walkers(convention: CallingConvention) -> clr_unwind::Convention {
    match convention {
        CallingConvention::WindowsX64 => clr_unwind::Convention::WindowsX64,
        CallingConvention::SystemV => clr_unwind::Convention::SystemV,
    }
}

/// Checks the first `limit` boundaries of a run of `program` under precise rules.
///
/// # Errors
/// The first [`Failure`].
pub fn precise(program: &Program, limit: u64) -> Result<Checked, Failure> {
    let linked = program.link()?;
    let map = linked.code_map().map_err(ProgramLoadError::ReadBack)?;
    let unwinder = Unwinder::new(&map);
    walk(program, &linked, &unwinder, limit)
}

/// Checks the first `limit` boundaries of a run: at each, the unwinder walks the whole stack.
///
/// # Errors
/// The first [`Failure`].
pub fn walk(
    program: &Program,
    linked: &LinkedProgram,
    unwinder: &impl Step,
    limit: u64,
) -> Result<Checked, Failure> {
    let convention = program.convention;
    at_every_instruction(program, linked, limit, |run| check_stack(run, unwinder, convention))
}

/// Counts of a stack's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// All frames.
    pub all: u64,
    /// Frames where the call frame information is wrong on purpose.
    pub misdescribed: u64,
}

/// Walks the whole stack of a run at its current instruction. Where the call frame information is
/// wrong on purpose, the answer must be wrong, unless it is by the code, and the walk continues from the truth.
///
/// # Errors
/// [`Wrong`] for the first frame that differs from the truth.
pub fn check_stack(
    run: &Execution<'_>,
    unwinder: &impl Step,
    convention: CallingConvention,
) -> Result<Frames, Box<Wrong>> {
    let mut frame = run.machine().cpu().registers();
    let mut position = Position::Interrupted;
    let mut known = RegisterSet::ALL;
    let callers = run.shadow_stack().callers();
    let mut frames = Frames::default();
    for (depth, caller) in callers.iter().rev().enumerate() {
        let mut registers = frame;
        let answer = unwinder.step(&mut registers, position, run.machine());
        let found = answer.as_ref().ok().map(|(position, _)| *position);
        let right = found == Some(caller.position) && is_right(&registers, caller, convention);
        let mistake = run.linked().cfi_mistake(frame.rip, position);
        let as_expected = match mistake {
            None => right,
            // The code may contradict the information, and then it is right.
            Some(CfiMistake::Cfa) => {
                let step = answer.as_ref().ok().and_then(|(_, step)| *step);
                right == step.is_some_and(|step| step.trust == Trust::EpilogueInstructions)
            }
            // Values that are overwritten only later are still found, by accident.
            Some(CfiMistake::Registers) => true,
        };
        if !as_expected {
            let answer = answer.map(|(position, _)| (registers, position));
            let expected = mistake.map(Mistake::Cfi);
            return Err(wrong(run, depth, &frame, caller, answer, expected));
        }
        frames.all += 1;
        if mistake.is_some() {
            frames.misdescribed += 1;
            (frame, position) = (caller.registers, caller.position);
            known = RegisterSet::ALL;
            continue;
        }
        if let Ok((_, Some(step))) = answer {
            // A machine frame does not guarantee that its handler, which may be the OS's exception
            // dispatcher, has preserved volatile registers. Here it has.
            let lost = step.needed.difference(known);
            let volatile = lost.difference(walkers(convention).nonvolatile());
            if position == Position::Interrupted && lost == volatile {
                known = known.union(lost);
            }
            known = step.known(known);
            if let Err(what) = claim(known, &step, &registers, caller, convention) {
                return Err(wrong(run, depth, &frame, caller, Err(what), None));
            }
        }
        (frame, position) = (registers, caller.position);
    }
    Ok(frames)
}

/// Checks the first `limit` boundaries of a run under `rules` of Windows, for CoreCLR's without functions of version 3: each step from a frame's true
/// registers must be right, or wrong where [`LinkedProgram::windows_mistake`] expects so. Calls
/// `met` with each mistake that occurred.
///
/// # Errors
/// The first [`Failure`].
pub fn windows(
    program: &Program,
    rules: Rules,
    limit: u64,
    mut met: impl FnMut(WindowsMistake),
) -> Result<Checked, Failure> {
    let mut program = program.clone();
    if rules == Rules::CoreClr {
        // CoreCLR's source reads version 3 as version 2.
        for function in &mut program.functions {
            if function.shape.unwind == UnwindData::Version3 {
                function.shape.unwind = UnwindData::Version1;
            }
        }
    }
    let program = &program;
    let linked = program.link()?;
    let map = linked.code_map().map_err(ProgramLoadError::ReadBack)?;
    let unwinder = Unwinder::new(&map).with_rules(rules);
    at_every_instruction(program, &linked, limit, |run| {
        let mut frame = run.machine().cpu().registers();
        let mut position = Position::Interrupted;
        let callers = run.shadow_stack().callers();
        let mut misdescribed = 0;
        for (depth, caller) in callers.iter().rev().enumerate() {
            let mut registers = frame;
            let answer: Result<_, UnwindError> =
                unwinder.step(&mut registers, position, run.machine());
            let right = answer.is_ok() && is_right(&registers, caller, program.convention);
            // Native code of Unix is not unwound by Windows' rules: its mistakes are of another
            // kind.
            if let Some(cfi) = linked.cfi_mistake(frame.rip, position) {
                let by_code =
                    answer.as_ref().is_ok_and(|it| it.trust == Trust::EpilogueInstructions);
                if right != by_code && cfi == CfiMistake::Cfa {
                    let answer = Ok((registers, caller.position));
                    let expected = Some(Mistake::Cfi(cfi));
                    return Err(wrong(run, depth, &frame, caller, answer, expected));
                }
                misdescribed += 1;
                (frame, position) = (caller.registers, caller.position);
                continue;
            }
            let mistake = linked.windows_mistake(frame.rip, position);
            if !right && let Some(mistake) = mistake {
                met(mistake);
            }
            let by_accident = |mistake| is_by_accident(mistake, &frame, caller, run, program);
            if right == mistake.is_some() && !(right && mistake.is_some_and(by_accident)) {
                let answer =
                    answer.map(|step| (registers, step.caller)).map_err(|error| error.to_string());
                let mistake = mistake.map(Mistake::Windows);
                return Err(wrong(run, depth, &frame, caller, answer, mistake));
            }
            (frame, position) = (caller.registers, caller.position);
        }
        Ok(Frames { all: callers.len() as u64, misdescribed })
    })
}

/// Returns true if Windows' mistake may have no consequence. The frame register may hold its value
/// from the body (because it is not popped yet, or the caller's happens to be the same) while no
/// interrupt has overwritten the freed stack; rsp may not have moved, with no saved register
/// changed; or the code that a return address is attributed to may have the same frame in its body,
/// as a cold part may.
fn is_by_accident(
    mistake: WindowsMistake,
    frame: &Registers,
    caller: &CallerState,
    run: &Execution<'_>,
    program: &Program,
) -> bool {
    if mistake == WindowsMistake::CallAtEnd {
        return run.linked().part(frame.rip).is_some_and(|part| !part.is_entry);
    }
    let placed = run.linked().instruction(frame.rip);
    let Some(function) = placed.and_then(|p| program.functions.get(p.function?.index())) else {
        return false;
    };
    let layout = FrameLayout::new(function, program.convention);
    if layout.allocation + layout.pushed == 0 {
        return true;
    }
    let Some((register, distance)) = layout.frame_register(&function.shape) else { return false };
    let top = match caller.position {
        Position::ReturnAddress => caller.registers.rsp(),
        // A processor aligns the stack before it pushes a machine frame.
        Position::Interrupted => caller.registers.rsp() & !15,
    };
    let own = top.wrapping_sub(u64::from(layout.cfa())).wrapping_add(u64::from(distance));
    function.shape.has_described_frame() && frame.get(register) == own
}

fn wrong(
    run: &Execution<'_>,
    depth: usize,
    frame: &Registers,
    truth: &CallerState,
    answer: Result<(Registers, Position), String>,
    expected: Option<Mistake>,
) -> Box<Wrong> {
    let linked = run.linked();
    let function = linked.instruction(frame.rip).and_then(|placed| {
        let function = placed.function?;
        Some((function, frame.rip.wrapping_sub(*linked.entries.get(function.index())?)))
    });
    Box::new(Wrong {
        executed: run.machine().executed(),
        rip: run.machine().cpu().rip(),
        depth,
        frame: *frame,
        function,
        truth: *truth,
        answer,
        expected,
    })
}

/// Runs a program and checks it at each boundary; `check` returns the number of frames that it
/// checked.
fn at_every_instruction(
    program: &Program,
    linked: &LinkedProgram,
    limit: u64,
    mut check: impl FnMut(&Execution<'_>) -> Result<Frames, Box<Wrong>>,
) -> Result<Checked, Failure> {
    let mut run = Execution::new(program, linked, FunctionIndex(0), 0)?;
    let mut checked = Checked::default();
    let size = u64::from(program.signal_stack);
    let signal_stack = SIGNAL_STACK_TOP - size..SIGNAL_STACK_TOP;
    while checked.boundaries < limit {
        let Frames { all, misdescribed } = check(&run)?;
        checked.frames += all;
        checked.misdescribed += misdescribed;
        checked.boundaries += 1;
        let rsp = run.machine().cpu().rsp();
        checked.on_signal_stack += u64::from(signal_stack.contains(&rsp));
        if let Err(outcome) = run.step() {
            checked.outcome = Some(outcome);
            return match outcome {
                ExecutionEnd::Returned | ExecutionEnd::Stopped | ExecutionEnd::Uncaught => {
                    Ok(checked)
                }
                _ => Err(Failure::Code { executed: run.machine().executed(), outcome }),
            };
        }
    }
    Ok(checked)
}
