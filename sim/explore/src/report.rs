//! Result of a search.

use super::ending::{Ending, LastPlace, WaitedFor};
use super::headline::headline;
use super::history::History;
use super::ids::ThreadIndex;
use super::points::SearchPoints;
use super::schedule_string::ScheduleString;
use super::search::Coverage;
use super::verdict::{ProfilerRule, Verdict};
use clr_runtime::clause::Clause;
use core::fmt;
use thiserror::Error;

/// An interleaving that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Verdict of the interleaving.
    pub verdict: Verdict,
    /// Number of the interleaving.
    pub number: u64,
    /// Schedule string that reproduces the interleaving.
    pub schedule: ScheduleString,
    /// Turns and events of the interleaving.
    pub history: History,
    /// Number of interleavings with the same fault, this one included. More than one only if the search
    /// [keeps going](crate::Budget::keep_going).
    pub times: u64,
    /// True if the schedule string reproduced the interleaving with the same end. Otherwise code of the
    /// profiler depends on state outside of the schedule, such as a clock, an address or an earlier
    /// interleaving, and `history` may be a different one, or empty.
    pub repeats: bool,
}

impl Failure {
    /// Returns the line that says how to see the interleaving again: its schedule string.
    #[must_use]
    pub fn again(&self) -> String {
        let again = if self.repeats { "again" } else { "not repeated by" };
        format!("{again}: {}", self.schedule)
    }
}

/// Formats the verdict, and the line with the schedule string.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", headline(&self.verdict, &self.history))?;
        f.write_str(&self.again())
    }
}

impl core::error::Error for Failure {}

/// The reason why a search does not show that a profiler survives.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotSurvived {
    /// An interleaving failed.
    #[error(transparent)]
    Failed(Box<Failure>),
    /// The search has executed no interleaving.
    #[error("no interleaving was executed")]
    NothingExecuted,
}

/// A thread of the profiler that waits for ever at the end of interleavings that do not fail: the process ends without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftWaiting {
    /// The thread.
    pub thread: ThreadIndex,
    /// The thing that it waits for.
    pub what: WaitedFor,
    /// Number of such interleavings.
    pub interleavings: u64,
    /// Schedule string of the first of them.
    pub schedule: ScheduleString,
}

/// The waits of a thread in the interleavings of a search that do not fail: numbers of interleavings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadWaits {
    /// Those in which it had to wait.
    pub waited: u64,
    /// Those in which it never ran on after its first wait.
    pub stuck: u64,
}

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// First interleaving that failed.
    pub failure: Option<Failure>,
    /// The first interleaving of each other fault, in the order of their numbers, if the search
    /// [keeps going](crate::Budget::keep_going).
    pub further: Vec<Failure>,
    /// Number of interleavings.
    pub schedules: u64,
    /// Number of turns in all interleavings.
    pub turns: u64,
    /// Number of interleavings in which a call was made to fail.
    pub injected: u64,
    /// Rule violations without harm, each with the first interleaving in which it occurred.
    pub broken: Vec<(ThreadIndex, ProfilerRule, ScheduleString)>,
    /// Threads that wait for ever at the end of interleavings that do not fail, by thread and by what they wait for.
    pub waiting: Vec<LeftWaiting>,
    /// The waits of each thread, by its index.
    pub threads: Vec<ThreadWaits>,
    /// Coverage points that the profiler passes.
    pub points: SearchPoints,
    /// The clauses that have decided calls in any interleaving, in ascending order, if they were
    /// [noted](crate::Setup::note_clauses).
    pub clauses: Vec<Clause>,
    /// Share of the interleavings that has been explored, if it is known.
    pub covered: Option<Coverage>,
}

impl Report {
    /// Returns true if no interleaving failed.
    #[must_use]
    pub const fn survives(&self) -> bool {
        self.failure.is_none()
    }

    /// Returns the first failure as an error, so that a test of a profiler is one line:
    /// `check(&process, &profiler, &budget)?.into_result()?`.
    ///
    /// # Errors
    /// [`NotSurvived::Failed`], whose message has the schedule string to replay it; or
    /// [`NotSurvived::NothingExecuted`] of a search that has looked at nothing.
    pub fn into_result(mut self) -> Result<Self, NotSurvived> {
        match self.failure.take() {
            Some(failure) => Err(NotSurvived::Failed(Box::new(failure))),
            None if self.schedules == 0 => Err(NotSurvived::NothingExecuted),
            None => Ok(self),
        }
    }

    /// Appends the report of a search of the following interleavings, as if both were one search, which
    /// ends at the first failure. For strategies that [can be shared](crate::Strategy::can_be_shared).
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        if self.failure.is_some() { self } else { self.and(next) }
    }

    /// Appends the report of a search of the following interleavings, as if both were one search that
    /// [keeps going](crate::Budget::keep_going).
    #[must_use]
    pub fn and(mut self, next: Self) -> Self {
        for failure in next.failure.into_iter().chain(next.further) {
            match self.known(&failure.verdict, !failure.schedule.faults().is_empty()) {
                Some(known) => known.times += failure.times,
                None => self.add(failure),
            }
        }
        self.schedules += next.schedules;
        self.turns += next.turns;
        self.injected += next.injected;
        self.points.append(&next.points);
        join(&mut self.clauses, next.clauses);
        for (by, rule, schedule) in next.broken {
            self.note(by, rule, || schedule);
        }
        for LeftWaiting { thread, what, interleavings, schedule } in next.waiting {
            self.note_waiting((thread, what), interleavings, || schedule);
        }
        for (index, waits) in next.threads.into_iter().enumerate() {
            self.note_waits(index, waits);
        }
        self
    }

    /// Returns the threads that had to wait, and never ran on after their first wait in any interleaving that does not
    /// fail: what they do after it was not looked at.
    pub fn stuck_at_once(&self) -> impl Iterator<Item = ThreadIndex> {
        let threads = (0..).map(ThreadIndex).zip(&self.threads);
        let stuck = threads.filter(|(_, waits)| waits.waited > 0 && waits.stuck == waits.waited);
        stuck.map(|(thread, _)| thread)
    }

    /// Returns the failures, each of another fault, in the order of their numbers.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.failure.iter().chain(&self.further)
    }

    /// Returns the failure with the same fault as a verdict. One that comes without an injected failure is known only from
    /// interleavings without, too.
    pub(super) fn known(&mut self, verdict: &Verdict, is_injected: bool) -> Option<&mut Failure> {
        let key = verdict.fingerprint();
        let mut known = self.failure.iter_mut().chain(&mut self.further);
        known.find(|known| {
            (is_injected || known.schedule.faults().is_empty())
                && known.verdict.fingerprint() == key
        })
    }

    /// Adds the first failure with its fault.
    pub(super) fn add(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(failure);
        } else {
            self.further.push(failure);
        }
    }

    /// Records a rule violation, with the first interleaving in which it occurred.
    pub(super) fn note(
        &mut self,
        by: ThreadIndex,
        rule: ProfilerRule,
        schedule: impl FnOnce() -> ScheduleString,
    ) {
        if !self.broken.iter().any(|(who, known, _)| (*who, *known) == (by, rule)) {
            self.broken.push((by, rule, schedule()));
        }
    }
}

impl Report {
    /// Records the waits of the threads in an interleaving that does not fail, and those that wait for ever at its end.
    pub(super) fn note_end(&mut self, ending: &Ending) {
        for (index, end) in ending.threads.iter().enumerate() {
            let waited = u64::from(end.waits > 0);
            self.note_waits(index, ThreadWaits { waited, stuck: end.is_stuck_at_once().into() });
            if let LastPlace::Waits(what) = end.at {
                let thread = ThreadIndex(index as u32);
                self.note_waiting((thread, what), 1, || ending.schedule.clone());
            }
        }
    }

    /// Records the waits of a thread in interleavings.
    fn note_waits(&mut self, index: usize, more: ThreadWaits) {
        if self.threads.len() <= index {
            self.threads.resize(index + 1, ThreadWaits::default());
        }
        if let Some(known) = self.threads.get_mut(index) {
            known.waited += more.waited;
            known.stuck += more.stuck;
        }
    }

    /// Records that a thread waits for ever at the end of interleavings.
    fn note_waiting(
        &mut self,
        wait: (ThreadIndex, WaitedFor),
        interleavings: u64,
        schedule: impl FnOnce() -> ScheduleString,
    ) {
        match self.waiting.binary_search_by_key(&wait, |known| (known.thread, known.what)) {
            Ok(place) => {
                if let Some(known) = self.waiting.get_mut(place) {
                    known.interleavings += interleavings;
                }
            }
            Err(place) => {
                let ((thread, what), schedule) = (wait, schedule());
                self.waiting.insert(place, LeftWaiting { thread, what, interleavings, schedule });
            }
        }
    }
}

/// Adds clauses to a list in ascending order.
pub(super) fn join(all: &mut Vec<Clause>, more: impl IntoIterator<Item = Clause>) {
    for clause in more {
        if let Err(place) = all.binary_search(&clause) {
            all.insert(place, clause);
        }
    }
}

/// Formats the verdict of the failure and its schedule string, or else the extent of the search.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure, schedules, broken, waiting, covered, .. } = self;
        let Some(failure) = failure else {
            let all = covered.is_some_and(|covered| covered.everything);
            let all = if all { ", which are all up to the order of independent steps" } else { "" };
            match schedules {
                1 => write!(f, "the interleaving does not fail{all}")?,
                _ => write!(f, "none of {schedules} interleavings fails{all}")?,
            }
            for (_, rule, schedule) in broken {
                write!(f, "\na rule is broken without harm in {schedule}: {rule}")?;
            }
            for LeftWaiting { thread, what, interleavings, schedule } in waiting {
                write!(
                    f,
                    "\nat the end of {interleavings} thread {} still waits for {what}, as in {schedule}",
                    thread.0
                )?;
            }
            return Ok(());
        };
        failure.fmt(f)
    }
}
