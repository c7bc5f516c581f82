//! Walks of whole stacks, step by step and with a limit.

use super::{Position, Step, Trust, UnwindError, Unwinder};
use crate::memory::Memory;
use crate::registers::{RegisterSet, Registers};

/// Default limit of frames.
const FRAME_LIMIT: u32 = 1 << 16;

/// A frame of a walked stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The frame's registers.
    pub registers: Registers,
    /// The registers whose values are the frame's own: in the first frame all of them. Other
    /// registers hold values that a callee left in them.
    pub known: RegisterSet,
    /// The kind of address in rip.
    pub position: Position,
    /// The step that led to this frame; `None` for the first frame.
    pub found_by: Option<Step>,
}

/// The frames of a stack, the most recent one first. See [`Unwinder::walk`].
///
/// The walk ends after the first error, which is its last item. A stack that ends normally reaches
/// [`UnwindError::UnknownCode`] at an address that the caller of the walk expects, or
/// [`UnwindError::EndOfStack`].
#[derive(Clone, Debug)]
pub struct Walk<'c, 'a, 'm, M: ?Sized> {
    unwinder: Unwinder<'c, 'a>,
    memory: &'m M,
    next: Option<Frame>,
    started: bool,
    left: u32,
    limit: u32,
}

impl<'c, 'a, 'm, M: Memory + ?Sized> Walk<'c, 'a, 'm, M> {
    pub(super) const fn new(
        unwinder: Unwinder<'c, 'a>,
        registers: &Registers,
        memory: &'m M,
    ) -> Self {
        let first = Frame {
            registers: *registers,
            known: RegisterSet::ALL,
            position: Position::Interrupted,
            found_by: None,
        };
        Self {
            unwinder,
            memory,
            next: Some(first),
            started: false,
            left: FRAME_LIMIT,
            limit: FRAME_LIMIT,
        }
    }

    /// Returns the walk limited to `limit` frames.
    #[must_use]
    pub const fn with_limit(self, limit: u32) -> Self {
        Self { left: limit, limit, ..self }
    }

    fn caller(&self, frame: &Frame) -> Result<Frame, UnwindError> {
        let mut registers = frame.registers;
        let step = self.unwinder.step(&mut registers, frame.position, self.memory)?;
        if let Some(register) = step.needed.difference(frame.known).gprs().next() {
            return Err(UnwindError::LostRegister { register, address: frame.registers.rip });
        }
        let (rsp, caller_rsp) = (frame.registers.rsp(), registers.rsp());
        // Below a machine frame the stack may be another one. Steps by call frame information have
        // been checked: the first may leave the stack pointer where it is.
        let checked = step.trust == Trust::Cfi;
        if caller_rsp <= rsp && step.caller != Position::Interrupted && !checked {
            return Err(UnwindError::NoProgress { rsp, caller_rsp });
        }
        let known = step.known(frame.known);
        Ok(Frame { registers, known, position: step.caller, found_by: Some(step) })
    }
}

impl<M: Memory + ?Sized> Iterator for Walk<'_, '_, '_, M> {
    type Item = Result<Frame, UnwindError>;

    fn next(&mut self) -> Option<Self::Item> {
        let frame = self.next.take()?;
        let frame = if self.started {
            match self.caller(&frame) {
                Ok(frame) => frame,
                Err(error) => return Some(Err(error)),
            }
        } else {
            frame
        };
        self.started = true;
        if self.left == 0 {
            return Some(Err(UnwindError::TooManyFrames { limit: self.limit }));
        }
        self.left -= 1;
        self.next = Some(frame);
        Some(Ok(frame))
    }
}
