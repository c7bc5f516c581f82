//! Guarded statements: a body with handlers for the exceptions that are thrown in it.

use super::program::Statement;

/// A handler of a [`Statement::Guarded`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EhClause {
    /// Kind of the handler.
    pub kind: EhClauseKind,
    /// Body of the handler's funclet.
    pub body: Vec<Statement>,
}

/// The condition under which a handler runs, and its effect on the exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EhClauseKind {
    /// The handler catches any exception. Execution resumes after the guarded statement.
    Catch,
    /// The handler is for a class of exceptions that none thrown in the body has: it never runs.
    Unmatched,
    /// The handler runs for every exception that leaves the guarded body, and when the body ends
    /// without one.
    Finally,
    /// The handler runs for every exception that leaves the guarded body.
    Fault,
    /// The handler catches the exceptions that its filter accepts, like [`Catch`](Self::Catch).
    Filtered {
        /// The filter's funclet returns 1 in eax if true, otherwise 0.
        accepts: bool,
        /// Body of the filter's funclet.
        filter: Vec<Statement>,
    },
}

/// The kind of a handler, without the filter's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandlerKind {
    /// The handler catches every exception.
    Catch,
    /// The handler never runs.
    Unmatched,
    /// The handler runs however the body is left.
    Finally,
    /// The handler runs if an exception leaves the body.
    Fault,
    /// The handler catches the exceptions that its filter accepts.
    Filtered,
}

/// The purpose of a funclet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FuncletKind {
    /// A handler of an EH clause, or a funclet that is only called.
    Handler,
    /// A filter.
    Filter,
}

impl EhClause {
    /// Returns the bodies of the EH clause, the filter's first.
    pub fn bodies(&self) -> impl Iterator<Item = &[Statement]> {
        let filter = match &self.kind {
            EhClauseKind::Filtered { filter, .. } => Some(filter),
            EhClauseKind::Catch
            | EhClauseKind::Unmatched
            | EhClauseKind::Finally
            | EhClauseKind::Fault => None,
        };
        filter.into_iter().chain([&self.body]).map(Vec::as_slice)
    }

    /// Returns mutable references to the bodies of the EH clause, the filter's first.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<Statement>> {
        let filter = match &mut self.kind {
            EhClauseKind::Filtered { filter, .. } => Some(filter),
            EhClauseKind::Catch
            | EhClauseKind::Unmatched
            | EhClauseKind::Finally
            | EhClauseKind::Fault => None,
        };
        filter.into_iter().chain([&mut self.body])
    }

    /// Returns true if the handler ends the exception, so that execution resumes after the guarded
    /// statement.
    pub const fn catches(&self) -> bool {
        self.kind.handler().catches()
    }
}

impl EhClauseKind {
    /// Returns the kind of the handler without its filter.
    pub const fn handler(&self) -> HandlerKind {
        match self {
            Self::Catch => HandlerKind::Catch,
            Self::Unmatched => HandlerKind::Unmatched,
            Self::Finally => HandlerKind::Finally,
            Self::Fault => HandlerKind::Fault,
            Self::Filtered { .. } => HandlerKind::Filtered,
        }
    }
}

impl HandlerKind {
    /// Returns true if the handler ends the exception: its funclet returns the address to resume
    /// at.
    pub const fn catches(self) -> bool {
        matches!(self, Self::Catch | Self::Unmatched | Self::Filtered)
    }
}
