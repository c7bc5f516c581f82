//! Texts of programs executed with a runtime, which were generated at random or by a fuzzer.

use crate::model::snapshot::{
    LastCallback, SEED_FLAGS, SeedAddress, SeedSource, SnapshotCall, SnapshotCaller, SnapshotSeed,
    SnapshotThread,
};
use crate::{Scenario, ScenarioThread, Stop, StopAt};
use clr_codegen::FunctionIndex;
use clr_generate::world::{By, WorldCall, WorldCase, WorldProgram, WorldSeed, WorldTurn};
use clr_runtime::generation::ProfilerSuspension;
use clr_runtime::profiling::{CallbackKind, HResult};
use clr_unwind::Gpr;
use clr_world::stubs::RuntimeFunction;
use clr_world::{StepEvent, ThreadStart, WaitPlace, World};
use std::collections::BTreeMap;

impl Scenario {
    /// Converts a program with its threads to a text without stops. A text cannot express how
    /// threads are stopped.
    #[must_use]
    pub fn of_world(world: &WorldProgram) -> Self {
        let thread = |(index, at): (usize, &ThreadStart)| {
            let (start, gc) = match *at {
                ThreadStart::Managed(start)
                | ThreadStart::Native(start)
                | ThreadStart::ByProgram(start)
                | ThreadStart::OfPool(start) => (start, false),
                ThreadStart::ServerGc | ThreadStart::Finalizer | ThreadStart::Tiering => {
                    (FunctionIndex(0), true)
                }
            };
            let name = match index {
                0 => ScenarioThread::DEFAULT_NAME.to_owned(),
                _ => format!("thread{index}"),
            };
            let finalizer = matches!(at, ThreadStart::Finalizer);
            let tiering = matches!(at, ThreadStart::Tiering);
            let by_program = matches!(at, ThreadStart::ByProgram(_));
            let pool = matches!(at, ThreadStart::OfPool(_));
            let gc = gc && !finalizer && !tiering;
            ScenarioThread { name, start, by_program, pool, finalizer, tiering, gc, exits: false }
        };
        Self {
            program: world.program.clone(),
            methods: world.methods.clone(),
            threads: world.threads.iter().enumerate().map(thread).collect(),
            hooks: world.hooks,
            ..Self::default()
        }
    }

    /// Converts a case to a text without expectations: its target is stopped where the case left
    /// it, and the other threads stay where they are. Returns `None` if no text can express the
    /// state, for instance a thread in the middle of a service.
    ///
    /// A text moves threads to their stops one at a time, so a state reached by interleaving may
    /// differ.
    #[must_use]
    pub fn of_case(case: &WorldCase) -> Option<Self> {
        let WorldCase { program, turns, call } = case;
        let mut scenario = Self::of_world(program);
        scenario.stops.push(stop(program, turns, &[*call])?);
        Some(scenario)
    }
}

/// Returns the stop at which a program is after some turns, with the calls about the target of the
/// first of them. Returns `None` if no text can express the state.
#[must_use]
pub fn stop(program: &WorldProgram, turns: &[WorldTurn], calls: &[WorldCall]) -> Option<Stop> {
    let target = calls.first()?.target;
    let build = program.build().ok()?;
    let mut world = build.world(&program.threads).ok()?;
    let mut threads = vec![Passed::default(); program.threads.len()];
    for turn in turns {
        let passed = threads.get_mut(turn.thread)?;
        for _ in 0..turn.steps {
            passed.step(&mut world, turn.thread)?;
        }
    }
    let at = |thread: usize| threads.get(thread)?.place(&world, thread);
    // Threads that had a turn later are moved later.
    let mut others: Vec<usize> = Vec::new();
    for turn in turns.iter().filter(|turn| turn.thread != target) {
        others.retain(|other| *other != turn.thread);
        others.push(turn.thread);
    }
    // A text cannot bring another thread to its end.
    let stands = |at: &StopAt| *at != StopAt::End;
    let others = others.into_iter().map(|other| Some((other as u32, at(other).filter(stands)?)));
    let others = others.collect::<Option<Vec<_>>>()?;
    let snapshots = calls.iter().filter(|call| call.target == target);
    let snapshots = snapshots.map(|call| snapshot(program, &world, call)).collect();
    let (expect, mixed_walks) = (Vec::new(), Vec::new());
    Some(Stop { thread: target as u32, at: at(target)?, expect, others, snapshots, mixed_walks })
}

/// The path of a thread up to its current position.
#[derive(Clone, Debug, Default)]
struct Passed {
    /// Number of times that the thread was before the instruction at an address (VA).
    visits: BTreeMap<u64, u32>,
    callbacks: BTreeMap<CallbackKind, u32>,
    waits: BTreeMap<WaitPlace, u32>,
    last: Option<StepEvent>,
}

impl Passed {
    fn step(&mut self, world: &mut World<'_>, thread: usize) -> Option<()> {
        if self.last == Some(StepEvent::Ended) {
            return Some(());
        }
        if let Some(rip) = world.rip(thread).filter(|_| !world.is_serving(thread)) {
            *self.visits.entry(rip).or_default() += 1;
        }
        let event = world.step(thread).ok()?;
        match event {
            StepEvent::Callback(kind) => *self.callbacks.entry(kind).or_default() += 1,
            StepEvent::Waits if self.last != Some(event) => {
                if let Some(place) = world.wait_place(thread) {
                    *self.waits.entry(place).or_default() += 1;
                }
            }
            _ => {}
        }
        self.last = Some(event);
        Some(())
    }

    /// Returns the current position as a text expresses it.
    fn place(&self, world: &World<'_>, thread: usize) -> Option<StopAt> {
        match self.last {
            None => return Some(StopAt::After(0)),
            Some(StepEvent::Ended) => return Some(StopAt::End),
            Some(StepEvent::Callback(kind)) => {
                let visit = *self.callbacks.get(&kind)?;
                return Some(StopAt::Callback { kind, visit });
            }
            Some(StepEvent::Waits) => {
                let place = world.wait_place(thread)?;
                return Some(StopAt::Wait { place, visit: *self.waits.get(&place)? });
            }
            Some(StepEvent::Stepped | StepEvent::Hook | StepEvent::Entered(_)) => {}
        }
        let rip = world.rip(thread).filter(|_| !world.is_serving(thread))?;
        let (linked, expanded) = (world.linked(), world.expanded());
        let id = linked.instruction(rip)?.function?;
        let own = linked.instructions.iter().filter(|placed| placed.function == Some(id));
        let index = own.map(|placed| placed.address).position(|address| address == rip)? as u32;
        let visit = self.visits.get(&rip).map_or(1, |visits| visits + 1);
        if let Some(function) = expanded.placed.iter().position(|placed| *placed == id) {
            let function = FunctionIndex(function as u32);
            return Some(StopAt::Instruction { function, index, visit });
        }
        let shared = expanded.shared.iter().find(|(_, placed)| **placed == id);
        let stub = expanded.stubs.iter().find(|(_, placed)| **placed == id);
        let function = match (shared, stub) {
            (Some((shared, _)), _) => RuntimeFunction::Shared(*shared),
            (None, Some(((target, stub), _))) => RuntimeFunction::Stub(*stub, *target),
            (None, None) => return None,
        };
        Some(StopAt::Runtime { function, index, visit })
    }
}

/// Converts a call to the form of a text.
fn snapshot(program: &WorldProgram, world: &World<'_>, call: &WorldCall) -> SnapshotCall {
    let by = match call.by {
        By::Profiler => SnapshotCaller::NativeWalker,
        By::Thread(other) if other != call.target => SnapshotCaller::Thread(other as u32),
        By::Target | By::Thread(_) => SnapshotCaller::Own,
    };
    // To another thread of the runtime, 0 means itself.
    let knows = |thread: usize| world.object(thread).is_some();
    let is_other = match by {
        SnapshotCaller::Thread(other) => knows(other as usize),
        _ => false,
    };
    let suspends = program.generation.profiler_suspension() != ProfilerSuspension::None;
    SnapshotCall {
        by,
        thread: if call.unnamed && !is_other { SnapshotThread::Null } else { SnapshotThread::Own },
        flags: call.flags,
        seed: call.seed.and_then(|seed| seed_of(world, call.target, seed)),
        stop_at: call.stop_at.map(|before| LastCallback {
            callback: before.saturating_add(1),
            returns: HResult::FALSE,
        }),
        suspended: call.suspended_by_profiler && suspends,
        ..SnapshotCall::default()
    }
}

/// Converts a seed. If its activation is neither the leaf nor the first one of its function, the
/// registers are listed individually.
fn seed_of(world: &World<'_>, target: usize, seed: WorldSeed) -> Option<SnapshotSeed> {
    let activations = world.activations(target);
    let index = (seed.activation as usize).checked_rem(activations.len())?;
    let activation = activations.get(index)?;
    let flags = (seed.flags != SEED_FLAGS).then_some(seed.flags);
    let first = activations.iter().position(|one| one.function == activation.function);
    let function = activation.function.filter(|_| first == Some(index));
    let name = function.and_then(|id| world.expanded().program.functions.get(id.index()));
    let from = match name {
        _ if index == 0 => SeedSource::Leaf,
        Some(function) => SeedSource::Function(function.name.clone()),
        None => {
            let registers = Gpr::ALL.map(|gpr| (gpr, activation.registers.get(gpr)));
            return Some(SnapshotSeed {
                rip: Some(SeedAddress::Address(activation.registers.rip)),
                registers: registers.into_iter().filter(|(_, value)| *value != 0).collect(),
                flags: Some(seed.flags),
                ..SnapshotSeed::new(SeedSource::Bytes(0))
            });
        }
    };
    Some(SnapshotSeed { flags, ..SnapshotSeed::new(from) })
}
