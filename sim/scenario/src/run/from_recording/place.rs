//! The recorded stack as a synthetic thread.

use super::space::Space;
use super::stack::{Activation, Stack};
use crate::PlacedThread;
use clr_recording::{Recording, WalkLine};
use clr_runtime::{
    ContextSafety, ExceptionTracker, MethodKind, RunningFunclet, Suspension, ThreadLife,
};
use clr_walker::profiling::EventMask;
use clr_world::synthetic::{
    MAX_OFFSET, PROLOGUE, SyntheticActivation, SyntheticFrame, SyntheticThread,
};

/// Address of memory in place of a Thread object (VA).
pub(super) const NO_THREAD: u64 = 0x11_0000_0000;
/// Size of that memory in bytes.
const NO_THREAD_SIZE: u64 = 0x1000;
/// Size of the frame of the last activation in bytes.
const LAST_FRAME: u64 = 0x40;

/// A recorded stack in a text.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) thread: SyntheticThread,
    pub(super) space: Space,
}

impl Placed {
    /// Places a stack. Activations with an index in `pinned` get code of their own.
    pub(super) fn new(
        recording: &Recording,
        walk: &WalkLine,
        stack: &Stack,
        pinned: &[usize],
    ) -> Self {
        let space = Space::new(walk, used(walk, stack));
        let mut thread = SyntheticThread::new(recording.generation);
        thread.stack = space.bounds;
        thread.activations = activations(stack, &space, pinned);
        let function = |target: Option<(u64, u64)>| {
            let index = stack.index_of(target?)?;
            Some(thread.activations.get(index)?.function.clone())
        };
        thread.frames = stack
            .frames
            .iter()
            .map(|frame| SyntheticFrame {
                kind: frame.kind,
                at: space.small(frame.at),
                leads_to: function(frame.target),
                method: frame.method.clone(),
                captured_in: None,
                context_flags: frame.context_flags,
            })
            .collect();
        set_state(&mut thread, walk);
        thread.exceptions.inconsistent = stack.exceptions.inconsistent;
        if stack.exceptions.inconsistent {
            thread.forbid_suspend = 0;
        }
        let tracker = |tracker: &ExceptionTracker| ExceptionTracker {
            unwound: tracker.unwound.map(|(above, to)| (space.small(above), space.small(to))),
            funclet: tracker.funclet.map(|funclet| RunningFunclet {
                caller_sp: space.small(funclet.caller_sp),
                parent_caller_sp: funclet.parent_caller_sp.map(|sp| space.small(sp)),
            }),
            ..*tracker
        };
        thread.exceptions.trackers = stack.exceptions.trackers.iter().map(tracker).collect();
        let regions = walk.stack.iter().flat_map(|stack| &stack.regions);
        thread.blocks.extend(regions.map(|(at, size, _)| (space.small(at.0), *size)));
        Self { thread, space }
    }

    /// Returns the label of an activation.
    pub(super) fn label(&self, index: usize) -> Option<String> {
        let SyntheticActivation { function, offset, .. } = self.thread.activations.get(index)?;
        Some(format!("{function}+{offset:#x}"))
    }

    /// Returns the activations to which a Frame does not lead, although it should: another activation
    /// of the same function is nearer.
    pub(super) fn missed(&self, stack: &Stack) -> Vec<usize> {
        let activations = &self.thread.activations;
        let ends = || activations.iter().skip(1).map(|it| it.sp).chain([u64::MAX]);
        let mut missed = Vec::new();
        for (frame, recorded) in self.thread.frames.iter().zip(&stack.frames) {
            let Some(function) = &frame.leads_to else { continue };
            let mut there = activations.iter().zip(ends());
            let found = there.position(|(it, end)| it.function == *function && frame.at < end);
            let wanted = recorded.target.and_then(|target| stack.index_of(target));
            missed.extend(wanted.filter(|_| found != wanted));
        }
        missed
    }
}

/// Returns the addresses (VA) on which a walk depends.
fn used<'s>(walk: &WalkLine, stack: &'s Stack) -> impl Iterator<Item = u64> + use<'s> {
    let seed = walk.call.seed.as_ref().map(|seed| seed.registers().rsp());
    let activations = stack.activations.iter().map(|it| it.sp);
    seed.into_iter().chain(activations).chain(stack.frames.iter().map(|it| it.at))
}

/// Returns the activations of a text. Those with the same frame share the code of their function, the
/// others have versions of it.
fn activations(stack: &Stack, space: &Space, pinned: &[usize]) -> Vec<SyntheticActivation> {
    let mut placed: Vec<(SyntheticActivation, u64)> = Vec::new();
    let mut ends = stack.activations.iter().skip(1).map(|next| space.small(next.sp));
    for (index, activation) in stack.activations.iter().enumerate() {
        let sp = space.small(activation.sp);
        let next = ends.next();
        let size = next.unwrap_or(sp + LAST_FRAME).wrapping_sub(sp);
        let saves = if next.is_some() { activation.saves.clone() } else { Vec::new() };
        let mut new = SyntheticActivation {
            function: name(activation, &placed),
            offset: offset(activation, index),
            place: activation.place,
            kind: activation.kind,
            sp,
            saves,
            funclet: activation.funclet,
            leaf: false,
            gs_cookie: None,
        };
        let function = new.function.clone();
        let mut version = 1;
        while placed.iter().enumerate().any(|(other, (it, other_size))| {
            let same_name = it.function == new.function;
            let same_code = it.place == new.place && it.funclet == new.funclet;
            let is_apart = pinned.contains(&index) || pinned.contains(&other);
            let differs = *other_size != size || it.saves != new.saves;
            same_name && same_code && (is_apart || differs)
        }) {
            version += 1;
            new.function = format!("{function}@{version}");
        }
        placed.push((new, size));
    }
    placed.into_iter().map(|(activation, _)| activation).collect()
}

/// Returns the name of an activation's function. Methods of different kinds need different names.
fn name(activation: &Activation, placed: &[(SyntheticActivation, u64)]) -> String {
    let is_managed = |kind: MethodKind, other: &SyntheticActivation| {
        let method = other.function.split('@').next();
        method == Some(&activation.function) && other.kind != kind
    };
    if placed.iter().any(|(other, _)| is_managed(activation.kind, other)) {
        format!("{} (of another kind)", activation.function)
    } else {
        activation.function.clone()
    }
}

/// Returns an offset in bytes that a text accepts: behind the prologue, and not too large.
fn offset(activation: &Activation, index: usize) -> u32 {
    let first = u32::from(PROLOGUE) + u32::from(index > 0);
    let offset = u32::try_from(activation.offset % u64::from(MAX_OFFSET)).unwrap_or(first);
    offset.max(first)
}

/// Sets the state of the thread and its process.
fn set_state(thread: &mut SyntheticThread, walk: &WalkLine) {
    let state = &walk.state;
    thread.cooperative = state.mode.as_deref() == Some("coop");
    thread.hijack_locked = state.hijack_lock_held;
    thread.forbid_suspend = u32::from(state.forbid_suspend);
    if state.in_system_call {
        thread.safety = ContextSafety::InSystemCall;
    }
    match state.target.as_deref() {
        Some("dead") => thread.life = ThreadLife::Dead,
        Some("invalid") => thread.blocks.push((NO_THREAD, NO_THREAD_SIZE)),
        _ => {}
    }
    let process = &mut thread.process;
    process.started = state.ee_started.unwrap_or(true);
    if state.snapshot_enabled == Some(false) {
        process.event_mask = EventMask::default();
    }
    let stranger = PlacedThread::Other.os();
    if state.runtime_suspending {
        process.suspension = Suspension::Suspending(stranger);
    } else if state.runtime_suspended_by_profiler {
        process.suspension = Suspension::Suspended(stranger);
    }
    if state.runtime_suspended_by_profiler {
        process.suspended_by_profiler = true;
        process.profiler_suspensions = 1;
    }
}

impl Stack {
    /// Returns the index of the activation with this ip and rsp (VA).
    pub(super) fn index_of(&self, (ip, sp): (u64, u64)) -> Option<usize> {
        self.activations.iter().position(|it| (it.ip, it.sp) == (ip, sp))
    }

    /// Returns true if rsp ascends from the leaf to the root by whole words.
    pub(super) fn ascends(&self) -> bool {
        self.activations.is_sorted_by(|one, next| {
            next.sp.checked_sub(one.sp).is_some_and(|size| size >= 8 && size.is_multiple_of(8))
        })
    }
}
