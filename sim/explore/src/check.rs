//! Search of the histories of a process with a profiler.

use super::ending::{Ending, HistoryDetail, Limits};
use super::kernel::Kernel;
use super::report::{Failure, Report};
use super::run::{SearchData, run};
use super::schedule_string::ScheduleString;
use super::search::ReplaySearch;
use super::search::{Search, Strategy};
use super::setup::Setup;
use super::verdict::Verdict;
use clr_codegen::{FunctionIndex, Program};
use clr_coroutine::Stacks;
use clr_runtime::generation::Generation;
use clr_runtime::{MethodKind, Runtime};
use clr_world::stubs::Hooks;
use clr_world::{Build, BuildError, ProcessEnd, SignalStack, StopBy, ThreadStart, WorldState};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Size in bytes of the stack of each thread and each callback of a profiler.
const STACK: usize = 256 * 1024;

/// A process in which a profiler is tested: a program on a runtime.
#[derive(Clone, Debug)]
pub struct TestedProcess {
    build: Build,
    threads: Vec<(Rc<str>, ThreadStart)>,
    stop_by: StopBy,
    signal_stack: SignalStack,
    process_end: Option<ProcessEnd>,
    exports: Vec<FunctionIndex>,
}

impl TestedProcess {
    /// Creates a process with a program and its threads, by name, on a runtime.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the program cannot be built.
    pub fn new(
        program: &Program,
        methods: &BTreeMap<FunctionIndex, MethodKind>,
        hooks: Hooks,
        generation: Generation,
        threads: &[(&str, ThreadStart)],
    ) -> Result<Self, BuildError> {
        let build = Build::with_hooks(program, methods, generation, hooks)?;
        Ok(Self::from_build(build, threads))
    }

    /// Creates a process from a generated program; its threads are named by their numbers.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the program cannot be built.
    #[must_use]
    pub fn from_build(build: Build, threads: &[(&str, ThreadStart)]) -> Self {
        let threads = threads.iter().map(|(name, start)| (Rc::from(*name), *start)).collect();
        let (stop_by, signal_stack) = (StopBy::default(), SignalStack::Own);
        Self { build, threads, stop_by, signal_stack, process_end: None, exports: Vec::new() }
    }

    /// Sets how threads in managed code are stopped.
    #[must_use]
    pub const fn stopping_by(mut self, way: StopBy) -> Self {
        self.stop_by = way;
        self
    }

    /// Sets the stack on which signals are handled.
    #[must_use]
    pub const fn handling_signals_on(mut self, stack: SignalStack) -> Self {
        self.signal_stack = stack;
        self
    }

    /// Sets the way in which the process ends: without one, when all threads have ended.
    #[must_use]
    pub const fn ending_by(mut self, end: ProcessEnd) -> Self {
        self.process_end = Some(end);
        self
    }

    /// Sets the functions of the program that stand for exports of the profiler.
    #[must_use]
    pub fn exporting(mut self, functions: impl IntoIterator<Item = FunctionIndex>) -> Self {
        self.exports = functions.into_iter().collect();
        self
    }

    /// Returns the runtime of the process.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.build.generation()
    }
}

/// Strategy and limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Strategy of the search.
    pub strategy: Strategy,
    /// Maximum number of histories.
    pub schedules: u64,
    /// Seed: the same seed gives the same histories.
    pub seed: u64,
    /// Number of the first history: campaigns share a seed by ranges of numbers.
    pub first: u64,
    /// Limits of each history.
    pub limits: Limits,
    /// A violation of a documented rule counts as a failure, even if it does no harm.
    pub rules: bool,
    /// The search goes on after a failure, and reports each fault once.
    pub keep_going: bool,
}

impl Budget {
    /// Creates a budget of `schedules` random histories.
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
        }
    }

    /// Creates a budget for all histories, up to `schedules` of them.
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
}

/// A prepared process, which executes one history after the other.
#[derive(Debug)]
pub struct Explorer<'b> {
    kernel: Kernel<'b>,
    start: WorldState,
    names: Vec<Rc<str>>,
    signal_stack: SignalStack,
    stacks: Stacks,
}

impl<'b> Explorer<'b> {
    /// Prepares this process.
    ///
    /// # Errors
    /// Returns [`BuildError`] if the process cannot be built.
    pub fn new(process: &'b TestedProcess) -> Result<Self, BuildError> {
        let starts: Vec<_> = process.threads.iter().map(|(_, start)| *start).collect();
        let mut world = process.build.world(&starts)?;
        world.stop_threads_by(process.stop_by);
        if let Some(end) = process.process_end {
            world.end_by(end);
        }
        world.report_entries(process.exports.iter().copied());
        let start = world.save();
        let names = process.threads.iter().map(|(name, _)| Rc::clone(name)).collect();
        Ok(Self {
            kernel: Kernel::new(world)?,
            start,
            names,
            signal_stack: process.signal_stack,
            stacks: Stacks::new(STACK),
        })
    }

    /// Returns the runtime of the process.
    #[must_use]
    pub fn runtime(&self) -> Rc<Runtime<'b>> {
        Rc::clone(&self.kernel.runtime)
    }

    /// Executes one history.
    pub fn run<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        search: &mut dyn Search,
        limits: Limits,
        recording: HistoryDetail,
    ) -> Ending {
        let Self { kernel, start, names, signal_stack, stacks } = self;
        let data = SearchData { kernel, start, names, signal_stack: *signal_stack, limits };
        run(&data, load, search, stacks, recording)
    }

    /// Replays a history. Returns `None` if it does not belong to this process and profiler.
    pub fn replay<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        schedule: &ScheduleString,
        limits: Limits,
        recording: HistoryDetail,
    ) -> Option<Ending> {
        let mut replay = ReplaySearch::new(schedule.clone());
        replay.begin(0);
        let ending = self.run(load, &mut replay, limits, recording);
        (!replay.has_strayed()).then_some(ending)
    }

    /// Creates the search.
    pub(super) fn prepare<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
    ) -> Box<dyn Search> {
        budget.strategy.prepare(budget.seed, |usual| {
            self.run(load, usual, budget.limits, HistoryDetail::Nothing).turns
        })
    }

    /// Searches for a history that fails. `progress` gets the number of histories executed, and
    /// returns false to stop the search.
    pub fn search<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Report {
        let mut search = self.prepare(load, budget);
        let mut report = Report::default();
        for number in budget.first..budget.first.saturating_add(budget.schedules) {
            if !progress(report.schedules) || !search.begin(number) {
                break;
            }
            let ending = self.run(load, &mut *search, budget.limits, HistoryDetail::Nothing);
            search.end(&ending);
            report.schedules += 1;
            report.turns += ending.turns;
            for (by, rule) in &ending.broken {
                report.note(*by, *rule, || ending.schedule.clone());
            }
            let of_rule = ending.broken.first().filter(|_| budget.rules);
            let of_rule = of_rule.map(|(by, rule)| Verdict::Broken { by: *by, rule: *rule });
            if let Some(verdict) = ending.verdict.clone().or(of_rule) {
                if let Some(known) = report.known(&verdict) {
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
        report.covered = search.covered();
        report
    }
}

/// Searches the histories of a process with a profiler, which `load` loads anew for each history.
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
