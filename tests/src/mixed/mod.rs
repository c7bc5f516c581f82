//! Whole stacks through the profiler's side, held against who really called whom, while programs run
//! through the runtime.
//!
//! [`judge`] says what a walk may claim of a thread that stands still: no frame that is not there, none
//! twice, all in order; and as much as it claims, at least.

use clr_sim::code::FuncletKind;
use clr_sim::model::{Code, Facts, Row, Seen};
use clr_sim::profiling::{Outcome, SimulatedThread};
use clr_sim::run::BASE;
use clr_sim::runtime::{MethodKind, OsThreadId};
use clr_sim::strategy::{Choices, Seeded, WorldProgram};
use clr_sim::world::{BuildError, Event, World, WorldError};
use clr_walker::code_map::CodeMap;
use clr_walker::mixed::{
    Completeness, FrameKind, MixedFrame, MixedStack, Policy, Reason, Source, WalkBuffer, Walker,
};
use clr_walker::unwind::Position;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;

/// A native thread of the profiler.
const PROFILER: OsThreadId = OsThreadId(0xFFFF);
/// A program is executed no further than so many steps.
const STEP_LIMIT: u64 = 20_000;

/// What a walk gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// A frame is not there, or not there any more, or in another place.
    #[error("frame {0} is not on the stack")]
    Invented(usize),
    /// A frame is taken for something else.
    #[error("frame {frame} is no {found:?}, but {truth:?}")]
    Kind {
        /// Its place in the walk.
        frame: usize,
        /// What the walk says.
        found: FrameKind,
        /// What it is.
        truth: Code,
    },
    /// A frame is missing where the walk claims that none is.
    #[error("row {row} is missing before frame {frame}")]
    Missing {
        /// Its place in truth.
        row: usize,
        /// The walk's frame rootward of it.
        frame: usize,
    },
    /// A gap is said where nothing is missing, for a reason that is not so.
    #[error("the reason {reason:?} before frame {frame} is not true")]
    Untrue {
        /// The walk's frame rootward of it.
        frame: usize,
        /// The reason.
        reason: Reason,
    },
}

/// Whether a frame of the walk is what a row of the truth is.
fn is_kind(kind: FrameKind, code: Code) -> bool {
    match (kind, code) {
        (FrameKind::Managed(found), Code::Managed(id, kind)) => {
            found == id && !matches!(kind, MethodKind::IlStub | MethodKind::Dynamic)
        }
        (FrameKind::Hidden(found), Code::Managed(id, kind)) => {
            matches!(kind, MethodKind::IlStub | MethodKind::Dynamic)
                && found.is_none_or(|found| found == id)
        }
        // Without an id it may be a stub; and nobody knows jitted stubs of Unix.
        (
            FrameKind::Native { .. } | FrameKind::Hidden(None) | FrameKind::Unknown,
            Code::Unmanaged,
        ) => true,
        // Nor does anybody know code without metadata where no call tells of it: in an image it looks like native code.
        (FrameKind::Native { .. } | FrameKind::Unknown, Code::Managed(_, kind)) => {
            matches!(kind, MethodKind::IlStub | MethodKind::Dynamic)
        }
        _ => false,
    }
}

/// Whether `DoStackSnapshot` hides a row without exceptions: code without metadata, and funclets that
/// their method has called (C-084).
fn is_hidden(row: &Row) -> bool {
    row.funclet == Some(FuncletKind::Handler)
        || matches!(row.code, Code::Managed(_, MethodKind::IlStub | MethodKind::Dynamic))
}

/// Whether exceptions are on their way: what they have skipped is not reported.
fn is_excepted(seen: &Seen) -> bool {
    let handles = |row: &Row| matches!(row.code, Code::Managed(_, MethodKind::ExceptionHandling));
    seen.exceptions.count > 0 || seen.rows.iter().any(handles)
}

/// Whether a thread is where redirected ones wait. No unwind data leads out of it: only what the runtime
/// reports is right from there on.
fn is_redirected(world: &World<'_>, thread: usize) -> bool {
    let functions = &world.expanded().program.functions;
    let name = "Thread::RedirectedHandledJITCase";
    let mut rows = world.activations(thread).into_iter().filter_map(|row| row.function);
    rows.any(|id| functions.get(id.index()).is_some_and(|function| function.name == name))
}

/// Holds a walk against the thread that it was of.
///
/// # Errors
/// What it gets wrong.
pub fn judge(seen: &Seen, stack: &MixedStack) -> Result<(), Wrong> {
    let mut row = 0;
    for (frame, found) in stack.frames.iter().enumerate() {
        let at = place_of(found, &seen.rows, row).ok_or(Wrong::Invented(frame))?;
        missing(seen, stack, row..at, frame)?;
        let truth = seen.rows[at].code;
        if !is_kind(found.kind, truth) {
            return Err(Wrong::Kind { frame, found: found.kind, truth });
        }
        row = at + 1;
    }
    missing(seen, stack, row..seen.rows.len(), stack.frames.len())
}

/// Where a frame stands in the truth, from `first` on.
fn place_of(frame: &MixedFrame, rows: &[Row], first: usize) -> Option<usize> {
    let mut rows = rows.iter().enumerate().skip(first);
    // Of calls out of ready-to-run code, the runtime knows another return address (C-156).
    let told = frame.source == Source::Snapshot && matches!(frame.kind, FrameKind::Managed(_));
    let is = |row: &Row| {
        let same = row.registers.rip == frame.ip || told && is_kind(frame.kind, row.code);
        same && row.registers.rsp() == frame.sp
    };
    rows.find(|(_, row)| is(row)).map(|(at, _)| at)
}

/// Whether rows that the walk has left out before a frame may be missing.
fn missing(
    seen: &Seen,
    stack: &MixedStack,
    rows: std::ops::Range<usize>,
    frame: usize,
) -> Result<(), Wrong> {
    if rows.is_empty() || stack.gaps.iter().any(|gap| gap.at == frame) {
        return Ok(());
    }
    let hides = stack.completeness() != Completeness::Whole;
    for row in rows {
        let excused = hides && (is_hidden(&seen.rows[row]) || is_excepted(seen));
        if !excused {
            return Err(Wrong::Missing { row, frame });
        }
    }
    Ok(())
}

/// A thread that stands still, with a walk of it.
pub struct Case<'s> {
    /// The thread as it is.
    pub truth: &'s Seen,
    /// How it was walked.
    pub policy: Policy,
    /// What was found.
    pub stack: &'s MixedStack,
}

/// What an examination has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Walks.
    pub walks: u64,
    /// Those that claim to have everything.
    pub whole: u64,
    /// Those that claim to have what can be reported.
    pub reportable: u64,
    /// Frames of all.
    pub frames: u64,
    /// Why others are partial, by policy: how often.
    pub partial: BTreeMap<String, u64>,
}

impl Examined {
    /// Adds what another examination has come to.
    pub fn add(&mut self, other: &Self) {
        self.walks += other.walks;
        self.whole += other.whole;
        self.reportable += other.reportable;
        self.frames += other.frames;
        for (reason, count) in &other.partial {
            *self.partial.entry(reason.clone()).or_default() += count;
        }
    }

    fn count(&mut self, policy: Policy, stack: &MixedStack) {
        self.walks += 1;
        self.frames += stack.frames.len() as u64;
        match stack.completeness() {
            Completeness::Whole => self.whole += 1,
            Completeness::Reportable => self.reportable += 1,
            Completeness::Partial(reason) => {
                let words = format!("{reason:?}");
                let words = words.split(" { ").next().unwrap_or_default();
                *self.partial.entry(format!("{}: {words}", policy.name())).or_default() += 1;
            }
        }
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
    /// A call has ended the process.
    #[error("{policy:?}: {outcome}")]
    Fatal {
        /// By which policy.
        policy: Policy,
        /// How.
        outcome: Outcome,
    },
    /// A walk is wrong.
    #[error("{policy:?} on {}: {wrong}\n{}", truth.generation, table(truth, stack))]
    Wrong {
        /// By which policy.
        policy: Policy,
        /// What is wrong.
        wrong: Wrong,
        /// The walk.
        stack: Box<MixedStack>,
        /// The truth.
        truth: Box<Seen>,
    },
}

/// Walks a thread of a world by a policy.
///
/// # Errors
/// What ends the process.
pub fn walk(
    world: &mut World<'_>,
    map: &CodeMap<'_>,
    thread: usize,
    policy: Policy,
    buffer: &mut WalkBuffer,
) -> Result<Option<MixedStack>, Outcome> {
    let Some(os) = world.os(thread) else { return Ok(None) };
    let runtime = world.runtime();
    let Some(target) = SimulatedThread::new(runtime, os, BASE) else { return Ok(None) };
    let info = runtime.on(if policy.is_for_itself() { os } else { PROFILER });
    Walker::new(&info, map, policy).walk(&target, buffer).map(Some)
}

/// Executes a program, and walks its threads at stops that `seed` chooses, up to `walks` times.
///
/// # Errors
/// [`Failure`].
pub fn examine(
    program: &WorldProgram,
    seed: u64,
    walks: u64,
    mut see: impl FnMut(&Case<'_>),
) -> Result<Examined, Failure> {
    let build = program.build()?;
    let mut world = program.world(&build)?;
    let facts = Facts::new(build.expanded(), build.linked());
    let map = world.runtime().profilers_code_map().map_err(BuildError::from)?;
    let mut buffer = WalkBuffer::new(256);
    let mut choices = Seeded::new(seed);
    let mut examined = Examined::default();
    let mut running: Vec<usize> = (0..program.threads.len()).collect();
    let mut steps = 0;
    while steps < STEP_LIMIT && examined.walks < walks {
        let Some(thread) = choices.pick(&running) else { break };
        let mut in_callback = false;
        for _ in 0..choices.between(1, 20) {
            steps += 1;
            match world.step(thread)? {
                Event::Stepped => {}
                Event::Callback(_) => in_callback = true,
                Event::Hook | Event::Waits => break,
                Event::Ended => {
                    running.retain(|one| *one != thread);
                    break;
                }
            }
            if in_callback {
                break;
            }
        }
        let Some(truth) = Seen::new(&facts, &mut world, thread) else { continue };
        // A thread is not walked behind its ThreadDestroyed (H-04).
        if truth.gone || truth.rows.is_empty() || is_redirected(&world, thread) {
            continue;
        }
        for policy in Policy::ALL {
            let fits = match policy {
                Policy::Synchronous => in_callback && !truth.code_busy,
                // Threads of the runtime wait until another one has written the code's tables.
                Policy::Signal => !truth.code_busy,
                Policy::FramePointers => false,
                _ => true,
            };
            if !fits {
                continue;
            }
            let before = world.save();
            let walked = walk(&mut world, &map, thread, policy, &mut buffer);
            world.restore(&before);
            let stack = match walked {
                Ok(Some(stack)) => stack,
                Ok(None) => continue,
                Err(outcome) => return Err(Failure::Fatal { policy, outcome }),
            };
            if let Err(wrong) = judge(&truth, &stack) {
                let (stack, truth) = (Box::new(stack), Box::new(truth));
                return Err(Failure::Wrong { policy, wrong, stack, truth });
            }
            examined.count(policy, &stack);
            see(&Case { truth: &truth, policy, stack: &stack });
        }
    }
    Ok(examined)
}

/// The thread and the walk side by side.
fn table(seen: &Seen, stack: &MixedStack) -> String {
    let mut table = String::from("truth:\n");
    for Row { code, registers, position, funclet, .. } in &seen.rows {
        let (rip, rsp) = (registers.rip, registers.rsp());
        let _ = writeln!(table, "  {rip:#x} {rsp:#x} {position:?} {code:x?} {funclet:?}");
    }
    let mode = if seen.cooperative { "cooperative" } else { "preemptive" };
    let _ = writeln!(table, "{mode}, {:?}\nwalk: {:?}", seen.exceptions, stack.snapshot);
    for (at, frame) in stack.frames.iter().enumerate() {
        for gap in stack.gaps.iter().filter(|gap| gap.at == at) {
            let _ = writeln!(table, "  gap: {}", gap.reason);
        }
        let MixedFrame { ip, sp, kind, source, .. } = frame;
        let _ = writeln!(table, "  {ip:#x} {sp:#x} {kind:x?} {source:?} {:?}", frame.seen_by());
    }
    for gap in stack.gaps.iter().filter(|gap| gap.at == stack.frames.len()) {
        let _ = writeln!(table, "  gap: {}", gap.reason);
    }
    table
}

/// Where a frame's instruction is.
#[must_use]
pub const fn inside(frame: &MixedFrame) -> u64 {
    match frame.position {
        Position::Interrupted => frame.ip,
        Position::ReturnAddress => frame.ip.wrapping_sub(1),
    }
}
