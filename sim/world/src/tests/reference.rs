//! A reference interpreter of programs with exceptions: it executes the statements one by one.

use super::*;

/// The reason why a body is left before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// An EH clause of the guarded statement at this nesting depth.
    Caught { depth: usize, clause: usize },
    /// A filter has thrown: it counts as having refused.
    Refused,
    /// Nothing catches the exception: the process ends.
    Uncaught,
    /// Native code that has called this part of managed code catches the exception, and throws it
    /// again.
    Native,
}

/// The interpreter, with the order in which functions of a kind are called.
pub(super) struct Reference<'p> {
    program: &'p Program,
    /// First of the functions that are recorded when they are called.
    first_mark: u32,
    /// Guarded statements around the current statement.
    guards: Vec<&'p [EhClause]>,
    in_filter: bool,
    /// Number of guarded statements around the call by native code that led here, if there was one.
    part: Option<usize>,
    /// Native code catches exceptions that leave a call by reflection.
    catches_in_reflection: bool,
    /// The stack is unwound even if nothing catches.
    unwinds_uncaught: bool,
    pub(super) marks: Vec<u32>,
}

impl<'p> Reference<'p> {
    /// Executes the first function. Returns the marks, and true if the function reaches its end.
    pub(super) fn run(
        program: &'p Program,
        first_mark: u32,
        catches_in_reflection: bool,
        unwinds_uncaught: bool,
    ) -> (Vec<u32>, bool) {
        let mut run = Self {
            program,
            first_mark,
            guards: Vec::new(),
            in_filter: false,
            part: None,
            catches_in_reflection,
            unwinds_uncaught,
            marks: Vec::new(),
        };
        let ends = run.call(FunctionIndex(0)).is_ok();
        (run.marks, ends)
    }

    fn call(&mut self, function: FunctionIndex) -> Result<(), Left> {
        if function.0 >= self.first_mark {
            self.marks.push(function.0);
        }
        self.body(&self.program.functions[function.index()].body)
    }

    fn body(&mut self, body: &'p [Statement]) -> Result<(), Left> {
        body.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &'p Statement) -> Result<(), Left> {
        use RuntimeCallKind::{ClassConstructor, NullDereference, Raise, ReflectionCall, Rethrow};
        match statement {
            Statement::Call(_, callee) => self.call(*callee),
            Statement::Loop(times, body) => (0..*times).try_for_each(|_| self.body(body)),
            Statement::Funclet(body) => self.body(body),
            Statement::Guarded(body, clauses) => self.guarded(body, clauses),
            Statement::Runtime(RuntimeCall { kind: Raise | Rethrow | NullDereference, .. }) => {
                Err(self.search())
            }
            Statement::Runtime(RuntimeCall { kind: ReflectionCall, target: Some(callee) })
                if !self.catches_in_reflection =>
            {
                self.call(*callee)
            }
            Statement::Runtime(RuntimeCall {
                kind: ReflectionCall | ClassConstructor,
                target: Some(callee),
            }) => self.call_from_native(*callee),
            _ => Ok(()),
        }
    }

    fn call_from_native(&mut self, callee: FunctionIndex) -> Result<(), Left> {
        let around = self.guards.len();
        let before = self.part.replace(around);
        let result = self.call(callee);
        self.part = before;
        if result == Err(Left::Native) { Err(self.search()) } else { result }
    }

    fn guarded(&mut self, body: &'p [Statement], clauses: &'p [EhClause]) -> Result<(), Left> {
        let own = self.guards.len();
        self.guards.push(clauses);
        let result = self.body(body);
        self.guards.truncate(own);
        match result {
            Err(Left::Caught { depth, clause }) if depth == own => self.body(&clauses[clause].body),
            Err(Left::Uncaught) if !self.unwinds_uncaught => result,
            _ => {
                let clause = &clauses[0];
                let runs = match clause.kind {
                    EhClauseKind::Finally => true,
                    EhClauseKind::Fault => result.is_err(),
                    EhClauseKind::Catch
                    | EhClauseKind::Unmatched
                    | EhClauseKind::Filtered { .. } => false,
                };
                if runs {
                    self.body(&clause.body)?;
                }
                result
            }
        }
    }

    /// Performs the first pass: finds the catch.
    fn search(&mut self) -> Left {
        for depth in (self.part.unwrap_or_default()..self.guards.len()).rev() {
            for (clause, one) in self.guards[depth].iter().enumerate() {
                let accepts = match &one.kind {
                    EhClauseKind::Catch => true,
                    EhClauseKind::Filtered { accepts, filter } => self.filter(filter) && *accepts,
                    EhClauseKind::Unmatched | EhClauseKind::Finally | EhClauseKind::Fault => false,
                };
                if accepts {
                    return Left::Caught { depth, clause };
                }
            }
        }
        match self.part {
            Some(_) => Left::Native,
            None if self.in_filter => Left::Refused,
            None => Left::Uncaught,
        }
    }

    /// Executes a filter, which is not protected by the guards around it. Returns true if it
    /// reaches its end.
    fn filter(&mut self, filter: &'p [Statement]) -> bool {
        let guards = core::mem::take(&mut self.guards);
        let before = (core::mem::replace(&mut self.in_filter, true), self.part.take());
        let result = self.body(filter);
        (self.guards, (self.in_filter, self.part)) = (guards, before);
        result.is_ok()
    }
}
