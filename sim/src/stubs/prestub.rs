//! The first call of a method.

use super::frames::{
    Frames, call, disable_preemptive_gc, enable_preemptive_gc, service, set, with_frame,
};
use super::{Plan, RETURN, Service, Shared, Stub, leaf, method_id, native};
use crate::code::{CodeKind, Exit, Function, FunctionId, FunctionShape, TailCallForm, Value, Word};
use crate::runtime::FrameKind;
use clr_walker::registers::Gpr;

impl Plan {
    /// A method's precode: it names the method and jumps on.
    pub(super) fn precode(&self, id: FunctionId, target: &Function) -> Function {
        let method = method_id(self.place(id));
        Function {
            name: format!("{}{}", Stub::Precode.prefix(), target.name),
            kind: CodeKind::Jit,
            shape: leaf(),
            body: vec![set(Word::Register(Gpr::R10), Value::Number(method))],
            end: Some(Exit::TailCall(TailCallForm::Memory, self.helper(Shared::ThePreStub))),
        }
    }

    /// `ThePreStub`: it saves the caller's registers where the Frame finds them, and jumps to the code
    /// in the end.
    pub(super) fn the_pre_stub(&self) -> Function {
        let shape = self.frames.transition_stub();
        let body = vec![
            set(Word::Register(self.frames.first_argument()), Value::Pushed),
            call(self.helper(Shared::PreStubWorker)),
        ];
        native(Shared::ThePreStub, shape, body, Exit::Computed)
    }

    pub(super) fn pre_stub_worker(&self) -> Function {
        let (mut shape, at) = with_frame();
        let keep = shape.locals;
        shape.locals += 0x10;
        let mut body = vec![set(Word::Local(keep), Value::Register(Gpr::R10))];
        body.extend(self.frames.transition_frame(at, FrameKind::PrestubMethod));
        body.push(enable_preemptive_gc());
        body.push(call(self.helper(Shared::Jit)));
        body.extend(disable_preemptive_gc());
        body.push(Frames::unlink(at));
        body.push(set(Word::Register(Gpr::R10), Value::Local(keep)));
        body.push(service(Service::FindCode));
        native(Shared::PreStubWorker, shape, body, RETURN)
    }
}

pub(super) fn jit() -> Function {
    let shape = FunctionShape { pushes: vec![Gpr::Rbx], locals: 0x40, ..FunctionShape::default() };
    native(Shared::Jit, shape, vec![service(Service::Compile)], RETURN)
}
