//! The way from the interrupted instruction to the first managed frame.

use super::buffer::Named;
use super::cursor::{Cursor, Stepped, Steps};
use super::reason::Reason;
use super::stack::Source;
use super::walker::{Ended, Leaf, Walker};
use super::{WalkBuffer, stub};
use crate::profiling::{ModuleSource, ProfilerInfo, TargetThread};
use crate::unwind::{Position, Trust, UnwindError};

impl<I: ProfilerInfo, M: ModuleSource> Walker<'_, I, M> {
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
            let interrupted = *frame;
            match steps.step(frame) {
                Ok(Stepped::Caller) => {}
                Ok(Stepped::Root) => return Ok(Leaf::Root),
                // Without unwind data a stub is taken for a leaf, though it may have pushed a word.
                Err(Reason::NotACall { .. }) if steps.leave_pushing_stub(&interrupted, frame) => {}
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
        let known = steps.knows(target)
            || match self.function(steps.unwinder.code_map(), target, Position::Interrupted) {
                Ok(function) => function.is_some(),
                Err(Ended::Short(_)) => false,
                Err(Ended::Fatal(fatal)) => return Err(fatal),
            };
        Ok(known && steps.leave_stub(frame))
    }

    /// Moves a frame in unknown code to its caller, by the code map, or by the top of the stack if the
    /// runtime knows a method there. Returns true if it did.
    pub(super) fn leave_unknown<T: TargetThread>(
        &self,
        steps: &Steps<'_, '_, T>,
        frame: &mut Cursor,
    ) -> Result<bool, I::Fatal> {
        if steps.leave_unknown(frame) {
            return Ok(true);
        }
        let mut caller = *frame;
        let mut is_method = false;
        if frame.position == Position::Interrupted && steps.leave_stub(&mut caller) {
            let (map, rip) = (steps.unwinder.code_map(), caller.registers.rip);
            is_method = match self.function(map, rip, Position::ReturnAddress) {
                Ok(function) => function.is_some(),
                Err(Ended::Short(_)) => false,
                Err(Ended::Fatal(fatal)) => return Err(fatal),
            };
        }
        if is_method {
            caller.source = Source::Unwound(Trust::StackTop);
            *frame = caller;
        }
        Ok(is_method)
    }
}
