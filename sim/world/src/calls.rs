//! Which methods call which, for their IL.

use clr_codegen::{CallTarget, CodeKind, Exit, FunctionIndex, Program, Statement};
use clr_runtime::metadata::MethodCalls;

/// Returns the methods that each method of a program calls, by their names, in text order.
pub(crate) fn calls(program: &Program) -> MethodCalls {
    let managed = |index: FunctionIndex| {
        let function = program.functions.get(index.index());
        function.filter(|function| function.kind != CodeKind::Native)
    };
    let mut all = MethodCalls::new();
    for function in program.functions.iter().filter(|one| one.kind != CodeKind::Native) {
        let mut callees = Vec::new();
        for statement in &function.body {
            collect(statement, &mut callees);
        }
        if let Some(Exit::TailCall(_, callee)) = function.end {
            callees.push(callee);
        }
        let names = callees.into_iter().filter_map(managed).map(|callee| callee.name.clone());
        all.insert(function.name.clone(), names.collect());
    }
    all
}

fn collect(statement: &Statement, to: &mut Vec<FunctionIndex>) {
    match statement {
        Statement::Call(_, callee)
        | Statement::SwitchStack(callee)
        | Statement::Exit(Exit::TailCall(_, callee)) => to.push(*callee),
        Statement::Runtime(call) if call.kind.target() == Some(CallTarget::Managed) => {
            to.extend(call.target);
        }
        _ => {}
    }
    for inner in statement.bodies().flatten() {
        collect(inner, to);
    }
}
