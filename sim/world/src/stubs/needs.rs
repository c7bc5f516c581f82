//! The helpers that a program needs.

use super::{Plan, Shared};
use clr_codegen::{Exit, Function, FunctionIndex, Primitive, Statement, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Helpers that worlds themselves need.
const ALWAYS: [Shared; 3] =
    [Shared::KickOffThread, Shared::RedirectedHandledJitCase, Shared::OnHijackTripThread];

/// Helpers that no code calls, but with which worlds continue when something is thrown.
const THROWING: [Shared; 8] = [
    Shared::HardwareFault,
    Shared::RethrowHelper,
    Shared::Propagate,
    Shared::CallFunclet,
    Shared::CallFilter,
    Shared::CallCatchFunclet,
    Shared::CallFinallyFunclet,
    Shared::CallFilterFunclet,
];

impl Plan {
    /// Returns the helpers that the functions call, directly or through other helpers.
    pub(super) fn needed<'f>(
        &self,
        functions: impl Iterator<Item = &'f Function>,
    ) -> BTreeSet<Shared> {
        let by_id: BTreeMap<FunctionIndex, Shared> =
            self.shared.iter().map(|(shared, id)| (*id, *shared)).collect();
        let mut needed = BTreeSet::new();
        let mut open = ALWAYS.to_vec();
        open.extend(self.entry_point.map(|_| Shared::RunMain));
        if self.throws {
            open.extend(THROWING.iter().filter(|shared| shared.exists_in(self.generation)));
        }
        open.extend(self.roots.iter().filter(|shared| shared.exists_in(self.generation)));
        let note = |function: &Function, open: &mut Vec<Shared>| {
            mentioned(function, &mut |id| open.extend(by_id.get(&id)));
        };
        for function in functions {
            note(function, &mut open);
        }
        while let Some(shared) = open.pop() {
            // No code calls this one either.
            if shared == Shared::GarbageCollect {
                open.push(Shared::GcThread);
            }
            if needed.insert(shared) {
                note(&self.shared_function(shared), &mut open);
            }
        }
        needed
    }
}

/// Calls `add` for each function that a function names.
fn mentioned(function: &Function, add: &mut impl FnMut(FunctionIndex)) {
    if let Some(Exit::TailCall(_, id)) = function.end {
        add(id);
    }
    in_body(&function.body, add);
}

fn in_body(body: &[Statement], add: &mut impl FnMut(FunctionIndex)) {
    for statement in body {
        match statement {
            Statement::Call(_, id)
            | Statement::Exit(Exit::TailCall(_, id))
            | Statement::Primitive(Primitive::Set(_, Value::Function(id))) => add(*id),
            _ => {}
        }
        for inner in statement.bodies() {
            in_body(inner, add);
        }
    }
}
