//! Search of the interleavings of a process with a profiler.

use super::ending::{Ending, HistoryDetail, Limits};
use super::explorer::{Explorer, TestedProcess};
use super::report::{Failure, Report, join};
use super::search::{Coverage, Search};
use super::setup::Setup;
use super::strategies::{Exhaustive, Faults, Strategy};
use super::verdict::Verdict;
use clr_world::BuildError;

/// Strategy and limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Strategy of the search.
    pub strategy: Strategy,
    /// Maximum number of interleavings.
    pub schedules: u64,
    /// Seed: the same seed gives the same interleavings.
    pub seed: u64,
    /// Number of the first history: campaigns share a seed by ranges of numbers.
    pub first: u64,
    /// Limits of each interleaving.
    pub limits: Limits,
    /// A violation of a documented rule counts as a failure, even if it does no harm.
    pub rules: bool,
    /// The search goes on after a failure, and reports each fault once.
    pub keep_going: bool,
    /// The failures of calls that the search injects.
    pub faults: Faults,
}

impl Budget {
    /// Creates a budget of `schedules` random interleavings.
    #[must_use]
    pub fn random(seed: u64, schedules: u64) -> Self {
        Self {
            strategy: Strategy::Random,
            schedules,
            seed,
            first: 0,
            limits: Limits::default(),
            rules: false,
            keep_going: false,
            faults: Faults::default(),
        }
    }

    /// Creates a budget for all interleavings, up to `schedules` of them.
    #[must_use]
    pub fn exhaustive(schedules: u64) -> Self {
        Self { strategy: Strategy::Exhaustive { preemptions: None }, ..Self::random(0, schedules) }
    }

    /// Sets the strategy.
    #[must_use]
    pub const fn by(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Makes rule violations count as failures.
    #[must_use]
    pub const fn with_rules(mut self) -> Self {
        self.rules = true;
        self
    }

    /// Returns the verdict on an interleaving, if it failed.
    pub(super) fn verdict_of(&self, ending: &Ending) -> Option<Verdict> {
        let of_rule = ending.broken.first().filter(|_| self.rules);
        let of_rule = of_rule.map(|(by, rule)| Verdict::Broken { by: *by, rule: *rule });
        ending.verdict.clone().or(of_rule)
    }
}

impl Explorer<'_> {
    /// Creates the search.
    pub(super) fn prepare<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
    ) -> Box<dyn Search> {
        if let Strategy::Exhaustive { preemptions } = budget.strategy {
            return budget.faults.in_all(Exhaustive::new(preemptions));
        }
        let search = budget.strategy.prepare(budget.seed, |usual| {
            self.run(load, usual, budget.limits, HistoryDetail::Nothing).turns
        });
        budget.faults.around(budget.seed, search)
    }

    /// Searches for an interleaving that fails. `progress` gets the number of interleavings executed, and
    /// returns false to stop the search.
    pub fn search<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
        progress: impl FnMut(u64) -> bool,
    ) -> Report {
        let search = self.prepare(load, budget);
        self.search_by(search, load, budget, progress)
    }

    /// Searches by a strategy that is prepared.
    pub(super) fn search_by<'p>(
        &mut self,
        mut search: Box<dyn Search>,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Report {
        let mut report = Report::default();
        let mut limits = None;
        for number in budget.first..budget.first.saturating_add(budget.schedules) {
            if !progress(report.schedules) || !search.begin(number) {
                break;
            }
            let ending = self.run(load, &mut *search, budget.limits, HistoryDetail::Nothing);
            search.end(&ending);
            report.schedules += 1;
            limits = limits.or(ending.limits);
            report.turns += ending.turns;
            report.injected += u64::from(!ending.schedule.faults().is_empty());
            join(&mut report.clauses, ending.clauses.iter().copied());
            for (by, rule) in &ending.broken {
                report.note(*by, *rule, || ending.schedule.clone());
            }
            let verdict = budget.verdict_of(&ending);
            if verdict.is_none() && !ending.given_up {
                report.points.add(&ending.points);
                report.note_end(&ending);
            }
            if let Some(verdict) = verdict {
                let is_injected = !ending.schedule.faults().is_empty();
                if let Some(known) = report.known(&verdict, is_injected) {
                    known.times += 1;
                    continue;
                }
                let schedule = ending.schedule.clone();
                let again = self.replay(load, &schedule, budget.limits, HistoryDetail::Statuses);
                let repeats = again.as_ref().is_some_and(|again| again.is_like(&ending));
                let history = again.and_then(|again| again.history).unwrap_or_default();
                let times = 1;
                report.add(Failure { verdict, number, schedule, history, times, repeats });
                if !budget.keep_going {
                    break;
                }
            }
        }
        report.covered = search.progress().covered.map(|covered| Coverage { limits, ..covered });
        report
    }
}

/// Searches the interleavings of a process with a profiler, which `load` loads anew for each interleaving.
///
/// ```
/// use clr_codegen::Program;
/// use clr_runtime::generation::Generation;
/// use clr_explore::{Budget, TestedProcess, Verdict, check};
///
/// // Two threads of a profiler that take two locks in different order.
/// let process = TestedProcess::new(
///     &Program::default(),
///     &Default::default(),
///     Default::default(),
///     Generation::CoreClr31Windows,
///     &[],
/// )?;
/// let report = check(&process, &|profiler| {
///     let (names, stacks) = (profiler.lock("names"), profiler.lock("stacks"));
///     profiler.thread("sampler", move |me| {
///         let _stacks = me.lock(stacks);
///         let _names = me.lock(names);
///     });
///     profiler.thread("exporter", move |me| {
///         let _names = me.lock(names);
///         let _stacks = me.lock(stacks);
///     });
/// }, &Budget::exhaustive(1000))?;
/// let failure = report.failure.expect("the two wait for each other");
/// assert!(matches!(failure.verdict, Verdict::Deadlock(cycle) if cycle.len() == 2));
/// # Ok::<(), clr_world::BuildError>(())
/// ```
///
/// # Errors
/// Returns [`BuildError`] if the process cannot be built.
pub fn check<'p>(
    process: &TestedProcess,
    load: &(dyn Fn(&mut Setup<'p>) + 'p),
    budget: &Budget,
) -> Result<Report, BuildError> {
    Ok(Explorer::new(process)?.search(load, budget, |_| true))
}
