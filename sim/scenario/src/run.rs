//! Running a scenario: each thread up to its stops, a walk for each expectation there.

use super::stops::Stops;
use super::walk::{Difference, FoundWalk, Start, Untrue};
use super::{Scenario, Stop, StopAt};
use clr_codegen::execution::{LoadError, Outcome, Run};
use clr_codegen::{LinkError, LinkedProgram, THROW};
use clr_walker::code_map::CodeMap;
use clr_walker::registers::Registers;
use clr_walker::unwind::{Position, Rules};
use core::fmt;
use thiserror::Error;

/// How many instructions a thread executes at most.
pub const INSTRUCTION_LIMIT: u64 = 10_000_000;

/// Why a scenario cannot be run at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// Its program has no code.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Its program cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// What became of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopReport {
    /// Its place in [`Scenario::stops`].
    pub stop: usize,
    /// What was found there.
    pub reached: Result<Reached, NotReached>,
}

/// What was found at a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// How many instructions the thread had executed.
    pub executed: u64,
    /// Where it stopped (VA).
    pub rip: u64,
    /// A walk for each expectation; one by precise rules if there is none.
    pub walks: Vec<WalkReport>,
}

/// A walk, held against an expectation and the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkReport {
    /// Its rules.
    pub rules: Rules,
    /// What it found.
    pub found: FoundWalk,
    /// What is not as expected.
    pub differences: Vec<Difference>,
    /// Where it leaves the truth; a walk by other rules than the precise ones may, and one through
    /// code whose unwind data is wrong on purpose.
    pub untrue: Option<Untrue>,
}

impl WalkReport {
    /// Whether it found what is expected, and under precise rules the truth.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        self.differences.is_empty() && self.untrue.is_none()
    }
}

/// Why a stop was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReached {
    /// The program ended before.
    Ended {
        /// How.
        outcome: Outcome,
        /// How many instructions had been executed.
        executed: u64,
        /// How often the stop's instruction was about to be executed.
        visits: u32,
    },
    /// The function has not so many instructions.
    NoInstruction {
        /// How many it has.
        count: u32,
    },
    /// The thread had executed [`INSTRUCTION_LIMIT`] instructions.
    Limit {
        /// How often the stop's instruction was about to be executed.
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
            1 => write!(f, "; it came by once"),
            visits => write!(f, "; it came by {visits} times"),
        }
    }
}

impl core::error::Error for NotReached {}

impl Scenario {
    /// Runs all threads, each alone, and walks their stacks at the stops. The reports are in the
    /// order of the stops. A stack placed by hand has none: it is run by
    /// [`run_on`](Self::run_on).
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(&self) -> Result<Vec<StopReport>, RunError> {
        if self.stack.is_some() {
            return Ok(Vec::new());
        }
        let linked = self.program.link()?;
        let map = linked.code_map().map_err(LoadError::ReadBack)?;
        let mut reports = Vec::new();
        for thread in 0..self.threads.len() {
            self.run_thread(thread as u32, &linked, &map, &mut reports)?;
        }
        reports.sort_by_key(|report| report.stop);
        Ok(reports)
    }

    /// A thread of this scenario at its first instruction. What its registers hold depends on
    /// nothing but its index.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn start<'a>(
        &'a self,
        thread: u32,
        linked: &'a LinkedProgram,
    ) -> Result<Run<'a>, LoadError> {
        let start = self.threads.get(thread as usize).map_or_else(Default::default, |t| t.start);
        Run::new(&self.program, linked, start, u64::from(thread))
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
        if matches!(failed, Some(Outcome::Returned | Outcome::Stopped | Outcome::Uncaught)) {
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

    /// How many instructions the function of a stop has, if those are too few for it.
    fn missing(&self, stop: usize, linked: &LinkedProgram) -> Option<u32> {
        let StopAt::Instruction { function, index, .. } = self.stops.get(stop)?.at else {
            return None;
        };
        let count = linked.instructions.iter().filter(|i| i.function == Some(function)).count();
        (index as usize >= count).then_some(count as u32)
    }

    fn walks(&self, stop: usize, run: &Run<'_>, map: &CodeMap<'_>) -> Reached {
        let (registers, position, kept) = leaf(run);
        let callers = run.truth().callers().get(..kept).unwrap_or_default();
        let linked = run.linked();
        let start = Start { linked, map, memory: run.machine(), registers, position };
        let expect = self.stops.get(stop).map_or(&[][..], |stop: &Stop| &stop.expect);
        let untrue = |rules, found: &FoundWalk| {
            let precise = rules == Rules::Precise && !is_described_wrongly(linked, found);
            precise.then(|| found.untrue(callers, self.program.convention)).flatten()
        };
        let mut walks: Vec<_> = expect
            .iter()
            .map(|expectation| {
                let rules = expectation.rules;
                let found = start.walk(rules);
                let differences = found.differences(expectation);
                WalkReport { rules, untrue: untrue(rules, &found), differences, found }
            })
            .collect();
        if walks.is_empty() {
            let rules = Rules::Precise;
            let found = start.walk(rules);
            let untrue = untrue(rules, &found);
            walks.push(WalkReport { rules, untrue, differences: Vec::new(), found });
        }
        Reached { executed: run.machine().executed(), rip: registers.rip, walks }
    }
}

/// Whether a walk goes through a place whose unwind data is wrong on purpose.
fn is_described_wrongly(linked: &LinkedProgram, found: &FoundWalk) -> bool {
    let mut frames = found.frames.iter();
    frames.any(|frame| linked.cfi_mistake(frame.registers.rip, frame.position).is_some())
}

/// Where walks start, and how many callers there are then. The service that cuts the stack is no
/// code of the program: a walk starts in what threw.
fn leaf(run: &Run<'_>) -> (Registers, Position, usize) {
    let callers = run.truth().callers();
    match callers.split_last() {
        Some((thrower, outer)) if run.machine().cpu().rip() == THROW => {
            (thrower.registers, thrower.position, outer.len())
        }
        _ => (run.machine().cpu().registers(), Position::Interrupted, callers.len()),
    }
}
