//! Searching histories of a process with a profiler in it.

use super::history::{History, ThreadIndex};
use super::kernel::Kernel;
use super::replay::{Replay, Trail};
use super::run::{Ending, Ground, Limits, Recording, run};
use super::search::{Covered, Pct, Search, Strategy};
use super::setup::Setup;
use super::verdict::{Rule, Verdict};
use clr_codegen::{FunctionId, Program};
use clr_coroutine::Stacks;
use clr_runtime::MethodKind;
use clr_runtime::generation::Generation;
use clr_world::stubs::Hooks;
use clr_world::{Build, BuildError, SignalStack, Start, StopBy, WorldState};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of stack for each thread and each callback of a profiler.
const STACK: usize = 256 * 1024;

/// A process in which a profiler is to be tested: a program on a runtime.
#[derive(Clone, Debug)]
pub struct Process {
    build: Build,
    threads: Vec<(Rc<str>, Start)>,
    stop_by: StopBy,
    signal_stack: SignalStack,
    exits_with: Option<usize>,
}

impl Process {
    /// A program with its threads, by name, on a runtime.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(
        program: &Program,
        methods: &BTreeMap<FunctionId, MethodKind>,
        hooks: Hooks,
        generation: Generation,
        threads: &[(&str, Start)],
    ) -> Result<Self, BuildError> {
        let build = Build::with_hooks(program, methods, generation, hooks)?;
        Ok(Self::from_build(build, threads))
    }

    /// A process of what has been built already, with its threads by name.
    #[must_use]
    pub fn from_build(build: Build, threads: &[(&str, Start)]) -> Self {
        let threads = threads.iter().map(|(name, start)| (Rc::from(*name), *start)).collect();
        let (stop_by, signal_stack) = (StopBy::default(), SignalStack::Own);
        Self { build, threads, stop_by, signal_stack, exits_with: None }
    }

    /// The same, with threads in managed code stopped in this way.
    #[must_use]
    pub const fn stopping_by(mut self, way: StopBy) -> Self {
        self.stop_by = way;
        self
    }

    /// The same, with signals handled on this stack.
    #[must_use]
    pub const fn handling_signals_on(mut self, stack: SignalStack) -> Self {
        self.signal_stack = stack;
        self
    }

    /// The same, ending with this thread of the program.
    #[must_use]
    pub const fn exiting_with(mut self, thread: usize) -> Self {
        self.exits_with = Some(thread);
        self
    }

    /// Which runtime it has.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.build.generation()
    }
}

/// How long and how to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The way to search.
    pub strategy: Strategy,
    /// At most so many histories.
    pub schedules: u64,
    /// The same seed makes the same histories.
    pub seed: u64,
    /// The first history has this number: campaigns share a seed by ranges of numbers.
    pub first: u64,
    /// How far a history goes.
    pub limits: Limits,
    /// A documented rule that is broken is a failure, even if nothing came of it.
    pub rules: bool,
}

impl Budget {
    /// So many random histories.
    #[must_use]
    pub fn random(seed: u64, schedules: u64) -> Self {
        Self {
            strategy: Strategy::Random,
            schedules,
            seed,
            first: 0,
            limits: Limits::default(),
            rules: false,
        }
    }

    /// All histories, as far as these are not more than so many.
    #[must_use]
    pub fn exhaustive(schedules: u64) -> Self {
        Self { strategy: Strategy::Exhaustive { preemptions: None }, ..Self::random(0, schedules) }
    }

    /// The same by another way to search.
    #[must_use]
    pub const fn by(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The same, with broken rules as failures.
    #[must_use]
    pub const fn with_rules(mut self) -> Self {
        self.rules = true;
        self
    }
}

/// A history in which something went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What.
    pub verdict: Verdict,
    /// Its number.
    pub number: u64,
    /// What makes it again.
    pub trail: Trail,
    /// What happened in it.
    pub history: History,
    /// The trail has made it again, with the same end. Otherwise code of the profiler depends on what no
    /// trail tells, as a clock, an address or an earlier history, and `history` may be another one, or
    /// empty.
    pub repeats: bool,
}

/// What a search came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first history that failed.
    pub failure: Option<Failure>,
    /// How many histories there were.
    pub schedules: u64,
    /// How many turns they had.
    pub slices: u64,
    /// Rules that were broken without harm, in the first history in which each was.
    pub broken: Vec<(ThreadIndex, Rule, Trail)>,
    /// How much has been seen, if that can be said.
    pub covered: Option<Covered>,
}

impl Report {
    /// Whether nothing went wrong.
    #[must_use]
    pub const fn survives(&self) -> bool {
        self.failure.is_none()
    }

    /// The same together with a search of the histories behind those of this one: as if it was one search,
    /// which ends where a history fails. For strategies that [can be shared](Strategy::can_be_shared).
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        if self.failure.is_some() {
            return self;
        }
        self.failure = next.failure;
        self.schedules += next.schedules;
        self.slices += next.slices;
        for (by, rule, trail) in next.broken {
            self.note(by, rule, || trail);
        }
        self
    }

    /// Notes a broken rule, with the first history in which it was.
    fn note(&mut self, by: ThreadIndex, rule: Rule, trail: impl FnOnce() -> Trail) {
        if !self.broken.iter().any(|(who, known, _)| (*who, *known) == (by, rule)) {
            self.broken.push((by, rule, trail()));
        }
    }
}

/// A process that is ready: histories are made of it one after the other.
#[derive(Debug)]
pub struct Arena<'b> {
    kernel: Kernel<'b>,
    start: WorldState,
    names: Vec<Rc<str>>,
    signal_stack: SignalStack,
    stacks: Stacks,
}

impl<'b> Arena<'b> {
    /// Of this process.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn new(process: &'b Process) -> Result<Self, BuildError> {
        let starts: Vec<_> = process.threads.iter().map(|(_, start)| *start).collect();
        let mut world = process.build.world(&starts)?;
        world.stop_threads_by(process.stop_by);
        if let Some(thread) = process.exits_with {
            world.exit_with(thread);
        }
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

    /// Makes one history.
    pub fn run<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        search: &mut dyn Search,
        limits: Limits,
        recording: Recording,
    ) -> Ending {
        let Self { kernel, start, names, signal_stack, stacks } = self;
        let ground = Ground { kernel, start, names, signal_stack: *signal_stack, limits };
        run(&ground, load, search, stacks, recording)
    }

    /// Makes a history again; `None` if it is not one of this process and profiler.
    pub fn replay<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        trail: &Trail,
        limits: Limits,
        recording: Recording,
    ) -> Option<Ending> {
        let mut replay = Replay::new(trail.clone());
        replay.begin(0);
        let ending = self.run(load, &mut replay, limits, recording);
        (!replay.has_strayed()).then_some(ending)
    }

    /// The search. One by priorities has to know how long histories are about: whatever their numbers,
    /// all machines of a campaign look at the same one, in which everybody comes by itself.
    pub(super) fn prepare<'p>(
        &mut self,
        load: &(dyn Fn(&mut Setup<'p>) + 'p),
        budget: &Budget,
    ) -> Box<dyn Search> {
        let Strategy::Pct { depth } = budget.strategy else {
            return budget.strategy.search(budget.seed);
        };
        let mut usual = Replay::new(Trail::default());
        let ending = self.run(load, &mut usual, budget.limits, Recording::Nothing);
        Box::new(Pct::new(budget.seed, depth).over(ending.slices))
    }

    /// Searches for a history that fails.
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
            let ending = self.run(load, &mut *search, budget.limits, Recording::Nothing);
            search.end(&ending);
            report.schedules += 1;
            report.slices += ending.slices;
            for (by, rule) in &ending.broken {
                report.note(*by, *rule, || ending.trail.clone());
            }
            let of_rule = ending.broken.first().filter(|_| budget.rules);
            let of_rule = of_rule.map(|(by, rule)| Verdict::Broken { by: *by, rule: *rule });
            if let Some(verdict) = ending.verdict.clone().or(of_rule) {
                let trail = ending.trail.clone();
                let again = self.replay(load, &trail, budget.limits, Recording::Standing);
                let repeats = again.as_ref().is_some_and(|again| again.is_like(&ending));
                let history = again.and_then(|again| again.history).unwrap_or_default();
                report.failure = Some(Failure { verdict, number, trail, history, repeats });
                break;
            }
        }
        report.covered = search.covered();
        report
    }
}

/// Searches histories of a process with a profiler in it, which `load` loads anew for each.
///
/// ```
/// use clr_codegen::Program;
/// use clr_runtime::generation::Generation;
/// use clr_explore::{Budget, Process, Verdict, check};
///
/// // Two threads of a profiler that take two locks in different order.
/// let process = Process::new(
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
/// [`BuildError`] if there is no such process.
pub fn check<'p>(
    process: &Process,
    load: &(dyn Fn(&mut Setup<'p>) + 'p),
    budget: &Budget,
) -> Result<Report, BuildError> {
    Ok(Arena::new(process)?.search(load, budget, |_| true))
}
