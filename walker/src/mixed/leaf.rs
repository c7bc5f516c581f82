//! The way from the interrupted instruction to the first managed frame.

use super::buffer::Named;
use super::cursor::{Cursor, Stepped, Steps};
use super::questions::{Ended, Questions};
use super::reason::Reason;
use super::stack::Source;
use super::{WalkBuffer, stub};
use crate::profiling::{ModuleSource, ProfilerInfo, TargetThread};
use clr_unwind::{Position, Trust, UnwindError};

/// The end of the native frames at a stack's leaf.
pub(super) enum Leaf {
    /// At a managed frame.
    Managed,
    /// At unknown code, which may be generated.
    Generated(Reason),
    /// At code that cannot be unwound.
    Unknown(Reason),
    /// At the thread's root.
    Root,
    /// At the buffer's end.
    Full,
}

impl<I: ProfilerInfo, M: ModuleSource> Questions<'_, I, M> {
    /// Unwinds the native frames before the first managed one.
    pub(super) fn leaf<T: TargetThread>(
        &self,
        steps: &Steps<'_, '_, T>,
        buffer: &mut WalkBuffer,
        frame: &mut Cursor,
    ) -> Result<Leaf, I::Fatal> {
        loop {
            let map = steps.unwinder.code_map();
            let function = self.function(map, frame.registers.rip, frame.position);
            if let Ok(Some(_)) = function {
                return Ok(Leaf::Managed);
            }
            // The runtime was asked: it has no name.
            if !buffer.push(frame) {
                return Ok(Leaf::Full);
            }
            match function {
                Ok(_) => {}
                Err(Ended::Short(reason)) => {
                    if let Some(place) = buffer.unnamed() {
                        place.named = Named::Refused(reason);
                    }
                    return Ok(Leaf::Unknown(reason));
                }
                Err(Ended::Fatal(fatal)) => return Err(fatal),
            }
            match steps.step(frame) {
                Ok(Stepped::Caller) => {}
                Ok(Stepped::Root) => return Ok(Leaf::Root),
                Err(reason) => {
                    let unknown = matches!(reason, Reason::Unwind(UnwindError::UnknownCode { .. }));
                    if !(unknown && self.leave_stub(steps, frame)?) {
                        let leaf = if unknown { Leaf::Generated } else { Leaf::Unknown };
                        return Ok(leaf(reason));
                    }
                }
            }
        }
    }

    /// Leaves a stub that only jumps on, to known code. Returns true if the frame was in one.
    fn leave_stub<T: TargetThread>(
        &self,
        steps: &Steps<'_, '_, T>,
        frame: &mut Cursor,
    ) -> Result<bool, I::Fatal> {
        if frame.position != Position::Interrupted {
            return Ok(false);
        }
        let Some(target) = stub::target(&frame.registers, steps.target) else { return Ok(false) };
        let known = steps.knows(target) || self.is_method(steps, target, Position::Interrupted)?;
        Ok(known && steps.leave_stub(frame))
    }

    /// Moves a frame that was interrupted in unknown code to its caller, by the code map, or by the top
    /// of the stack if the runtime knows a method there. Returns true if it did.
    pub(super) fn leave_unknown<T: TargetThread>(
        &self,
        steps: &Steps<'_, '_, T>,
        frame: &mut Cursor,
    ) -> Result<bool, I::Fatal> {
        if frame.position != Position::Interrupted {
            return Ok(false);
        }
        if steps.leave_unknown(frame) {
            return Ok(true);
        }
        let mut caller = *frame;
        let is_left = steps.may_be_entered(frame)
            && steps.leave_stub(&mut caller)
            && self.is_method(steps, caller.registers.rip, Position::ReturnAddress)?;
        if is_left {
            caller.source = Source::Unwound(Trust::StackTop);
            *frame = caller;
        }
        Ok(is_left)
    }

    /// Returns true if the runtime knows a method of a frame with this `ip` (VA).
    fn is_method<T: TargetThread>(
        &self,
        steps: &Steps<'_, '_, T>,
        ip: u64,
        position: Position,
    ) -> Result<bool, I::Fatal> {
        match self.function(steps.unwinder.code_map(), ip, position) {
            Ok(function) => Ok(function.is_some()),
            Err(Ended::Short(_)) => Ok(false),
            Err(Ended::Fatal(fatal)) => Err(fatal),
        }
    }
}
