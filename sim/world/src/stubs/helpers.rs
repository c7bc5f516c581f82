//! JIT helpers, FCalls and QCalls.

use super::details::Detail;
use super::frames::{Frames, call, enable_preemptive_gc, reserve_frame, service, set, with_frame};
use super::{Caller, Plan, RETURN, Service, Shared, Stub, leaf, method_id, native, saving};
use crate::allocated::Allocated;
use clr_codegen::{
    CodeKind, Function, FunctionIndex, FunctionShape, Primitive, RuntimeCallKind, Statement, Value,
    Word,
};
use clr_runtime::FrameKind;
use clr_runtime::thread::offset;
use clr_unwind::Gpr;

/// The register of a helper's extra argument: code to call, or a flag that a GC is needed.
pub(super) const ARGUMENT: Gpr = Gpr::R9;

/// The argument with which a handle of no object is created. It is no id of a method.
pub(crate) const EMPTY_HANDLE: u64 = 0x6C1_0000;

impl Plan {
    /// Creates unmanaged code with a HelperMethodFrame around its body.
    pub(super) fn with_helper_frame(&self, shared: Shared, inner: Vec<Statement>) -> Function {
        let (shape, at) = with_frame();
        let fcall = shared.is_fcall().then(|| self.helper(shared));
        let mut body = self.frames.helper_method_frame(at, 0, fcall);
        body.extend(inner);
        body.push(Frames::unlink(at));
        native(shared, shape, body, RETURN)
    }

    /// Creates a helper that may trigger a GC, and therefore has a Frame: a HelperMethodFrame, or, where there are none, a
    /// DynamicHelperFrame of the worker that its stub calls.
    pub(super) fn gc_helper(
        &self,
        shared: Shared,
        [stub, worker]: [Shared; 2],
        inner: Vec<Statement>,
    ) -> Function {
        if shared == worker {
            let (shape, at) = with_frame();
            let mut body = self.frames.transition_frame(at, FrameKind::DynamicHelper);
            body.extend(inner);
            body.push(Frames::unlink(at));
            return native(worker, shape, body, RETURN);
        }
        if self.generation.has_helper_method_frames() {
            return self.with_helper_frame(stub, inner);
        }
        let body = vec![
            set(Word::Register(self.frames.first_argument()), Value::Pushed),
            set(Word::Register(Gpr::R10), Value::Number(0)),
            call(self.helper(worker)),
        ];
        native(stub, self.frames.transition_stub(), body, RETURN)
    }

    /// Creates `JIT_New` or its worker.
    pub(super) fn allocating_helper(&self, shared: Shared) -> Function {
        let allocate = call(self.helper(Shared::Allocate));
        self.gc_helper(shared, [Shared::New, Shared::NewWorker], vec![allocate])
    }

    /// Returns the statements of a method that allocates an object of the class of a constructor, or of one that the program
    /// does not name.
    pub(super) fn allocation(
        &self,
        with_gc: bool,
        constructor: Option<FunctionIndex>,
    ) -> Vec<Statement> {
        self.allocation_of(with_gc, constructor.map_or(0, |one| method_id(self.place(one))))
    }

    /// Returns the statements of a method that allocates an object after a GC, in a heap of its own, or with a reference.
    pub(super) fn allocation_in(&self, kind: RuntimeCallKind) -> Vec<Statement> {
        let what = match kind {
            RuntimeCallKind::NewWithGc => return self.allocation(true, None),
            RuntimeCallKind::NewLarge => Allocated::Large,
            RuntimeCallKind::NewPinned => Allocated::Pinned,
            _ => Allocated::Referring,
        };
        self.allocation_of(false, what.number())
    }

    /// Returns the statements of a method that allocates an object that code describes by a number.
    fn allocation_of(&self, with_gc: bool, number: u64) -> Vec<Statement> {
        let said = set(Word::Thread(offset::ALLOCATED as u32), Value::Number(number));
        let named = self.if_said(Detail::Object, said);
        let argument = set(Word::Register(ARGUMENT), Value::Number(with_gc.into()));
        named.into_iter().chain([argument, call(self.helper(Shared::New))]).collect()
    }

    /// Takes memory for an object, after a GC if one is needed.
    pub(super) fn allocate(&self) -> Function {
        let body = vec![
            set(Word::Register(Gpr::Rax), Value::Register(ARGUMENT)),
            Statement::Primitive(Primitive::When(vec![call(self.helper(Shared::GarbageCollect))])),
            service(Service::Allocated),
        ];
        native(Shared::Allocate, plain(), body, RETURN)
    }

    /// Creates an FCall that stays cooperative. It has no Frame in generations whose FCalls have
    /// none.
    pub(super) fn fcall(&self) -> Function {
        if self.generation.has_helper_method_frames() {
            return self.with_helper_frame(Shared::FCall, vec![Statement::Work(6)]);
        }
        native(Shared::FCall, leaf(), vec![Statement::Work(6)], RETURN)
    }

    /// Creates the write barrier: a leaf of the runtime's image, or a copy of it in memory of its own.
    pub(super) fn write_barrier(&self) -> Function {
        let barrier = leaf_helper(Shared::WriteBarrier);
        let copied = self.generation.copies_write_barrier();
        Function { kind: if copied { CodeKind::Jit } else { barrier.kind }, ..barrier }
    }

    /// Creates a helper that performs a service in preemptive mode: an FCall with a Frame, or the
    /// unmanaged side of a QCall.
    pub(super) fn preemptive_helper(&self, shared: Shared, what: Service) -> Function {
        if !self.generation.has_helper_method_frames() {
            return native(shared, plain(), vec![service(what)], RETURN);
        }
        let mut inner = vec![enable_preemptive_gc(), service(what)];
        inner.extend(self.frames.disable_preemptive_gc());
        self.with_helper_frame(shared, inner)
    }

    /// Creates a helper that notifies the profiler of a transition: an FCall with a Frame, or the
    /// unmanaged side of a QCall.
    pub(super) fn transition_helper(&self, shared: Shared, what: Service) -> Function {
        if self.generation.has_helper_method_frames() {
            self.preemptive_helper(shared, what)
        } else {
            native(shared, plain(), vec![service(what)], RETURN)
        }
    }

    /// Creates the unmanaged side of a QCall that makes a GC.
    pub(super) fn gc_interface_collect(&self) -> Function {
        let mut body = self.frames.disable_preemptive_gc().to_vec();
        body.push(call(self.helper(Shared::GarbageCollect)));
        body.push(enable_preemptive_gc());
        native(Shared::GcInterfaceCollect, plain(), body, RETURN)
    }

    /// Creates unmanaged code of the runtime that calls the method whose code is in [`ARGUMENT`].
    pub(super) fn calling_helper(&self, shared: Shared) -> Function {
        let to_rbx = set(Word::Register(Gpr::Rbx), Value::Register(ARGUMENT));
        let call = call(self.helper(Shared::CallDescrWorker));
        if self.generation.has_helper_method_frames() {
            return self.with_helper_frame(shared, vec![to_rbx, call]);
        }
        let mut body = vec![to_rbx];
        body.extend(self.frames.disable_preemptive_gc());
        body.push(call);
        body.push(enable_preemptive_gc());
        native(shared, plain(), body, RETURN)
    }

    /// Creates a method of the class library that uses a QCall: a P/Invoke into the runtime.
    pub(super) fn qcall(&self, shared: Shared, callee: Shared) -> Function {
        let mut shape = FunctionShape::default();
        let at = reserve_frame(&mut shape, self.frames.convention());
        let body = self.own_qcall(at, callee);
        let name = shared.name().to_owned();
        Function { name, kind: CodeKind::ReadyToRun, shape, body, end: Some(RETURN) }
    }

    /// Calls the unmanaged side of a QCall from a method: through the method of the class library that has the QCall, or
    /// directly from a method that is of the class library itself.
    pub(super) fn call_qcall(&self, by: Caller, method: Shared, helper: Shared) -> Vec<Statement> {
        if by.is_library {
            self.own_qcall(by.frame_at, helper)
        } else {
            vec![call(self.helper(method))]
        }
    }

    /// Calls the unmanaged side of a QCall directly: the transition is part of the method.
    pub(super) fn own_qcall(&self, frame_at: u32, helper: Shared) -> Vec<Statement> {
        let call = call(self.helper(helper));
        if self.generation.is_core() {
            self.call_by_helper(frame_at, call)
        } else {
            self.frames.inlined_call(frame_at, 0, call)
        }
    }

    /// Creates a handle, of no object if the program says so.
    pub(super) fn create_handle(&self, is_empty: bool) -> Vec<Statement> {
        let argument = Value::Number(if is_empty { EMPTY_HANDLE } else { 0 });
        let argument = set(Word::Register(ARGUMENT), argument);
        let argument = self.if_said(Detail::EmptyHandle, argument);
        let helper = self.qcall_or(Shared::CreateHandle, Shared::HandleAlloc);
        argument.into_iter().chain([call(self.helper(helper))]).collect()
    }

    /// Calls such a helper from a method: an FCall directly, a QCall through its method.
    pub(super) fn call_library(&self, method: Shared, helper: Shared) -> Statement {
        let has_method = method.exists_in(self.generation);
        call(self.helper(if has_method { method } else { helper }))
    }

    /// Names a method for a helper that calls it: by its precode, if the program has one.
    pub(super) fn callee(&self, target: FunctionIndex) -> Statement {
        let precode = self.stubs.get(&(target, Stub::Precode)).copied();
        let callee = precode.unwrap_or_else(|| self.place(target));
        set(Word::Register(ARGUMENT), Value::Function(callee))
    }

    /// Calls, in the same way, a helper that calls a function.
    pub(super) fn call_through(
        &self,
        method: Shared,
        helper: Shared,
        target: FunctionIndex,
    ) -> Vec<Statement> {
        vec![self.callee(target), self.call_library(method, helper)]
    }
}

/// Returns the shape of unmanaged code without a Frame.
pub(super) fn plain() -> FunctionShape {
    saving(&[Gpr::Rbx], 0x20)
}

/// Returns the service of unmanaged code that does nothing but call a service.
pub(super) const fn served(shared: Shared) -> Option<Service> {
    Some(match shared {
        Shared::InformThreadNameChange => Service::NameThread,
        Shared::AssemblyNativeLoad => Service::LoadAssembly,
        Shared::GcThread => Service::ServeGc,
        Shared::ProfilerHook | Shared::ProfilerLeaveHook | Shared::ProfilerTailcallHook => {
            Service::FastHook
        }
        Shared::StartThread => Service::StartThread,
        Shared::CallOnce => Service::CallOnce,
        Shared::HandleFirstChance => Service::HandleFirstChance,
        Shared::HandleUnhandled => Service::HandleUnhandled,
        Shared::HandleProcessExit => Service::HandleProcessExit,
        Shared::MakeFinalizable => Service::MakeFinalizable,
        Shared::FailFast => Service::Die,
        Shared::Malloc => Service::Malloc,
        Shared::LoadLibrary => Service::LoadLibrary,
        Shared::GetIlStub => Service::CompileStub,
        Shared::LoadType => Service::LoadClass,
        Shared::GarbageCollect => Service::Collect,
        Shared::Propagate => Service::Propagate,
        Shared::EhEnumNext => Service::NextClause,
        Shared::ConditionWait => Service::RareDisable,
        _ => return None,
    })
}

/// Creates a helper that is a leaf.
pub(super) fn leaf_helper(shared: Shared) -> Function {
    native(shared, leaf(), vec![Statement::Work(4)], RETURN)
}
