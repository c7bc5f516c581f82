//! The runtime's code in place of the statements of a program that go through the runtime.

use super::frames::call;
use super::{Caller, Plan, Shared, Stub};
use crate::ExceptionClass;
use clr_codegen::{
    EhClause, Program, RuntimeCall, RuntimeCallKind, RuntimeCallKind as Kind, Statement,
};

/// Returns true if a method with such a statement has the InlinedCallFrame of the call.
pub(super) const fn is_inline(kind: RuntimeCallKind, is_library: bool) -> bool {
    match kind {
        RuntimeCallKind::PInvoke | RuntimeCallKind::PInvokeByHelper => true,
        RuntimeCallKind::LoadAssembly
        | RuntimeCallKind::LoadClass
        | RuntimeCallKind::UnloadAssembly
        | RuntimeCallKind::UnloadDynamicMethod
        | RuntimeCallKind::ReflectionCall => is_library,
        _ => false,
    }
}

/// Returns the program as the JIT compiles it: it inlines no P/Invoke in a handler or a filter (read in .NET 5,
/// `Compiler::impCanPInvokeInlineCallSite` of src/coreclr/src/jit/importer.cpp at clairiky/runtime@93e40fb27415; assumed of other
/// versions). A Frame that a funclet links could not describe the registers that the funclet has saved.
pub(super) fn without_inlined_in_funclets(source: &Program) -> Program {
    let mut program = source.clone();
    for function in &mut program.functions {
        keep_out_of_line(&mut function.body, false);
    }
    program
}

fn keep_out_of_line(body: &mut [Statement], in_funclet: bool) {
    for statement in body {
        if let Statement::Runtime(call) = statement
            && in_funclet
            && matches!(call.kind, RuntimeCallKind::PInvoke | RuntimeCallKind::PInvokeByHelper)
        {
            call.kind = RuntimeCallKind::PInvokeStub;
        }
        if let Statement::Guarded(guarded, clauses) = statement {
            keep_out_of_line(guarded, in_funclet);
            for handler in clauses.iter_mut().flat_map(EhClause::bodies_mut) {
                keep_out_of_line(handler, true);
            }
            continue;
        }
        let in_funclet = in_funclet || matches!(statement, Statement::Funclet(_));
        for inner in statement.bodies_mut() {
            keep_out_of_line(inner, in_funclet);
        }
    }
}

impl Plan {
    /// Returns the code of a statement.
    pub(super) fn runtime_call(&self, source: RuntimeCall, caller: Caller) -> Vec<Statement> {
        let frame_at = caller.frame_at;
        let target = source.target.unwrap_or_default();
        let of_helper = |shared| vec![call(self.helper(shared))];
        if let Some(stub) = Stub::of(source.kind, self.generation) {
            let at = self.stub_of(target, stub);
            return match (source.kind, stub) {
                (_, Stub::TailCall) => self.tail_call_by_helper(target),
                (_, Stub::ReversePInvoke) => self.reverse_p_invoke(target),
                (_, Stub::ComMethod) => self.com_method(target),
                (RuntimeCallKind::PInvokeCalli, _) => {
                    self.call_by_lookup(at, Shared::GenericPInvokeCalliHelper)
                }
                (RuntimeCallKind::PInvokeVararg, _) => {
                    self.call_by_lookup(at, Shared::VarargPInvokeStub)
                }
                (_, Stub::Resolve | Stub::Dispatch) => self.call_on_object(at),
                _ => vec![call(at)],
            };
        }
        match source.kind {
            // Such a call is identified by a token, not by a method.
            RuntimeCallKind::PInvoke => {
                self.frames.inlined_call(frame_at, 0, call(self.place(target)))
            }
            RuntimeCallKind::PInvokeByHelper => {
                self.call_by_helper(frame_at, call(self.place(target)))
            }
            RuntimeCallKind::ComCallGeneric => self.com_call_generic(target),
            RuntimeCallKind::ReflectionCall => self.call_by_reflection(caller, target),
            RuntimeCallKind::ClassConstructor => {
                self.call_through(Shared::StaticBase, Shared::ClassInit, target)
            }
            RuntimeCallKind::ReflectionCallAgain => self.call_by_reflection_again(target),
            RuntimeCallKind::StartThread
            | RuntimeCallKind::TierUp
            | RuntimeCallKind::CallOnce
            | RuntimeCallKind::HandleFirstChance
            | RuntimeCallKind::HandleUnhandled
            | RuntimeCallKind::HandleProcessExit
            | RuntimeCallKind::NewFinalizable
            | RuntimeCallKind::Exit
            | RuntimeCallKind::FailFast
            | RuntimeCallKind::ExhaustStack => self.arrange(source.kind, target),
            RuntimeCallKind::JoinThread => self.join(Some(target)),
            RuntimeCallKind::AwaitFinalizers => self.join(None),
            RuntimeCallKind::FCall => of_helper(Shared::FCall),
            RuntimeCallKind::DynamicHelper => of_helper(Shared::DelayLoadHelper),
            RuntimeCallKind::MonitorEnter => of_helper(Shared::MonitorEnter),
            RuntimeCallKind::MonitorWait => {
                vec![self.call_library(Shared::MonitorWait, Shared::MonitorContention)]
            }
            RuntimeCallKind::Sleep => vec![self.call_library(Shared::Sleep, Shared::ThreadSleep)],
            RuntimeCallKind::NameThread => self.name_thread(source.target),
            RuntimeCallKind::LoadAssembly => {
                let (method, helper) = (Shared::LoadAssembly, Shared::AssemblyNativeLoad);
                self.loading(source.target, self.call_qcall(caller, method, helper))
            }
            RuntimeCallKind::LoadClass => {
                let (method, helper) = (Shared::GetType, Shared::LoadType);
                self.loading(source.target, self.call_qcall(caller, method, helper))
            }
            RuntimeCallKind::ReplaceOnStack => of_helper(Shared::Patchpoint),
            RuntimeCallKind::UnloadAssembly => {
                let (method, helper) = (Shared::DestroyAllocator, Shared::LoaderAllocatorDestroy);
                self.unloading(source.target, self.call_qcall(caller, method, helper))
            }
            RuntimeCallKind::UnloadDynamicMethod => {
                let (method, helper) = (Shared::DestroyMethod, Shared::RuntimeMethodDestroy);
                let call = if method.exists_in(self.generation) {
                    self.call_qcall(caller, method, helper)
                } else {
                    of_helper(helper)
                };
                self.unloading(source.target, call)
            }
            RuntimeCallKind::CreateHandle => self.create_handle(false),
            RuntimeCallKind::CreateEmptyHandle => self.create_handle(true),
            RuntimeCallKind::DestroyHandle => {
                of_helper(self.qcall_or(Shared::DestroyHandle, Shared::HandleFree))
            }
            RuntimeCallKind::Collect
            | RuntimeCallKind::CollectInlined
            | RuntimeCallKind::CollectYoungest
            | RuntimeCallKind::CollectYoung
            | RuntimeCallKind::Compact => self.collect(source.kind),
            RuntimeCallKind::New => self.new_object(source.target),
            kind if kind.says_heap() || kind == Kind::NewWithGc => self.allocation_in(kind),
            RuntimeCallKind::NewFast => of_helper(Shared::NewFast),
            RuntimeCallKind::WriteBarrier => of_helper(Shared::WriteBarrier),
            RuntimeCallKind::Raise => self.raise(source.target),
            RuntimeCallKind::RaiseAgain => self.raise_again(),
            RuntimeCallKind::Rethrow => of_helper(Shared::Rethrow),
            RuntimeCallKind::NullDereference => self.fault(ExceptionClass::NullReference),
            RuntimeCallKind::DivideByZero => self.fault(ExceptionClass::DivideByZero),
            RuntimeCallKind::FailRangeCheck | RuntimeCallKind::FailCast => {
                self.fail_check(source.kind)
            }
            RuntimeCallKind::Malloc => of_helper(Shared::Malloc),
            RuntimeCallKind::LoadLibrary => of_helper(Shared::LoadLibrary),
            // All others go through stubs, except for a call without transition.
            _ => vec![call(self.place(target))],
        }
    }
}
