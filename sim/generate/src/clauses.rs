//! Guarded statements and their EH clauses: generation, repair, and simplification.

use super::body::{Context, Draw};
use super::choices::Choices;
use clr_codegen::estimate;
use clr_codegen::{
    CodeKind, EhClause, EhClauseKind, EntryForm, FunctionShape, HandlerKind, MAX_CLAUSES, Statement,
};
use clr_unwind::Gpr;

/// Returns true if a function of this shape and kind may have guarded statements.
pub(super) fn may_guard(shape: &FunctionShape, kind: CodeKind) -> bool {
    kind != CodeKind::Native
        && shape.entry == EntryForm::Call
        && shape.frame.is_some_and(|frame| frame.register == Gpr::Rbp)
}

/// Drops EH clauses that cannot be combined with the first one.
pub(super) fn go_together(clauses: &mut Vec<EhClause>) {
    if clauses.first().is_some_and(EhClause::catches) {
        clauses.retain(EhClause::catches);
    } else {
        clauses.truncate(1);
    }
    clauses.truncate(MAX_CLAUSES);
}

/// Number of ways to simplify an EH clause.
const WAYS: usize = 3;

/// Returns the number of ways to simplify EH clauses.
pub(super) fn ways(clauses: &[EhClause]) -> u8 {
    u8::try_from(WAYS * clauses.len()).unwrap_or(u8::MAX)
}

/// Simplifies EH clauses: drops one, turns one into a plain catch, or makes its filter accept.
pub(super) fn plainer(clauses: &mut Vec<EhClause>, way: u8) {
    let (index, way) = (usize::from(way) / WAYS, usize::from(way) % WAYS);
    if way == 0 && index < clauses.len() {
        clauses.remove(index);
        return;
    }
    let Some(clause) = clauses.get_mut(index) else { return };
    match (way, &mut clause.kind) {
        (1, kind) => *kind = EhClauseKind::Catch,
        (_, EhClauseKind::Filtered { accepts, .. }) => *accepts = true,
        _ => {}
    }
}

impl<C: Choices> Draw<'_, C> {
    pub(super) fn may_guard(&self) -> bool {
        may_guard(self.shape, self.around.kind)
    }

    /// Draws a guarded statement with its EH clauses, and takes its cost from the budget.
    pub(super) fn guarded(&mut self, context: Context) -> Option<Statement> {
        let inner = context.deeper();
        let kinds = match self.choices.weighted(&[4, 2, 4]) {
            0 => vec![HandlerKind::Finally],
            1 => vec![HandlerKind::Fault],
            _ => {
                let catches = [HandlerKind::Catch, HandlerKind::Filtered];
                (0..self.choices.between(1, 3)).map(|_| self.choices.one(catches)).collect()
            }
        };
        let mut clauses: Vec<_> = kinds.iter().map(|kind| self.clause(*kind)).collect();
        let stack = 2 * estimate::funclet(self.shape) * clauses.len() as u64;
        let empty = Statement::Guarded(Vec::new(), clauses);
        if !self.budget.grow(stack) {
            return None;
        }
        let Statement::Guarded(_, empty) = self.paid(empty, context)? else { return None };
        clauses = empty;
        let body = self.body(Context { in_guarded: true, ..inner });
        for body in clauses.iter_mut().flat_map(EhClause::bodies_mut) {
            *body = self.body(Context { in_funclet: true, ..inner });
        }
        Some(Statement::Guarded(body, clauses))
    }

    fn clause(&mut self, kind: HandlerKind) -> EhClause {
        let kind = match kind {
            HandlerKind::Catch => EhClauseKind::Catch,
            HandlerKind::Unmatched => EhClauseKind::Unmatched,
            HandlerKind::Finally => EhClauseKind::Finally,
            HandlerKind::Fault => EhClauseKind::Fault,
            HandlerKind::Filtered => {
                let accepts = self.choices.chance(1, 2);
                EhClauseKind::Filtered { accepts, filter: Vec::new() }
            }
        };
        EhClause { kind, body: Vec::new() }
    }
}
