//! Functions that are part of their callers.

use super::program::{Exit, Function, FunctionIndex, Program, Statement};
use std::collections::BTreeSet;

impl Program {
    /// Returns the program with calls of some functions replaced by their bodies. The functions stay without a body, and
    /// none calls them.
    #[must_use]
    pub fn with_inlined(&self, inlined: &BTreeSet<FunctionIndex>) -> Self {
        let mut program = self.clone();
        // A function calls only later ones, so that the bodies that are put in have none left to replace.
        for index in (0..program.functions.len()).rev() {
            let (before, after) = program.functions.split_at_mut(index + 1);
            if let Some(function) = before.last_mut() {
                let body = core::mem::take(&mut function.body);
                function.body = inline(body, index, after, inlined);
            }
        }
        for id in inlined {
            if let Some(function) = program.functions.get_mut(id.index()) {
                function.body.clear();
            }
        }
        program
    }
}

/// Replaces calls of functions in a body of the function before `after`.
fn inline(
    body: Vec<Statement>,
    index: usize,
    after: &[Function],
    inlined: &BTreeSet<FunctionIndex>,
) -> Vec<Statement> {
    let callee = |statement: &Statement| match statement {
        Statement::Call(_, callee) if inlined.contains(callee) => {
            after.get(callee.index().checked_sub(index + 1)?)
        }
        _ => None,
    };
    let replaced = body.into_iter().flat_map(|mut statement| {
        if let Some(callee) = callee(&statement) {
            return callee.body.clone();
        }
        for inner in statement.bodies_mut() {
            *inner = inline(core::mem::take(inner), index, after, inlined);
        }
        vec![statement]
    });
    replaced.collect()
}

impl Program {
    /// Returns true if a function is named elsewhere than in a plain call.
    #[must_use]
    pub fn names_otherwise(&self, function: FunctionIndex) -> bool {
        let names = |statement: &Statement| match statement {
            Statement::Runtime(call) => call.target == Some(function),
            Statement::Exit(Exit::TailCall(_, callee))
            | Statement::Trap(callee)
            | Statement::SwitchStack(callee) => *callee == function,
            _ => false,
        };
        self.functions.iter().any(|caller| {
            matches!(caller.end, Some(Exit::TailCall(_, callee)) if callee == function)
                || caller.body.iter().any(|statement| statement.contains(&names))
        })
    }
}

impl Function {
    /// Returns true if control leaves the function elsewhere than at the end of its body.
    #[must_use]
    pub fn has_exits(&self) -> bool {
        let is_exit = |statement: &Statement| match statement {
            Statement::Exit(_) | Statement::Stop => true,
            Statement::Runtime(call) => call.kind.leaves(),
            _ => false,
        };
        !matches!(self.end, Some(Exit::Return(_)))
            || self.body.iter().any(|statement| statement.contains(&is_exit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallForm, CodeKind, FunctionShape, ReturnForm};

    fn function(body: Vec<Statement>) -> Function {
        let (name, kind, shape) = (String::new(), CodeKind::Jit, FunctionShape::default());
        Function { name, kind, shape, body, end: Some(Exit::Return(ReturnForm::Ret)) }
    }

    fn call(callee: u32) -> Statement {
        Statement::Call(CallForm::Near, FunctionIndex(callee))
    }

    #[test]
    fn callers_contain_the_bodies_in_their_order() {
        let functions = vec![
            function(vec![Statement::Work(1), Statement::Loop(2, vec![call(1)]), call(2)]),
            function(vec![call(2), Statement::Work(2)]),
            function(vec![Statement::Work(3)]),
        ];
        let program = Program { functions, ..Program::default() };
        let both = program.with_inlined(&[FunctionIndex(1), FunctionIndex(2)].into());
        let inner = vec![Statement::Work(3), Statement::Work(2)];
        let expected = [Statement::Work(1), Statement::Loop(2, inner), Statement::Work(3)];
        assert_eq!(both.functions[0].body, expected);
        let last = program.with_inlined(&[FunctionIndex(2)].into());
        assert_eq!(last.functions[0].body[1], Statement::Loop(2, vec![call(1)]));
        assert_eq!(last.functions[1].body, [Statement::Work(3), Statement::Work(2)]);
        assert_eq!(last.functions[2].body, []);
        assert!(!program.names_otherwise(FunctionIndex(2)));
        assert_eq!(program.with_inlined(&BTreeSet::new()), program);
    }

    #[test]
    fn a_function_that_returns_early_has_exits() {
        let early = Statement::If(true, vec![Statement::Exit(Exit::Return(ReturnForm::Ret))]);
        assert!(function(vec![early]).has_exits());
        assert!(!function(vec![Statement::Work(1)]).has_exits());
        assert!(Function { end: None, ..function(Vec::new()) }.has_exits());
    }
}
