//! Execution of scenarios without a runtime: each thread runs up to its stops, with one walk for
//! each expectation there.

use crate::run::stops::Stops;
use crate::run::walk::{FoundWalk, ShadowStackDifference, Start, UnwindDifference};
use crate::{Scenario, Stop, StopAt};
use clr_codegen::execution::{Execution, ExecutionEnd, ProgramLoadError};
use clr_codegen::{LinkError, LinkedProgram, THROW};
use clr_unwind::compat::Rules;
use clr_unwind::{CodeMap, Position, Registers};
use core::fmt;
use thiserror::Error;

/// Maximum number of instructions that a thread executes.
pub const INSTRUCTION_LIMIT: u64 = 10_000_000;

/// The reason why a scenario cannot be executed at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program cannot be linked.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The program cannot be loaded.
    #[error(transparent)]
    Load(#[from] ProgramLoadError),
}

/// The report of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopReport {
    /// Index of the stop in [`Scenario::stops`].
    pub stop: usize,
    /// Results at the stop, or the reason why it was not reached.
    pub reached: Result<StopResult, NotReached>,
}

/// The results at a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopResult {
    /// Number of instructions that the thread had executed.
    pub executed: u64,
    /// Address of the next instruction (VA).
    pub rip: u64,
    /// Walks, one for each expectation, or a single one by precise rules if there are none.
    pub walks: Vec<WalkReport>,
}

/// A walk, compared with an expectation and the shadow stack.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkReport {
    /// Rules of the walk.
    pub rules: Rules,
    /// Result of the walk.
    pub found: FoundWalk,
    /// Differences from the expectation.
    pub differences: Vec<UnwindDifference>,
    /// First difference from the shadow stack. It is not set for walks by other rules than the
    /// precise ones, nor for walks through code whose unwind data is wrong on purpose.
    pub shadow_stack_difference: Option<ShadowStackDifference>,
}

impl WalkReport {
    /// Returns true if the walk found what is expected, and under precise rules the shadow stack.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        self.differences.is_empty() && self.shadow_stack_difference.is_none()
    }
}

/// The reason why a stop was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReached {
    /// The program ended before.
    Ended {
        /// Exit of the program.
        outcome: ExecutionEnd,
        /// Number of instructions executed.
        executed: u64,
        /// Number of times that the stop's instruction was about to be executed.
        visits: u32,
    },
    /// The function has fewer instructions.
    NoInstruction {
        /// Number of instructions of the function.
        count: u32,
    },
    /// The thread had executed [`INSTRUCTION_LIMIT`] instructions.
    Limit {
        /// Number of times that the stop's instruction was about to be executed.
        visits: u32,
    },
}

impl fmt::Display for NotReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let visits = match *self {
            Self::NoInstruction { count } => {
                let last = count.saturating_sub(1);
                return write!(f, "the function's instructions are 0 to {last}");
            }
            Self::Ended { outcome, executed, visits } => {
                write!(f, "the program ended after {executed} instructions: {outcome}")?;
                visits
            }
            Self::Limit { visits } => {
                write!(f, "the program has not ended after {INSTRUCTION_LIMIT} instructions")?;
                visits
            }
        };
        match visits {
            0 => Ok(()),
            1 => write!(f, "; the instruction was reached once"),
            visits => write!(f, "; the instruction was reached {visits} times"),
        }
    }
}

impl core::error::Error for NotReached {}

impl Scenario {
    /// Runs each thread separately and walks its stack at the stops. The reports are in the order
    /// of the stops. For a stack placed by hand there are none: use [`run_on`](Self::run_on).
    ///
    /// # Errors
    /// Returns [`RunError`].
    pub fn run(&self) -> Result<Vec<StopReport>, RunError> {
        if self.stack.is_some() {
            return Ok(Vec::new());
        }
        let linked = self.program.link()?;
        let map = linked.code_map().map_err(ProgramLoadError::ReadBack)?;
        let mut reports = Vec::new();
        for thread in 0..self.threads.len() {
            self.run_thread(thread as u32, &linked, &map, &mut reports)?;
        }
        reports.sort_by_key(|report| report.stop);
        Ok(reports)
    }

    /// Creates a thread of this scenario at its first instruction. The initial register values
    /// depend only on the index of the thread.
    ///
    /// # Errors
    /// Returns [`ProgramLoadError`].
    pub fn start<'a>(
        &'a self,
        thread: u32,
        linked: &'a LinkedProgram,
    ) -> Result<Execution<'a>, ProgramLoadError> {
        let start = self.threads.get(thread as usize).map_or_else(Default::default, |t| t.start);
        Execution::new(&self.program, linked, start, u64::from(thread))
    }

    fn run_thread(
        &self,
        thread: u32,
        linked: &LinkedProgram,
        map: &CodeMap<'_>,
        reports: &mut Vec<StopReport>,
    ) -> Result<(), RunError> {
        let mut stops = Stops::new(self, linked, thread);
        if stops.is_empty() {
            return Ok(());
        }
        let mut run = self.start(thread, linked)?;
        let mut report = |stop: usize, reached| reports.push(StopReport { stop, reached });
        let failed = loop {
            for stop in stops.reach(&run) {
                report(stop, Ok(self.walks(stop, &run, map)));
            }
            if stops.is_empty() {
                return Ok(());
            }
            if run.machine().executed() >= INSTRUCTION_LIMIT {
                break None;
            }
            if let Err(outcome) = run.step() {
                break Some(outcome);
            }
        };
        if matches!(
            failed,
            Some(ExecutionEnd::Returned | ExecutionEnd::Stopped | ExecutionEnd::Uncaught)
        ) {
            for stop in stops.reach_end() {
                report(stop, Ok(self.walks(stop, &run, map)));
            }
        }
        for (stop, visits) in stops.ahead() {
            let executed = run.machine().executed();
            let why = match (self.missing(stop, linked), failed) {
                (Some(count), _) => NotReached::NoInstruction { count },
                (None, Some(outcome)) => NotReached::Ended { outcome, executed, visits },
                (None, None) => NotReached::Limit { visits },
            };
            report(stop, Err(why));
        }
        Ok(())
    }

    /// Returns the number of instructions of the stop's function if the stop's index exceeds it.
    fn missing(&self, stop: usize, linked: &LinkedProgram) -> Option<u32> {
        let StopAt::Instruction { function, index, .. } = self.stops.get(stop)?.at else {
            return None;
        };
        let count = linked.instructions.iter().filter(|i| i.function == Some(function)).count();
        (index as usize >= count).then_some(count as u32)
    }

    fn walks(&self, stop: usize, run: &Execution<'_>, map: &CodeMap<'_>) -> StopResult {
        let (registers, position, kept) = leaf(run);
        let callers = run.shadow_stack().callers().get(..kept).unwrap_or_default();
        let linked = run.linked();
        let start = Start { linked, map, memory: run.machine(), registers, position };
        let expect = self.stops.get(stop).map_or(&[][..], |stop: &Stop| &stop.expect);
        let shadow_stack_difference = |rules, found: &FoundWalk| {
            let precise = rules == Rules::Precise && !is_described_wrongly(linked, found);
            precise
                .then(|| found.shadow_stack_difference(callers, self.program.convention))
                .flatten()
        };
        let mut walks: Vec<_> = expect
            .iter()
            .map(|expectation| {
                let rules = expectation.rules;
                let found = start.walk(rules);
                let differences = found.differences(expectation);
                WalkReport {
                    rules,
                    shadow_stack_difference: shadow_stack_difference(rules, &found),
                    differences,
                    found,
                }
            })
            .collect();
        if walks.is_empty() {
            let rules = Rules::Precise;
            let found = start.walk(rules);
            let shadow_stack_difference = shadow_stack_difference(rules, &found);
            walks.push(WalkReport {
                rules,
                shadow_stack_difference,
                differences: Vec::new(),
                found,
            });
        }
        StopResult { executed: run.machine().executed(), rip: registers.rip, walks }
    }
}

/// Returns true if a walk passes through code whose unwind data is wrong on purpose.
fn is_described_wrongly(linked: &LinkedProgram, found: &FoundWalk) -> bool {
    let mut frames = found.frames.iter();
    frames.any(|frame| linked.cfi_mistake(frame.registers.rip, frame.position).is_some())
}

/// Returns the start of the walks, and the number of callers there. The service that cuts the stack
/// is not code of the program: a walk starts in the thrower.
fn leaf(run: &Execution<'_>) -> (Registers, Position, usize) {
    let callers = run.shadow_stack().callers();
    match callers.split_last() {
        Some((thrower, outer)) if run.machine().cpu().rip() == THROW => {
            (thrower.registers, thrower.position, outer.len())
        }
        _ => (run.machine().cpu().registers(), Position::Interrupted, callers.len()),
    }
}
