//! Calls between managed and unmanaged code, and the roots of threads.

use super::frames::{
    Frames, call, call_computed, disable_preemptive_gc, enable_preemptive_gc, reserve_frame,
    service, set, with_frame,
};
use super::{Plan, RETURN, Service, Shared, Stub, leaf, method_id, native};
use crate::code::{
    CodeKind, Convention, Function, FunctionId, FunctionShape, Statement, Value, Word,
};
use crate::runtime::FrameKind;
use clr_walker::registers::Gpr;

impl Plan {
    /// `IL_STUB_PInvoke`: its Frame is linked in its prologue, so that it is there, inactive, before
    /// and behind the call.
    pub(super) fn p_invoke_stub(&self, id: FunctionId, target: &Function) -> Function {
        let convention =
            if self.generation.is_unix() { Convention::SystemV } else { Convention::WindowsX64 };
        let mut shape = FunctionShape::default();
        let at = reserve_frame(&mut shape, convention);
        // The Frame's method is the P/Invoke's, which walks count but do not report.
        let mut body = self.frames.inlined_call_frame(at, method_id(self.place(id)));
        body.push(Frames::link(at));
        body.push(service(Service::ManagedToUnmanagedCall));
        body.extend(self.frames.call_unmanaged(at, call(self.place(id))));
        body.push(service(Service::UnmanagedToManagedReturn));
        body.push(Frames::unlink(at));
        let name = format!("{}{}", Stub::PInvoke.prefix(), target.name);
        Function { name, kind: CodeKind::Jit, shape, body, end: Some(RETURN) }
    }

    /// What a native caller does for a reverse P/Invoke.
    pub(super) fn reverse_p_invoke(&self, target: FunctionId) -> Vec<Statement> {
        let stub = self.stub_of(target, Stub::ReversePInvoke);
        if !self.generation.has_um_thunk_stub() {
            return vec![call(stub)];
        }
        // The delegate's thunk loads what is called.
        vec![
            set(Word::Register(Gpr::R10), Value::Function(stub)),
            call(self.helper(Shared::UmThunkStub)),
        ]
    }

    /// `IL_STUB_ReversePInvoke`.
    pub(super) fn reverse_p_invoke_stub(&self, id: FunctionId, target: &Function) -> Function {
        let shape =
            FunctionShape { pushes: vec![Gpr::Rbp], locals: 0x20, ..FunctionShape::default() };
        let mut body = Vec::new();
        let switches = !self.generation.has_um_thunk_stub();
        if switches {
            body.push(call(self.helper(Shared::ReversePInvokeEnter)));
        }
        body.push(service(Service::UnmanagedToManagedCall));
        body.push(call(self.place(id)));
        body.push(service(Service::ManagedToUnmanagedReturn));
        if switches {
            body.push(call(self.helper(Shared::ReversePInvokeExit)));
        }
        let name = format!("{}{}", Stub::ReversePInvoke.prefix(), target.name);
        Function { name, kind: CodeKind::Jit, shape, body, end: Some(RETURN) }
    }

    /// A thread of the runtime: it becomes cooperative to call its method.
    pub(super) fn kick_off_thread(&self) -> Function {
        let (shape, at) = with_frame();
        let mut body = vec![
            service(Service::ThreadStart),
            set(Word::Register(Gpr::Rbx), Value::Register(Gpr::Rax)),
        ];
        body.extend(disable_preemptive_gc());
        let base = if self.generation.has_gc_frames() {
            FrameKind::Gc
        } else {
            FrameKind::DebuggerU2MCatchHandler
        };
        body.extend(self.frames.mark(at, base));
        body.push(call(self.helper(Shared::CallDescrWorker)));
        body.push(Frames::unlink(at));
        body.push(enable_preemptive_gc());
        body.push(service(Service::ThreadEnd));
        native(Shared::KickOffThread, shape, body, RETURN)
    }
}

/// Calls the method in rbx.
pub(super) fn call_descr_worker() -> Function {
    let shape = FunctionShape {
        pushes: vec![Gpr::Rbx, Gpr::Rbp],
        locals: 0x28,
        ..FunctionShape::default()
    };
    let body = vec![set(Word::Register(Gpr::Rax), Value::Register(Gpr::Rbx)), call_computed()];
    native(Shared::CallDescrWorker, shape, body, RETURN)
}

pub(super) fn reverse_p_invoke_exit() -> Function {
    native(Shared::ReversePInvokeExit, leaf(), vec![enable_preemptive_gc()], RETURN)
}

/// Switches the mode, and calls the stub in r10.
pub(super) fn um_thunk_stub() -> Function {
    let shape = FunctionShape { pushes: vec![Gpr::R12], locals: 0x68, ..FunctionShape::default() };
    let mut body = vec![set(Word::Register(Gpr::R12), Value::Register(Gpr::R10))];
    body.extend(disable_preemptive_gc());
    body.push(set(Word::Register(Gpr::Rax), Value::Register(Gpr::R12)));
    body.push(call_computed());
    body.push(enable_preemptive_gc());
    native(Shared::UmThunkStub, shape, body, RETURN)
}

pub(super) fn reverse_p_invoke_enter() -> Function {
    let shape = FunctionShape { locals: 0x20, ..FunctionShape::default() };
    native(Shared::ReversePInvokeEnter, shape, disable_preemptive_gc().to_vec(), RETURN)
}
