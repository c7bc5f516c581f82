//! Programs that are executed, stopped, and walked.

use super::truth::Leaf;
use super::{CAPACITY, Found, Stop, Truth, Way, Wrong, judge};
use clr_generate::world::{By, WorldCall, WorldSeed, WorldTurn};
use clr_generate::{Choices, Seeded, WorldCase, WorldProgram, minimize};
use clr_runtime::Outcome;
use clr_walker::code_map::CodeMap;
use clr_walker::mixed::{Completeness, FrameKind, MixedFrame, Policy};
use clr_walker::profiling::SnapshotFlags;
use clr_walker::registers::Registers;
use clr_world::reference::{ProgramFacts, ReferenceActivation};
use clr_world::{BuildError, StepEvent, World, WorldError};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::mem::{Discriminant, discriminant};
use thiserror::Error;

/// A program is executed no further than so many steps.
const STEP_LIMIT: u64 = 20_000;

/// How an examination is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What decides when the program stops.
    pub seed: u64,
    /// The most walks of a program.
    pub walks: u64,
    /// The most steps from one stop to the next: 1 for a stop at every step.
    pub stride: u32,
    /// The only policy, if not all are tried.
    pub only: Option<Policy>,
}

/// A thread that stands still, with a walk of it.
pub struct Case<'s> {
    /// The thread as it is.
    pub truth: &'s Truth,
    /// How it was walked.
    pub policy: Policy,
    /// What was found.
    pub found: &'s Found,
}

/// What walks claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// To have everything.
    pub whole: u64,
    /// To have what can be reported.
    pub reportable: u64,
    /// Less than that.
    pub partial: u64,
}

/// What an examination has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Walks.
    pub walks: u64,
    /// Steps of the threads.
    pub steps: u64,
    /// Frames of all.
    pub frames: u64,
    /// What they claim, by policy and generation.
    pub claims: BTreeMap<(&'static str, &'static str), Claims>,
    /// Why some are partial, by policy: how often.
    pub partial: BTreeMap<String, u64>,
}

impl Examined {
    /// Adds what another examination has come to.
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
            Completeness::Reportable => claims.reportable += 1,
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

/// Why an examination ended early.
#[derive(Debug, Error)]
pub enum Failure {
    /// The program cannot be built.
    #[error("it cannot be built: {0}")]
    Build(#[from] BuildError),
    /// The program cannot be executed.
    #[error("it cannot go on: {0}")]
    World(#[from] WorldError),
    /// A walk is wrong.
    #[error("{:?}, {}: {}", .0.policy, .0.case.program.generation, .0.what)]
    Walk(Box<WrongWalk>),
}

/// A walk that is wrong.
#[derive(Clone, Debug)]
pub struct WrongWalk {
    /// The program, and how far its threads have gone; as a call, the one that the policy makes.
    pub case: WorldCase,
    /// How the thread was walked.
    pub policy: Policy,
    /// What is wrong.
    pub what: What,
}

/// What is wrong with a walk.
#[derive(Clone, Debug, Error)]
pub enum What {
    /// The process ends.
    #[error("{0}")]
    Fatal(Outcome),
    /// It is not true.
    #[error("{0}\n{1}")]
    Untrue(Wrong, String),
}

impl What {
    /// In what way it is wrong.
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

/// Executes a program, and walks its threads in one way at stops that the plan says. `see` is told of
/// every walk.
///
/// # Errors
/// [`Failure`].
pub fn examine<W: Way>(
    program: &WorldProgram,
    plan: Plan,
    way: &mut W,
    mut see: impl FnMut(&Case<'_>),
) -> Result<Examined, Failure> {
    let build = program.build()?;
    let mut world = program.world(&build)?;
    let facts = ProgramFacts::new(build.expanded(), build.linked());
    let map = world.runtime().profilers_code_map().map_err(BuildError::from)?;
    let mut choices = Seeded::new(plan.seed);
    let mut examined = Examined::default();
    let mut slices: Vec<WorldTurn> = Vec::new();
    let mut running: Vec<usize> = (0..program.threads.len()).collect();
    while examined.steps < STEP_LIMIT && examined.walks < plan.walks {
        let Some(thread) = choices.pick(&running) else { break };
        let wanted = choices.between(1, plan.stride);
        let (mut done, mut in_callback, mut before) = (0, false, None);
        while done < wanted && !in_callback {
            done += 1;
            if done == wanted {
                before = leaf(&world, thread);
            }
            match world.step(thread)? {
                StepEvent::Stepped => {}
                StepEvent::Callback(_) => in_callback = true,
                StepEvent::Hook | StepEvent::Waits => break,
                StepEvent::Ended => {
                    running.retain(|one| *one != thread);
                    break;
                }
            }
        }
        examined.steps += u64::from(done);
        match slices.last_mut().filter(|last| last.thread == thread) {
            Some(last) => last.steps += done,
            None => slices.push(WorldTurn { thread, steps: done }),
        }
        let mut standing = Standing { world: &mut world, map: &map, facts: &facts, thread };
        let Some(truth) = standing.truth() else { continue };
        for policy in Policy::ALL {
            let fits = plan.only.is_none_or(|only| only == policy);
            if !fits || !can_walk(&truth, policy, in_callback) {
                continue;
            }
            match standing.walk(&truth, policy, before.as_ref(), way) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    let case = Case { truth: &truth, policy, found: &found };
                    examined.count(&case);
                    see(&case);
                }
                Err(what) => {
                    let (program, call) = (program.clone(), call_of(&truth, policy, thread));
                    let case = WorldCase { program, slices, call };
                    return Err(Failure::Walk(Box::new(WrongWalk { case, policy, what })));
                }
            }
        }
    }
    Ok(examined)
}

/// A thread's registers.
fn leaf(world: &World<'_>, thread: usize) -> Option<Registers> {
    Some(world.activations(thread).first()?.registers)
}

/// Whether a policy is for a thread as it stands.
fn can_walk(truth: &Truth, policy: Policy, in_callback: bool) -> bool {
    match policy {
        Policy::Synchronous => in_callback && !truth.seen.code_busy,
        // Threads of the runtime wait until another one has written the code's tables.
        Policy::Signal => !truth.seen.code_busy,
        _ => true,
    }
}

/// The call that a policy makes, as a text can say it.
fn call_of(truth: &Truth, policy: Policy, target: usize) -> WorldCall {
    let question = truth.question(policy, Leaf::Seeds);
    WorldCall {
        by: if policy.is_for_itself() { By::Target } else { By::Profiler },
        target,
        unnamed: false,
        flags: SnapshotFlags::REGISTER_CONTEXT,
        seed: question.seed.map(|(row, flags)| WorldSeed { row: row as u32, flags }),
        suspended_by_profiler: question.suspended_by_profiler,
        stop_at: None,
    }
}

/// A thread of a world that stands still.
struct Standing<'s, 'b> {
    world: &'s mut World<'b>,
    map: &'s CodeMap<'b>,
    facts: &'s ProgramFacts,
    thread: usize,
}

impl Standing<'_, '_> {
    /// The thread as it is, if it can be walked: not behind its ThreadDestroyed (H-04).
    fn truth(&mut self) -> Option<Truth> {
        let truth = Truth::new(self.facts, self.world, self.thread)?;
        (!truth.seen.gone && !truth.seen.rows.is_empty()).then_some(truth)
    }

    /// Walks it, and judges the walk.
    fn walk<W: Way>(
        &mut self,
        truth: &Truth,
        policy: Policy,
        before: Option<&Registers>,
        way: &mut W,
    ) -> Result<Option<Found>, What> {
        let saved = self.world.save();
        let (map, thread) = (self.map, self.thread);
        let walked = way.walk(Stop { world: self.world, map, thread, policy, before });
        self.world.restore(&saved);
        let Some(found) = walked.map_err(What::Fatal)? else { return Ok(None) };
        match judge(truth, policy, &found, CAPACITY) {
            Ok(()) => Ok(Some(found)),
            Err(wrong) => Err(What::Untrue(wrong, table(truth, &found))),
        }
    }
}

/// Executes a case, and walks its target by a policy; what is wrong with that, if something is.
#[must_use]
pub fn repeat<W: Way>(case: &WorldCase, policy: Policy, way: &mut W) -> Option<WrongWalk> {
    let build = case.program.build().ok()?;
    let mut world = case.program.world(&build).ok()?;
    let facts = ProgramFacts::new(build.expanded(), build.linked());
    let map = world.runtime().profilers_code_map().ok()?;
    let thread = case.call.target;
    let (mut before, mut in_callback) = (None, false);
    for slice in &case.slices {
        for _ in 0..slice.steps {
            before = (slice.thread == thread).then(|| leaf(&world, thread)).flatten();
            in_callback = matches!(world.step(slice.thread).ok()?, StepEvent::Callback(_));
            in_callback &= slice.thread == thread;
        }
    }
    let mut standing = Standing { world: &mut world, map: &map, facts: &facts, thread };
    let truth = standing.truth()?;
    if !can_walk(&truth, policy, in_callback) {
        return None;
    }
    let what = standing.walk(&truth, policy, before.as_ref(), way).err()?;
    let call = call_of(&truth, policy, thread);
    Some(WrongWalk { case: WorldCase { call, ..case.clone() }, policy, what })
}

/// Makes a wrong walk as small as it gets, wrong in the same way: the program first, stopped everywhere,
/// then how far it goes.
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
    let mut fails =
        |case: &WorldCase| repeat(case, policy, way).is_some_and(|wrong| wrong.what.kind() == kind);
    let case = minimize(smallest.case.clone(), &mut fails);
    repeat(&case, policy, way).unwrap_or(smallest)
}

/// The thread and the walk side by side.
fn table(truth: &Truth, found: &Found) -> String {
    let Truth { seen, known, redirected, hijacked, .. } = truth;
    let mut table = String::from("truth:\n");
    for (ReferenceActivation { code, registers, position, funclet, .. }, known) in
        seen.rows.iter().zip(known)
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
