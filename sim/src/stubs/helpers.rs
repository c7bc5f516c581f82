//! JIT helpers.

use super::frames::{Frames, call, service, set, with_frame};
use super::{Plan, RETURN, Service, Shared, leaf, native};
use crate::code::{Function, FunctionShape, Statement, Value, Word};
use crate::runtime::FrameKind;
use clr_walker::registers::Gpr;

impl Plan {
    /// `JIT_New`: a helper that may trigger a GC, so that it has a Frame.
    pub(super) fn new_helper(&self) -> Function {
        if !self.generation.has_helper_method_frames() {
            let shape = self.frames.transition_stub();
            let body = vec![
                set(Word::Register(self.frames.first_argument()), Value::Pushed),
                set(Word::Register(Gpr::R10), Value::Number(0)),
                call(self.helper(Shared::NewWorker)),
            ];
            return native(Shared::New, shape, body, RETURN);
        }
        let (shape, at) = with_frame();
        let mut body = self.frames.helper_method_frame(at, 0, None);
        body.push(call(self.helper(Shared::Allocate)));
        body.push(Frames::unlink(at));
        native(Shared::New, shape, body, RETURN)
    }

    pub(super) fn new_worker(&self) -> Function {
        let (shape, at) = with_frame();
        let mut body = self.frames.transition_frame(at, FrameKind::DynamicHelper);
        body.push(call(self.helper(Shared::Allocate)));
        body.push(Frames::unlink(at));
        native(Shared::NewWorker, shape, body, RETURN)
    }
}

pub(super) fn allocate() -> Function {
    let shape = FunctionShape { pushes: vec![Gpr::Rbx], locals: 0x20, ..FunctionShape::default() };
    native(Shared::Allocate, shape, vec![service(Service::Allocated)], RETURN)
}

/// A helper that is a leaf.
pub(super) fn leaf_helper(shared: Shared) -> Function {
    native(shared, leaf(), vec![Statement::Work(4)], RETURN)
}
