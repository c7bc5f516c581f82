//! Assembled stubs that save the caller's registers as a TransitionBlock, call a worker with a
//! Frame, and go on to the code that the worker has found.

use super::frames::{Frames, call, enable_preemptive_gc, service, set, with_frame};
use super::{Plan, RETURN, Service, Shared, Stub, leaf, method_id, native};
use clr_codegen::{
    CodeKind, Exit, Function, FunctionIndex, Primitive, Statement, StubCode, TailCallForm, Value,
    Word,
};
use clr_runtime::FrameKind;
use clr_runtime::code_manager::StubKind;
use clr_unwind::Gpr;

/// The properties of a stub with a worker.
pub(super) struct Fixup {
    worker: Shared,
    frame: FrameKind,
    /// The Frame names the method in r10.
    named: bool,
    /// Instructions in cooperative mode before the thread becomes preemptive.
    cooperative: u8,
    /// The helper called in preemptive mode.
    inner: Shared,
    /// The stub jumps to the code of the method in r10; otherwise it returns.
    jumps: bool,
}

impl Fixup {
    /// Returns true if `shared` is the worker, not the stub.
    pub(super) fn is_worker(&self, shared: Shared) -> bool {
        self.worker == shared
    }

    /// Returns the properties for an assembled stub or its worker.
    pub(super) const fn of(shared: Shared) -> Option<Self> {
        let (worker, frame, inner) = match shared {
            Shared::ThePreStub | Shared::PreStubWorker => {
                (Shared::PreStubWorker, FrameKind::PrestubMethod, Shared::Jit)
            }
            Shared::GenericPInvokeCalliHelper | Shared::GenericPInvokeCalliStubWorker => {
                let worker = Shared::GenericPInvokeCalliStubWorker;
                (worker, FrameKind::PInvokeCalli, Shared::GetIlStub)
            }
            Shared::VarargPInvokeStub | Shared::VarargPInvokeStubWorker => {
                let worker = Shared::VarargPInvokeStubWorker;
                (worker, FrameKind::PrestubMethod, Shared::GetIlStub)
            }
            Shared::DelayLoadMethodCall | Shared::ExternalMethodFixupWorker => {
                let worker = Shared::ExternalMethodFixupWorker;
                (worker, FrameKind::ExternalMethod, Shared::LoadType)
            }
            Shared::DelayLoadHelper | Shared::DynamicHelperWorker => {
                (Shared::DynamicHelperWorker, FrameKind::DynamicHelper, Shared::LoadType)
            }
            Shared::ResolveWorkerAsmStub | Shared::VsdResolveWorker => {
                (Shared::VsdResolveWorker, FrameKind::StubDispatch, Shared::LoadType)
            }
            _ => return None,
        };
        let begins_cooperative = !matches!(frame, FrameKind::PrestubMethod);
        Some(Self {
            worker,
            frame,
            named: !matches!(frame, FrameKind::PInvokeCalli | FrameKind::DynamicHelper),
            cooperative: if begins_cooperative { 4 } else { 0 },
            inner,
            jumps: !matches!(frame, FrameKind::DynamicHelper),
        })
    }
}

impl Plan {
    /// Creates the stub: it saves the caller's registers where the Frame finds them.
    pub(super) fn fixup_stub(&self, stub: Shared, fixup: &Fixup) -> Function {
        let shape = self.frames.transition_stub();
        let body = vec![
            set(Word::Register(self.frames.first_argument()), Value::Pushed),
            call(self.helper(fixup.worker)),
        ];
        native(stub, shape, body, if fixup.jumps { Exit::Computed } else { RETURN })
    }

    /// Creates the worker.
    pub(super) fn fixup_worker(&self, fixup: &Fixup) -> Function {
        let (mut shape, at) = with_frame();
        let keep = shape.locals;
        shape.locals += 0x10;
        let mut body = vec![set(Word::Local(keep), Value::Register(Gpr::R10))];
        if fixup.frame == FrameKind::PInvokeCalli {
            // The helper that looks for the stub needs its name.
            let block = Value::Register(self.frames.first_argument());
            let method = Value::Number(0);
            body.extend(self.frames.transition_frame_of(at, fixup.frame, block, method));
        } else {
            if !fixup.named {
                body.push(set(Word::Register(Gpr::R10), Value::Number(0)));
            }
            body.extend(self.frames.transition_frame(at, fixup.frame));
        }
        if fixup.cooperative > 0 {
            body.push(Statement::Work(fixup.cooperative));
        }
        body.push(enable_preemptive_gc());
        body.push(call(self.helper(fixup.inner)));
        body.extend(self.frames.disable_preemptive_gc());
        body.push(Frames::unlink(at));
        if fixup.jumps {
            body.push(set(Word::Register(Gpr::R10), Value::Local(keep)));
            body.push(service(Service::FindCode));
        }
        native(fixup.worker, shape, body, RETURN)
    }

    /// Creates the thunk that is called instead of a method: it names the method and jumps on.
    pub(super) fn thunk(
        &self,
        stub: Stub,
        id: FunctionIndex,
        target: &Function,
        jumps_to: Shared,
    ) -> Function {
        let method = method_id(self.place(id));
        let mut body = Vec::new();
        if stub == Stub::Resolve {
            body.push(Statement::Primitive(Primitive::Stub(StubCode::Resolve)));
        }
        body.push(set(Word::Register(Gpr::R10), Value::Number(method)));
        jumping(stub, target, body, self.helper(jumps_to))
    }

    /// Creates a stub that jumps to its target without another function's help.
    pub(super) fn stub_to(
        &self,
        stub: Stub,
        code: StubCode,
        id: FunctionIndex,
        target: &Function,
    ) -> Function {
        let to = self.place(id);
        let mut body = Vec::new();
        if code == StubCode::CountCall {
            body.push(set(Word::Register(Gpr::Rax), Value::Function(to)));
        }
        body.push(Statement::Primitive(Primitive::Stub(code)));
        jumping(stub, target, body, to)
    }

    /// Calls a stub that reads the object's type. The word at the Thread object stands for it.
    pub(super) fn call_on_object(&self, stub: FunctionIndex) -> Vec<Statement> {
        let object = Word::Register(self.frames.first_argument());
        vec![set(object, Value::ThreadObject), call(stub)]
    }

    /// Returns a call that first looks up the stub of a P/Invoke.
    pub(super) fn call_by_lookup(&self, stub: FunctionIndex, lookup: Shared) -> Vec<Statement> {
        let method = method_id(stub);
        vec![set(Word::Register(Gpr::R10), Value::Number(method)), call(self.helper(lookup))]
    }
}

/// Creates code of a heap without unwind data that ends with a jump.
fn jumping(stub: Stub, target: &Function, body: Vec<Statement>, to: FunctionIndex) -> Function {
    Function {
        name: format!("{}{}", stub.prefix(), target.name),
        kind: CodeKind::Jit,
        shape: leaf(),
        body,
        end: Some(Exit::TailCall(TailCallForm::Memory, to)),
    }
}

/// The kinds of thunks: kind of block, and jump target.
pub(super) const PRECODE: (StubKind, Shared) = (StubKind::Precode, Shared::ThePreStub);
pub(super) const DELAY_LOAD: (StubKind, Shared) =
    (StubKind::DynamicHelper, Shared::DelayLoadMethodCall);
pub(super) const RESOLVE: (StubKind, Shared) =
    (StubKind::VirtualStubDispatch, Shared::ResolveWorkerAsmStub);
