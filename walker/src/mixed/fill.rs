//! The way rootward from a frame: by unwind data, and where there is none by the frames that the
//! runtime reports.

use super::WalkBuffer;
use super::buffer::{FrameReport, Place};
use super::cursor::{Cursor, Stepped, Steps};
use super::reason::Reason;
use super::stack::Source;
use crate::profiling::{HResult, TargetThread};
use clr_unwind::{Gpr, Position, RegisterSet, UnwindError};

/// Continues from `frame`, or if it is not `known` from the first frame that the runtime reports,
/// up to the root. Calls `name` for each frame that the runtime does not report.
///
/// # Errors
/// The errors of `name`.
pub(super) fn fill<T: TargetThread, F>(
    steps: &Steps<'_, '_, T>,
    buffer: &mut WalkBuffer,
    frame: &mut Cursor,
    mut known: bool,
    name: impl Fn(&mut Place) -> Result<(), F>,
) -> Result<(), F> {
    if known && is_redirected(buffer, frame) {
        known = false;
        buffer.relies_on_order = true;
    }
    buffer.join(known.then(|| frame.registers.rsp()));
    // True if the frame called one that the runtime reports as managed.
    let mut is_managed_caller = false;
    loop {
        if !known && !take_reported(steps, buffer, frame) {
            ended(buffer);
            return Ok(());
        }
        if !buffer.push(frame) {
            return Ok(());
        }
        if let Some(place) = buffer.unnamed() {
            name(place)?;
        }
        let inside = frame.inside();
        let is_managed = buffer.reported_function().is_some();
        let is_marker = !is_managed && buffer.is_reported();
        known = match step(steps, buffer, frame) {
            Ok(Stepped::Caller) => !passes_by(buffer, frame.registers.rsp()),
            Ok(Stepped::Root) => {
                if !passes_by(buffer, u64::MAX) {
                    return Ok(());
                }
                false
            }
            // After a managed frame come only frames that the runtime hides, until the next one
            // that it reports: it would report native code (contract §3.3) by a marker.
            Err(_)
                if (is_managed || known && is_managed_caller && !is_marker)
                    && !steps.knows(inside) =>
            {
                buffer.relies_on_order |= buffer.next_shot().is_some();
                false
            }
            Err(reason) => {
                buffer.gap(reason);
                false
            }
        };
        is_managed_caller = is_managed;
    }
}

/// Moves a frame to its caller. In a frame that only the runtime reports, an instruction that seems
/// to follow a call may still have been interrupted. So if the caller is impossible, or lies beyond
/// the next frame that the runtime reports, the frame is tried as interrupted.
fn step<T: TargetThread>(
    steps: &Steps<'_, '_, T>,
    buffer: &WalkBuffer,
    frame: &mut Cursor,
) -> Result<Stepped, Reason> {
    if frame.source != Source::Snapshot {
        return steps.step(frame);
    }
    let reported = *frame;
    let stepped = steps.step(frame);
    let next = buffer.next_shot().filter(|report| !report.is_none).map(FrameReport::sp);
    let passes_by = |frame: &Cursor| next.is_some_and(|sp| sp < frame.registers.rsp());
    let is_wrong = match stepped {
        Ok(Stepped::Caller) => passes_by(frame),
        Err(
            Reason::NotACall { .. }
            | Reason::OutsideStack { .. }
            | Reason::Unwind(UnwindError::Stack(_) | UnwindError::NoProgress { .. }),
        ) => true,
        // Without unwind data it would be taken for a leaf.
        Ok(Stepped::Root) | Err(_) => false,
    };
    if !is_wrong {
        return stepped;
    }
    let mut interrupted = Cursor { position: Position::Interrupted, ..reported };
    match steps.step(&mut interrupted) {
        Ok(again) if !passes_by(&interrupted) => {
            *frame = interrupted;
            Ok(again)
        }
        _ => stepped,
    }
}

/// Returns true if the first frame that the runtime reports is at the same instruction but at
/// another place. Then the thread has been redirected: it executes code of the runtime that
/// pretends to have been called from the interrupted instruction, whose registers only the runtime
/// knows (contract §2.4).
fn is_redirected(buffer: &WalkBuffer, frame: &Cursor) -> bool {
    let report = buffer.next_shot().filter(|report| report.function.is_some());
    report.is_some_and(|report| {
        report.ip == frame.registers.rip && report.sp() != frame.registers.rsp()
    })
}

/// Returns true if the runtime reports frames leafward of `sp` (VA) that have not been met: then
/// the unwinder has left the stack.
fn passes_by(buffer: &mut WalkBuffer, sp: u64) -> bool {
    buffer.pass_over_before(sp);
    let missed = buffer.next_shot().map(FrameReport::sp).filter(|report| *report < sp);
    if let Some(sp) = missed {
        buffer.gap(Reason::Disagreement { sp });
    }
    missed.is_some()
}

/// Moves to the frame that the runtime reports next. Returns false if there is none.
fn take_reported<T: TargetThread>(
    steps: &Steps<'_, '_, T>,
    buffer: &mut WalkBuffer,
    frame: &mut Cursor,
) -> bool {
    buffer.pass_over();
    let Some(report) = buffer.next_shot() else { return false };
    frame.registers = report.registers;
    // Registers that a Frame does not restore are stale in the context of the first method that it
    // leads to, and of no other (contract §3.7).
    frame.known = if report.function.is_none() || buffer.last_shot_is_managed() {
        steps.unwinder.convention().nonvolatile()
    } else {
        RegisterSet::of(&[Gpr::Rsp, Gpr::Rbp])
    };
    frame.registers.rip = report.ip;
    frame.position = match report.function {
        Some(_) => steps.position(report.ip),
        None => Position::ReturnAddress,
    };
    frame.source = Source::Snapshot;
    true
}

/// Records that nothing is known rootward of the last frame, which is not the thread's first.
fn ended(buffer: &mut WalkBuffer) {
    let reason = match buffer.snapshot {
        // The walker's own callback ended the walk.
        _ if buffer.is_full => Reason::BufferFull,
        None | Some(HResult::OK) => Reason::Unreported,
        Some(result) => Reason::Snapshot(result),
    };
    buffer.gap(reason);
}
