//! Generation of statements that throw, and of their handlers.

use super::generate::{At, Body, Draw};
use crate::choices::Choices;
use crate::clauses;
use clr_codegen::estimate;
use clr_codegen::{
    EhClause, EhClauseKind, FrameRegister, FrameSet, FunctionShape, HandlerKind, RuntimeCall,
    RuntimeCallKind, Statement,
};
use clr_unwind::Gpr;

/// Estimated cost of handling an exception, in instructions.
const EXCEPTION: u64 = 250;

/// Maximum nesting of handlers that have their own exceptions.
const NESTING: u32 = 3;

/// The frequency of throws in generated statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Throws {
    /// Nothing is thrown.
    #[default]
    Never,
    /// Exceptions are rare: they would leave the function.
    Rarely,
    /// Exceptions are frequent: they are caught.
    Often,
}

/// The surroundings of generated statements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    pub throws: Throws,
    pub in_catch: bool,
}

impl<C: Choices> Draw<'_, C> {
    /// Gives a shape a frame that funclets can use.
    pub(super) fn framed(&mut self, shape: &mut FunctionShape) {
        if shape.frame.is_some_and(|frame| frame.register == Gpr::Rbp) {
            return;
        }
        shape.home.iter_mut().for_each(|slot| *slot = slot.filter(|slot| *slot != Gpr::Rbp));
        shape.saves.retain(|register| *register != Gpr::Rbp);
        shape.pushes.retain(|register| *register != Gpr::Rbp);
        shape.pushes.insert(0, Gpr::Rbp);
        shape.frame = Some(FrameRegister {
            register: Gpr::Rbp,
            offset: 0,
            set: FrameSet::AfterSaves,
            described: self.choices.chance(1, 3),
        });
    }

    /// Throws an exception.
    pub(super) fn throw(&mut self, body: &mut Body, times: u64) {
        use RuntimeCallKind::{NullDereference, Raise, Rethrow};
        let common = |kind: &RuntimeCallKind| matches!(kind, Raise | Rethrow | NullDereference);
        let others =
            || RuntimeCallKind::ALL.iter().copied().filter(|kind| kind.throws() && !common(kind));
        let kind = match (body.around.in_catch, self.choices.below(12)) {
            (true, 0..=5) => Rethrow,
            (_, 9..=10) => NullDereference,
            (_, 11) => {
                let number = self.choices.below(others().count() as u32);
                others().nth(number as usize).unwrap_or(Raise)
            }
            _ => Raise,
        };
        body.cost += EXCEPTION * times;
        body.plain = false;
        body.escapes |= body.around.throws != Throws::Often;
        body.statements.push(Statement::Runtime(RuntimeCall { kind, target: None }));
    }

    /// Returns the weight of a statement that throws.
    pub(super) fn throw_weight(&self, body: &Body) -> u32 {
        match body.around.throws {
            Throws::Never => 0,
            Throws::Rarely => u32::from(self.exceptions > 2),
            Throws::Often => 2,
        }
    }

    /// Draws a guarded statement; its body mostly throws.
    pub(super) fn guarded(&mut self, at: At<'_>, body: &mut Body) {
        let kinds = match self.choices.weighted(&[5, 3, 1]) {
            0 => self.catches(false),
            1 => vec![EhClauseKind::Finally],
            _ => vec![EhClauseKind::Fault],
        };
        let catches = kinds.iter().any(accepts);
        let around = body.around;
        if catches {
            body.around.throws = Throws::Often;
        }
        let inner = self.inside(at, body, |draw, body| match draw.choices.weighted(&[3, 3, 2]) {
            0 if body.around.throws == Throws::Often => draw.throw(body, at.times),
            1 => draw.call_thrower(at.index, body, at.times),
            _ => {}
        });
        body.around = around;
        let guarded = self.with_clauses(inner, kinds, at, body);
        body.statements.push(guarded);
    }

    /// Encloses statements in guards that catch all their exceptions.
    pub(super) fn caught(
        &mut self,
        mut statements: Vec<Statement>,
        at: At<'_>,
        body: &mut Body,
    ) -> Statement {
        let at = At { depth: 1, ..at };
        if self.choices.chance(1, 3) {
            let kind = self.choices.one([HandlerKind::Finally, HandlerKind::Fault]);
            let kind = match kind {
                HandlerKind::Fault => EhClauseKind::Fault,
                _ => EhClauseKind::Finally,
            };
            let around = body.around;
            body.around.throws = Throws::Often;
            statements = vec![self.with_clauses(statements, vec![kind], at, body)];
            body.around = around;
        }
        let kinds = self.catches(true);
        self.with_clauses(statements, kinds, at, body)
    }

    /// Draws some catches; with `surely`, one of them accepts every exception.
    fn catches(&mut self, surely: bool) -> Vec<EhClauseKind> {
        let mut kinds = Vec::new();
        for _ in 0..self.choices.one([0, 0, 1, 2]) {
            let accepts = self.choices.chance(1, 6);
            kinds.push(EhClauseKind::Filtered { accepts, filter: Vec::new() });
        }
        if surely || kinds.is_empty() || self.choices.chance(4, 5) {
            kinds.push(if self.choices.chance(1, 2) {
                EhClauseKind::Catch
            } else {
                EhClauseKind::Filtered { accepts: true, filter: Vec::new() }
            });
        }
        kinds
    }

    fn with_clauses(
        &mut self,
        guarded: Vec<Statement>,
        kinds: Vec<EhClauseKind>,
        at: At<'_>,
        body: &mut Body,
    ) -> Statement {
        let around = body.around;
        let is_quiet = around.throws == Throws::Never;
        let mut clauses = Vec::new();
        for kind in kinds {
            body.around.in_catch = kind.handler().catches();
            let handler = self.handler(at, body);
            body.around.in_catch = false;
            let kind = match kind {
                EhClauseKind::Filtered { accepts, .. } => {
                    // An exception thrown by a filter ends there.
                    let throws = if is_quiet { Throws::Never } else { Throws::Often };
                    body.around.throws = throws;
                    let filter = self.handler(at, body);
                    EhClauseKind::Filtered { accepts, filter }
                }
                kind => kind,
            };
            body.around = around;
            clauses.push(EhClause { kind, body: handler });
        }
        let statement = Statement::Guarded(guarded, clauses);
        body.cost += estimate::step(&statement, at.shape) * at.times;
        statement
    }

    /// Draws the body of a handler or filter: mostly it makes a call, and sometimes it has its own
    /// exceptions.
    fn handler(&mut self, at: At<'_>, body: &mut Body) -> Vec<Statement> {
        let At { index, depth, times, .. } = at;
        self.inside(at, body, |draw, body| match draw.choices.weighted(&[4, 3, 4, 3, 1]) {
            1 => draw.helper(index, body, times),
            2 if index + 1 < draw.count() => {
                let callee = index + 1 + draw.choices.below(draw.count() - index - 1);
                if body.around.throws == Throws::Often || !draw.escapes_from(callee) {
                    draw.call_if_cheap(index, callee, body, times);
                }
            }
            3 if depth < NESTING => draw.guarded(At { depth: depth + 1, ..at }, body),
            4 if body.around.throws == Throws::Often => draw.throw(body, times),
            _ => {}
        })
    }

    /// Calls a function with a higher index that throws, if there is one.
    fn call_thrower(&mut self, index: u32, body: &mut Body, times: u64) {
        if body.around.throws == Throws::Never {
            return;
        }
        let behind = index + 1..self.count();
        let throwers: Vec<_> = behind.filter(|callee| self.escapes_from(*callee)).collect();
        if let Some(callee) = self.choices.pick(&throwers) {
            self.call_if_cheap(index, callee, body, times);
        }
    }

    /// Returns true if a function of this shape may have guarded statements.
    pub(super) fn may_guard(&self, index: u32, shape: &FunctionShape) -> bool {
        self.exceptions > 0 && clauses::may_guard(shape, self.kind_of(index))
    }
}

/// Returns true if an EH clause catches every exception.
const fn accepts(kind: &EhClauseKind) -> bool {
    matches!(kind, EhClauseKind::Catch | EhClauseKind::Filtered { accepts: true, .. })
}
