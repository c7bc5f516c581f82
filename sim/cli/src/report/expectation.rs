//! Place and basis of an expectation.

use crate::render::console::DIM;
use clr_runtime::clause::Clause;
use clr_scenario::{LineColumn, Provenance};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// A place in a file, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    line: Option<u32>,
    column: Option<u32>,
}

impl From<Option<LineColumn>> for Place {
    fn from(position: Option<LineColumn>) -> Self {
        Self {
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
        }
    }
}

/// Writes the place as it follows the name of the file.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, ":{line}:{column}"),
            _ => Ok(()),
        }
    }
}

/// The basis of an expectation.
#[derive(Debug, Serialize)]
pub(crate) struct Basis {
    /// Provenance of the expectation.
    from: Option<String>,
    /// Clauses that the expectation names.
    clauses: Vec<String>,
}

impl Basis {
    /// Creates the basis of an expectation.
    pub(crate) fn new(from: Provenance, clauses: &[Clause]) -> Self {
        Self {
            from: Some(provenance(from)),
            clauses: clauses.iter().map(ToString::to_string).collect(),
        }
    }

    /// Creates the basis of a case without an expectation.
    pub(crate) const fn none() -> Self {
        Self { from: None, clauses: Vec::new() }
    }

    /// Writes the basis on one line.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let from = self.from.as_deref().unwrap_or_default();
        let clauses = match self.clauses.as_slice() {
            [] => String::new(),
            clauses => format!(", by {}", clauses.join(", ")),
        };
        writeln!(out, "  {DIM}expected:{DIM:#} from {from}{clauses}")
    }
}

/// Returns the words for a provenance.
fn provenance(from: Provenance) -> String {
    match from {
        Provenance::Source => "source".to_owned(),
        Provenance::Documentation => "documentation".to_owned(),
        Provenance::Observed(None) => "observed".to_owned(),
        Provenance::Observed(Some(count)) => format!("observed {count} times"),
    }
}
