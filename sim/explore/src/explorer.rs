//! A process with a profiler, prepared to execute interleavings.

use super::ending::{Ending, HistoryDetail, Limits};
use super::kernel::Kernel;
use super::replay::ReplaySearch;
use super::run::{SearchData, run};
use super::schedule_string::ScheduleString;
use super::search::Search;
use super::setup::Setup;
use clr_codegen::{FunctionIndex, Program};
use clr_coroutine::Stacks;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallbackKind;
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

/// A prepared process, which executes one interleaving after the other.
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

    /// Executes one interleaving of the program without a profiler, and restores the process: what is made once, such as decoded
    /// instructions, is then there before this process is copied.
    pub fn rehearse(&mut self, limits: Limits) {
        let mut usual = ReplaySearch::new(ScheduleString::default());
        usual.begin(0);
        let handlers = |setup: &mut Setup<'_>| {
            for kind in CallbackKind::ALL {
                setup.on(*kind, |_| {});
            }
        };
        self.run(&handlers, &mut usual, limits, HistoryDetail::Events);
        self.kernel.world.borrow_mut().restore(&self.start);
    }

    /// Executes one interleaving.
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

    /// Replays an interleaving. Returns `None` if it does not belong to this process and profiler.
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
        (!replay.progress().strayed).then_some(ending)
    }
}
