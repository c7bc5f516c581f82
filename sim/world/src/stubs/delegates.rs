//! Delegates and tail calls: ways from one method to another.

use super::frames::{Frames, call, call_computed, reserve_frame, set};
use super::{Plan, RETURN, Shared, Stub, method_id, saving};
use clr_codegen::{
    CodeKind, Exit, Function, FunctionIndex, FunctionShape, Statement, TailCallForm, Value, Word,
};
use clr_runtime::FrameKind;
use clr_runtime::frame::layout::{self, FrameConvention};
use clr_runtime::thread::offset;
use clr_unwind::Gpr;

impl Plan {
    /// Creates the code that calls a multicast or wrapped delegate: an assembled stub with a Frame,
    /// or an IL stub.
    pub(super) fn delegate_stub(
        &self,
        stub: Stub,
        id: FunctionIndex,
        target: &Function,
        (kind, times): (FrameKind, usize),
    ) -> Function {
        let target_id = self.place(id);
        let calls = vec![call(target_id); times];
        if !self.generation.has_delegate_frames() {
            return Function {
                name: format!("{}{}", stub.prefix(), target.name),
                kind: CodeKind::Jit,
                shape: saving(&[Gpr::Rbp, Gpr::Rbx], 0x20),
                body: calls,
                end: Some(RETURN),
            };
        }
        let mut shape = self.frames.transition_stub();
        let at = Frames::reserve(&mut shape);
        let mut body = self.frames.transition_frame_of(
            at,
            kind,
            Value::Pushed,
            Value::Number(method_id(target_id)),
        );
        body.extend(calls);
        body.push(Frames::unlink(at));
        Function {
            name: format!("{}{}", stub.prefix(), target.name),
            kind: CodeKind::Jit,
            shape,
            body,
            end: Some(RETURN),
        }
    }

    /// Returns a tail call by the helper.
    pub(super) fn tail_call_by_helper(&self, target: FunctionIndex) -> Vec<Statement> {
        let stub = self.stub_of(target, Stub::TailCall);
        if self.generation.has_tail_call_frames() {
            return vec![Statement::Exit(Exit::TailCall(TailCallForm::Memory, stub))];
        }
        let mut body = if self.generation.has_tail_call_dispatcher() {
            vec![
                set(Word::Register(Gpr::R10), Value::Function(stub)),
                call(self.helper(Shared::DispatchTailCalls)),
            ]
        } else {
            vec![call(self.place(target))]
        };
        body.push(Statement::Exit(RETURN));
        body
    }

    /// Creates the code between the two methods of a tail call by helper: unmanaged code with a
    /// TailCallFrame in place of the caller, or the IL stub that the dispatcher calls.
    pub(super) fn tail_call_stub(&self, id: FunctionIndex, target: &Function) -> Function {
        let name = format!("{}{}", Stub::TailCall.prefix(), target.name);
        if !self.generation.has_tail_call_frames() {
            let shape = saving(&[], 0x28);
            let body = vec![call(self.place(id))];
            return Function { name, kind: CodeKind::Jit, shape, body, end: Some(RETURN) };
        }
        let saved = FrameConvention::of(self.generation).callee_saved;
        let shape = FunctionShape {
            pushes: saved.iter().rev().copied().collect(),
            locals: 0x20,
            ..FunctionShape::default()
        };
        // The Frame ends with the pushed registers and the return address.
        let registers = layout::TAIL_CALL_REGISTERS as u32;
        let next = layout::NEXT as i32;
        let top = offset::TOP_FRAME as u32;
        let body = vec![
            set(Word::Register(Gpr::Rbx), Value::BelowPushed(registers)),
            set(Word::At(Gpr::Rbx, 0), Value::Number(self.frames.word(FrameKind::TailCall))),
            set(Word::At(Gpr::Rbx, next), Value::Thread(top)),
            set(Word::Thread(top), Value::Register(Gpr::Rbx)),
            call(self.place(id)),
            set(Word::Thread(top), Value::At(Gpr::Rbx, next)),
        ];
        Function { name, kind: CodeKind::Native, shape, body, end: Some(RETURN) }
    }

    /// Creates the managed dispatcher of tail calls, which calls the stub in r10.
    pub(super) fn dispatch_tail_calls(&self) -> Function {
        let mut shape = saving(&[], 0x20);
        let _ = reserve_frame(&mut shape, self.frames.convention());
        let body = vec![set(Word::Register(Gpr::Rax), Value::Register(Gpr::R10)), call_computed()];
        let name = Shared::DispatchTailCalls.name().to_owned();
        Function { name, kind: CodeKind::ReadyToRun, shape, body, end: Some(RETURN) }
    }
}
