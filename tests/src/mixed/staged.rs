//! Walks of threads that are set up by hand, whole and damaged.

use super::judge::Found;
use crate::snapshot::{is_linked, is_whole};
use clr_runtime::MethodKind;
use clr_runtime::Outcome;
use clr_runtime::profiling::{HResult, Policy, PolicyWalker, SimulatedThread};
use clr_walker::mixed::{Completeness, MixedFrame, Reason, WalkBuffer};
use clr_world::synthetic::{
    CodeLocation, NATIVE_WALKER, SELF, SyntheticActivation, SyntheticProcess, SyntheticThread,
};
use thiserror::Error;

/// An error in a walk of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    /// The walk has more frames than the buffer's capacity.
    #[error("{0:?} found {1} frames")]
    TooMany(Policy, usize),
    /// A frame is not on the stack, which is whole.
    #[error("{0:?}: frame {1} is invented: {2:x?}")]
    Invented(Policy, usize, Box<Found>),
    /// A frame is missing although the walk claims to be complete.
    #[error("{0:?}: frame {1} is missing: {2:x?}")]
    Missing(Policy, usize, Box<Found>),
    /// The walk claims less than it could.
    #[error("{0:?}: the walk could claim to be whole: {1:x?}")]
    Incomplete(Policy, Box<Found>),
}

/// Counts of the walks made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    /// Number of walks.
    pub walks: u64,
    /// Number of walks of whole stages.
    pub whole: u64,
    /// Number of walks of whole stages that claim to have every frame.
    pub complete: u64,
    /// Number of calls that end the process.
    pub fatal: u64,
    /// Number of frames.
    pub frames: u64,
}

/// Walks the thread of a stage by each policy into a buffer of `room` frames. Returns `None` if the
/// stage cannot be set up.
///
/// # Errors
/// [`Broken`].
pub fn walk_staged(target: &SyntheticThread, room: usize) -> Result<Option<Staged>, Broken> {
    let Ok(set) = target.build() else { return Ok(None) };
    let is_whole = is_whole(target) && target.hijacked.is_none() && !target.activations.is_empty();
    let is_linked = is_linked(target);
    let mut staged = Staged::default();
    let mut buffer = WalkBuffer::new(room);
    for policy in Policy::ALL {
        let Some(walked) = walk(&set, policy, &mut buffer) else { return Ok(None) };
        staged.walks += 1;
        let Ok(found) = walked else {
            staged.fatal += 1;
            continue;
        };
        staged.frames += found.frames.len() as u64;
        if found.frames.len() > room {
            return Err(Broken::TooMany(policy, found.frames.len()));
        }
        // Frames found by frame pointers are guesses.
        if is_whole && policy != Policy::FramePointers {
            staged.whole += 1;
            if let Some(frame) = invented(&set, &found.frames) {
                return Err(Broken::Invented(policy, frame, Box::new(found)));
            }
            if is_linked && let Some(activation) = missing(&set, policy, &found) {
                return Err(Broken::Missing(policy, activation, Box::new(found)));
            }
            staged.complete += u64::from(found.completeness == Completeness::Whole);
            if could_be_whole(target, policy, &found, room) {
                return Err(Broken::Incomplete(policy, Box::new(found)));
            }
        }
    }
    Ok(Some(staged))
}

fn walk(
    set: &SyntheticProcess,
    policy: Policy,
    buffer: &mut WalkBuffer,
) -> Option<Result<Found, Outcome>> {
    let runtime = set.runtime();
    let map = runtime.code_map_for(policy).ok()?;
    let target = SimulatedThread::new(&runtime, SELF, 0)?;
    let calling_thread = if policy.is_for_itself() { SELF } else { NATIVE_WALKER };
    let (target, info) = (target.called_by(calling_thread), runtime.on(calling_thread));
    let found = PolicyWalker::new(&info, &map, policy).walk(&target, buffer).map(Found::from);
    Some(found)
}

/// Returns the first row that is missing in the walk without a gap in its place, and that the
/// runtime does not hide from a walk which relies on it.
fn missing(set: &SyntheticProcess, policy: Policy, found: &Found) -> Option<usize> {
    let target = set.synthetic_thread();
    let relies = found.completeness != Completeness::Whole;
    let excepted = is_excepted(target);
    let mut frame = 0;
    target.activations.iter().enumerate().find_map(|(index, activation)| {
        let registers = set.registers(index)?;
        let is = |found: &MixedFrame| (found.sp, found.ip) == (registers.rsp(), registers.rip);
        if found.frames.get(frame).is_some_and(is) {
            frame += 1;
            return None;
        }
        let hidden = activation.kind != MethodKind::Ordinary || excepted;
        // Without unwinding, native code is a gap.
        let hidden =
            hidden || policy == Policy::Unseeded && activation.place == CodeLocation::Native;
        // A runtime would not leave a thread in managed code while it is suspended, but a staged
        // one may be there.
        let hidden = hidden || frame == 0 && policy == Policy::RuntimeSuspended;
        let excused = relies && hidden || found.gaps.iter().any(|gap| gap.at == frame);
        (!excused).then_some(index)
    })
}

/// Returns true if exceptions are in flight or being handled: the frames that they have skipped are
/// not reported.
fn is_excepted(target: &SyntheticThread) -> bool {
    let handles = |activation: &SyntheticActivation| {
        activation.kind == MethodKind::ExceptionHandling || activation.funclet.is_some()
    };
    !target.exceptions.trackers.is_empty() || target.activations.iter().any(handles)
}

/// Returns true if a walk does not claim to be whole though nothing prevented it: on Windows all
/// code has unwind data, and the thread's registers are available.
fn could_be_whole(target: &SyntheticThread, policy: Policy, found: &Found, room: usize) -> bool {
    let seeded = matches!(policy, Policy::Seeded | Policy::SignalSnapshot);
    let calm = found.snapshot == Some(HResult::OK) && !is_excepted(target);
    let fits = target.activations.len() <= room;
    let knows = !target.generation.is_unix();
    // Code without unwind data makes no calls.
    let knows = knows && !target.activations.iter().skip(1).any(|activation| activation.leaf);
    // Two calls of a function that lie one byte apart are impossible: one has overwritten the
    // other.
    let activations = &target.activations;
    let overwrites = |one: &SyntheticActivation, other: &SyntheticActivation| {
        one.function == other.function && one.offset.abs_diff(other.offset) == 1
    };
    let overlap =
        activations.iter().any(|one| activations.iter().any(|other| overwrites(one, other)));
    // A runtime that has not started, or that detaches, does not name code.
    let claims = matches!(
        found.completeness,
        Completeness::Whole | Completeness::Partial(Reason::Lookup(_))
    );
    seeded && calm && fits && knows && !overlap && !claims
}

/// Returns the first frame that is not a row, or not in order.
fn invented(set: &SyntheticProcess, frames: &[MixedFrame]) -> Option<usize> {
    let count = set.synthetic_thread().activations.len();
    let mut first = 0;
    for (index, frame) in frames.iter().enumerate() {
        let is = |activation: &usize| {
            let registers = set.registers(*activation);
            registers.is_some_and(|activation| {
                activation.rsp() == frame.sp && activation.rip == frame.ip
            })
        };
        match (first..count).find(is) {
            Some(activation) => first = activation + 1,
            None => return Some(index),
        }
    }
    None
}
