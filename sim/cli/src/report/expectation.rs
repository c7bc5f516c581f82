//! Place and basis of an expectation.

use crate::render::console::DIM;
use crate::render::words::in_words;
use clr_runtime::clause::{Clause, Support};
use clr_runtime::generation::Generations;
use clr_scenario::{LineColumn, Provenance};
use serde::{Serialize, Serializer};
use std::fmt;
use std::io::{self, Write};

/// A place in a file, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Basis {
    /// Provenance of the expectation.
    from: Option<String>,
    /// Clauses that the expectation names.
    #[serde(serialize_with = "numbers")]
    #[cfg_attr(feature = "pages", schemars(with = "Vec<String>"))]
    clauses: Vec<Clause>,
}

impl Basis {
    /// Creates the basis of an expectation.
    pub(crate) fn new(from: Provenance, clauses: &[Clause]) -> Self {
        Self { from: Some(provenance(from)), clauses: clauses.to_vec() }
    }

    /// Creates the basis of a case without an expectation.
    pub(crate) const fn none() -> Self {
        Self { from: None, clauses: Vec::new() }
    }

    /// Writes the basis of an expectation for these runtimes on one line. Of the rules it says how
    /// they are known on each runtime.
    pub(crate) fn write(&self, on: Generations, out: &mut dyn Write) -> io::Result<()> {
        let from = self.from.as_deref().unwrap_or_default();
        let clauses: Vec<_> = self.clauses.iter().map(ToString::to_string).collect();
        let by = if clauses.is_empty() { "" } else { ", by " };
        write!(out, "  {DIM}expected:{DIM:#} from {from}{by}{}", clauses.join(", "))?;
        if from == RULES {
            write!(out, " ({})", self.support(on))?;
        }
        writeln!(out)
    }

    /// Returns how the clauses are known on runtimes, strongest first.
    fn support(&self, on: Generations) -> String {
        let known = |support: Support| {
            let is_known_so = |it: &_| Support::of(&self.clauses, *it) == support;
            let known: Vec<_> = on.iter().filter(is_known_so).collect();
            let words = || format!("{support} on {}", in_words(Generations::of(&known)));
            (!known.is_empty()).then(words)
        };
        Support::ALL.into_iter().filter_map(known).collect::<Vec<_>>().join("; ")
    }
}

/// The word for [`Provenance::Rules`].
const RULES: &str = "rules";

/// Serializes clauses as their numbers.
fn numbers<S: Serializer>(clauses: &[Clause], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(clauses.iter().map(ToString::to_string))
}

/// Returns the words for a provenance.
fn provenance(from: Provenance) -> String {
    match from {
        Provenance::Rules => RULES.to_owned(),
        Provenance::Source => "source".to_owned(),
        Provenance::Reported => "reported".to_owned(),
        Provenance::Documentation => "documentation".to_owned(),
        Provenance::Observed(None) => "observed".to_owned(),
        Provenance::Observed(Some(count)) => format!("observed {count} times"),
    }
}
