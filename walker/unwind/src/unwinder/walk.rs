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
    /// The last frame that was returned, or the first one: a step changes it where it is, as its registers take hundreds
    /// of bytes.
    frame: Frame,
    state: State,
    left: u32,
    limit: u32,
}

/// The progress of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Started,
    Ended,
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
            frame: first,
            state: State::New,
            left: FRAME_LIMIT,
            limit: FRAME_LIMIT,
        }
    }

    /// Returns the walk limited to `limit` frames.
    #[must_use]
    pub const fn with_limit(self, limit: u32) -> Self {
        Self { left: limit, limit, ..self }
    }

    /// Replaces the frame by its caller.
    fn go_to_caller(&mut self) -> Result<(), UnwindError> {
        let frame = &mut self.frame;
        let (rip, rsp) = (frame.registers.rip, frame.registers.rsp());
        let step = self.unwinder.step(&mut frame.registers, frame.position, self.memory)?;
        if let Some(register) = step.needed.difference(frame.known).gprs().next() {
            return Err(UnwindError::LostRegister { register, address: rip });
        }
        let caller_rsp = frame.registers.rsp();
        // Below a machine frame the stack may be another one. Steps by call frame information have
        // been checked: the first may leave the stack pointer where it is.
        let checked = step.trust == Trust::Cfi;
        if caller_rsp <= rsp && step.caller != Position::Interrupted && !checked {
            return Err(UnwindError::NoProgress { rsp, caller_rsp });
        }
        frame.known = step.known(frame.known);
        frame.position = step.caller;
        frame.found_by = Some(step);
        Ok(())
    }
}

impl<M: Memory + ?Sized> Iterator for Walk<'_, '_, '_, M> {
    type Item = Result<Frame, UnwindError>;

    fn next(&mut self) -> Option<Self::Item> {
        let came = match self.state {
            State::New => Ok(()),
            State::Started => self.go_to_caller(),
            State::Ended => return None,
        };
        self.state = State::Ended;
        if let Err(error) = came {
            return Some(Err(error));
        }
        if self.left == 0 {
            return Some(Err(UnwindError::TooManyFrames { limit: self.limit }));
        }
        self.left -= 1;
        self.state = State::Started;
        Some(Ok(self.frame))
    }
}
