//! Calls by reflection as they are from the second call of a method on.
//!
//! Up to CoreCLR 3.1 each is a call of native code, which wraps what the method throws. Later runtimes have emitted a
//! dynamic method by then, and managed code around it catches with a filter and throws the wrapper (recorded on 3.1.3,
//! 8.0.34, 9.0.23 and 10.0.15). The dynamic method, which walks do not report, is left out.

use super::frames::{call, call_computed, set};
use super::helpers::ARGUMENT;
use super::{Caller, Plan, RETURN, Shared, saving};
use crate::ExceptionClass;
use clr_codegen::{
    CodeKind, EhClause, EhClauseKind, FrameRegister, FrameSet, Function, FunctionIndex,
    FunctionShape, Statement, Value, Word,
};
use clr_unwind::Gpr;

impl Plan {
    /// Calls a method by reflection.
    pub(super) fn call_by_reflection(&self, by: Caller, target: FunctionIndex) -> Vec<Statement> {
        let (method, helper) = (Shared::Invoke, Shared::InvokeMethod);
        if !by.is_library || !method.exists_in(self.generation) {
            return self.call_through(method, helper, target);
        }
        [self.callee(target)].into_iter().chain(self.own_qcall(by.frame_at, helper)).collect()
    }

    /// Calls a method by reflection again.
    pub(super) fn call_by_reflection_again(&self, target: FunctionIndex) -> Vec<Statement> {
        let argument = set(Word::Register(ARGUMENT), Value::Function(self.place(target)));
        let chain = [Shared::InvokeMethodBase, Shared::InvokeMethodInfo, Shared::InvokeWithNoArgs];
        let first = chain.into_iter().find(|shared| shared.exists_in(self.generation));
        let first = first.map(|first| call(self.helper(first)));
        [argument].into_iter().chain(first).collect()
    }

    /// Creates a method between the caller and what is called by reflection.
    pub(super) fn reflection(&self, shared: Shared) -> Function {
        let callee = match shared {
            Shared::InvokeMethodBase => Shared::InvokeMethodInfo,
            Shared::InvokeMethodInfo if Shared::InvokeWithNoArgs.exists_in(self.generation) => {
                Shared::InvokeWithNoArgs
            }
            Shared::InvokeMethodInfo => Shared::InvokeMethod,
            _ => return self.invoke_with_no_args(shared),
        };
        Self::forwarding(shared, call(self.helper(callee)))
    }

    fn invoke_with_no_args(&self, shared: Shared) -> Function {
        let guarded =
            vec![set(Word::Register(Gpr::Rax), Value::Register(ARGUMENT)), call_computed()];
        let kind = EhClauseKind::Filtered { accepts: true, filter: vec![Statement::Work(2)] };
        let wraps = EhClause { kind, body: self.throw(ExceptionClass::TargetInvocation) };
        let shape = FunctionShape {
            frame: Some(FrameRegister {
                register: Gpr::Rbp,
                offset: 0,
                set: FrameSet::AfterSaves,
                described: true,
            }),
            ..saving(&[Gpr::Rbp], 0)
        };
        let name = shared.name().to_owned();
        let body = vec![Statement::Guarded(guarded, vec![wraps])];
        Function { name, kind: CodeKind::ReadyToRun, shape, body, end: Some(RETURN) }
    }

    /// Creates a method of the class library that only calls another one.
    pub(super) fn forwarding(shared: Shared, callee: Statement) -> Function {
        let name = shared.name().to_owned();
        let shape = saving(&[], 0x28);
        Function { name, kind: CodeKind::ReadyToRun, shape, body: vec![callee], end: Some(RETURN) }
    }
}
