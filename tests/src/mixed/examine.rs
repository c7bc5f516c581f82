//! Execution of programs that are stopped and walked.

use super::truth::Leaf;
use super::{CAPACITY, Found, Stop, Truth, Way, Wrong, judge};
use crate::loaded::Loaded;
use clr_generate::world::{By, WorldCall, WorldSeed, WorldTurn};
use clr_generate::{Choices, Seeded, WorldCase, WorldProgram, minimize};
use clr_reference::{ProgramFacts, ReferenceActivation};
use clr_runtime::Outcome;
use clr_runtime::profiling::Policy;
use clr_unwind::{CodeMap, CodeMapError, Registers};
use clr_walker::mixed::{Completeness, FrameKind, MixedFrame};
use clr_walker::profiling::SnapshotFlags;
use clr_world::{Build, BuildError, StepEvent, World, WorldError};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::mem::{Discriminant, discriminant};
use thiserror::Error;

/// Maximum number of steps that a program is executed.
const STEP_LIMIT: u64 = 20_000;

/// The parameters of an examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the stops.
    pub seed: u64,
    /// Maximum number of walks of a program.
    pub walks: u64,
    /// Maximum number of steps between two stops; 1 stops at every step.
    pub stride: u32,
    /// The only policy, or `None` for all policies.
    pub only: Option<Policy>,
}

/// A stopped thread, with a walk of it.
pub struct Case<'s> {
    /// True state of the thread.
    pub truth: &'s Truth,
    /// Policy of the walk.
    pub policy: Policy,
    /// Result of the walk.
    pub found: &'s Found,
}

/// Counts of walks by the completeness that they claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Walks that claim all frames.
    pub whole: u64,
    /// Walks that claim all frames that can be reported.
    pub reportable: u64,
    /// Partial walks.
    pub partial: u64,
}

/// The counts of an examination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Number of walks.
    pub walks: u64,
    /// Number of steps of the threads.
    pub steps: u64,
    /// Number of frames of all walks.
    pub frames: u64,
    /// Claims by policy and generation.
    pub claims: BTreeMap<(&'static str, &'static str), Claims>,
    /// Number of partial walks by policy and reason.
    pub partial: BTreeMap<String, u64>,
}

impl Examined {
    /// Adds the counts of another examination.
    pub fn add(&mut self, other: &Self) {
        self.walks += other.walks;
        self.steps += other.steps;
        self.frames += other.frames;
        for (by, claims) in &other.claims {
            let sum = self.claims.entry(*by).or_default();
            sum.whole += claims.whole;
            sum.reportable += claims.reportable;
            sum.partial += claims.partial;
        }
        for (reason, count) in &other.partial {
            *self.partial.entry(reason.clone()).or_default() += count;
        }
    }

    fn count(&mut self, case: &Case<'_>) {
        let policy = case.policy.name();
        self.walks += 1;
        self.frames += case.found.frames.len() as u64;
        let by = (policy, case.truth.seen.generation.name());
        let claims = self.claims.entry(by).or_default();
        match case.found.completeness {
            Completeness::Whole => claims.whole += 1,
            Completeness::Reportable | Completeness::WithoutLeaf | Completeness::Guessed(_) => {
                claims.reportable += 1;
            }
            Completeness::Partial(reason) => {
                claims.partial += 1;
                let words = format!("{reason:?}");
                let words = words.split(" { ").next().unwrap_or_default();
                *self.partial.entry(format!("{policy}: {words}")).or_default() += 1;
            }
        }
    }
}

impl fmt::Display for Examined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { walks, steps, frames, claims, partial } = self;
        writeln!(f, "{walks} walks in {steps} steps, {frames} frames")?;
        for ((policy, generation), Claims { whole, reportable, partial }) in claims {
            writeln!(f, "{policy:17} {generation:28} {whole:>8} {reportable:>8} {partial:>8}")?;
        }
        for (reason, count) in partial {
            writeln!(f, "{count:>8} {reason}")?;
        }
        Ok(())
    }
}

/// A reason why an examination ended early.
#[derive(Debug, Error)]
pub enum Failure {
    /// The program cannot be built.
    #[error("the program cannot be built: {0}")]
    Build(#[from] BuildError),
    /// The program cannot be executed.
    #[error("the program cannot be executed further: {0}")]
    World(#[from] WorldError),
    /// A walk is wrong.
    #[error("{:?}, {}: {}", .0.policy, .0.case.program.generation, .0.what)]
    Walk(Box<WrongWalk>),
}

/// A walk that is wrong.
#[derive(Clone, Debug)]
pub struct WrongWalk {
    /// The program, and the steps of its threads. Its call is the one that the policy makes.
    pub case: WorldCase,
    /// Policy of the walk.
    pub policy: Policy,
    /// Error in the walk.
    pub what: What,
}

/// An error in a walk.
#[derive(Clone, Debug, Error)]
pub enum What {
    /// The walk ends the process.
    #[error("{0}")]
    Fatal(Outcome),
    /// The walk's result is wrong.
    #[error("{0}\n{1}")]
    Untrue(Wrong, String),
}

impl What {
    /// Returns the kinds of the error and of the frame, which shrinking preserves.
    fn kind(&self) -> (Option<Discriminant<Wrong>>, Option<Discriminant<FrameKind>>) {
        match self {
            Self::Fatal(_) => (None, None),
            Self::Untrue(wrong, _) => {
                let found = match wrong {
                    Wrong::Kind { found, .. } => Some(discriminant(found)),
                    _ => None,
                };
                (Some(discriminant(wrong)), found)
            }
        }
    }
}

/// Executes a program, and walks its threads in one way at the stops of the plan. Calls `see` with
/// every walk.
///
/// # Errors
/// [`Failure`].
pub fn examine<W: Way>(
    program: &WorldProgram,
    plan: Plan,
    way: &mut W,
    see: impl FnMut(&Case<'_>),
) -> Result<Examined, Failure> {
    let build = program.build()?;
    examine_loaded(program, &mut Loaded::new(program, &build)?, plan, way, see)
}

/// Does as [`examine`] for a program that is loaded.
///
/// # Errors
/// [`Failure`].
pub fn examine_loaded<W: Way>(
    program: &WorldProgram,
    loaded: &mut Loaded<'_>,
    plan: Plan,
    way: &mut W,
    mut see: impl FnMut(&Case<'_>),
) -> Result<Examined, Failure> {
    let (world, facts) = loaded.from_start();
    let maps = Maps::new(world).map_err(BuildError::from)?;
    let mut choices = Seeded::new(plan.seed);
    let mut examined = Examined::default();
    let mut turns: Vec<WorldTurn> = Vec::new();
    let mut running: Vec<usize> = (0..program.threads.len()).collect();
    while examined.steps < STEP_LIMIT && examined.walks < plan.walks {
        let Some(thread) = choices.pick(&running) else { break };
        let wanted = choices.between(1, plan.stride);
        let (mut done, mut in_callback, mut before) = (0, false, None);
        while done < wanted && !in_callback {
            done += 1;
            if done == wanted {
                before = leaf(world, thread);
            }
            match world.step(thread)? {
                StepEvent::Stepped | StepEvent::Entered(_) => {}
                StepEvent::Callback(_) => in_callback = true,
                StepEvent::Hook | StepEvent::Waits => break,
                StepEvent::Ended => {
                    running.retain(|one| *one != thread);
                    break;
                }
            }
        }
        examined.steps += u64::from(done);
        match turns.last_mut().filter(|last| last.thread == thread) {
            Some(last) => last.steps += done,
            None => turns.push(WorldTurn { thread, steps: done }),
        }
        let mut at_step = AtStep { world: &mut *world, maps: &maps, facts, thread };
        let Some(truth) = at_step.truth() else { continue };
        for policy in Policy::ALL {
            let fits = plan.only.is_none_or(|only| only == policy);
            if !fits || !can_walk(&truth, policy, in_callback) {
                continue;
            }
            match at_step.walk(&truth, policy, before.as_ref(), way) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    let case = Case { truth: &truth, policy, found: &found };
                    examined.count(&case);
                    see(&case);
                }
                Err(what) => {
                    let (program, call) = (program.clone(), call_of(&truth, policy, thread));
                    let case = WorldCase { program, turns, call };
                    return Err(Failure::Walk(Box::new(WrongWalk { case, policy, what })));
                }
            }
        }
    }
    Ok(examined)
}

/// Returns a thread's registers.
fn leaf(world: &World<'_>, thread: usize) -> Option<Registers> {
    Some(world.activations(thread).first()?.registers)
}

/// Returns true if a policy can walk a thread in this state.
fn can_walk(truth: &Truth, policy: Policy, in_callback: bool) -> bool {
    match policy {
        Policy::Synchronous => in_callback && !truth.seen.code_busy,
        // Threads of the runtime would wait until another thread has written the code tables.
        Policy::SignalSnapshot => !truth.seen.code_busy,
        _ => true,
    }
}

/// Returns the call that a policy makes, in the form that a text can express.
fn call_of(truth: &Truth, policy: Policy, target: usize) -> WorldCall {
    let question = truth.question(policy, Leaf::Seeds);
    WorldCall {
        by: if policy.is_for_itself() { By::Target } else { By::Profiler },
        target,
        unnamed: false,
        flags: SnapshotFlags::REGISTER_CONTEXT,
        seed: question
            .seed
            .map(|(activation, flags)| WorldSeed { activation: activation as u32, flags }),
        suspended_by_profiler: question.suspended_by_profiler,
        stop_at: None,
    }
}

/// The code maps of a world's profilers.
struct Maps<'b> {
    /// The map of a profiler that asks the runtime about methods.
    asking: CodeMap<'b>,
    /// The map of one that asks nothing.
    unaided: CodeMap<'b>,
}

impl<'b> Maps<'b> {
    fn new(world: &mut World<'b>) -> Result<Self, CodeMapError> {
        let runtime = world.runtime();
        let (asking, unaided) =
            (runtime.code_map_for(Policy::Seeded)?, runtime.code_map_for(Policy::Signal)?);
        Ok(Self { asking, unaided })
    }

    const fn of(&self, policy: Policy) -> &CodeMap<'b> {
        match policy {
            Policy::Signal => &self.unaided,
            _ => &self.asking,
        }
    }
}

/// A stopped thread of a world.
struct AtStep<'s, 'b> {
    world: &'s mut World<'b>,
    maps: &'s Maps<'b>,
    facts: &'s ProgramFacts,
    thread: usize,
}

impl AtStep<'_, '_> {
    /// Returns the thread's true state if the thread can be walked, which it cannot after its
    /// ThreadDestroyed (H-04).
    fn truth(&mut self) -> Option<Truth> {
        let truth = Truth::new(self.facts, self.world, self.thread)?;
        (!truth.seen.gone && !truth.seen.activations.is_empty()).then_some(truth)
    }

    /// Walks the thread, and judges the walk.
    fn walk<W: Way>(
        &mut self,
        truth: &Truth,
        policy: Policy,
        before: Option<&Registers>,
        way: &mut W,
    ) -> Result<Option<Found>, What> {
        let saved = self.world.save();
        let (map, thread) = (self.maps.of(policy), self.thread);
        let truth = &truth.known_by(map);
        let walked = way.walk(Stop { world: self.world, map, thread, policy, before });
        self.world.restore(&saved);
        let Some(found) = walked.map_err(What::Fatal)? else { return Ok(None) };
        match judge(truth, policy, &found, CAPACITY) {
            Ok(()) => Ok(Some(found)),
            Err(wrong) => Err(What::Untrue(wrong, table(truth, &found))),
        }
    }
}

/// Executes a case, and walks its target by a policy. Returns the wrong walk, if the walk is wrong.
fn repeat<W: Way>(
    case: &WorldCase,
    build: &Build,
    policy: Policy,
    way: &mut W,
) -> Option<WrongWalk> {
    let mut world = case.program.world(build).ok()?;
    let facts = ProgramFacts::new(build.expanded(), build.linked());
    let maps = Maps::new(&mut world).ok()?;
    let thread = case.call.target;
    let (mut before, mut in_callback) = (None, false);
    for turn in &case.turns {
        for _ in 0..turn.steps {
            before = (turn.thread == thread).then(|| leaf(&world, thread)).flatten();
            in_callback = matches!(world.step(turn.thread).ok()?, StepEvent::Callback(_));
            in_callback &= turn.thread == thread;
        }
    }
    let mut at_step = AtStep { world: &mut world, maps: &maps, facts: &facts, thread };
    let truth = at_step.truth()?;
    if !can_walk(&truth, policy, in_callback) {
        return None;
    }
    let what = at_step.walk(&truth, policy, before.as_ref(), way).err()?;
    let call = call_of(&truth, policy, thread);
    Some(WrongWalk { case: WorldCase { call, ..case.clone() }, policy, what })
}

/// Minimizes a wrong walk that stays wrong in the same way: first the program, stopped everywhere,
/// then the number of its steps.
#[must_use]
pub fn shrink<W: Way>(wrong: WrongWalk, way: &mut W) -> WrongWalk {
    let (policy, kind) = (wrong.policy, wrong.what.kind());
    let plan = Plan { seed: 0, walks: 2_000, stride: 1, only: Some(policy) };
    let find = |program: &WorldProgram, way: &mut W| match examine(program, plan, way, |_| ()) {
        Err(Failure::Walk(found)) if found.what.kind() == kind => Some(*found),
        _ => None,
    };
    let program = wrong.case.program.clone();
    let mut smallest = wrong;
    if find(&program, way).is_some() {
        let program = minimize(program, |program| find(program, way).is_some());
        smallest = find(&program, way).unwrap_or(smallest);
    }
    // Most cases have other turns of the program before.
    let mut last: Option<(WorldProgram, Build)> = None;
    let mut found = |case: &WorldCase| {
        if last.as_ref().is_none_or(|(program, _)| *program != case.program) {
            last = Some((case.program.clone(), case.program.build().ok()?));
        }
        let (_, build) = last.as_ref()?;
        repeat(case, build, policy, way).filter(|wrong| wrong.what.kind() == kind)
    };
    let case = minimize(smallest.case.clone(), |case| found(case).is_some());
    found(&case).unwrap_or(smallest)
}

/// Formats the thread and the walk, one after the other.
fn table(truth: &Truth, found: &Found) -> String {
    let Truth { seen, known, redirected, hijacked, .. } = truth;
    let mut table = String::from("truth:\n");
    for (ReferenceActivation { code, registers, position, funclet, .. }, known) in
        seen.activations.iter().zip(known)
    {
        let (rip, rsp) = (registers.rip, registers.rsp());
        let known = if known.unwinds { "" } else { " unknown" };
        let _ = writeln!(table, "  {rip:#x} {rsp:#x} {position:?} {code:x?} {funclet:?}{known}");
    }
    let mode = if seen.cooperative { "cooperative" } else { "preemptive" };
    let _ = writeln!(table, "{mode}, redirected {redirected:?}, hijacked {hijacked:x?}");
    let _ = writeln!(table, "{:?}\nwalk: {:?}", seen.exceptions, found.snapshot);
    let gaps = |table: &mut String, at: usize| {
        for gap in found.gaps.iter().filter(|gap| gap.at == at) {
            let _ = writeln!(table, "  gap: {}", gap.reason);
        }
    };
    for (at, frame) in found.frames.iter().enumerate() {
        gaps(&mut table, at);
        let MixedFrame { ip, sp, kind, source, .. } = frame;
        let _ = writeln!(table, "  {ip:#x} {sp:#x} {kind:x?} {source:?} {:?}", frame.seen_by());
    }
    gaps(&mut table, found.frames.len());
    table
}
