//! Reports of a run: the counts of each file and the failures that are explained.

pub(crate) mod as_tests;
pub(crate) mod callback;
pub(crate) mod expectation;
pub(crate) mod history;
pub(crate) mod lint;
pub(crate) mod mismatch;
pub(crate) mod mixed;
pub(crate) mod recording;
pub(crate) mod runtimes;
pub(crate) mod search;
pub(crate) mod sequence;
pub(crate) mod snapshot;
pub(crate) mod table;
pub(crate) mod vector;
pub(crate) mod walk;

use clr_recording::vectors::replay::VectorVerdict;
use recording::Walks;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use snapshot::Summary;
use std::fmt::Debug;
use std::io::{self, Write};
use std::ops::AddAssign;

/// The number of cases, in all and by result.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct Counts {
    pub(crate) cases: usize,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    /// Counts one case.
    pub(crate) const fn add(&mut self, verdict: &VectorVerdict) {
        self.cases += 1;
        match verdict {
            VectorVerdict::Passed => self.passed += 1,
            VectorVerdict::Failed(_) => self.failed += 1,
            VectorVerdict::Skipped => self.skipped += 1,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.cases += other.cases;
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// The results of the cases of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "pages", derive(schemars::JsonSchema))]
pub(crate) struct FileReport {
    pub(crate) file: String,
    pub(crate) kind: &'static str,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Present for recordings of walks only.
    #[serde(flatten)]
    pub(crate) walks: Option<Walks>,
    /// Present for texts with snapshots, mixed walks or searches only.
    #[serde(flatten)]
    pub(crate) scenario: Option<Summary>,
    /// The first failures.
    pub(crate) failures: Vec<Box<dyn Finding>>,
}

impl FileReport {
    /// Creates the report of a file without cases.
    pub(crate) fn new(file: &str, kind: &'static str) -> Self {
        Self {
            file: file.to_owned(),
            kind,
            counts: Counts::default(),
            walks: None,
            scenario: None,
            failures: Vec::new(),
        }
    }

    /// Adds an explained failure.
    pub(crate) fn explain(&mut self, finding: impl Finding + 'static) {
        self.failures.push(Box::new(finding));
    }

    /// Writes the explained failures, and the number of the others.
    pub(crate) fn write_failures(&self, out: &mut dyn Write) -> io::Result<()> {
        for failure in &self.failures {
            failure.write(&self.file, out)?;
        }
        let explained: usize = self.failures.iter().map(|failure| failure.cases()).sum();
        let silent = self.counts.failed.saturating_sub(explained);
        if silent > 0 {
            writeln!(
                out,
                "\n{silent} more failed in {} (--limit sets the number of explained failures)",
                self.file
            )?;
        }
        Ok(())
    }
}

/// An explained failure of any kind of case.
pub(crate) trait Finding: Debug + Send {
    /// Returns the number of failed cases that the finding explains.
    fn cases(&self) -> usize {
        1
    }

    /// Writes the explanation as text. `file` is the name of the file of the cases.
    fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()>;

    /// Returns the explanation as a JSON object.
    fn json(&self) -> serde_json::Result<Box<RawValue>>;
}

impl Serialize for dyn Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}
