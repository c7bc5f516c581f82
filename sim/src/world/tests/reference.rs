//! What a program with exceptions does, said plainly: the statements are executed one by one.

use crate::code::{
    Clause, ClauseKind, FunctionId, Program, RuntimeCall, RuntimeCallKind, Statement,
};

/// Why a body is left before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// For a clause of the guarded statement that so many are around.
    Caught { depth: usize, clause: usize },
    /// A filter has thrown: it counts as having refused.
    Refused,
    /// Nothing catches the exception: the process ends.
    Uncaught,
}

/// What a program's functions of a kind are called in order.
pub(super) struct Reference<'p> {
    program: &'p Program,
    /// The functions from here on are noted when they are called.
    first_mark: u32,
    /// The guarded statements that protect what is executed.
    guards: Vec<&'p [Clause]>,
    in_filter: bool,
    pub(super) marks: Vec<u32>,
}

impl<'p> Reference<'p> {
    /// Executes the first function; whether it comes to its end.
    pub(super) fn run(program: &'p Program, first_mark: u32) -> (Vec<u32>, bool) {
        let (guards, marks) = (Vec::new(), Vec::new());
        let mut run = Self { program, first_mark, guards, in_filter: false, marks };
        let ends = run.call(FunctionId(0)).is_ok();
        (run.marks, ends)
    }

    fn call(&mut self, function: FunctionId) -> Result<(), Left> {
        if function.0 >= self.first_mark {
            self.marks.push(function.0);
        }
        self.body(&self.program.functions[function.index()].body)
    }

    fn body(&mut self, body: &'p [Statement]) -> Result<(), Left> {
        body.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &'p Statement) -> Result<(), Left> {
        use RuntimeCallKind::{NullDereference, Raise, Rethrow};
        match statement {
            Statement::Call(_, callee) => self.call(*callee),
            Statement::Loop(times, body) => (0..*times).try_for_each(|_| self.body(body)),
            Statement::Funclet(body) => self.body(body),
            Statement::Guarded(body, clauses) => self.guarded(body, clauses),
            Statement::Runtime(RuntimeCall { kind: Raise | Rethrow | NullDereference, .. }) => {
                Err(self.search())
            }
            _ => Ok(()),
        }
    }

    fn guarded(&mut self, body: &'p [Statement], clauses: &'p [Clause]) -> Result<(), Left> {
        let own = self.guards.len();
        self.guards.push(clauses);
        let result = self.body(body);
        self.guards.truncate(own);
        match result {
            Err(Left::Caught { depth, clause }) if depth == own => self.body(&clauses[clause].body),
            Err(Left::Uncaught) => result,
            _ => {
                let clause = &clauses[0];
                let runs = match clause.kind {
                    ClauseKind::Finally => true,
                    ClauseKind::Fault => result.is_err(),
                    ClauseKind::Catch | ClauseKind::Filtered { .. } => false,
                };
                if runs {
                    self.body(&clause.body)?;
                }
                result
            }
        }
    }

    /// The first pass: who catches.
    fn search(&mut self) -> Left {
        for depth in (0..self.guards.len()).rev() {
            for (clause, one) in self.guards[depth].iter().enumerate() {
                let accepts = match &one.kind {
                    ClauseKind::Catch => true,
                    ClauseKind::Filtered { accepts, filter } => self.filter(filter) && *accepts,
                    ClauseKind::Finally | ClauseKind::Fault => false,
                };
                if accepts {
                    return Left::Caught { depth, clause };
                }
            }
        }
        if self.in_filter { Left::Refused } else { Left::Uncaught }
    }

    /// Executes a filter, which nothing around it protects; whether it comes to its end.
    fn filter(&mut self, filter: &'p [Statement]) -> bool {
        let guards = core::mem::take(&mut self.guards);
        let before = core::mem::replace(&mut self.in_filter, true);
        let result = self.body(filter);
        (self.guards, self.in_filter) = (guards, before);
        result.is_ok()
    }
}
