//! Which methods call which, for their IL, and which load the assemblies of others.

use clr_codegen::{CallTarget, CodeKind, Exit, FunctionIndex, Program, RuntimeCallKind, Statement};
use clr_runtime::metadata::MethodCalls;
use std::collections::BTreeSet;

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

/// Returns the methods whose assemblies a program loads with a statement.
pub(crate) fn loaded_by(program: &Program) -> BTreeSet<FunctionIndex> {
    let mut found = BTreeSet::new();
    let mut bodies: Vec<_> = program.functions.iter().map(|one| one.body.as_slice()).collect();
    while let Some(body) = bodies.pop() {
        bodies.extend(body.iter().flat_map(Statement::bodies));
        let calls = body.iter().filter_map(|statement| match statement {
            Statement::Runtime(call) if call.kind == RuntimeCallKind::LoadAssembly => call.target,
            _ => None,
        });
        found.extend(calls);
    }
    found
}
