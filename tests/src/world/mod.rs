//! Comparison of `DoStackSnapshot` with the model while programs run through the runtime.
//!
//! [`examine`] executes a program once and stops it often. At each stop it makes some calls, and
//! compares each with the [model](clr_reference). A case is a compared call.

mod call;
mod print;

pub use call::{Case, Mismatch, compare, make, make_loaded};

use crate::loaded::Loaded;
use clr_generate::world::{By, WorldCall, WorldSeed, WorldTurn};
use clr_generate::{Choices, Seeded, WorldCase, WorldProgram, minimize, world_call};
use clr_reference::{ProgramFacts, ThreadFacts};
use clr_runtime::Outcome;
use clr_runtime::profiling::CallbackKind;
use clr_unwind::Memory as _;
use clr_walker::profiling::SnapshotFlags;
use clr_world::{StepEvent, StopBy, ThreadStart, World, WorldError};
use std::fmt;

/// Maximum number of steps that a program is executed.
const STEP_LIMIT: u64 = 20_000;

/// The parameters of an examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the stops and of the calls.
    pub seed: u64,
    /// Maximum number of cases of a program.
    pub cases: u64,
    /// True to stop at every step and make all kinds of calls.
    pub thorough: bool,
}

/// The counts of an examination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Number of compared calls.
    pub cases: u64,
    /// Number of calls for which the model has no expectation.
    pub unsaid: u64,
    /// Number of compared calls for a thread with exceptions in flight.
    pub excepted: u64,
    /// Number of such calls that reported a frame.
    pub excepted_reports: u64,
    /// Number of callbacks of the calls.
    pub callbacks: u64,
    /// Number of steps of the threads.
    pub steps: u64,
    /// Number of stops.
    pub stops: u64,
    /// Digest of all observations, which a repetition must reproduce.
    pub digest: u64,
}

impl Examined {
    /// Adds the counts of another examination.
    pub const fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.unsaid += other.unsaid;
        self.excepted += other.excepted;
        self.excepted_reports += other.excepted_reports;
        self.callbacks += other.callbacks;
        self.steps += other.steps;
        self.stops += other.stops;
        self.digest = self.digest.rotate_left(7) ^ other.digest;
    }
}

/// A reason why an examination ended early.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The program cannot be built: an error in its generator.
    Build(clr_world::BuildError),
    /// The program cannot be executed: an error in the generator, or in the runtime's code.
    World(Box<(WorldProgram, WorldError)>),
    /// A call's result differs from the model's.
    Call(Box<(WorldCase, Box<Mismatch>)>),
    /// Calls changed the thread's memory at an address (VA).
    Changed(Box<(WorldCase, u64)>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => write!(f, "the program cannot be built: {error}"),
            Self::World(found) => {
                print::program(f, &found.0)?;
                write!(f, "the program cannot be executed further: {}", found.1)
            }
            Self::Call(found) => {
                let (case, mismatch) = &**found;
                print::case(f, case)?;
                write!(f, "{mismatch}")
            }
            Self::Changed(found) => {
                let (case, at) = &**found;
                print::case(f, case)?;
                write!(f, "calls changed the memory at {at:#x}")
            }
        }
    }
}

/// Executes a program, and compares calls with the model. Calls `see` with every case.
///
/// # Errors
/// [`Failure`].
pub fn examine(
    program: &WorldProgram,
    plan: Plan,
    see: impl FnMut(&Case<'_>),
) -> Result<Examined, Failure> {
    let build = program.build().map_err(Failure::Build)?;
    let mut loaded = Loaded::new(program, &build).map_err(Failure::Build)?;
    examine_loaded(program, &mut loaded, plan, see)
}

/// Does as [`examine`] for a program that is loaded.
///
/// # Errors
/// [`Failure`].
pub fn examine_loaded(
    program: &WorldProgram,
    loaded: &mut Loaded<'_>,
    plan: Plan,
    mut see: impl FnMut(&Case<'_>),
) -> Result<Examined, Failure> {
    let stuck = |error| Failure::World(Box::new((program.clone(), error)));
    let mut choices = Seeded::new(plan.seed);
    let mut examined = Examined::default();
    let mut turns: Vec<WorldTurn> = Vec::new();
    let mut running: Vec<usize> = (0..program.threads.len()).collect();
    let calls = choices.between(1, 4);
    // Some programs are examined closely in one place, most at larger intervals throughout.
    let (mut run_up, mut every) = (0, 1);
    if !plan.thorough {
        let length = length(loaded.from_start().0, program)?;
        if choices.chance(1, 4) {
            run_up = choices.below(length);
        } else {
            every = (length / (plan.cases as u32 / calls).max(1)).max(1);
        }
    }
    let (world, facts) = loaded.from_start();
    while examined.steps < STEP_LIMIT && examined.cases + examined.unsaid < plan.cases {
        let Some(thread) = choices.pick(&running) else { break };
        let wanted = std::mem::take(&mut run_up).max(choices.between(1, 2 * every - 1));
        let mut done = 0;
        let mut in_callback = None;
        while done < wanted && in_callback.is_none() {
            done += 1;
            examined.steps += 1;
            match world.step(thread).map_err(stuck)? {
                StepEvent::Stepped | StepEvent::Entered(_) => {}
                StepEvent::Callback(kind) => in_callback = Some(kind),
                StepEvent::Hook | StepEvent::Waits => break,
                StepEvent::Ended => {
                    running.retain(|one| *one != thread);
                    break;
                }
            }
        }
        match turns.last_mut().filter(|last| last.thread == thread) {
            Some(last) => last.steps += done,
            None => turns.push(WorldTurn { thread, steps: done }),
        }
        examined.stops += 1;
        examined.digest ^= world.rip(thread).unwrap_or_default().rotate_left(examined.stops as u32);
        // A walk undoes hijacks (C-077).
        let watched = plan.thorough || choices.below(64) == 0;
        let watched = watched && program.stop_by != StopBy::Hijack;
        let before = watched.then(|| memory(world, program.threads.len()));
        let mut stop = Stop {
            program,
            facts,
            world: &mut *world,
            seen: (0..program.threads.len()).map(|_| None).collect(),
            turns: &turns,
            in_callback,
        };
        if plan.thorough {
            for call in all_calls(program, thread) {
                stop.one(call, &mut examined, &mut see)?;
            }
        } else {
            for _ in 0..calls {
                let mut call = world_call(&mut choices, &program.threads);
                if in_callback.is_some() {
                    call.target = thread;
                }
                stop.one(call, &mut examined, &mut see)?;
            }
        }
        if let Some(before) = before {
            let after = memory(world, program.threads.len());
            if let Some(at) = changed(&before, &after, &helper_frames(facts, world, program)) {
                let call = world_call(&mut choices, &program.threads);
                let case = WorldCase { program: program.clone(), turns, call };
                return Err(Failure::Changed(Box::new((case, at))));
            }
        }
    }
    examined.digest ^= world.executed().rotate_left(32);
    Ok(examined)
}

/// Returns the number of steps of a program.
fn length(world: &mut World<'_>, program: &WorldProgram) -> Result<u32, Failure> {
    let (mut steps, mut idle) = (0, 0);
    let mut running: Vec<usize> = (0..program.threads.len()).collect();
    while steps < STEP_LIMIT as u32 && idle < 100 {
        let Some(thread) = running.last().copied() else { break };
        steps += 1;
        let stuck = |error| Failure::World(Box::new((program.clone(), error)));
        match world.step(thread).map_err(stuck)? {
            StepEvent::Stepped
            | StepEvent::Callback(_)
            | StepEvent::Hook
            | StepEvent::Entered(_) => idle = 0,
            StepEvent::Waits => {
                running.rotate_left(1);
                idle += 1;
            }
            StepEvent::Ended => {
                running.pop();
            }
        }
    }
    Ok(steps)
}

/// A stopped program.
struct Stop<'s, 'b> {
    program: &'s WorldProgram,
    facts: &'s ProgramFacts,
    world: &'s mut World<'b>,
    /// The threads inspected so far.
    seen: Vec<Option<ThreadFacts>>,
    turns: &'s [WorldTurn],
    in_callback: Option<CallbackKind>,
}

impl Stop<'_, '_> {
    fn one(
        &mut self,
        call: WorldCall,
        examined: &mut Examined,
        see: &mut impl FnMut(&Case<'_>),
    ) -> Result<(), Failure> {
        let (world, facts) = (&mut *self.world, self.facts);
        let Some(seen) = self.seen.get_mut(call.target) else { return Ok(()) };
        if seen.is_none() {
            *seen = ThreadFacts::new(facts, world, call.target);
        }
        let Some(seen) = seen else {
            // A thread that the runtime does not know has no state to compare.
            examined.unsaid += u64::from(world.object(call.target).is_some());
            return Ok(());
        };
        match compare(world, seen, &call) {
            Ok(case) => {
                if case.expected.is_some() {
                    examined.cases += 1;
                    let excepted = u64::from(case.seen.exceptions.count > 0);
                    examined.excepted += excepted;
                    examined.excepted_reports += excepted * u64::from(case.callbacks > 0);
                } else {
                    examined.unsaid += 1;
                }
                examined.callbacks += u64::from(case.callbacks);
                let code = match case.outcome {
                    Outcome::Returned(result) => result.0,
                    _ => 1,
                };
                let seen = u64::from(case.callbacks) << 32 | u64::from(code);
                examined.digest = examined.digest.rotate_left(5) ^ seen;
                see(&Case { in_callback: self.in_callback, ..case });
                Ok(())
            }
            Err(mismatch) => {
                let program = self.program.clone();
                let case = WorldCase { program, turns: self.turns.to_vec(), call };
                Err(Failure::Call(Box::new((case, mismatch))))
            }
        }
    }
}

/// Returns calls of all kinds for a thread.
fn all_calls(program: &WorldProgram, target: usize) -> Vec<WorldCall> {
    let mut calls = Vec::new();
    if !matches!(program.threads.get(target), Some(ThreadStart::Managed(_))) {
        return calls;
    }
    let plain = WorldCall {
        by: By::Target,
        target,
        unnamed: false,
        flags: SnapshotFlags::REGISTER_CONTEXT,
        seed: None,
        suspended_by_profiler: false,
        stop_at: None,
    };
    let activations = (0..40).map(|activation| Some(WorldSeed { activation, flags: 0x10_000B }));
    for seed in [None].into_iter().chain(activations) {
        calls.push(WorldCall { seed, ..plain });
    }
    for seed in [None, Some(WorldSeed { activation: 0, flags: 0x10_000B })] {
        calls.push(WorldCall { by: By::Profiler, seed, ..plain });
        calls.push(WorldCall { by: By::Profiler, seed, suspended_by_profiler: true, ..plain });
    }
    calls.push(WorldCall { flags: SnapshotFlags(2), ..plain });
    calls.push(WorldCall { flags: SnapshotFlags::DEFAULT, ..plain });
    calls.push(WorldCall { by: By::Profiler, unnamed: true, ..plain });
    calls.push(WorldCall { stop_at: Some(1), ..plain });
    calls
}

/// Returns the bytes of the stacks in use and of the Thread objects of the first threads.
fn memory(world: &mut World<'_>, threads: usize) -> Vec<(u64, Vec<u8>)> {
    let mut memory = Vec::new();
    for thread in 0..threads {
        let activations = world.activations(thread);
        let (Some(leaf), Some(root)) = (activations.first(), activations.last()) else { continue };
        let mut places = vec![(leaf.registers.rsp(), root.caller_sp - leaf.registers.rsp())];
        places.extend(world.object(thread).map(|object| (object.0, 0x60)));
        let machine = world.runtime().memory.borrow();
        for (at, len) in places {
            let mut bytes = vec![0; len as usize];
            if machine.read(at, &mut bytes).is_ok() {
                memory.push((at, bytes));
            }
        }
    }
    memory
}

/// Returns the addresses of HelperMethodFrames, which a walk may complete (VA).
fn helper_frames(facts: &ProgramFacts, world: &mut World<'_>, program: &WorldProgram) -> Vec<u64> {
    let threads = 0..program.threads.len();
    let seen = threads.filter_map(|thread| ThreadFacts::new(facts, world, thread));
    seen.flat_map(|seen| seen.frames)
        .filter(|frame| frame.kind.shape() == clr_runtime::frame::FrameShape::HelperMethod)
        .map(|frame| frame.at)
        .collect()
}

/// Returns the first address at which memory changed, outside of memory that may change (VA).
fn changed(
    before: &[(u64, Vec<u8>)],
    after: &[(u64, Vec<u8>)],
    helper_frames: &[u64],
) -> Option<u64> {
    if before.len() != after.len() {
        return Some(0);
    }
    let pairs = before.iter().zip(after);
    let mut different = pairs.flat_map(|((at, before), (_, after))| {
        (*at..).zip(before.iter().zip(after)).filter(|(_, (before, after))| before != after)
    });
    let may = |at: u64| helper_frames.iter().any(|frame| at.wrapping_sub(*frame) < 0x100);
    different.find(|(at, _)| !may(*at)).map(|(at, _)| at)
}

/// Minimizes a failure: first the program, examined thoroughly, then the case.
#[must_use]
pub fn shrink(program: &WorldProgram, failure: Failure) -> Failure {
    // A failed execution needs no calls.
    let thorough = !matches!(failure, Failure::World(_));
    let thorough = Plan { seed: 0, cases: if thorough { 1 << 20 } else { 400 }, thorough };
    let same = |one: &Failure| {
        std::mem::discriminant(one) == std::mem::discriminant(&failure)
            && one.kind() == failure.kind()
    };
    let find = |program: &WorldProgram| examine(program, thorough, |_| ()).err().filter(same);
    if find(program).is_none() {
        return failure;
    }
    let smallest = minimize(program.clone(), |program| find(program).is_some());
    let Some(found) = find(&smallest) else { return failure };
    let Failure::Call(found) = found else { return found };
    let (case, _) = *found;
    let kind = failure.kind();
    let fails = |case: &WorldCase| make(case).is_some_and(|mismatch| Some(mismatch.what) == kind);
    let case = minimize(case, fails);
    match make(&case) {
        Some(mismatch) => Failure::Call(Box::new((case, mismatch))),
        None => failure,
    }
}

impl Failure {
    /// Returns the kind of difference between a call and the model.
    #[must_use]
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Call(found) => Some(found.1.what),
            _ => None,
        }
    }
}
