//! Searches of the interleavings of a text, and their comparison with the expectations.

use crate::Scenario;
use crate::model::{ExpectedEnd, ExpectedHistory, ExpectedWait, Exploration, ThreadName, WaitKind};
use crate::run::coverage::{Demands, Unmet};
use crate::run::error::RunOnError;
use crate::run::script::Buffers;
use crate::run::snapshot_result::DecidingClauses;
use crate::text::keywords::Keyword as _;
use clr_explore::{
    BlockReason, Budget, Edge, Explorer, Failure, History, HistoryDetail, ProfilerRule, Report,
    ScheduleString, Setup, TestedProcess, ThreadIndex, Verdict,
};
use clr_runtime::clause::Clause;
use clr_runtime::generation::Generation;
use clr_story::Hazard;
use clr_world::{ProcessEnd, SignalStack};
use core::fmt;

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// Index of the search in [`Scenario::explore`].
    pub explore: usize,
    /// Index of the relevant expectation among those of the search.
    pub expected: usize,
    /// Generation that was searched.
    pub generation: Generation,
    /// Report of the search.
    pub found: Report,
    /// Hazard that the failure is an instance of.
    pub hazard: Option<Hazard>,
    /// Differences from the expectation.
    pub differences: Vec<HistoryDifference>,
}

impl Explored {
    /// Returns true if the result is as expected.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        self.differences.is_empty()
    }
}

/// A difference between the result of a search and its expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryDifference {
    /// The search ends differently.
    End {
        /// Expected end.
        expected: ExpectedEnd,
        /// Actual end.
        found: ExpectedEnd,
    },
    /// The search was not exhaustive.
    NotEverything,
    /// The search was to make calls fail, and no call has failed.
    NoFault,
    /// The search was stopped after this number of interleavings, before its end.
    Stopped(u64),
    /// A wait is missing: its index among those expected.
    Wait(usize),
    /// The failure is an instance of another hazard, or of none.
    Hazard {
        /// Expected hazard.
        expected: Hazard,
        /// Actual hazard.
        found: Option<Hazard>,
    },
    /// The schedule string does not belong to an interleaving of this text.
    Strays,
    /// The interleaving that the schedule string replays ends differently.
    Replay(ExpectedEnd),
    /// The interleavings do not cover something.
    Coverage(Unmet),
    /// The expectation names clauses, and none of them has decided a call in an interleaving.
    Clause(Clause),
}

impl fmt::Display for HistoryDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End { expected, found } => write!(f, "{found} instead of {expected}"),
            Self::NotEverything => f.write_str("the search was not exhaustive"),
            Self::NoFault => f.write_str("no call was made to fail"),
            Self::Stopped(done) => {
                write!(f, "the search had not ended in its time, after {done} interleavings")
            }
            Self::Wait(place) => write!(f, "expected wait {place} is missing"),
            Self::Hazard { expected, found: Some(found) } => {
                write!(f, "{found} instead of {expected}")
            }
            Self::Hazard { expected, found: None } => {
                write!(f, "the failure is not an instance of {expected}")
            }
            Self::Strays => f.write_str("the schedule string does not belong to this text"),
            Self::Replay(found) => write!(f, "the schedule string leads to {found}"),
            Self::Coverage(unmet) => unmet.fmt(f),
            Self::Clause(named) => write!(
                f,
                "{named} has decided nothing in any interleaving, nor has another clause of the expectation"
            ),
        }
    }
}

impl fmt::Display for ExpectedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "rule {}", rule.word()),
            other => f.write_str(other.word()),
        }
    }
}

impl ExpectedEnd {
    /// Returns the name of the end's node.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Survives { .. } => "survives",
            Self::Deadlock => "deadlock",
            Self::LiveLock => "live-lock",
            Self::LostWakeUp => "lost-wake-up",
            Self::DestroyedThread => "destroyed-thread",
            Self::UnloadedCode => "unloaded-code",
            Self::Killed => "killed",
            Self::Watchdog => "watchdog",
            Self::Rule(_) => "rule",
            Self::Failed => "failed",
        }
    }

    /// Returns the end of an interleaving with the given verdict.
    #[must_use]
    pub const fn of(verdict: Option<&Verdict>) -> Self {
        match verdict {
            None => Self::Survives { everything: false },
            Some(Verdict::Deadlock(_)) => Self::Deadlock,
            Some(Verdict::LiveLock) => Self::LiveLock,
            Some(Verdict::LostWakeUp(_)) => Self::LostWakeUp,
            Some(Verdict::DestroyedThread { .. }) => Self::DestroyedThread,
            Some(Verdict::UnloadedCode { .. }) => Self::UnloadedCode,
            Some(Verdict::ProcessKilled { .. }) => Self::Killed,
            Some(Verdict::Watchdog(_)) => Self::Watchdog,
            Some(Verdict::Broken { rule, .. }) => Self::Rule(*rule),
            Some(Verdict::Failed { .. }) => Self::Failed,
        }
    }

    /// Returns true if the ends are equal, apart from the flag that everything was searched.
    fn is(self, other: Self) -> bool {
        match (self, other) {
            (Self::Survives { .. }, Self::Survives { .. }) => true,
            (one, other) => one == other,
        }
    }
}

impl ExpectedWait {
    fn is(&self, edge: &Edge) -> bool {
        let who = |who: ThreadName, thread: ThreadIndex| who == ThreadName::Thread(thread.0);
        let lock = match edge.why {
            BlockReason::Lock(lock) => Some(lock),
            _ => None,
        };
        who(self.waits, edge.waits)
            && who(self.for_whom, edge.for_whom)
            && self.why.is_none_or(|why| why == WaitKind::of(edge.why))
            && (self.lock.is_none() || self.lock == lock)
    }
}

impl WaitKind {
    /// Returns the kind of a reason.
    #[must_use]
    pub const fn of(why: BlockReason) -> Self {
        match why {
            BlockReason::Lock(_) => Self::Lock,
            BlockReason::Suspended => Self::Suspended,
            BlockReason::ToStop => Self::ToStop,
            BlockReason::RuntimeSuspended => Self::RuntimeSuspended,
            BlockReason::Collection => Self::Collection,
            BlockReason::Join => Self::Join,
            BlockReason::WakeUp => Self::WakeUp,
            BlockReason::CodeManagerReader => Self::CodeManagerReader,
            BlockReason::InterruptedWait => Self::InterruptedWait,
        }
    }
}

/// The result of replaying a schedule string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replayed {
    /// The string does not belong to an interleaving of the text.
    Strays,
    /// The replayed interleaving ends this way.
    Ends(ExpectedEnd),
}

impl ExpectedHistory {
    /// Returns the differences between the expectation and the result of a search, and of the
    /// replayed interleaving if there is one.
    fn differences(
        &self,
        generation: Generation,
        budget: &Budget,
        found: &Report,
        hazard: Option<Hazard>,
        replayed: Option<Replayed>,
    ) -> Vec<HistoryDifference> {
        let mut differences = Vec::new();
        let failure = found.failure.as_ref();
        let verdict = failure.map(|failure| &failure.verdict);
        let ends = ExpectedEnd::of(verdict);
        let was_broken =
            |rule: ProfilerRule| found.broken.iter().any(|(_, broken, _)| *broken == rule);
        let is_end = match self.ends {
            ExpectedEnd::Rule(rule) if budget.rules && ends != self.ends => was_broken(rule),
            expected => expected.is(ends),
        };
        if !is_end {
            differences.push(HistoryDifference::End { expected: self.ends, found: ends });
            return differences;
        }
        let everything = found.covered.is_some_and(|covered| covered.everything);
        if self.ends == (ExpectedEnd::Survives { everything: true }) && !everything {
            differences.push(HistoryDifference::NotEverything);
        }
        if failure.is_none() && !budget.faults.are_none() && found.injected == 0 {
            differences.push(HistoryDifference::NoFault);
        }
        let edges: &[Edge] = match verdict {
            Some(Verdict::Deadlock(edges)) => edges,
            _ => &[],
        };
        for (place, wait) in self.waits.iter().enumerate() {
            if !edges.iter().any(|edge| wait.is(edge)) {
                differences.push(HistoryDifference::Wait(place));
            }
        }
        if let Some(expected) = self.hazard.filter(|expected| hazard != Some(*expected)) {
            differences.push(HistoryDifference::Hazard { expected, found: hazard });
        }
        differences.extend(self.unfounded(generation, found).map(HistoryDifference::Clause));
        match replayed {
            Some(Replayed::Strays) => differences.push(HistoryDifference::Strays),
            Some(Replayed::Ends(ends)) if !self.ends.is(ends) => {
                differences.push(HistoryDifference::Replay(ends));
            }
            _ => {}
        }
        differences
    }

    /// Returns the first clause if none of the clauses has decided a call in a search, though calls show that.
    fn unfounded(&self, generation: Generation, found: &Report) -> Option<Clause> {
        let by = DecidingClauses::in_search(generation, found.clauses.clone());
        by.unfounded(&self.clauses, self.on)
    }

    /// Returns true if a search shows whether a clause has decided anything.
    fn judges_clauses(&self) -> bool {
        self.clauses.iter().any(|clause| clause.decides_calls())
    }
}

/// A process of a text on one generation, with its profiler, whose interleavings are searched.
#[derive(Debug)]
pub struct Exploring<'s> {
    scenario: &'s Scenario,
    demands: Demands<'s>,
    notes_clauses: bool,
    process: TestedProcess,
    buffers: Buffers,
}

impl<'s> Exploring<'s> {
    /// Creates the process of a program.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn new(scenario: &'s Scenario, generation: Generation) -> Result<Self, RunOnError> {
        let process = scenario.process_on(generation)?;
        let demands = Demands::of(scenario, generation);
        let expected =
            scenario.explore.iter().filter_map(|explore| explore.expected_on(generation));
        let notes_clauses = expected.into_iter().any(|(_, expected)| expected.judges_clauses());
        Ok(Self { scenario, demands, notes_clauses, process, buffers: Buffers::default() })
    }

    /// Returns the process, for searches of interleavings by other means.
    #[must_use]
    pub const fn process(&self) -> &TestedProcess {
        &self.process
    }

    /// Prepares the process for the execution of interleavings.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn explorer(&self) -> Result<Explorer<'_>, RunOnError> {
        Ok(Explorer::new(&self.process)?)
    }

    /// Loads the profiler for one interleaving.
    pub fn load<'p>(&'p self, setup: &mut Setup<'p>) {
        if self.notes_clauses {
            setup.note_clauses();
        }
        if let Some(profiler) = &self.scenario.profiler {
            profiler.load(self.scenario, &self.demands, &self.buffers, setup);
        }
    }

    /// Searches the interleavings. `progress` gets the number of interleavings executed, and returns false
    /// to stop the search.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn search(
        &self,
        budget: &Budget,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<Report, RunOnError> {
        Ok(self.explorer()?.search(&|setup| self.load(setup), budget, progress))
    }

    /// Replays an interleaving; returns `None` if it is not one of this text and generation.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn replay(
        &self,
        schedule: &ScheduleString,
        budget: &Budget,
    ) -> Result<Option<(Option<Verdict>, History)>, RunOnError> {
        let mut explorer = self.explorer()?;
        let (limits, recording) = (budget.limits, HistoryDetail::Statuses);
        let ending = explorer.replay(&|setup| self.load(setup), schedule, limits, recording);
        Ok(ending.map(|ending| {
            let of_rule = ending.broken.first().filter(|_| budget.rules);
            let of_rule = of_rule.map(|(by, rule)| Verdict::Broken { by: *by, rule: *rule });
            (ending.verdict.or(of_rule), ending.history.unwrap_or_default())
        }))
    }
}

impl Scenario {
    /// Creates the process of the text's program on one generation without its profiler, for a
    /// profiler written in Rust in `clr_explore::check`.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn process_on(&self, generation: Generation) -> Result<TestedProcess, RunOnError> {
        let starts = self.threads.iter().zip(self.starts());
        let threads: Vec<_> = starts.map(|(thread, start)| (&*thread.name, start)).collect();
        let process = TestedProcess::from_build(self.build_on(generation)?, &threads);
        let process = process.stopping_by(self.stop_by).exporting(self.entries());
        let process = match self.exits_with() {
            Some(thread) => process.ending_by(ProcessEnd::Exit(thread)),
            None => process,
        };
        Ok(process.handling_signals_on(match self.program.signal_stack {
            0 => SignalStack::Own,
            size => SignalStack::Alternate(size),
        }))
    }

    /// Runs the text's searches of interleavings on one generation. A search that is not for the
    /// generation has no report.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn explore_on(&self, generation: Generation) -> Result<Vec<Explored>, RunOnError> {
        self.explore_on_while(generation, |_| true)
    }

    /// Runs searches as [`explore_on`](Self::explore_on), each as long as `goes_on` returns true for its index. One that
    /// was stopped is wrong: what it would have found is not known.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn explore_on_while(
        &self,
        generation: Generation,
        mut goes_on: impl FnMut(usize) -> bool,
    ) -> Result<Vec<Explored>, RunOnError> {
        let mut all = Vec::new();
        let mut exploring = None;
        for (explore, says) in self.explore.iter().enumerate() {
            let Some((expected, expect)) = says.expected_on(generation) else { continue };
            let exploring = match &exploring {
                Some(exploring) => exploring,
                None => exploring.insert(Exploring::new(self, generation)?),
            };
            let budget = says.budget();
            let mut is_stopped = false;
            let found = exploring.search(&budget, |_| {
                is_stopped = !goes_on(explore);
                !is_stopped
            })?;
            let replayed = match &expect.replay {
                Some(schedule) => Some(match exploring.replay(schedule, &budget)? {
                    Some((verdict, _)) => Replayed::Ends(ExpectedEnd::of(verdict.as_ref())),
                    None => Replayed::Strays,
                }),
                None => None,
            };
            let hazard = found.failure.as_ref().and_then(hazard_of);
            let mut differences = expect.differences(generation, &budget, &found, hazard, replayed);
            let unmet = self.unmet_on(generation, &found).into_iter();
            differences.extend(unmet.map(HistoryDifference::Coverage));
            if is_stopped && found.failure.is_none() {
                differences.insert(0, HistoryDifference::Stopped(found.schedules));
            }
            all.push(Explored { explore, expected, generation, found, hazard, differences });
        }
        Ok(all)
    }
}

fn hazard_of(failure: &Failure) -> Option<Hazard> {
    Hazard::of(&failure.verdict, &failure.history)
}

impl Exploration {
    /// Returns the first clause of the expectation on a generation if the search ends as expected, and none of the
    /// expectation's clauses has decided a call in it, though calls show that.
    #[must_use]
    pub fn unfounded_on(&self, generation: Generation, found: &Report) -> Option<Clause> {
        let (_, expected) = self.expected_on(generation)?;
        let verdict = found.failure.as_ref().map(|failure| &failure.verdict);
        expected.unfounded(generation, found).filter(|_| expected.ends.is(ExpectedEnd::of(verdict)))
    }

    /// Returns the clauses of the expectation on a generation that no search can judge: no decision of a call names them.
    pub fn unjudged_on(&self, generation: Generation) -> impl Iterator<Item = Clause> {
        let clauses = self.expected_on(generation).into_iter().flat_map(|(_, it)| &it.clauses);
        clauses.copied().filter(|clause| !clause.decides_calls())
    }

    /// Returns the generations that the search runs on.
    pub fn generations(&self) -> impl Iterator<Item = Generation> {
        Generation::ALL.into_iter().filter(|generation| self.expected_on(*generation).is_some())
    }
}
