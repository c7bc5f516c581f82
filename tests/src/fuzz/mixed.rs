//! Walks of whole stacks by each policy, for threads of any shape.

use super::text;
use crate::loaded::Loaded;
use crate::mixed::{Failure, First, Plan, examine_loaded};
use crate::snapshot::{is_whole, leads_active_calls_astray};
use arbitrary::{Arbitrary as _, Unstructured};
use clr_codegen::execution::BASE;
use clr_generate::{SyntheticCall, WorldCase};
use clr_reference::ThreadFacts;
use clr_runtime::Outcome;
use clr_runtime::profiling::{Policy, PolicyWalker, SimulatedThread};
use clr_runtime::{OsThreadId, Runtime, ThreadLife};
use clr_scenario::Scenario;
use clr_walker::mixed::{
    Completeness, FrameKind, Gap, MixedFrame, MixedStack, Reason, Source, WalkBuffer,
};
use clr_world::synthetic::{
    CodeLocation, NATIVE_WALKER, SELF, SyntheticActivation, SyntheticProcess, SyntheticThread,
};

/// The native thread of the profiler, in addition to those of a program.
const PROFILER: OsThreadId = OsThreadId(0xFFFF);
/// Size in bytes of the prologues of stages, and of their calls.
const PROLOGUE: u32 = 0x10;
const SIZE_OF_CALL: u32 = 2;
/// Maximum number of walks judged per program, and maximum number of steps between them.
const WALK_LIMIT: u64 = 60;
const STRIDE: u32 = 20;
/// Number of frames in the buffer of walks of a text.
const CAPACITY: usize = 64;

/// Returns the number of suspensions of each thread, and the number of runtime suspensions by the
/// profiler.
fn suspensions(runtime: &Runtime<'_>) -> (Vec<u32>, u32) {
    let threads = runtime.threads.borrow().iter().map(|thread| thread.suspended).collect();
    (threads, runtime.process.get().profiler_suspensions)
}

/// Walks a thread, and checks the properties of all walks. Returns `None` if the runtime does not
/// know the thread.
///
/// # Errors
/// The outcome that ends the process.
///
/// # Panics
/// If a property does not hold.
fn walk(
    runtime: &Runtime<'_>,
    [target, walker]: [OsThreadId; 2],
    root: u64,
    policy: Policy,
    buffer: &mut WalkBuffer,
) -> Result<Option<MixedStack>, Outcome> {
    let Some(thread) = SimulatedThread::new(runtime, target, root) else { return Ok(None) };
    let map = runtime.code_map_for(policy).expect("the runtime's own code does not overlap");
    let before = suspensions(runtime);
    let calling_thread = if policy.is_for_itself() { target } else { walker };
    let (thread, info) = (thread.called_by(calling_thread), runtime.on(calling_thread));
    let walker = PolicyWalker::new(&info, &map, policy);
    let taken = walker.take(&thread, buffer);
    assert_eq!(runtime.rule_violation(), None, "{policy:?}");
    taken?;
    assert_eq!(suspensions(runtime), before, "{policy:?}: left suspended");
    let stack = walker.stitch(buffer)?;
    assert!(stack.frames.len() <= buffer.capacity(), "{policy:?}: {stack:#x?}");
    let in_order = stack.gaps.is_sorted_by(|one, other| one.at <= other.at);
    let inside = stack.gaps.iter().all(|gap| gap.at <= stack.frames.len());
    assert!(in_order && inside, "{policy:?}: {stack:#x?}");
    Ok(Some(stack))
}

/// Makes a thread from `data` (a staged one, whole or damaged, or one of a program that is stopped
/// somewhere), and walks it by each policy into a buffer of any size:
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0 | bit 0: a program; the others: capacity of the buffer in frames |
/// | then | the thread, as those of [`snapshot`](super::snapshot) and [`scenario`](super::scenario) |
///
/// # Panics
/// If the thread is left suspended, if the walk calls something that may wait for the thread, if
/// the stack has more frames than the buffer's capacity, or if a walk of a whole thread is wrong.
///
/// A text stands for the thread that it places, or for its program.
pub fn mixed_walk(data: &[u8]) {
    if let Some(scenario) = text::scenario(data) {
        return of_text(&scenario);
    }
    let Some((&first, rest)) = data.split_first() else { return };
    let mut buffer = WalkBuffer::new(usize::from(first >> 1));
    let mut bytes = Unstructured::new(rest);
    if first & 1 == 0 {
        let Ok(case) = SyntheticCall::arbitrary(&mut bytes) else { return };
        staged(&case.target, &mut buffer);
    } else {
        let Ok(case) = WorldCase::arbitrary(&mut bytes) else { return };
        let Ok(build) = case.program.build() else { return };
        let Ok(mut loaded) = Loaded::new(&case.program, &build) else { return };
        stopped(&case, &mut loaded, &mut buffer);
        let seed = case.turns.iter().fold(0, |seed, turn| seed << 8 ^ u64::from(turn.steps));
        let plan = Plan { seed, walks: WALK_LIMIT, stride: STRIDE, only: None };
        match examine_loaded(&case.program, &mut loaded, plan, &mut First::default(), |_| ()) {
            Ok(_) | Err(Failure::Build(_)) => {}
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// Walks the thread that a text places, or those of its program.
fn of_text(scenario: &Scenario) {
    let generation = text::generation(scenario);
    if let Some(stack) = &scenario.stack {
        return staged(&stack.synthetic_thread(generation), &mut WalkBuffer::new(CAPACITY));
    }
    let Some(program) = scenario.world_program(generation) else { return };
    let Ok(build) = program.build() else { return };
    let Ok(mut loaded) = Loaded::new(&program, &build) else { return };
    let plan = Plan { seed: 1, walks: WALK_LIMIT, stride: STRIDE, only: None };
    match examine_loaded(&program, &mut loaded, plan, &mut First::default(), |_| ()) {
        Ok(_) | Err(Failure::Build(_)) => {}
        Err(Failure::World(error)) if text::ends_by_fault(error) => {}
        Err(failure) => panic!("{failure}"),
    }
}

/// Walks a program's thread where it is stopped.
fn stopped(case: &WorldCase, loaded: &mut Loaded<'_>, buffer: &mut WalkBuffer) {
    let (world, facts) = loaded.from_start();
    // The steps of a case may exceed those that its threads can make.
    for turn in &case.turns {
        for _ in 0..turn.steps {
            if world.step(turn.thread).is_err() {
                return;
            }
        }
    }
    let thread = case.call.target;
    // Threads are not walked after their ThreadDestroyed (H-04).
    let truth = ThreadFacts::new(facts, world, thread).filter(|truth| !truth.gone);
    let (Some(target), Some(_)) = (world.os(thread), truth) else { return };
    for policy in Policy::ALL {
        let before = world.save();
        // Outcomes that end the process are not checked here.
        let _ = walk(world.runtime(), [target, PROFILER], BASE, policy, buffer);
        world.restore(&before);
    }
}

fn staged(target: &SyntheticThread, buffer: &mut WalkBuffer) {
    let Ok(set) = target.build() else { return };
    // Call frame information distinguishes a prologue from the call after it.
    let calls = |activation: &SyntheticActivation| {
        activation.place != CodeLocation::Native || activation.offset >= PROLOGUE + SIZE_OF_CALL
    };
    let calls = !target.generation.is_unix() || target.activations.iter().skip(1).all(calls);
    // A thread without rows executes no code.
    let whole = is_whole(target) && !target.activations.is_empty() && calls;
    for policy in Policy::ALL {
        let stack = match walk(&set.runtime(), [SELF, NATIVE_WALKER], 0, policy, buffer) {
            Ok(stack) => stack,
            Err(outcome) => {
                // Another thread may hold the code tables' writer lock forever.
                let waits = target.process.code_manager_writer.is_some();
                let lost = outcome == Outcome::Endless && leads_active_calls_astray(target);
                let may_end = !whole || lost || waits || target.life != ThreadLife::Running;
                assert!(may_end, "{policy:?}: {outcome}\n{target:#x?}");
                continue;
            }
        };
        // Guesses by frame pointers need not be true.
        if let Some(stack) = stack.filter(|_| whole && policy != Policy::FramePointers) {
            let wrong = judge(&set, &stack);
            assert_eq!(wrong, None, "{policy:?}: {stack:#x?}\n{target:#x?}");
        }
    }
}

/// Returns the first error in a walk of a whole stage: each frame must be a row, in order, and all
/// rows must be there if the walk claims so.
fn judge(set: &SyntheticProcess, stack: &MixedStack) -> Option<String> {
    let activations = &set.synthetic_thread().activations;
    let mut next = 0;
    for (at, frame) in stack.frames.iter().enumerate() {
        let mut rest = activations.iter().enumerate().skip(next);
        let found = rest.find(|(activation, _)| is_at(set, *activation, frame));
        let Some((activation, truth)) = found else {
            return Some(format!("frame {at} is not on the stack"));
        };
        // The runtime may refuse look-ups.
        let refused = |gap: &Gap| matches!(gap.reason, Reason::Lookup(_));
        let unsaid = frame.kind == FrameKind::Unknown && stack.gaps.iter().any(refused);
        if !unsaid && !is_kind(set, truth, frame.kind) {
            return Some(format!("frame {at} has the wrong kind"));
        }
        let joined = stack.gaps.iter().all(|gap| gap.at != at);
        if activation != next && joined && stack.completeness() == Completeness::Whole {
            return Some(format!("row {next} is missing before frame {at}"));
        }
        next = activation + 1;
    }
    let ends = next == activations.len() || stack.completeness() != Completeness::Whole;
    (!ends).then(|| format!("row {next} is missing at the end"))
}

/// Returns true if a frame's registers are those of a row.
fn is_at(set: &SyntheticProcess, activation: usize, frame: &MixedFrame) -> bool {
    let Some(registers) = set.registers(activation) else { return false };
    // For calls out of ready-to-run code, the runtime reports another return address (C-156).
    let reported = frame.source == Source::Snapshot && matches!(frame.kind, FrameKind::Managed(_));
    registers.rsp() == frame.sp && (registers.rip == frame.ip || reported)
}

/// Returns true if a frame of this kind may be reported for a row's code.
fn is_kind(set: &SyntheticProcess, activation: &SyntheticActivation, kind: FrameKind) -> bool {
    use clr_runtime::MethodKind::{Dynamic, IlStub};
    let name = activation.function.split('@').next().unwrap_or_default();
    let hidden = matches!(activation.kind, IlStub | Dynamic);
    match kind {
        FrameKind::Managed(id) => {
            activation.place != CodeLocation::Native && !hidden && set.function(name) == Some(id)
        }
        FrameKind::Hidden(Some(id)) => hidden && set.function(name) == Some(id),
        // Not all runtimes report these.
        FrameKind::Hidden(None) | FrameKind::Unknown | FrameKind::Native { .. } => {
            hidden || activation.place == CodeLocation::Native
        }
    }
}
