//! An observed stack as a synthetic thread.

use super::space::Space;
use super::{ObservedActivation, ObservedStack};
use clr_runtime::generation::Generation;
use clr_runtime::{ExceptionTracker, MethodKind, RunningFunclet};
use clr_world::synthetic::{
    MAX_OFFSET, PROLOGUE, SyntheticActivation, SyntheticFrame, SyntheticThread,
};

/// Size of the frame of the last activation in bytes.
const LAST_FRAME: u64 = 0x40;

/// An observed stack in a text.
#[derive(Clone, Debug)]
pub struct PlacedObservation {
    /// The thread: activations, Frames, exceptions and bounds. Its other state is the usual one.
    pub thread: SyntheticThread,
    space: Space,
}

impl PlacedObservation {
    /// Places a stack of a runtime. `bounds` are its lower and upper bound (VA), if they are known, and `others` more
    /// addresses that a walk of it depends on.
    ///
    /// Each Frame leads to the activation that it led to, if there is one.
    #[must_use]
    pub fn new(
        stack: &ObservedStack,
        generation: Generation,
        bounds: Option<(u64, u64)>,
        others: &[u64],
    ) -> Self {
        let activations = stack.activations.iter().map(|it| it.sp);
        let frames = stack.frames.iter().map(|it| it.at);
        let used = others.iter().copied().chain(activations).chain(frames);
        let space = Space::new(bounds, used);
        let placed = Self::with_code(stack, generation, space, &[]);
        let missed = placed.missed(stack);
        if missed.is_empty() {
            return placed;
        }
        Self::with_code(stack, generation, space, &missed)
    }

    /// Places a stack. Activations with an index in `pinned` get code of their own.
    fn with_code(
        stack: &ObservedStack,
        generation: Generation,
        space: Space,
        pinned: &[usize],
    ) -> Self {
        let mut thread = SyntheticThread::new(generation);
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
        thread.exceptions.inconsistent = stack.exceptions.inconsistent;
        let tracker = |tracker: &ExceptionTracker| ExceptionTracker {
            unwound: tracker.unwound.map(|(above, to)| (space.small(above), space.small(to))),
            funclet: tracker.funclet.map(|funclet| RunningFunclet {
                caller_sp: space.small(funclet.caller_sp),
                parent_caller_sp: funclet.parent_caller_sp.map(|sp| space.small(sp)),
            }),
            ..*tracker
        };
        thread.exceptions.trackers = stack.exceptions.trackers.iter().map(tracker).collect();
        Self { thread, space }
    }

    /// Returns the small address of a real one (VA). Addresses on the stack and near it keep their distance from its base.
    #[must_use]
    pub fn small(&self, address: u64) -> u64 {
        self.space.small(address)
    }

    /// Returns the label of an activation.
    #[must_use]
    pub fn label(&self, index: usize) -> Option<String> {
        let SyntheticActivation { function, offset, .. } = self.thread.activations.get(index)?;
        Some(format!("{function}+{offset:#x}"))
    }

    /// Returns the activations to which a Frame does not lead, although it should: another activation
    /// of the same function is nearer.
    fn missed(&self, stack: &ObservedStack) -> Vec<usize> {
        let activations = &self.thread.activations;
        let ends = || activations.iter().skip(1).map(|it| it.sp).chain([u64::MAX]);
        let mut missed = Vec::new();
        for (frame, observed) in self.thread.frames.iter().zip(&stack.frames) {
            let Some(function) = &frame.leads_to else { continue };
            let mut there = activations.iter().zip(ends());
            let found = there.position(|(it, end)| it.function == *function && frame.at < end);
            let wanted = observed.target.and_then(|target| stack.index_of(target));
            missed.extend(wanted.filter(|_| found != wanted));
        }
        missed
    }
}

/// Returns the activations of a text. Those with the same frame share the code of their function, the
/// others have versions of it.
fn activations(stack: &ObservedStack, space: &Space, pinned: &[usize]) -> Vec<SyntheticActivation> {
    let mut placed: Vec<(SyntheticActivation, u64)> = Vec::new();
    let mut ends = stack.activations.iter().skip(1).map(|next| space.small(next.sp));
    for (index, activation) in stack.activations.iter().enumerate() {
        let sp = space.small(activation.sp);
        let next = ends.next();
        let size = next.unwrap_or_else(|| sp.wrapping_add(LAST_FRAME)).wrapping_sub(sp);
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
fn name(activation: &ObservedActivation, placed: &[(SyntheticActivation, u64)]) -> String {
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
fn offset(activation: &ObservedActivation, index: usize) -> u32 {
    let first = u32::from(PROLOGUE) + u32::from(index > 0);
    let offset = u32::try_from(activation.offset % u64::from(MAX_OFFSET)).unwrap_or(first);
    offset.max(first)
}
