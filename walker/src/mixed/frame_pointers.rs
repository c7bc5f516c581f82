//! [`Policy::FramePointers`](super::Policy::FramePointers): a suspended thread is walked by rbp alone.

use super::WalkBuffer;
use super::cursor::{Cursor, Steps};
use super::questions::{Ended, Questions};
use super::reason::Reason;
use super::stack::Source;
use super::stopped::Stopped;
use crate::profiling::{ModuleSource, ProfilerInfo, TargetThread};
use clr_unwind::{Gpr, Position, Trust};

#[inline(never)]
pub(super) fn take<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    target: &T,
    buffer: &mut WalkBuffer,
) -> Result<(), Ended<I::Fatal>> {
    ask.while_suspended(target, buffer, take_stopped)
}

/// Walks by return addresses next to frame pointers, for as long as these lead rootward.
fn take_stopped<T: TargetThread, I: ProfilerInfo, M: ModuleSource>(
    ask: &Questions<'_, I, M>,
    stopped: &Stopped<'_, T>,
    steps: &Steps<'_, '_, T>,
    buffer: &mut WalkBuffer,
) -> Result<(), Ended<I::Fatal>> {
    let context = stopped.context().map_err(|_| Ended::Short(Reason::NotStopped))?;
    buffer.gap(Reason::FramePointers);
    let (target, stack) = (steps.target, steps.stack);
    let mut frame = Cursor { registers: context.registers, ..Cursor::NOWHERE };
    while ask.push(steps, buffer, &frame)? {
        let pointer = frame.registers.get(Gpr::Rbp);
        let rises = pointer >= frame.registers.rsp() && stack.contain(pointer);
        if !rises || !pointer.is_multiple_of(8) {
            break;
        }
        let saved = target.read_u64(pointer);
        let address = target.read_u64(pointer.wrapping_add(8));
        let (Ok(saved), Ok(address)) = (saved, address) else { break };
        let caller_rsp = pointer.wrapping_add(16);
        if stack.end_at(address, caller_rsp) {
            break;
        }
        frame.registers.rip = address;
        frame.registers.set(Gpr::Rbp, saved);
        frame.registers.set(Gpr::Rsp, caller_rsp);
        frame.position = Position::ReturnAddress;
        frame.source = Source::Unwound(Trust::FramePointer);
    }
    Ok(())
}
