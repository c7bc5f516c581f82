//! Results of calls, compared with what is expected. Labels and the registers of the shadow stack
//! may come from a stack placed by hand or from an executed program.

use crate::model::{ExpectedFlags, ExpectedFrameReport, ExpectedOutcome, ExpectedSnapshot, Stale};
use clr_runtime::clause::Clause;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::{Outcome, Runtime};
use clr_unwind::{Gpr, Registers};
use clr_world::synthetic::FrameReport;
use core::fmt;
use thiserror::Error;

/// One frame report: a StackSnapshotCallback call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFrameReport {
    /// Arguments of the callback.
    pub frame_report: FrameReport,
    /// Name of the function with the reported FunctionID; `None` for a marker.
    pub function: Option<String>,
    /// Registers of the reported activation, if known: the nonvolatile registers of the context
    /// must equal these (C-098).
    pub true_registers: Option<Registers>,
}

/// Results of the nested calls that were made in callbacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundNested {
    /// Outcome of each call.
    pub outcomes: Vec<Outcome>,
    /// Number of callbacks that the nested calls made.
    pub callbacks: usize,
}

/// Rules for contexts that apply whatever the call's expectation states. Fields that are `None` are
/// not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextRules {
    /// The call asks for contexts (C-092).
    pub wanted: bool,
    /// Size of the contexts in bytes, if there are any.
    pub size: Option<u32>,
    /// ContextFlags of the contexts, unless the expectation states other ones.
    pub flags: Option<u32>,
    /// ContextFlags of the context that the runtime takes of a stopped thread.
    pub own_flags: u32,
    /// Registers that the walk started with.
    pub start: Option<Registers>,
    /// Nonvolatile registers of the calling convention.
    pub nonvolatile: &'static [Gpr],
}

/// The callbacks of a call, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotResult {
    /// Callbacks in order.
    pub frame_reports: Vec<FoundFrameReport>,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Results of the nested calls, in the order of the calls.
    pub nested: Vec<FoundNested>,
    /// Rules for the contexts.
    pub rules: ContextRules,
    /// Clauses that applied to the decisions of the call; `None` if its expectation names none.
    pub decided_by: Option<DecidingClauses>,
}

/// The clauses that applied to the decisions of a call on a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidingClauses {
    generation: Generation,
    clauses: Vec<Clause>,
}

impl DecidingClauses {
    /// Calls `body`, and returns the clauses that applied in the runtime meanwhile if `named` are some.
    pub(crate) fn of<T>(
        runtime: &Runtime<'_>,
        named: &[Clause],
        body: impl FnOnce() -> T,
    ) -> (T, Option<Self>) {
        if named.is_empty() {
            return (body(), None);
        }
        let mark = runtime.log.mark();
        let done = body();
        let (events, generation) = (runtime.log.since(mark), runtime.generation);
        let clauses = events.iter().flat_map(|event| event.clauses(generation)).collect();
        (done, Some(Self { generation, clauses }))
    }

    /// Returns the clauses that have applied to decisions in a search on a runtime.
    pub(crate) const fn in_search(generation: Generation, clauses: Vec<Clause>) -> Self {
        Self { generation, clauses }
    }

    /// Returns the first clause of an expectation if none of its clauses has decided anything. An expectation whose clauses
    /// are all [beyond calls](Clause::decides_calls) is not judged, if one of them is a rule of the expectation's generations.
    pub(crate) fn unfounded(&self, named: &[Clause], on: Generations) -> Option<Clause> {
        let holds = |clause: &Clause| on.iter().any(|generation| clause.holds_on(generation));
        let here = named.iter().filter(|clause| clause.holds_on(self.generation));
        let mut decisive = here.filter(|clause| clause.decides_calls()).peekable();
        let is_judged = decisive.peek().is_some() || !named.iter().any(holds);
        let decides = decisive.any(|clause| self.clauses.contains(clause));
        named.first().copied().filter(|_| is_judged && !decides)
    }
}

/// A difference between the result of a snapshot and its expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SnapshotDifference {
    /// An expected callback was not made.
    #[error("expected callback {frame} was not made")]
    Missing {
        /// Index among the expected callbacks, from 0.
        frame: usize,
    },
    /// A callback was made that is not expected.
    #[error("callback {frame_report} is not expected")]
    Surplus {
        /// Index among the callbacks made, from 0.
        frame_report: usize,
    },
    /// A callback reports another frame than expected.
    #[error("callback {frame_report} does not report the expected frame")]
    Place {
        /// Index of the callback.
        frame_report: usize,
    },
    /// A callback got the FunctionID of a function that does not contain its ip.
    #[error("callback {frame_report} has a FunctionID that is not that of the function at its ip")]
    Function {
        /// Index of the callback.
        frame_report: usize,
    },
    /// A callback got a context although the call did not ask for one, or the reverse.
    #[error(
        "callback {frame_report} has a context that was not requested, or lacks the requested one"
    )]
    Context {
        /// Index of the callback.
        frame_report: usize,
    },
    /// `contextSize` differs.
    #[error("callback {frame_report} has contextSize {found:#x}, expected {expected:#x}")]
    ContextSize {
        /// Index of the callback.
        frame_report: usize,
        /// Expected size in bytes.
        expected: u32,
        /// Actual size in bytes.
        found: u32,
    },
    /// ContextFlags differ.
    #[error("callback {frame_report} has ContextFlags {found:#x}, expected {expected:#x}")]
    ContextFlags {
        /// Index of the callback.
        frame_report: usize,
        /// Expected flags.
        expected: u32,
        /// Actual flags.
        found: u32,
    },
    /// rip of the context differs from the callback's ip.
    #[error("callback {frame_report} has rip {found:#x}, but ip {expected:#x}")]
    Rip {
        /// Index of the callback.
        frame_report: usize,
        /// ip of the callback (VA).
        expected: u64,
        /// rip of the context (VA).
        found: u64,
    },
    /// A register has another value.
    #[error("callback {frame_report} has {} {found:#x}, expected {expected:#x}", register.name())]
    Register {
        /// Index of the callback.
        frame_report: usize,
        /// Register that differs.
        register: Gpr,
        /// Expected value.
        expected: u64,
        /// Actual value.
        found: u64,
    },
    /// The outcome of the call differs.
    #[error("expected: {expected}; found: {found}")]
    Outcome {
        /// Expected outcome.
        expected: ExpectedOutcome,
        /// Actual outcome.
        found: Outcome,
    },
    /// The outcome of a nested call differs.
    #[error("nested call {call}: expected: {expected}; found: {found}")]
    Nested {
        /// Index of the nested call, from 0.
        call: usize,
        /// Expected outcome.
        expected: ExpectedOutcome,
        /// Actual outcome.
        found: Outcome,
    },
    /// The expectation names clauses, and none of them has decided anything in the call.
    #[error("{named} has decided nothing in this call, nor has another clause of the expectation")]
    Clause {
        /// The first clause of the expectation.
        named: Clause,
    },
    /// A nested call made callbacks.
    #[error("nested call {call} makes callbacks")]
    NestedCallbacks {
        /// Index of the nested call, from 0.
        call: usize,
    },
}

impl SnapshotDifference {
    /// Returns the index of the callback that differs, if it is one that was made.
    #[must_use]
    pub const fn frame_report(self) -> Option<usize> {
        match self {
            Self::Surplus { frame_report }
            | Self::Place { frame_report }
            | Self::Function { frame_report }
            | Self::Context { frame_report }
            | Self::ContextSize { frame_report, .. }
            | Self::ContextFlags { frame_report, .. }
            | Self::Rip { frame_report, .. }
            | Self::Register { frame_report, .. } => Some(frame_report),
            Self::Missing { .. }
            | Self::Outcome { .. }
            | Self::Nested { .. }
            | Self::Clause { .. }
            | Self::NestedCallbacks { .. } => None,
        }
    }
}

impl FoundFrameReport {
    /// Returns true if the callback reports the expected frame or marker; registers are not
    /// compared.
    #[must_use]
    pub fn is_at(&self, expected: &ExpectedFrameReport) -> bool {
        let inside =
            || self.frame_report.label.rsplit_once("+0x").map_or("", |(function, _)| function);
        let label = expected.label.as_deref();
        expected.marker == self.frame_report.function.is_none()
            && label.is_none_or(|label| label == self.frame_report.label || label == inside())
    }

    /// Returns true if the registers named in the expectation have the expected values.
    fn has_registers(&self, expected: &ExpectedFrameReport) -> bool {
        let registers =
            self.frame_report.context.map(|context| context.registers).unwrap_or_default();
        expected.registers.iter().all(|(register, value)| registers.get(*register) == *value)
    }

    /// Returns the function name in the label, without the code version.
    fn function_of_label(&self) -> &str {
        let label = &self.frame_report.label;
        let function = label.rsplit_once("+0x").map_or(label.as_str(), |(function, _)| function);
        function.split('@').next().unwrap_or(function)
    }
}

impl ExpectedSnapshot {
    /// Returns the differences between a result and the expectation, in the order of the callbacks.
    #[must_use]
    pub fn differences(&self, found: &SnapshotResult) -> Vec<SnapshotDifference> {
        let mut differences = Vec::new();
        let pairs = self.pairs(found, &mut differences);
        for (frame_report, (made, frame)) in found.frame_reports.iter().zip(&pairs).enumerate() {
            let frame = frame.and_then(|frame| self.frames.get(frame));
            self.context(frame_report, made, frame, &found.rules, &mut differences);
        }
        for (call, (expected, nested)) in self.nested.iter().zip(&found.nested).enumerate() {
            let expected = *expected;
            let other = nested.outcomes.iter().find(|outcome| !expected.is(**outcome));
            let other =
                other.map(|found| SnapshotDifference::Nested { call, expected, found: *found });
            differences.extend(other);
            if nested.callbacks > 0 {
                differences.push(SnapshotDifference::NestedCallbacks { call });
            }
        }
        if !self.result.is(found.outcome) {
            let (expected, found) = (self.result, found.outcome);
            differences.push(SnapshotDifference::Outcome { expected, found });
        }
        let unfounded =
            found.decided_by.as_ref().and_then(|by| by.unfounded(&self.clauses, self.on));
        differences.extend(unfounded.map(|named| SnapshotDifference::Clause { named }));
        differences
    }

    /// Matches each callback made with the index of its expected callback.
    fn pairs(
        &self,
        found: &SnapshotResult,
        differences: &mut Vec<SnapshotDifference>,
    ) -> Vec<Option<usize>> {
        let mut pairs = vec![None; found.frame_reports.len()];
        if self.others {
            let mut frame_reports = found.frame_reports.iter().zip(&mut pairs);
            for (frame, expected) in self.frames.iter().enumerate() {
                let is = |frame_report: &FoundFrameReport| {
                    frame_report.is_at(expected) && frame_report.has_registers(expected)
                };
                match frame_reports.find(|(frame_report, _)| is(frame_report)) {
                    Some((_, pair)) => *pair = Some(frame),
                    None => differences.push(SnapshotDifference::Missing { frame }),
                }
            }
            return pairs;
        }
        for (frame_report, (made, pair)) in found.frame_reports.iter().zip(&mut pairs).enumerate() {
            match self.frames.get(frame_report) {
                Some(expected) if made.is_at(expected) => *pair = Some(frame_report),
                Some(_) => differences.push(SnapshotDifference::Place { frame_report }),
                None => differences.push(SnapshotDifference::Surplus { frame_report }),
            }
        }
        let missing = found.frame_reports.len()..self.frames.len();
        differences.extend(missing.map(|frame| SnapshotDifference::Missing { frame }));
        pairs
    }

    /// Compares the context of a callback with the expectation and the general rules.
    fn context(
        &self,
        frame_report: usize,
        made: &FoundFrameReport,
        frame: Option<&ExpectedFrameReport>,
        rules: &ContextRules,
        differences: &mut Vec<SnapshotDifference>,
    ) {
        if made.function.as_deref().is_some_and(|name| name != made.function_of_label()) {
            differences.push(SnapshotDifference::Function { frame_report });
        }
        let size = if rules.wanted { rules.size } else { Some(0) };
        if let Some(expected) = size.filter(|size| *size != made.frame_report.context_size) {
            let found = made.frame_report.context_size;
            differences.push(SnapshotDifference::ContextSize { frame_report, expected, found });
        }
        if made.frame_report.context.is_some() != rules.wanted {
            differences.push(SnapshotDifference::Context { frame_report });
        }
        let Some(context) = made.frame_report.context else {
            let given = frame.is_some_and(|frame| !frame.registers.is_empty());
            if given && !rules.wanted {
                differences.push(SnapshotDifference::Context { frame_report });
            }
            return;
        };
        let flags = frame.and_then(|frame| frame.context_flags).or(self.context_flags);
        let flags = flags.map(|flags| match flags {
            ExpectedFlags::Own => rules.own_flags,
            ExpectedFlags::Value(flags) => flags,
        });
        if let Some(expected) = flags.or(rules.flags).filter(|flags| *flags != context.flags) {
            let found = context.flags;
            differences.push(SnapshotDifference::ContextFlags { frame_report, expected, found });
        }
        let registers = context.registers;
        if registers.rip != made.frame_report.ip {
            let (expected, found) = (made.frame_report.ip, registers.rip);
            differences.push(SnapshotDifference::Rip { frame_report, expected, found });
        }
        let mut check = |register: Gpr, expected: u64| {
            let found = registers.get(register);
            if found != expected {
                let other =
                    SnapshotDifference::Register { frame_report, register, expected, found };
                differences.push(other);
            }
        };
        for (register, value) in frame.iter().flat_map(|frame| &frame.registers) {
            check(*register, *value);
        }
        let is_given = |register: &&Gpr| {
            frame.is_some_and(|frame| frame.registers.iter().any(|(given, _)| given == *register))
        };
        // Nothing on a walk sets rax (C-158), except Frames that know all registers.
        if let Some(start) = rules.start.filter(|_| !is_given(&&Gpr::Rax)) {
            check(Gpr::Rax, start.get(Gpr::Rax));
        }
        let Some(true_registers) = made.true_registers else { return };
        let stale = frame.map_or(&Stale::None, |frame| &frame.stale);
        if let (Stale::Only(registers), Some(start)) = (stale, rules.start) {
            let volatile = |register: &&Gpr| !rules.nonvolatile.contains(register);
            registers.iter().filter(volatile).for_each(|one| check(*one, start.get(*one)));
        }
        for register in rules.nonvolatile.iter().filter(|register| !is_given(register)) {
            match rules.start {
                Some(start) if stale.contains(*register) => {
                    check(*register, start.get(*register));
                }
                _ => check(*register, true_registers.get(*register)),
            }
        }
    }
}

/// Prints one line for each callback, with ip and rsp, then the outcome.
impl fmt::Display for SnapshotResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FoundFrameReport { frame_report, .. } in &self.frame_reports {
            writeln!(f, "{frame_report}")?;
        }
        writeln!(f, "{}", self.outcome)
    }
}
