//! Generation of synthetic threads and calls.

use super::{MOST_BYTES, SyntheticCall, SyntheticSeed, activations, damage, frames};
use crate::Choices;
use clr_runtime::generation::Generation;
use clr_runtime::{
    ContextSafety, ExceptionState, ExceptionTracker, Funclet, Pass, ProfilerStatus, RunningFunclet,
    Suspension, ThreadLife,
};
use clr_walker::profiling::{EventMask, SnapshotFlags, ThreadId};
use clr_world::synthetic::{
    CodeLocation, MANAGED_WALKER, NATIVE_WALKER, SELF, SELF_OBJECT, SyntheticThread, WALKER_OBJECT,
};

/// Draws a process with a thread. It can be set up, except for rare ones whose Frames were moved.
///
/// The process depends only on the choices, and is the same on all platforms.
pub fn synthetic_thread<C: Choices>(choices: &mut C) -> SyntheticThread {
    let mut target = SyntheticThread::new(choices.one(Generation::ALL));
    target.cooperative = choices.chance(1, 2);
    let mut drafts = activations::generate(choices, &target);
    let frames = frames::generate(choices, target.generation, &mut drafts);
    let base = target.stack.1 - 8 * u64::from(choices.below(0x20));
    target.activations = activations::place(drafts, base);
    target.frames = frames::place(frames, &target.activations);
    if choices.chance(1, 4) {
        target.exceptions = exceptions(choices, &target);
    }
    if choices.chance(1, 8) {
        target.hijacked = hijacked(choices, &target);
    }
    if choices.chance(1, 4) {
        state(choices, &mut target);
    }
    if choices.chance(1, 8) {
        damage::misplace(choices, &mut target);
    }
    if choices.chance(1, 3) {
        damage::overwrite(choices, &mut target);
    }
    target
}

fn hijacked<C: Choices>(choices: &mut C, target: &SyntheticThread) -> Option<String> {
    let (last, others) = target.activations.split_last()?;
    let activation = others.get(choices.below(others.len() as u32) as usize)?;
    (activation.place != CodeLocation::Native && activation.function != last.function)
        .then(|| activation.function.clone())
}

/// Changes one state of the process or the thread that a call checks before it walks.
fn state<C: Choices>(choices: &mut C, target: &mut SyntheticThread) {
    let process = &mut target.process;
    let thread = choices.one([SELF, NATIVE_WALKER, MANAGED_WALKER]);
    match choices.below(16) {
        0 | 1 => {
            process.suspended_by_profiler = true;
            process.profiler_suspensions = 1;
        }
        2 => process.profiler = choices.one([ProfilerStatus::Detaching, ProfilerStatus::None]),
        3 => process.started = false,
        4 => process.event_mask = EventMask(0),
        5 => process.gc_initialized = false,
        6 => process.suspension = Suspension::Suspending(thread),
        7 => process.suspension = Suspension::Suspended(thread),
        8 => process.code_manager_writer = Some(thread),
        9 => process.gs_cookie = Some(choices.one([0, 0x1234])),
        10 => target.gc_special = true,
        11 => target.hijack_locked = true,
        12 => target.forbid_suspend = choices.between(1, 2),
        13 => target.life = choices.one([ThreadLife::Created, ThreadLife::Dead]),
        14 => process.event_mask.0 |= EventMask::MONITOR_SUSPENDS.0,
        _ => {
            target.safety = choices.one([
                ContextSafety::Unreadable,
                ContextSafety::InSystemCall,
                ContextSafety::InExceptionDispatch,
                ContextSafety::NotReported,
            ]);
        }
    }
}

/// Draws exceptions in progress: with handlers that run in the stack's funclets, and with stack
/// that has been unwound.
fn exceptions<C: Choices>(choices: &mut C, target: &SyntheticThread) -> ExceptionState {
    let mut found = ExceptionState { inconsistent: choices.chance(1, 20), ..Default::default() };
    let ends: Vec<u64> =
        target.activations.iter().skip(1).map(|activation| activation.sp).collect();
    let managed = |activation: &usize| {
        target
            .activations
            .get(*activation)
            .is_some_and(|activation| activation.place != CodeLocation::Native)
    };
    let end = |activation: usize| ends.get(activation).copied();
    for (activation, handler) in target.activations.iter().enumerate() {
        if handler.funclet != Some(Funclet::Handler) || choices.chance(1, 4) {
            continue;
        }
        let parents: Vec<usize> = (activation + 1..ends.len()).filter(managed).collect();
        // Mostly a near activation.
        let far = if choices.chance(1, 4) { parents.len() as u32 } else { 3 };
        let parent = parents.get(choices.below(far) as usize).copied();
        let Some(caller_sp) = end(activation) else { continue };
        let parent_caller_sp = if choices.chance(1, 8) { None } else { parent.and_then(end) };
        found.trackers.push(ExceptionTracker {
            pass: choices.one([Pass::Second, Pass::First]),
            entered_managed_code: choices.chance(3, 4),
            unwound: None,
            funclet: Some(RunningFunclet { caller_sp, parent_caller_sp }),
        });
    }
    if choices.chance(1, 2) {
        let first = choices.below(ends.len() as u32) as usize;
        let last = first + choices.below(4) as usize;
        let lower = target.activations.get(first).map_or(0, |activation| activation.sp);
        let upper = end(last).unwrap_or(target.stack.1);
        let unwound = choices.chance(2, 3).then_some((lower, upper));
        let tracker = ExceptionTracker {
            pass: choices.one([Pass::Second, Pass::First]),
            entered_managed_code: choices.chance(1, 2),
            unwound,
            funclet: None,
        };
        // The most recent exception, or the oldest.
        let at = if choices.chance(1, 2) { 0 } else { found.trackers.len() };
        found.trackers.insert(at, tracker);
    }
    found
}

/// Draws a process with a thread, and a call about the thread.
///
/// Both depend only on the choices, and are the same on all platforms.
pub fn synthetic_call<C: Choices>(choices: &mut C) -> SyntheticCall {
    let target = synthetic_thread(choices);
    let seed = choices.chance(1, 2).then(|| seed(choices, &target));
    let thread = match choices.below(20) {
        0..14 => SELF_OBJECT,
        14..18 => ThreadId(0),
        18 => WALKER_OBJECT,
        _ => ThreadId(damage::value(choices, &target)),
    };
    let flags = match choices.below(24) {
        0..17 => 1,
        17..22 => 0,
        _ => choices.one([2, 3, 0x8000_0001]),
    };
    SyntheticCall {
        seed,
        thread,
        caller: choices.one([SELF, SELF, SELF, SELF, SELF, NATIVE_WALKER, MANAGED_WALKER]),
        flags: SnapshotFlags(flags),
        context_size: choices.one([0x4D0, 0, 0xC20, 1]),
        stop_at: choices.chance(1, 2).then(|| choices.below(6)),
        null_callback: choices.chance(1, 16),
        target,
    }
}

fn seed<C: Choices>(choices: &mut C, target: &SyntheticThread) -> SyntheticSeed {
    let activations = target.activations.len() as u32;
    let mut activation = choices.below(activations);
    // Most seeds are of managed activations.
    for _ in 0..2 {
        if target
            .activations
            .get(activation as usize)
            .is_some_and(|activation| activation.place == CodeLocation::Native)
        {
            activation = choices.below(activations);
        }
    }
    let mut seed = SyntheticSeed::of_activation(activation);
    if activations == 0 || choices.chance(1, 16) {
        seed.activation = None;
    }
    seed.flags = choices.one([0x10_000B, 0, 0x10_004B, 0x10_005F, u32::MAX]);
    seed.features = choices.one([0, 4, 0xE4]);
    match choices.below(8) {
        0..5 => {}
        5 => seed.rsp = Some(damage::value(choices, target)),
        6 => {
            seed.rip = Some(damage::value(choices, target));
            seed.rbp = Some(damage::value(choices, target));
            let another = choices.chance(1, 2);
            seed.rsp = another.then(|| damage::value(choices, target));
        }
        _ => {
            let len = [0, 0xFF, 0x100, 0x4CF, 0x4D0, 0x4D8, 0x5DF, 0x5E0, 0xC1F];
            seed.len = choices.pick(&len).unwrap_or(MOST_BYTES);
        }
    }
    seed
}
