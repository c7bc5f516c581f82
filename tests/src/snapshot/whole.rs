//! Recognition of whole stages: tables whose rows alone determine the memory.

use clr_runtime::FrameKind;
use clr_runtime::frame::{FrameShape, layout};
use clr_world::synthetic::{CodeLocation, SyntheticFrame, SyntheticThread};

/// Size in bytes of a TransitionBlock or similar data at the end of a native frame.
const BLOCK: u64 = 0x90;

/// Returns the rows that the Frames of a whole stage lead to; `None` for a stage that is not whole.
///
/// In a whole stage no word is overwritten and the root is native. Frames are linked upwards and
/// overlap neither each other nor the rows' saved registers. A Frame that leads to a row leads to
/// the managed row above the native frame that contains it; an InlinedCallFrame leads to the row
/// that contains it, or to any native row.
pub(super) fn targets(target: &SyntheticThread) -> Option<Vec<Option<usize>>> {
    let activations = &target.activations;
    let root_is_native =
        activations.last().is_none_or(|activation| activation.place == CodeLocation::Native);
    if !target.overwritten.is_empty() || !root_is_native || target.process.gs_cookie.is_some() {
        return None;
    }
    let mut targets = Vec::with_capacity(target.frames.len());
    let (mut end, mut block) = (0, None);
    for frame in &target.frames {
        let host =
            activations.partition_point(|activation| activation.sp <= frame.at).checked_sub(1)?;
        let host_end = activations.get(host + 1)?.sp;
        let native = |activation: usize| {
            activations
                .get(activation)
                .is_some_and(|activation| activation.place == CodeLocation::Native)
        };
        let saved = 8 + 8 * activations.get(host)?.saves.len() as u64;
        let room = host_end - if native(host) { saved.max(BLOCK) } else { saved };
        let shape = frame.kind.shape();
        let (size, is_block) = size(frame.kind, target);
        let fits = if shape == FrameShape::TailCall {
            frame.at + size == host_end
        } else {
            frame.at + size <= room
        };
        if frame.at < end || !fits {
            return None;
        }
        end = frame.at + size;
        let to = destination(target, frame).ok()?;
        match (shape, to) {
            (FrameShape::UnmanagedToManaged, Some(activation)) if native(activation) => {
                targets.push(None);
                continue;
            }
            (_, None) => {}
            (FrameShape::UnmanagedToManaged, Some(_)) => return None,
            (FrameShape::InlinedCall, Some(activation)) if native(activation) => {}
            (FrameShape::InlinedCall, Some(activation)) => {
                if activation != host || !native(activation.checked_sub(1)?) {
                    return None;
                }
            }
            (_, Some(activation)) => {
                if activation != host + 1 || native(activation) || !native(host) {
                    return None;
                }
            }
        }
        if is_block {
            if block == Some(host) {
                return None;
            }
            block = Some(host);
        }
        targets.push(to);
    }
    Some(targets)
}

/// Returns a Frame's size in bytes, and true if a TransitionBlock or similar data is next to it.
fn size(kind: FrameKind, target: &SyntheticThread) -> (u64, bool) {
    let saved = layout::FrameConvention::of(target.generation).saved_size();
    match kind.shape() {
        FrameShape::InlinedCall => (0x40, false),
        FrameShape::FramedMethod | FrameShape::Transition => (0x20, true),
        FrameShape::HelperMethod => (0xE8, false),
        FrameShape::Hijack => (0x28, true),
        FrameShape::Resumable | FrameShape::FuncEval => (0x18, false),
        FrameShape::Faulting => (0x120, false),
        FrameShape::Software => (0x220, false),
        FrameShape::TailCall => (0x20 + saved, true),
        FrameShape::UnmanagedToManaged => (0x20, false),
        FrameShape::Mark => (0x10, false),
    }
}

/// The error that a stage is not whole.
struct Damaged;

/// Returns the row that a Frame leads to, if any.
fn destination(target: &SyntheticThread, frame: &SyntheticFrame) -> Result<Option<usize>, Damaged> {
    let named = |name: &String| {
        let ends =
            target.activations.iter().skip(1).map(|activation| activation.sp).chain([u64::MAX]);
        let mut activations = target.activations.iter().zip(ends);
        activations.position(|(activation, end)| activation.function == *name && frame.at < end)
    };
    let shape = frame.kind.shape();
    if shape == FrameShape::Mark {
        return Ok(None);
    }
    let target = frame.leads_to.as_ref().map(|name| named(name).ok_or(Damaged)).transpose()?;
    if let Some((name, lazy)) = &frame.captured_in
        && shape == FrameShape::HelperMethod
    {
        // The helper's own frame, and one unwind from there.
        let captured = named(name).ok_or(Damaged)?;
        let one_up = target == Some(captured + 1) && lazy.attributes & layout::CAPTURE_DEPTH_2 == 0;
        return one_up.then_some(target).ok_or(Damaged);
    }
    Ok(target)
}
