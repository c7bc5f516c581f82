//! Damage to a generated thread: Frames at wrong places, and overwritten words.

use crate::Choices;
use clr_runtime::FRAME_TOP;
use clr_world::synthetic::{CODE, SELF_OBJECT, SyntheticThread, WALKER_OBJECT};

/// Sizes of a Thread object, and of the beginning of a Frame, in words.
const OBJECT_WORDS: u32 = 10;
const FRAME_WORDS: u32 = 0x20;

/// Draws any 64 bits.
fn word<C: Choices>(choices: &mut C) -> u64 {
    u64::from(choices.below(u32::MAX)) << 32 | u64::from(choices.below(u32::MAX))
}

/// Draws an address, or another number, that memory or a register might contain.
pub(super) fn value<C: Choices>(choices: &mut C, target: &SyntheticThread) -> u64 {
    let (limit, base) = target.stack;
    match choices.below(10) {
        0 => 0,
        1 => choices.below(0x1000).into(),
        2 => stack_address(choices, target) + u64::from(choices.below(8)),
        3 => choices.one(CODE) + u64::from(choices.below(0x8000)),
        4 => choices.one([FRAME_TOP, 1 << 47, 1 << 63, limit - 8, base]),
        5 => choices.one([SELF_OBJECT.0, WALKER_OBJECT.0]) + 8 * u64::from(choices.below(10)),
        6 => frame(choices, target).unwrap_or(FRAME_TOP),
        7 => activation(choices, target).unwrap_or(0),
        8 => word(choices),
        _ => stack_address(choices, target),
    }
}

/// Draws a multiple of 8 in the used part of the stack (VA).
fn stack_address<C: Choices>(choices: &mut C, target: &SyntheticThread) -> u64 {
    let base = target.stack.1;
    let lowest = target.activations.first().map_or(base - 0x100, |activation| activation.sp);
    let words = (base - lowest.min(base - 8)) / 8;
    lowest.min(base - 8) + 8 * u64::from(choices.below(words as u32))
}

fn frame<C: Choices>(choices: &mut C, target: &SyntheticThread) -> Option<u64> {
    let index = choices.below(target.frames.len() as u32) as usize;
    target.frames.get(index).map(|frame| frame.at)
}

/// Draws the address of an activation's rsp, or of its callee's return address (VA).
fn activation<C: Choices>(choices: &mut C, target: &SyntheticThread) -> Option<u64> {
    let index = choices.below(target.activations.len() as u32) as usize;
    let below = u64::from(choices.below(3));
    target.activations.get(index).map(|activation| activation.sp.wrapping_sub(8 * below))
}

/// Draws the address of a word to overwrite (VA).
fn address<C: Choices>(choices: &mut C, target: &SyntheticThread) -> Option<u64> {
    let base = target.stack.1;
    let lowest = target.activations.first()?.sp;
    let at = match choices.below(8) {
        0..3 => activation(choices, target)?,
        3..6 => frame(choices, target)? + 8 * u64::from(choices.below(FRAME_WORDS)),
        6 => stack_address(choices, target),
        _ => return Some(SELF_OBJECT.0 + 8 * u64::from(choices.below(OBJECT_WORDS))),
    };
    (lowest.saturating_sub(0x10)..base - 8).contains(&at).then_some(at)
}

/// Overwrites some words.
pub(super) fn overwrite<C: Choices>(choices: &mut C, target: &mut SyntheticThread) {
    for _ in 0..choices.between(1, 6) {
        if let Some(at) = address(choices, target) {
            let value = value(choices, target);
            target.overwritten.push((at, value));
        }
    }
}

/// Moves a Frame, changes the activation that it leads to, or swaps two Frames of the chain.
pub(super) fn misplace<C: Choices>(choices: &mut C, target: &mut SyntheticThread) {
    let count = target.frames.len() as u32;
    if count == 0 {
        return;
    }
    let to = choices.below(target.activations.len() as u32) as usize;
    let above = target.activations.get(to..).unwrap_or_default();
    let further = above.get(choices.below(above.len() as u32) as usize);
    let (Some(host), Some(further)) = (above.first(), further) else { return };
    let name = further.function.clone();
    // While the runtime works, no Frame is below the leaf's rsp.
    let at = match choices.below(4) {
        0 => {
            target.activations.first().map_or(0, |activation| activation.sp)
                - 8 * u64::from(choices.between(1, 8))
        }
        _ => host.sp + 8 * u64::from(choices.below(8)),
    };
    let (index, other) = (choices.below(count) as usize, choices.below(count) as usize);
    if choices.chance(1, 3) {
        target.frames.swap(index, other);
    } else if let Some(frame) = target.frames.get_mut(index)
        && at + 0x400 < target.stack.1
    {
        frame.at = at;
        frame.leads_to = Some(name);
        frame.captured_in = None;
    }
}
