//! Failed cases of a text, grouped by the runtimes on which they fail alike.

use crate::render::console::{BAD, HEAD};
use crate::render::words::in_words;
use crate::report::expectation::{Basis, Place};
use crate::report::runtimes::{OnRuntimes, Runtimes, keep};
use crate::report::{FileReport, Finding};
use clr_runtime::generation::Generation;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, Write};

/// A case of a text that is made on several runtimes: a snapshot, a mixed walk or a search.
pub(crate) trait Subject: Debug + PartialEq + Send + Serialize + 'static {
    /// The result of a failed case.
    type Found: Debug + Default + PartialEq + Send + Serialize;

    /// Returns the key by which the findings of a text are sorted.
    fn order(&self) -> (Option<usize>, usize);

    /// Returns the name that follows the place of the case in the heading.
    fn name(&self) -> String;

    /// Returns true if two errors of the case are explained once.
    fn are_alike(_: &str, _: &str) -> bool {
        true
    }

    /// Writes the lines between the runtimes and the result.
    fn write(&self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes expected and found values.
    fn write_found(found: &Self::Found, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the lines after the basis of the expectation.
    fn write_rest(_: &Self::Found, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// A failed case of a text, on the runtimes on which it fails alike.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "pages",
    schemars(bound = "S: schemars::JsonSchema, S::Found: schemars::JsonSchema")
)]
pub(crate) struct Mismatch<S: Subject> {
    #[serde(flatten)]
    subject: S,
    /// The place of the expectation in the file; without an expectation, that of the case.
    #[serde(flatten)]
    place: Place,
    runtimes: Runtimes,
    #[serde(flatten)]
    basis: Basis,
    #[serde(flatten)]
    pub(crate) found: S::Found,
    /// The reason why the case cannot be made.
    error: Option<String>,
}

impl<S: Subject> Mismatch<S> {
    /// Creates a finding without a result.
    pub(crate) fn new(subject: S, place: Place, generation: Generation, basis: Basis) -> Self {
        let runtimes = Runtimes::one(generation);
        Self { subject, place, runtimes, basis, found: S::Found::default(), error: None }
    }

    /// Sets the result.
    pub(crate) fn with_found(self, found: S::Found) -> Self {
        Self { found, ..self }
    }

    /// Sets the reason why the case cannot be made.
    pub(crate) fn with_error(self, error: &impl ToString) -> Self {
        Self { error: Some(error.to_string()), ..self }
    }

    /// Returns true if both fail alike, each on its runtimes.
    fn is_like(&self, other: &Self) -> bool {
        let errors = match (&self.error, &other.error) {
            (Some(own), Some(other)) => S::are_alike(own, other),
            (own, other) => own.is_none() && other.is_none(),
        };
        errors
            && self.subject == other.subject
            && self.place == other.place
            && self.found == other.found
    }
}

impl<S: Subject> OnRuntimes for Mismatch<S> {
    fn runtimes(&mut self) -> &mut Runtimes {
        &mut self.runtimes
    }
}

impl<S: Subject> Finding for Mismatch<S> {
    fn cases(&self) -> usize {
        self.runtimes.count()
    }

    fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let name = self.subject.name();
        writeln!(out, "\n{BAD}failed{BAD:#} {HEAD}{file}{}{HEAD:#} {name}", self.place)?;
        writeln!(out, "  on {}", in_words(self.runtimes.0))?;
        self.subject.write(out)?;
        if let Some(error) = &self.error {
            return writeln!(out, "  {BAD}cannot be made:{BAD:#} {error}");
        }
        S::write_found(&self.found, out)?;
        self.basis.write(self.runtimes.0, out)?;
        S::write_rest(&self.found, out)
    }

    fn json(&self) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(self)
    }
}

/// The findings of a kind of case in a text.
#[derive(Debug)]
pub(crate) struct Mismatches<S: Subject>(BTreeMap<(Option<usize>, usize), Vec<Mismatch<S>>>);

impl<S: Subject> Mismatches<S> {
    /// Creates an empty list.
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a finding of one runtime.
    pub(crate) fn add(&mut self, new: Mismatch<S>) {
        // Only those of one case can be alike.
        let of_case = self.0.entry(new.subject.order()).or_default();
        keep(new, of_case, Mismatch::is_like);
    }

    /// Adds the findings to a report that explains at most `limit` failures.
    pub(crate) fn report(self, report: &mut FileReport, limit: usize) {
        let found = self.0.into_values().flatten();
        for found in found.take(limit.saturating_sub(report.failures.len())) {
            report.explain(found);
        }
    }
}
