//! A call, compared with the model.

use crate::loaded::Loaded;
use clr_generate::WorldCase;
use clr_generate::world::{By, WorldCall};
use clr_reference::{CallFacts, CallerKind, ExpectedCall, ExpectedReport, ThreadFacts, expected};
use clr_runtime::OsThreadId;
use clr_runtime::profiling::{CallbackKind, SnapshotRequest};
use clr_runtime::{Context, Outcome};
use clr_walker::profiling::{FunctionId, HResult, SnapshotFrame, ThreadId};
use clr_world::World;
use std::fmt;

/// An operating system thread that the profiler has created.
const PROFILER: OsThreadId = OsThreadId(0x1000);
/// Size in bytes of the longest CONTEXT.
const CONTEXT_LEN: usize = 0xC20;

/// A call with the result that the model expects.
#[derive(Clone, Debug)]
pub struct Case<'s> {
    /// State of the target.
    pub seen: &'s ThreadFacts,
    /// The call.
    pub question: CallFacts,
    /// The expectation, if the model has one.
    pub expected: Option<ExpectedCall>,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Number of callbacks made.
    pub callbacks: u32,
    /// The callback that a thread of the program has just entered.
    pub in_callback: Option<CallbackKind>,
}

/// A call with a result other than the model expects.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Kind of the difference.
    pub what: &'static str,
    /// The call as the model sees it.
    pub question: CallFacts,
    /// State of the target.
    pub seen: ThreadFacts,
    /// The model's expectation.
    pub expected: ExpectedCall,
    /// Callbacks made.
    pub found: Vec<Found>,
    /// Outcome of the call.
    pub outcome: Outcome,
}

/// A callback that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// FunctionID of the method.
    pub function: Option<FunctionId>,
    /// Instruction pointer (VA).
    pub ip: u64,
    /// The CONTEXT, if there is a complete one.
    pub context: Option<Context>,
    /// The contextSize.
    pub size: usize,
}

impl Found {
    fn new(frame: &SnapshotFrame<'_>) -> Self {
        let context = Context::from_bytes(frame.context);
        Self { function: frame.function, ip: frame.ip, context, size: frame.context.len() }
    }

    /// Returns the kind of difference from the expected callback.
    fn difference(&self, expected: &ExpectedReport, size: usize) -> Option<&'static str> {
        let ExpectedReport { function, context, .. } = expected;
        if self.function != *function {
            return Some("another method");
        }
        if self.ip != context.registers.rip {
            return Some("another ip");
        }
        if self.size != size {
            return Some("another contextSize");
        }
        if size == 0 {
            return None;
        }
        let Some(found) = &self.context else { return Some("no CONTEXT") };
        if found.flags != context.flags {
            return Some("other ContextFlags");
        }
        if found.registers.rip != context.registers.rip {
            return Some("another rip in the CONTEXT");
        }
        if found.registers.gpr != context.registers.gpr {
            return Some("other registers");
        }
        (found.registers.xmm != context.registers.xmm).then_some("other vector registers")
    }
}

/// Returns the call as the model sees it.
fn question(world: &World<'_>, seen: &ThreadFacts, call: &WorldCall) -> CallFacts {
    let caller = match call.by {
        By::Target => CallerKind::Target,
        By::Thread(other) if other == call.target => CallerKind::Target,
        By::Thread(other) if world.object(other).is_some() => CallerKind::Managed,
        By::Thread(_) | By::Profiler => CallerKind::Native,
    };
    let count = seen.activations.len().max(1);
    let knows_suspension = world.generation().profiler_suspension()
        != clr_runtime::generation::ProfilerSuspension::None;
    CallFacts {
        caller,
        unnamed: call.unnamed && caller != CallerKind::Managed,
        flags: call.flags,
        seed: call.seed.map(|seed| (seed.activation as usize % count, seed.flags)),
        suspended_by_profiler: call.suspended_by_profiler && knows_suspension,
        stop_at: call.stop_at,
    }
}

/// Makes a call for a thread, and compares the result with the model.
///
/// # Errors
/// The difference from the model.
///
/// # Panics
/// If the world cannot be restored to its state before a call that ends the process.
pub fn compare<'s>(
    world: &mut World<'_>,
    seen: &'s ThreadFacts,
    call: &WorldCall,
) -> Result<Case<'s>, Box<Mismatch>> {
    let question = question(world, seen, call);
    let expected = expected(seen, &question);
    let caller = match call.by {
        By::Target => world.os(call.target),
        By::Thread(other) => world.os(other),
        By::Profiler => Some(PROFILER),
    };
    let mut bytes = [0; CONTEXT_LEN];
    let from = question
        .seed
        .and_then(|(activation, flags)| Some((seen.activations.get(activation)?, flags)));
    if let Some((activation, flags)) = from {
        let context = Context { registers: activation.registers, flags }.to_bytes();
        bytes[..context.len()].copy_from_slice(&context);
    }
    let object = world.object(call.target).unwrap_or(ThreadId(0));
    let made = SnapshotRequest {
        thread: if question.unnamed { ThreadId(0) } else { object },
        flags: question.flags,
        seed: from.is_some().then_some(&bytes[..]),
        context_size: 0,
        client_data: 0,
    };
    // A process that ends does not clean up.
    let returns = |outcome: &Outcome| matches!(outcome, Outcome::Returned(_));
    let ends = expected.as_ref().is_none_or(|one| !returns(&one.outcome));
    let before = ends.then(|| world.save());
    let runtime = world.runtime();
    let mut process = runtime.process.get();
    process.suspended_by_profiler = question.suspended_by_profiler;
    runtime.process.set(process);
    let size = runtime.generation.context_size() as usize;
    let size = if question.flags.wants_context() { size } else { 0 };
    let (mut made_callbacks, mut what) = (0_u32, None);
    let callback: &mut clr_walker::profiling::SnapshotCallback<'_> = &mut |frame| {
        let number = made_callbacks;
        made_callbacks += 1;
        if let Some(expected) = &expected {
            let difference = match expected.callbacks.get(number as usize) {
                Some(callback) => Found::new(frame).difference(callback, size),
                None => Some("more callbacks"),
            };
            what = what.or(difference);
        }
        if question.stop_at == Some(number) { HResult::FALSE } else { HResult::OK }
    };
    let caller = runtime.on(caller.unwrap_or(PROFILER));
    let outcome = caller.do_stack_snapshot(&made, Some(callback));
    if let Some(expected) = &expected {
        if what.is_none() && made_callbacks as usize != expected.callbacks.len() {
            what = Some("fewer callbacks");
        }
        if what.is_none() && outcome != expected.outcome {
            what = Some("another result");
        }
    }
    if let (Some(what), Some(expected)) = (what, &expected) {
        // Repeats the call to record its callbacks.
        let mut found = Vec::new();
        let callback: &mut clr_walker::profiling::SnapshotCallback<'_> = &mut |frame| {
            let number = found.len() as u32;
            found.push(Found::new(frame));
            if question.stop_at == Some(number) { HResult::FALSE } else { HResult::OK }
        };
        let _ = caller.do_stack_snapshot(&made, Some(callback));
        let expected = expected.clone();
        let seen = seen.clone();
        return Err(Box::new(Mismatch { what, question, seen, expected, found, outcome }));
    }
    process.suspended_by_profiler = false;
    runtime.process.set(process);
    if let Some(before) = before {
        assert!(world.restore(&before), "this is the last save point");
    }
    Ok(Case { seen, question, expected, outcome, callbacks: made_callbacks, in_callback: None })
}

/// Executes a case. Returns the mismatch if the call differs from the model.
#[must_use]
pub fn make(case: &WorldCase) -> Option<Box<Mismatch>> {
    let build = case.program.build().ok()?;
    make_loaded(case, &mut Loaded::new(&case.program, &build).ok()?)
}

/// Executes a case of a program that is loaded. Returns the mismatch if the call differs from the model.
#[must_use]
pub fn make_loaded(case: &WorldCase, loaded: &mut Loaded<'_>) -> Option<Box<Mismatch>> {
    let (world, facts) = loaded.from_start();
    case.execute(world).ok()?;
    let seen = ThreadFacts::new(facts, world, case.call.target)?;
    compare(world, &seen, &case.call).err()
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {:?}", self.what, self.question)?;
        let ThreadFacts { activations, frames, cooperative, .. } = &self.seen;
        writeln!(f, "cooperative: {cooperative}")?;
        for (activation, n) in activations.iter().zip(0..) {
            let (rip, rsp) = (activation.registers.rip, activation.registers.rsp());
            writeln!(
                f,
                "  {n}: rip {rip:#x} rsp {rsp:#x} to {:#x} {:x?}",
                activation.caller_sp, activation.code
            )?;
        }
        for frame in frames {
            writeln!(f, "  {:#x} {} {:x?}", frame.at, frame.kind, frame.lead)?;
        }
        let count = self.expected.callbacks.len().max(self.found.len());
        writeln!(f, "expected {}, found {}", self.expected.outcome, self.outcome)?;
        for index in 0..count {
            let expected = self.expected.callbacks.get(index);
            let found = self.found.get(index);
            let of = |function: Option<FunctionId>| function.map_or(0, |function| function.0);
            match expected {
                Some(ExpectedReport { function, activation, context }) => {
                    let rip = context.registers.rip;
                    write!(f, "  {index}: {activation} {:#x} {rip:#x}", of(*function))?;
                }
                None => write!(f, "  {index}: -")?,
            }
            match found {
                Some(found) => writeln!(f, " | {:#x} {:#x}", of(found.function), found.ip)?,
                None => writeln!(f, " | -")?,
            }
            if let (Some(expected), Some(Found { context: Some(found), .. })) = (expected, found)
                && expected.context != *found
            {
                writeln!(f, "    {:x?}\n    {found:x?}", expected.context)?;
            }
        }
        Ok(())
    }
}
