//! Calls between managed and unmanaged code, and the first functions of threads.

use super::arranged;
use super::frames::{
    Frames, call, call_computed, enable_preemptive_gc, reserve_frame, service, set, with_frame,
};
use super::helpers::ARGUMENT;
use super::hooks::surround;
use super::{Plan, RETURN, Service, Shared, Stub, method_id, native, saving};
use crate::ExceptionClass;
use clr_codegen::{
    CodeKind, EhClause, EhClauseKind, Function, FunctionIndex, FunctionShape, Primitive, Statement,
    Value, Word,
};
use clr_runtime::FrameKind;
use clr_runtime::thread::offset;
use clr_unwind::Gpr;

impl Plan {
    /// Creates `IL_STUB_PInvoke`: its Frame is linked in its prologue, so that the Frame is on the
    /// chain, inactive, before and after the call.
    pub(super) fn p_invoke_stub(
        &self,
        stub: Stub,
        id: FunctionIndex,
        target: &Function,
    ) -> Function {
        let mut shape = FunctionShape::default();
        let at = reserve_frame(&mut shape, self.frames.convention());
        // The method of the Frame is the P/Invoke's method, which walks count but do not report.
        let mut body = self.frames.inlined_call_frame(at, method_id(self.place(id)));
        body.push(Frames::link(at));
        body.extend(self.transition_callback(at, Shared::TellTransition, Shared::BeginTransition));
        body.extend(self.frames.call_unmanaged(at, call(self.place(id))));
        body.extend(self.transition_callback(at, Shared::TellReturn, Shared::EndTransition));
        body.push(Frames::unlink(at));
        let name = format!("{}{}", stub.prefix(), target.name);
        Function { name, kind: CodeKind::Jit, shape, body, end: Some(RETURN) }
    }

    /// Notifies the profiler of a transition: by an FCall with its own Frame, by a QCall with
    /// the stub's Frame, or by a method of the class library.
    fn transition_callback(&self, at: u32, method: Shared, helper: Shared) -> Vec<Statement> {
        if method.exists_in(self.generation) {
            return vec![call(self.helper(method))];
        }
        let report = call(self.helper(helper));
        if self.generation.has_helper_method_frames() {
            return vec![report];
        }
        self.frames.call_unmanaged(at, report)
    }

    /// Returns a P/Invoke between its two helpers.
    pub(super) fn call_by_helper(&self, at: u32, native: Statement) -> Vec<Statement> {
        let frame = set(Word::Register(self.frames.first_argument()), Value::LocalAddress(at));
        vec![
            frame.clone(),
            call(self.helper(Shared::PInvokeBegin)),
            native,
            frame,
            call(self.helper(Shared::PInvokeEnd)),
        ]
    }

    /// Returns a call of a COM method through the shared stub.
    pub(super) fn com_call_generic(&self, target: FunctionIndex) -> Vec<Statement> {
        let target = self.place(target);
        vec![
            set(Word::Register(Gpr::R10), Value::Number(method_id(target))),
            set(Word::Register(ARGUMENT), Value::Function(target)),
            call(self.helper(Shared::GenericComPlusCallStub)),
        ]
    }

    pub(super) fn com_plus_call_stub(&self) -> Function {
        let shape = self.frames.transition_stub();
        let body = vec![
            set(Word::Register(self.frames.first_argument()), Value::Pushed),
            call(self.helper(Shared::ClrToComWorker)),
        ];
        native(Shared::GenericComPlusCallStub, shape, body, RETURN)
    }

    /// Calls the code that [`ARGUMENT`] points to, with its own Frame.
    pub(super) fn clr_to_com_worker(&self) -> Function {
        let (shape, at) = with_frame();
        let mut body = vec![set(Word::Register(Gpr::Rbx), Value::Register(ARGUMENT))];
        body.extend(self.frames.transition_frame(at, FrameKind::ComPlusMethod));
        body.push(enable_preemptive_gc());
        body.push(set(Word::Register(Gpr::Rax), Value::Register(Gpr::Rbx)));
        body.push(call_computed());
        body.extend(self.frames.disable_preemptive_gc());
        body.push(Frames::unlink(at));
        native(Shared::ClrToComWorker, shape, body, RETURN)
    }

    /// Returns the statements of a native caller for a call by COM.
    pub(super) fn com_method(&self, target: FunctionIndex) -> Vec<Statement> {
        let stub = self.stub_of(target, Stub::ComMethod);
        vec![
            set(Word::Register(Gpr::R10), Value::Function(stub)),
            call(self.helper(Shared::GenericComCallStub)),
        ]
    }

    /// Creates `GenericComCallStub`: it switches the mode with a Frame, and makes the dispatch
    /// helper call the stub in r10.
    pub(super) fn com_call_stub(&self) -> Function {
        let (shape, at) = with_frame();
        let mut body = vec![set(Word::Register(Gpr::Rbx), Value::Register(Gpr::R10))];
        body.extend(attach());
        if !self.generation.has_helper_method_frames() {
            body.push(service(Service::UnmanagedToManagedCall));
        }
        body.extend(self.frames.disable_preemptive_gc());
        body.extend(self.frames.unmanaged_to_managed_frame(at, FrameKind::ComMethod));
        body.push(call(self.helper(Shared::ComToClrDispatchHelper)));
        body.push(Frames::unlink(at));
        body.push(enable_preemptive_gc());
        if !self.generation.has_helper_method_frames() {
            body.push(service(Service::ManagedToUnmanagedReturn));
        }
        native(Shared::GenericComCallStub, shape, body, RETURN)
    }

    /// Creates `IL_STUB_COMtoCLR`.
    pub(super) fn com_method_stub(&self, id: FunctionIndex, target: &Function) -> Function {
        let shape = saving(&[Gpr::Rbp], 0x20);
        let mut body = vec![call(self.place(id))];
        if self.generation.has_helper_method_frames() {
            body.insert(0, call(self.helper(Shared::BeginReverseTransition)));
            body.push(call(self.helper(Shared::EndReverseTransition)));
        }
        let name = format!("{}{}", Stub::ComMethod.prefix(), target.name);
        Function { name, kind: CodeKind::Jit, shape, body, end: Some(RETURN) }
    }

    /// Returns the statements of a native caller for a reverse P/Invoke.
    pub(super) fn reverse_p_invoke(&self, target: FunctionIndex) -> Vec<Statement> {
        let stub = self.stub_of(target, Stub::ReversePInvoke);
        if !self.generation.has_um_thunk_stub() {
            return vec![call(stub)];
        }
        // The delegate's thunk loads the stub into r10.
        vec![
            set(Word::Register(Gpr::R10), Value::Function(stub)),
            call(self.helper(Shared::UmThunkStub)),
        ]
    }

    /// Creates `IL_STUB_ReversePInvoke`.
    pub(super) fn reverse_p_invoke_stub(&self, id: FunctionIndex, target: &Function) -> Function {
        let shape = saving(&[Gpr::Rbp], 0x20);
        // Where the stub itself switches the mode, the helpers for that also notify the profiler.
        let (begin, end) = if self.generation.has_um_thunk_stub() {
            (Shared::BeginReverseTransition, Shared::EndReverseTransition)
        } else {
            (Shared::ReversePInvokeEnter, Shared::ReversePInvokeExit)
        };
        let body = vec![call(self.helper(begin)), call(self.place(id)), call(self.helper(end))];
        let name = format!("{}{}", Stub::ReversePInvoke.prefix(), target.name);
        Function { name, kind: CodeKind::Jit, shape, body, end: Some(RETURN) }
    }

    /// Lets a method that only unmanaged code calls switch the mode itself, as the JIT does it with
    /// `CORJIT_FLAG_REVERSE_PINVOKE`.
    pub(super) fn switch_mode(&self, method: &mut Function) {
        let exit = call(self.helper(Shared::ReversePInvokeExit));
        surround(method, call(self.helper(Shared::ReversePInvokeEnter)), &|_| exit.clone());
    }

    /// Creates the first function of a thread of the runtime: it becomes cooperative to call its
    /// method.
    pub(super) fn kick_off_thread(&self) -> Function {
        let (shape, at) = with_frame();
        let mut body = vec![
            service(Service::ThreadStart),
            set(Word::Register(Gpr::Rbx), Value::Register(Gpr::Rax)),
        ];
        body.extend(self.frames.disable_preemptive_gc());
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

impl Plan {
    /// Creates the first function of the thread that executes the program: managed code calls the entry point.
    pub(super) fn run_main(&self) -> Function {
        let body = vec![
            service(Service::ThreadStart),
            set(Word::Register(Gpr::Rbx), Value::Register(Gpr::Rax)),
            call(self.helper(Shared::CallEntryPoint)),
            service(Service::ThreadEnd),
        ];
        native(Shared::RunMain, saving(&[Gpr::Rbx], 0x20), body, RETURN)
    }

    /// Creates the method that calls the program's entry point, whose code is in rbx. It has `UnmanagedCallersOnlyAttribute`.
    pub(super) fn call_entry_point(&self) -> Function {
        let body = vec![arranged::asking_for_handler(calling_named())];
        self.entry(Shared::CallEntryPoint, body)
    }

    /// Creates a method of the class library with `UnmanagedCallersOnlyAttribute`: the runtime calls it.
    pub(super) fn entry(&self, shared: Shared, body: Vec<Statement>) -> Function {
        let mut method = arranged::with_frame_register(shared, body);
        self.switch_mode(&mut method);
        method
    }

    /// Creates the unmanaged side of running a class constructor, which managed code calls: it throws an exception of its own
    /// if the constructor has thrown.
    pub(super) fn class_init(&self) -> Function {
        let failed = offset::CONSTRUCTOR_FAILED as u32;
        let class = Value::Number(ExceptionClass::TypeInitialization.number());
        let mut body = vec![
            set(Word::Register(Gpr::Rbx), Value::Register(ARGUMENT)),
            set(Word::Thread(failed), Value::Number(0)),
            call(self.helper(Shared::CallClassConstructor)),
        ];
        if self.throws {
            let throw = vec![
                set(Word::Thread(offset::LAST_THROWN as u32), class),
                call(self.helper(Shared::RethrowHelper)),
            ];
            // The flag is clear for the class constructor around this one.
            body.extend([
                set(Word::Register(Gpr::Rbx), Value::Thread(failed)),
                set(Word::Thread(failed), Value::Number(0)),
                set(Word::Register(Gpr::Rax), Value::Register(Gpr::Rbx)),
                Statement::Primitive(Primitive::When(throw)),
            ]);
        }
        native(Shared::ClassInit, saving(&[Gpr::Rbx], 0x20), body, RETURN)
    }

    /// Creates the method that calls a class constructor, whose code is in rbx, and notes whether it has thrown.
    pub(super) fn call_class_constructor(&self) -> Function {
        let failed = set(Word::Thread(offset::CONSTRUCTOR_FAILED as u32), Value::Number(1));
        let clause = EhClause { kind: EhClauseKind::Catch, body: vec![failed] };
        let body = vec![Statement::Guarded(calling_named(), vec![clause])];
        self.entry(Shared::CallClassConstructor, body)
    }
}

/// Returns the statements that call the method in rbx.
pub(super) fn calling_named() -> Vec<Statement> {
    vec![set(Word::Register(Gpr::Rax), Value::Register(Gpr::Rbx)), call_computed()]
}

/// Calls the method in rbx.
pub(super) fn call_descr_worker() -> Function {
    let shape = saving(&[Gpr::Rbx, Gpr::Rbp], 0x28);
    native(Shared::CallDescrWorker, shape, calling_named(), RETURN)
}

/// Creates `COMToCLRDispatchHelper`, which calls the stub in rbx.
pub(super) fn com_to_clr_dispatch_helper() -> Function {
    let shape = saving(&[Gpr::Rbp], 0x28);
    native(Shared::ComToClrDispatchHelper, shape, calling_named(), RETURN)
}

/// Makes the thread known to the runtime unless it is known already.
fn attach() -> [Statement; 2] {
    [
        set(Word::Register(Gpr::Rax), Value::ThreadObject),
        Statement::Primitive(Primitive::Unless(vec![service(Service::AttachThread)])),
    ]
}

/// Switches the mode, and calls the stub in r10.
pub(super) fn um_thunk_stub(frames: &Frames) -> Function {
    let shape = saving(&[Gpr::R12], 0x68);
    let mut body = vec![set(Word::Register(Gpr::R12), Value::Register(Gpr::R10))];
    body.extend(attach());
    body.extend(frames.disable_preemptive_gc());
    body.push(set(Word::Register(Gpr::Rax), Value::Register(Gpr::R12)));
    body.push(call_computed());
    body.push(enable_preemptive_gc());
    native(Shared::UmThunkStub, shape, body, RETURN)
}

/// Notifies the profiler before the mode is switched: no Frame leads to managed code (C-170,
/// observed on U9; assumed for .NET 10, of which no such walk was recorded).
pub(super) fn reverse_p_invoke_enter(frames: &Frames) -> Function {
    let shape = saving(&[], 0x20);
    let mut body = attach().to_vec();
    body.push(service(Service::UnmanagedToManagedCall));
    body.extend(frames.disable_preemptive_gc());
    native(Shared::ReversePInvokeEnter, shape, body, RETURN)
}

/// Does the same on the way back.
pub(super) fn reverse_p_invoke_exit() -> Function {
    let shape = saving(&[], 0x20);
    let body = vec![service(Service::ManagedToUnmanagedReturn), enable_preemptive_gc()];
    native(Shared::ReversePInvokeExit, shape, body, RETURN)
}
