//! The process of a session.

use clr_machine::Machine;
use clr_runtime::generation::Generation;
use clr_runtime::{OsThreadId, Runtime, ThreadLife};
use clr_scenario::{RunOnError, Scenario};
use clr_walker::profiling::ThreadId;
use clr_world::synthetic::{MANAGED_WALKER, NATIVE_WALKER, SELF, SyntheticProcess};
use clr_world::{Build, World};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

/// Size of an object without fields in bytes, and the distance to the next one.
pub(crate) const OBJECT_SIZE: u64 = 24;

/// A process: a program in execution, or one with a stack placed by hand.
pub(crate) struct Process {
    // The order matters: what borrows is dropped before what is borrowed.
    runtime: Rc<Runtime<'static>>,
    world: Option<RefCell<World<'static>>>,
    threads: Threads,
    /// The program is executed by a search of interleavings.
    scheduled: bool,
    _build: Option<Anchor<Build>>,
    _synthetic: Option<Anchor<SyntheticProcess>>,
}

/// The threads that may call.
#[derive(Clone, Copy)]
struct Threads {
    stopped: OsThreadId,
    native: OsThreadId,
    managed: OsThreadId,
}

/// A value that others borrow for as long as this exists.
#[derive(Debug)]
pub struct Anchor<T>(NonNull<T>);

impl<T> Anchor<T> {
    /// Keeps a value.
    pub fn new(value: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(value))))
    }

    /// Returns the value.
    ///
    /// # Safety
    /// The result must not be used after the anchor was dropped.
    #[must_use]
    pub const unsafe fn get(&self) -> &'static T {
        // SAFETY: `new` has made a box, which lives until then.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Anchor<T> {
    fn drop(&mut self) {
        // SAFETY: `new` has made a box, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Process {
    /// Sets a text up: its program before the first instruction, or its stack.
    pub(crate) fn new(scenario: &Scenario, generation: Generation) -> Result<Self, RunOnError> {
        if let Some(stack) = &scenario.stack {
            let mut thread = stack.synthetic_thread(generation);
            thread.modules.clone_from(&scenario.modules);
            let process = Anchor::new(thread.build()?);
            // SAFETY: the runtime is dropped before the anchor: see the order of the fields. It
            // is never given away with its lifetime.
            let runtime = Rc::new(unsafe { process.get() }.runtime());
            let threads = Threads { stopped: SELF, native: NATIVE_WALKER, managed: MANAGED_WALKER };
            let stage = Self {
                runtime,
                world: None,
                threads,
                scheduled: false,
                _build: None,
                _synthetic: Some(process),
            };
            stage.change_managed(ThreadLife::Created);
            return Ok(stage);
        }
        Self::of_program(scenario, generation, |build| {
            let mut world = scenario.world(build)?;
            let walkers = world.add_walkers()?;
            Ok((world, walkers, 0))
        })
    }

    /// Returns the process of a search of interleavings, by its runtime. `main` is the program's first thread.
    pub(crate) const fn scheduled(runtime: Rc<Runtime<'static>>, main: OsThreadId) -> Self {
        let threads = Threads { stopped: main, native: OsThreadId(0), managed: OsThreadId(0) };
        Self { runtime, world: None, threads, scheduled: true, _build: None, _synthetic: None }
    }

    /// Executes a text's program up to a stop.
    pub(crate) fn at_stop(
        scenario: &Scenario,
        generation: Generation,
        stop: usize,
    ) -> Result<Self, RunOnError> {
        if scenario.stack.is_some() && stop == 0 {
            return Self::new(scenario, generation);
        }
        let thread = scenario.stops.get(stop).ok_or(RunOnError::NoStop { stop })?.thread;
        Self::of_program(scenario, generation, |build| {
            let (world, walkers) = scenario.world_at(build, stop)?;
            Ok((world, walkers, thread as usize))
        })
    }

    fn of_program(
        scenario: &Scenario,
        generation: Generation,
        run: impl FnOnce(&'static Build) -> Result<(World<'static>, [OsThreadId; 2], usize), RunOnError>,
    ) -> Result<Self, RunOnError> {
        let build = Anchor::new(scenario.build_on(generation)?);
        // SAFETY: the world is dropped before the anchor: see the order of the fields, and, if
        // `run` fails, of the locals. It is never given away with its lifetime.
        let (mut world, [native, managed], thread) = run(unsafe { build.get() })?;
        world.sync();
        let stopped = world.os(thread).unwrap_or_default();
        let threads = Threads { stopped, native, managed };
        let stage = Self {
            runtime: world.shared(),
            world: Some(RefCell::new(world)),
            threads,
            scheduled: false,
            _build: Some(build),
            _synthetic: None,
        };
        stage.change_managed(ThreadLife::Created);
        Ok(stage)
    }

    /// Changes the stage of life of the profiler's thread that has run managed code: it is listed
    /// only if it is used.
    fn change_managed(&self, life: ThreadLife) {
        self.runtime.change_thread(self.threads.managed, |thread| thread.life = life);
    }

    /// Returns the runtime.
    pub(crate) fn runtime(&self) -> &Runtime<'static, Machine> {
        &self.runtime
    }

    /// Returns the program in execution, if there is one.
    pub(crate) const fn world(&self) -> Option<&RefCell<World<'static>>> {
        self.world.as_ref()
    }

    /// Returns true if nothing of its program has been executed.
    pub(crate) fn is_new(&self) -> bool {
        self.scheduled || self.world.as_ref().is_some_and(|world| world.borrow().executed() == 0)
    }

    /// Returns true if a search of interleavings executes the program.
    pub(crate) const fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// Returns the thread that has stopped.
    pub(crate) const fn stopped(&self) -> OsThreadId {
        self.threads.stopped
    }

    /// Returns a thread that the runtime does not know.
    pub(crate) const fn native(&self) -> OsThreadId {
        self.threads.native
    }

    /// Returns a thread that the runtime knows from now on, in preemptive mode.
    pub(crate) fn managed(&self) -> OsThreadId {
        self.change_managed(ThreadLife::Running);
        self.threads.managed
    }

    /// Returns the Thread object of the thread that has stopped.
    pub(crate) fn stopped_object(&self) -> Option<ThreadId> {
        self.runtime.object_of(self.threads.stopped)
    }
}
