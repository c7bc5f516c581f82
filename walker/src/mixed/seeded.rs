//! [`Policy::Seeded`](super::Policy::Seeded): a thread is suspended, unwound to its first managed frame, and
//! walked on by `DoStackSnapshot`, with that frame as its seed.

use super::WalkBuffer;
use super::cursor::{Cursor, Steps};
use super::fill::fill;
use super::leaf::Leaf;
use super::questions::{Ended, Questions};
use super::reason::{Reason, SeedRefused};
use super::seed::Seed;
use super::stack::Source;
use super::stopped::Stopped;
use crate::profiling::{HResult, ModuleSource, ProfilerInfo, TargetThread};
use clr_unwind::Position;

#[inline(never)]
pub(super) fn take<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    target: &T,
    buffer: &mut WalkBuffer,
) -> Result<(), Ended<I::Fatal>> {
    ask.while_suspended(target, buffer, take_stopped)
}

/// Does what is done while the thread is stopped.
#[inline(never)]
pub(super) fn take_stopped<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    stopped: &Stopped<'_, T>,
    steps: &Steps<'_, '_, T>,
    buffer: &mut WalkBuffer,
) -> Result<(), Ended<I::Fatal>> {
    let mut frame = Cursor::NOWHERE;
    steps.read_registers(&mut frame.registers).map_err(Ended::Short)?;
    let managed = loop {
        match ask.leaf(steps, buffer, &mut frame)? {
            Leaf::Managed => break true,
            Leaf::Generated(reason) => {
                if generated(ask, stopped, steps, buffer, &mut frame, reason)? {
                    return Ok(());
                }
            }
            Leaf::Unknown(reason) => {
                buffer.gap(reason);
                break false;
            }
            // The stack has nothing managed, or the buffer is full.
            Leaf::Root | Leaf::Full => return Ok(()),
        }
    };
    let seed = if managed {
        match Seed::new(stopped, &frame, steps) {
            Ok(seed) => Some(seed),
            // If the thread has left managed code, the runtime begins at a Frame anyway;
            // otherwise, without a seed, it has no place to begin.
            Err(SeedRefused::NoCaller { .. }) if frame.source != Source::Context => None,
            // The runtime would not notice that the registers are wrong.
            Err(refused) => {
                ask.push(steps, buffer, &frame)?;
                return Err(Ended::Short(Reason::Seed(refused)));
            }
        }
    } else {
        None
    };
    ask.snapshot(steps, seed.as_ref(), buffer)?;
    let gives_up = buffer.snapshot == Some(HResult::FAIL) && buffer.reports().is_empty();
    // The stub of a redirected thread says by its code that the frame was interrupted, and restores
    // its registers.
    let is_restored = frame.source != Source::Context && frame.position == Position::Interrupted;
    if managed && gives_up && stopped.is_suspended() && !is_restored {
        // The walk of a redirected and suspended thread ends like this: it pretends to have
        // been called from where the frame is, whose registers nobody knows (contract §3.8).
        return Err(Ended::Short(Reason::Snapshot(HResult::FAIL)));
    }
    let map = steps.unwinder.code_map();
    Ok(fill(steps, buffer, &mut frame, managed, |place| ask.name(map, place))?)
}

/// Walks from code without unwind data. It may be a dynamic method or an IL stub:
/// `GetFunctionFromIP` does not say so (C-115), but its frame is as good a seed as any (C-040),
/// and `DoStackSnapshot` refuses other code (C-038): a stub, or a copied write barrier. If the stack
/// has the stub's caller, that is the next seed. Returns false if the runtime has refused both, or
/// names the caller's method: the search for a managed frame goes on from `frame`, the caller's.
fn generated<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    stopped: &Stopped<'_, T>,
    steps: &Steps<'_, '_, T>,
    buffer: &mut WalkBuffer,
    frame: &mut Cursor,
    unknown: Reason,
) -> Result<bool, I::Fatal> {
    let map = steps.unwinder.code_map();
    let mut is_left = false;
    if is_seed_refused(ask, stopped, steps, buffer, frame)? {
        is_left = ask.leave_unknown(steps, frame)?;
        if is_left {
            let named = ask.function(map, frame.registers.rip, frame.position);
            let is_named = matches!(named, Ok(Some(_)));
            if is_named || is_seed_refused(ask, stopped, steps, buffer, frame)? {
                return Ok(false);
            }
        } else {
            ask.snapshot(steps, None, buffer)?;
        }
    }
    if !is_left {
        buffer.gap(unknown);
    }
    fill(steps, buffer, frame, is_left, |place| ask.name(map, place))?;
    Ok(true)
}

/// Calls `DoStackSnapshot` with a seed at `frame`, or without one if it cannot be a seed. Returns true if the
/// runtime has refused the seed because its code is not managed.
fn is_seed_refused<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    stopped: &Stopped<'_, T>,
    steps: &Steps<'_, '_, T>,
    buffer: &mut WalkBuffer,
    frame: &Cursor,
) -> Result<bool, I::Fatal> {
    let seed = Seed::new(stopped, frame, steps).ok();
    ask.snapshot(steps, seed.as_ref(), buffer)?;
    Ok(seed.is_some() && buffer.snapshot == Some(HResult::UNMANAGED_CONTEXT))
}
