//! [`Policy::Signal`](super::Policy::Signal): the calling thread walks itself in a signal handler, and asks the
//! runtime nothing.

use super::WalkBuffer;
use super::buffer::Named;
use super::cursor::{Cursor, Stepped, Steps};
use super::reason::Reason;
use crate::profiling::{ModuleSource, TargetThread};
use clr_unwind::UnwindError;

/// Walks from the thread's registers to the root, by the code map and the stack alone. The frames
/// have no names yet.
///
/// # Errors
/// The reason why the walk ended before the root. The frames until then are in the buffer.
#[inline(never)]
pub(super) fn take<T: TargetThread, M: ModuleSource>(
    modules: &M,
    target: &T,
    buffer: &mut WalkBuffer,
) -> Result<(), Reason> {
    let map = modules.code_map();
    let steps = Steps::new(&map, target);
    let mut frame = Cursor::NOWHERE;
    steps.read_registers(&mut frame.registers)?;
    while buffer.push(&frame) {
        if let Some(place) = buffer.unnamed() {
            place.named = Named::Later;
        }
        let rsp = frame.registers.rsp();
        match caller(&steps, &mut frame) {
            Ok(Stepped::Caller) => {}
            Ok(Stepped::Root) => break,
            Err(reason) => {
                // A failed step leaves no frame to go on from.
                frame = steps.recorded_caller(rsp).ok_or(reason)?;
                buffer.gap(reason);
            }
        }
    }
    Ok(())
}

/// Moves a frame to its caller. Unknown code that was interrupted is left by the word on top of the
/// stack: the runtime's stubs, its dispatch and write-barrier code, and what no unwinder of the
/// system knows on Unix, are entered by a call and leave the stack pointer where it is.
fn caller<T: TargetThread>(
    steps: &Steps<'_, '_, T>,
    frame: &mut Cursor,
) -> Result<Stepped, Reason> {
    let reason = match steps.step(frame) {
        Ok(stepped) => return Ok(stepped),
        Err(reason) => reason,
    };
    let is_unknown = matches!(reason, Reason::Unwind(UnwindError::UnknownCode { .. }));
    // Such a step has changed nothing.
    if is_unknown && steps.leave_unknown(frame) { Ok(Stepped::Caller) } else { Err(reason) }
}
