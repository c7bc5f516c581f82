//! The expectation of a text that is not met: where it stands, and what it rests on.

use crate::render::console::DIM;
use clr_runtime::clause::Clause;
use clr_scenario::{Position, Provenance};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// Where something stands in a file; nowhere, if the file does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    line: Option<u32>,
    column: Option<u32>,
}

impl From<Option<Position>> for Place {
    fn from(position: Option<Position>) -> Self {
        Self {
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
        }
    }
}

/// What is written behind the file's name.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, ":{line}:{column}"),
            _ => Ok(()),
        }
    }
}

/// What an expectation rests on.
#[derive(Debug, Serialize)]
pub(crate) struct Basis {
    /// Where it comes from.
    from: Option<String>,
    /// The clauses that it names.
    clauses: Vec<String>,
}

impl Basis {
    /// Of an expectation that comes from there and names these clauses.
    pub(crate) fn new(from: Provenance, clauses: &[Clause]) -> Self {
        Self {
            from: Some(provenance(from)),
            clauses: clauses.iter().map(ToString::to_string).collect(),
        }
    }

    /// Of nothing: nothing is expected.
    pub(crate) const fn none() -> Self {
        Self { from: None, clauses: Vec::new() }
    }

    /// Writes the line that tells it.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let from = self.from.as_deref().unwrap_or_default();
        let clauses = match self.clauses.as_slice() {
            [] => String::new(),
            clauses => format!(", by {}", clauses.join(", ")),
        };
        writeln!(out, "  {DIM}expected:{DIM:#} from {from}{clauses}")
    }
}

/// Where an expectation comes from.
fn provenance(from: Provenance) -> String {
    match from {
        Provenance::Source => "source".to_owned(),
        Provenance::Documentation => "documentation".to_owned(),
        Provenance::Observed(None) => "observed".to_owned(),
        Provenance::Observed(Some(count)) => format!("observed {count} times"),
    }
}
