//! Parts of a search, for several machines, and their reports as one.

use super::check::Budget;
use super::ending::{HistoryDetail, LastPlace, WaitedFor};
use super::explorer::Explorer;
use super::ids::ThreadIndex;
use super::report::{Failure, Report};
use super::schedule_string::ScheduleString;
use super::search::{Coverage, Search};
use super::setup::Setup;
use super::strategies::{Exhaustive, Prefixes, Strategy};

/// The number of parts that an exhaustive search has at least, if it has as many different beginnings.
const PARTS: usize = 16;
/// Maximum number of beginnings that are executed to find the parts of a search.
const EXECUTED: usize = 1024;

/// The interleavings with one beginning, as a part of an exhaustive search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part(Vec<ThreadIndex>);

impl Part {
    /// Returns the threads of the turns with which each interleaving of the part begins.
    #[must_use]
    pub fn beginning(&self) -> &[ThreadIndex] {
        &self.0
    }
}

impl Explorer<'_> {
    /// Divides the exhaustive search of a budget into parts, the same on every machine. Each interleaving is in one of them, or one that
    /// differs from it in the order of independent steps alone. Two such interleavings may be in two parts, and are then executed twice.
    /// There are no parts for other strategies.
    pub fn parts<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
    ) -> Vec<Part> {
        let Strategy::Exhaustive { preemptions } = budget.strategy else { return Vec::new() };
        let mut choices = 1;
        loop {
            let mut search = Prefixes::new(preemptions, choices);
            let mut executed = 0;
            while search.begin(0) {
                let ending = self.run(load, &mut search, budget.limits, HistoryDetail::Nothing);
                search.end(&ending);
                executed += 1;
            }
            if search.count() >= PARTS || executed >= EXECUTED || !search.goes_on() {
                return search.found().into_iter().map(Part).collect();
            }
            choices += 1;
        }
    }

    /// Searches a part of an exhaustive search, which learns nothing from the other parts. The limit on the number of interleavings is
    /// the part's own, and nothing is injected.
    pub fn search_part<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
        part: &Part,
        progress: impl FnMut(u64) -> bool,
    ) -> Report {
        let bound = match budget.strategy {
            Strategy::Exhaustive { preemptions } => preemptions,
            _ => None,
        };
        let search = Exhaustive::new(bound).after(&part.0);
        self.search_by(Box::new(search), load, budget, progress)
    }

    /// Executes an interleaving again that failed on another machine. Returns `None` if it is none of this process, or does not fail
    /// here.
    pub fn failure<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
        number: u64,
        schedule: ScheduleString,
    ) -> Option<Failure> {
        let ending = self.replay(load, &schedule, budget.limits, HistoryDetail::Statuses)?;
        let verdict = budget.verdict_of(&ending)?;
        let history = ending.history.unwrap_or_default();
        Some(Failure { verdict, number, schedule, history, times: 1, repeats: true })
    }

    /// Executes an interleaving again, and returns what a thread waits for at its end; `None` if it is none of this process, or the
    /// thread does not wait.
    pub fn left_waiting<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
        thread: ThreadIndex,
        schedule: &ScheduleString,
    ) -> Option<WaitedFor> {
        let ending = self.replay(load, schedule, budget.limits, HistoryDetail::Nothing)?;
        match ending.threads.get(thread.0 as usize)?.at {
            LastPlace::Waits(what) => Some(what),
            _ => None,
        }
    }
}

/// Joins the reports of the first parts of an exhaustive search, in their order, as if one machine had searched all `count` parts
/// one after the other: up to the first failure, unless it keeps going.
#[must_use]
pub fn join_parts(reports: Vec<Report>, count: usize, keep_going: bool) -> Report {
    let mut all = Report::default();
    let (mut known, mut covered) = (0, Some(Coverage::default()));
    let mut millionths = 0;
    for mut report in reports {
        for failure in report.failure.iter_mut().chain(&mut report.further) {
            failure.number += all.schedules;
        }
        covered = covered.zip(report.covered).map(|(all, part)| Coverage {
            everything: part.everything && (all.everything || known == 0),
            millionths: 0,
            cut: all.cut + part.cut,
            preemptions: part.preemptions,
            limits: all.limits.or(part.limits),
        });
        millionths += report.covered.map_or(0, |part| u64::from(part.millionths));
        known += 1;
        all = if keep_going { all.and(report) } else { all.then(report) };
        if all.failure.is_some() && !keep_going {
            break;
        }
    }
    all.covered = covered.filter(|_| known > 0).map(|covered| Coverage {
        everything: covered.everything && known == count,
        millionths: (millionths / count.max(1) as u64) as u32,
        ..covered
    });
    all
}
