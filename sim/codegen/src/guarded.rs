//! Guarded statements: what handles the exceptions that are thrown in a body.

use super::program::Statement;

/// A handler of a [`Statement::Guarded`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// When it runs.
    pub kind: ClauseKind,
    /// What its funclet does.
    pub body: Vec<Statement>,
}

/// When a handler runs, and what becomes of the exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClauseKind {
    /// For any exception. Execution goes on behind the guarded statement.
    Catch,
    /// For every exception that leaves the guarded body, and where the body ends without one.
    Finally,
    /// For every exception that leaves the guarded body.
    Fault,
    /// As [`Catch`](Self::Catch), for exceptions that a filter accepts.
    Filtered {
        /// What the filter's funclet returns in eax: 1, or 0.
        accepts: bool,
        /// What the filter's funclet does before.
        filter: Vec<Statement>,
    },
}

/// The kind of a handler, without what its filter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandlerKind {
    /// It catches everything.
    Catch,
    /// It runs however the body is left.
    Finally,
    /// It runs if an exception leaves the body.
    Fault,
    /// It catches what its filter accepts.
    Filtered,
}

/// What a funclet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FuncletKind {
    /// A handler of a clause, or a funclet that is only called.
    Handler,
    /// A filter.
    Filter,
}

impl Clause {
    /// The bodies inside it, the filter's first.
    pub fn bodies(&self) -> impl Iterator<Item = &[Statement]> {
        let filter = match &self.kind {
            ClauseKind::Filtered { filter, .. } => Some(filter),
            ClauseKind::Catch | ClauseKind::Finally | ClauseKind::Fault => None,
        };
        filter.into_iter().chain([&self.body]).map(Vec::as_slice)
    }

    /// The bodies inside it, to change them.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<Statement>> {
        let filter = match &mut self.kind {
            ClauseKind::Filtered { filter, .. } => Some(filter),
            ClauseKind::Catch | ClauseKind::Finally | ClauseKind::Fault => None,
        };
        filter.into_iter().chain([&mut self.body])
    }

    /// Whether it ends the exception, so that execution goes on behind the guarded statement.
    #[must_use]
    pub const fn catches(&self) -> bool {
        self.kind.handler().catches()
    }
}

impl ClauseKind {
    /// The kind of its handler.
    #[must_use]
    pub const fn handler(&self) -> HandlerKind {
        match self {
            Self::Catch => HandlerKind::Catch,
            Self::Finally => HandlerKind::Finally,
            Self::Fault => HandlerKind::Fault,
            Self::Filtered { .. } => HandlerKind::Filtered,
        }
    }
}

impl HandlerKind {
    /// Whether it ends the exception: its funclet returns where to go on.
    #[must_use]
    pub const fn catches(self) -> bool {
        matches!(self, Self::Catch | Self::Filtered)
    }
}
