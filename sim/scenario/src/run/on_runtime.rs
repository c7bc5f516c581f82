//! Execution of programs with a runtime up to each stop, where the calls are made.

use crate::model::{SeedSource, SnapshotCall, place_of};
use crate::run::error::RunOnError;
use crate::run::explained::SnapshotRecord;
use crate::run::program::Stopped;
use crate::run::stopped_thread::SnapshotReport;
use crate::{Scenario, Stop, StopAt};
use clr_runtime::OsThreadId;
use clr_runtime::generation::Generation;
use clr_unwind::Registers;
use clr_world::{Build, StepEvent, Waiting, World, WorldError};
use std::collections::BTreeMap;

/// Maximum number of steps of a thread up to a stop.
const STEP_LIMIT: u64 = 1_000_000;

impl Scenario {
    /// Makes the calls of the text on one generation: those of a stack placed by hand, or those at
    /// the stops of a program. A call that is not for the generation has no report.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn run_on(&self, generation: Generation) -> Result<Vec<SnapshotReport>, RunOnError> {
        self.snapshots_on(generation)
    }

    /// Makes the calls and records them.
    pub(crate) fn snapshots_on<R: SnapshotRecord>(
        &self,
        generation: Generation,
    ) -> Result<Vec<R>, RunOnError> {
        if let Some(stack) = &self.stack {
            return Ok(stack.snapshots_on(generation)?);
        }
        let applies = |stop: &&Stop| stop.snapshots.iter().any(|call| call.applies_to(generation));
        if !self.stops.iter().any(|stop| applies(&stop)) {
            return Ok(Vec::new());
        }
        let build = self.build_on(generation)?;
        let mut records = Vec::new();
        for (index, stop) in self.stops.iter().enumerate().filter(|(_, stop)| applies(stop)) {
            self.run_to((index, stop), &build, &mut records)?;
        }
        Ok(records)
    }

    /// Executes a program up to a stop, given by its index, in a new world.
    ///
    /// # Errors
    /// Returns [`RunOnError`]: there is no such stop, or it is not reached.
    pub fn world_at<'b>(
        &self,
        build: &'b Build,
        stop: usize,
    ) -> Result<(World<'b>, [OsThreadId; 2]), RunOnError> {
        let at = self.stops.get(stop).ok_or(RunOnError::NoStop { stop })?;
        let Arrived { world, walkers, .. } = self.arrive(build, stop, at)?;
        Ok((world, walkers))
    }

    /// Executes the program up to each stop on one generation, and calls `look` there. A stop that
    /// the threads do not reach on this generation is skipped.
    ///
    /// # Errors
    /// Returns [`RunOnError`]. A stop that is not reached is not an error.
    pub fn at_stops(
        &self,
        generation: Generation,
        mut look: impl FnMut(ThreadAtStop<'_, '_>),
    ) -> Result<(), RunOnError> {
        if self.stops.is_empty() {
            return Ok(());
        }
        let build = self.build_on(generation)?;
        for (index, stop) in self.stops.iter().enumerate() {
            let Arrived { mut world, walkers, .. } = match self.arrive(&build, index, stop) {
                Ok(arrived) => arrived,
                Err(RunOnError::NotReached { .. }) => continue,
                Err(error) => return Err(error),
            };
            let thread = stop.thread as usize;
            look(ThreadAtStop { stop: index, world: &mut world, thread, walkers });
        }
        Ok(())
    }

    /// Brings all threads of a new world to the positions that a stop names.
    fn arrive<'b>(
        &self,
        build: &'b Build,
        index: usize,
        stop: &Stop,
    ) -> Result<Arrived<'b>, RunOnError> {
        let mut world = self.world(build)?;
        let walkers = world.add_walkers()?;
        let mut stale = BTreeMap::new();
        let places = stop.others.iter().copied().chain([(stop.thread, stop.at)]);
        for (thread, at) in places {
            if let Some(before) = self.stale_place(index, stop, thread) {
                run_thread(&mut world, index, thread, before)?;
                stale.extend(world.top_managed(thread as usize).map(|it| (thread as usize, it)));
            }
            run_thread(&mut world, index, thread, at)?;
        }
        Ok(Arrived { world, walkers, stale })
    }

    /// Returns the position at which a thread has the registers of a stop's stale seeds: its previous
    /// stop in the text, if a call walks it with such a seed.
    fn stale_place(&self, index: usize, stop: &Stop, thread: u32) -> Option<StopAt> {
        let wants = |call: &SnapshotCall| {
            call.seed.as_ref().is_some_and(|seed| seed.from == SeedSource::Stale)
                && stop.walks(call) == Some(thread)
        };
        let before = self.stops.get(..index)?.iter().rev().find(|before| before.thread == thread);
        Some(before.filter(|_| stop.snapshots.iter().any(wants))?.at)
    }

    /// Makes the calls of a stop.
    fn run_to<R: SnapshotRecord>(
        &self,
        (index, stop): (usize, &Stop),
        build: &Build,
        records: &mut Vec<R>,
    ) -> Result<(), RunOnError> {
        let generation = build.generation();
        let calls = stop.snapshots.iter().enumerate();
        let calls = calls.filter(|(_, call)| call.applies_to(generation));
        let made = self.inspect(build, (index, stop), calls, |stopped, (snapshot, call)| {
            if !call.has_its_seed(stopped) {
                return Err(RunOnError::NoSeed { stop: index, snapshot });
            }
            call.suspend(stopped, stopped.runtime());
            let compare = |found| call.compare(Some(index), snapshot, generation, found);
            Ok(R::make(call, stopped, stopped.runtime(), compare))
        })?;
        records.extend(made.into_iter().collect::<Result<Vec<_>, _>>()?);
        Ok(())
    }

    /// Calls `look` for each item on the thread of a stop, each time with the same state.
    pub(crate) fn inspect<I, T>(
        &self,
        build: &Build,
        (index, stop): (usize, &Stop),
        items: impl IntoIterator<Item = I>,
        mut look: impl FnMut(&Stopped<'_, '_>, I) -> T,
    ) -> Result<Vec<T>, RunOnError> {
        let Arrived { mut world, walkers, stale } = self.arrive(build, index, stop)?;
        let thread = stop.thread as usize;
        let modes = (0..world.thread_count()).map(|thread| world.is_cooperative(thread));
        let cooperative: &[bool] = &modes.collect::<Vec<_>>();
        let mut seen = Vec::new();
        for item in items {
            let saved = world.save();
            world.sync();
            let stopped = Stopped { world: &world, thread, cooperative, stale: &stale, walkers };
            seen.push(look(&stopped, item));
            world.restore(&saved);
        }
        Ok(seen)
    }
}

/// A thread that has reached a stop.
#[derive(Debug)]
pub struct ThreadAtStop<'w, 'b> {
    /// Index of the stop in the text.
    pub stop: usize,
    /// The program executed with its runtime.
    pub world: &'w mut World<'b>,
    /// Index of the thread.
    pub thread: usize,
    /// Two threads that only walk others: one unknown to the runtime, and one known to it.
    pub walkers: [OsThreadId; 2],
}

/// A world whose threads have reached the positions that a stop names.
struct Arrived<'b> {
    world: World<'b>,
    walkers: [OsThreadId; 2],
    /// Registers of the first managed activation of threads at their previous stops, as far as seeds
    /// are made from them.
    stale: BTreeMap<usize, Registers>,
}

/// Runs a thread up to a position.
fn run_thread(
    world: &mut World<'_>,
    stop: usize,
    thread: u32,
    at: StopAt,
) -> Result<(), RunOnError> {
    let index = thread as usize;
    let place = place_of(at, world.expanded(), world.linked());
    let address = place.map_err(|count| RunOnError::NoInstruction { stop, thread, count })?;
    let mut visits = 0;
    let (mut waiting, mut last) = (Waiting::default(), StepEvent::Stepped);
    let mut executed = 0;
    let start = world.executed();
    for steps in 0..STEP_LIMIT {
        let here = address.is_some() && world.rip(index) == address && !world.is_serving(index);
        visits += u32::from(here);
        let reached = match at {
            StopAt::Instruction { visit, .. } | StopAt::Runtime { visit, .. } => {
                here && visits == visit
            }
            StopAt::After(after) => executed >= after,
            StopAt::Wait { .. } | StopAt::Callback { .. } | StopAt::Hook(_) | StopAt::End => false,
        };
        if reached {
            return Ok(());
        }
        let event = world.step(index).map_err(|error| RunOnError::World { stop, error })?;
        executed = world.executed() - start;
        let waited_before = last == StepEvent::Waits;
        last = event;
        let waits_for_others = waiting.is_for_others(event);
        match (event, at) {
            (StepEvent::Callback(kind), StopAt::Callback { kind: wanted, visit })
                if kind == wanted =>
            {
                visits += 1;
                if visits == visit {
                    return Ok(());
                }
            }
            (StepEvent::Waits, StopAt::Wait { place, visit })
                if !waited_before && world.wait_place(index) == Some(place) =>
            {
                visits += 1;
                if visits == visit {
                    return Ok(());
                }
            }
            (StepEvent::Hook, StopAt::Hook(visit)) => {
                visits += 1;
                if visits == visit {
                    return Ok(());
                }
            }
            (StepEvent::Ended, StopAt::End) => return Ok(()),
            (StepEvent::Ended, _) => return Err(RunOnError::NotReached { stop, thread, steps }),
            (StepEvent::Waits, _) => {
                let error = |error| RunOnError::World { stop, error };
                if !let_others_go_on(world, index).map_err(error)? && waits_for_others {
                    return Err(RunOnError::NotReached { stop, thread, steps });
                }
            }
            (
                StepEvent::Callback(_)
                | StepEvent::Hook
                | StepEvent::Entered(_)
                | StepEvent::Stepped,
                _,
            ) => {}
        }
    }
    Err(RunOnError::NotReached { stop, thread, steps: STEP_LIMIT })
}

/// Lets each of the other threads do a step, because `waiting` waits for them. Returns true if any
/// could go on.
fn let_others_go_on(world: &mut World<'_>, waiting: usize) -> Result<bool, WorldError> {
    let mut went_on = false;
    for other in (0..world.thread_count()).filter(|other| *other != waiting) {
        went_on |= !matches!(world.step(other)?, StepEvent::Waits | StepEvent::Ended);
    }
    Ok(went_on)
}
