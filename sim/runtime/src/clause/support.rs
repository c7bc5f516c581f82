//! The support of a clause on each of its runtimes: one place for all grades.

#[cfg(test)]
mod tests;

use super::{Clause, ClauseEntry};
use crate::generation::{Generation, Generations, Known, Product, QUESTIONS};
use core::fmt;

/// A row for each clause and runtime of which a recording does not come out without the rule: clause, runtime,
/// recording, and the planted bug that takes the rule out. `.ci/bugs.py --shown` writes it.
const SHOWN: &str = include_str!("shown.tsv");
/// A row for each clause and runtime of whose recorded calls it applies to some: clause, runtime, and the first such
/// recording. A test writes it from the replays of the fixtures.
const OBSERVED: &str = include_str!("observed.tsv");
/// A row for each clause and runtime whose source somebody has read: clause, runtime, and
/// `REPOSITORY@COMMIT PATH:LINE FUNCTION`.
const READ: &str = include_str!("read.tsv");

/// The grade of a statement about one runtime, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// A recording of the runtime, which does not come out without the rule.
    Shown,
    /// Recorded calls of the runtime, which were replayed with the same result.
    Observed,
    /// The source of the runtime, or one of another version that was compared with its machine code.
    Read,
    /// The documentation, which names no runtime.
    Documented,
    /// Nothing of this runtime: it is taken to be as another one, or as its source at another
    /// version.
    Assumed,
}

impl Support {
    /// All grades, strongest first.
    pub const ALL: [Self; 5] =
        [Self::Shown, Self::Observed, Self::Read, Self::Documented, Self::Assumed];

    /// Returns the word: shown, observed, read, documented, or assumed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Observed => "observed",
            Self::Read => "read",
            Self::Documented => "documented",
            Self::Assumed => "assumed",
        }
    }

    /// Returns the support of a result that follows from clauses on a runtime: that of the weakest
    /// one. Without clauses it follows from the runtime's source, if that was read at all.
    pub fn of(clauses: &[Clause], generation: Generation) -> Self {
        let of = |clause: &Clause| clause.entry()?.support(generation);
        let unnamed = if is_source_read(generation) { Self::Read } else { Self::Assumed };
        clauses.iter().filter_map(of).max().unwrap_or(unnamed)
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The support of a clause on a runtime, with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// A recording that does not come out without the rule.
    Shown {
        /// File of the fixtures.
        recording: &'static str,
        /// Planted bug that takes the rule out.
        bug: &'static str,
    },
    /// A recording with calls that the clause applies to: a file of the fixtures.
    Observed(&'static str),
    /// A file of the runtime's source.
    Read(&'static str),
    /// A page of the documentation.
    Documented(&'static str),
}

impl Witness {
    /// Returns the grade.
    pub const fn support(self) -> Support {
        match self {
            Self::Shown { .. } => Support::Shown,
            Self::Observed(_) => Support::Observed,
            Self::Read(_) => Support::Read,
            Self::Documented(_) => Support::Documented,
        }
    }

    /// Returns true if it was seen under wine, and not on Windows itself. So was all that was recorded of runtimes for
    /// Windows: a recording of a Windows machine has to say so here.
    pub const fn is_under_wine(self, generation: Generation) -> bool {
        matches!(self, Self::Shown { .. } | Self::Observed(_)) && !generation.is_unix()
    }

    /// Returns the name of the recording, the source or the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shown { recording: name, .. }
            | Self::Observed(name)
            | Self::Read(name)
            | Self::Documented(name) => name,
        }
    }
}

/// Returns true if answers of the runtime were read in its own source.
pub fn is_source_read(generation: Generation) -> bool {
    QUESTIONS.iter().any(|question| matches!((question.known)(generation), Known::Read(_)))
}

impl ClauseEntry {
    /// Returns the support of the clause on a runtime, or `None` if it does not hold there.
    pub fn support(&self, generation: Generation) -> Option<Support> {
        let holds = self.generations.contains(generation);
        holds.then(|| self.witness(generation).map_or(Support::Assumed, Witness::support))
    }

    /// Returns the strongest witness of the clause on a runtime. There is none if it is assumed there, or does not hold.
    pub fn witness(&self, generation: Generation) -> Option<Witness> {
        if !self.generations.contains(generation) {
            return None;
        }
        let row = |table: &'static str| row(table, self.clause, generation);
        let shown = row(SHOWN).and_then(|rest| rest.split_once('\t'));
        let shown = shown.map(|(recording, bug)| Witness::Shown { recording, bug });
        let observed = || row(OBSERVED).map(Witness::Observed);
        let read = || row(READ).map(Witness::Read);
        let parts = || self.source.split(';').map(str::trim);
        let cited = || parts().filter_map(|part| cited(part, generation));
        shown.or_else(observed).or_else(read).or_else(|| cited().min_by_key(|it| it.support()))
    }
}

/// Returns what the row of a clause and a runtime says after them.
fn row(table: &'static str, clause: Clause, generation: Generation) -> Option<&'static str> {
    let (clause, name) = (clause.number(), generation.name());
    let is_clause = |id: &str| id.strip_prefix("C-").and_then(|it| it.parse().ok()) == Some(clause);
    table.lines().find_map(|line| {
        let (id, rest) = line.split_once('\t')?;
        let (runtime, rest) = rest.split_once('\t')?;
        (runtime == name && is_clause(id)).then_some(rest)
    })
}

/// Returns what a part of a clause's sources says about a runtime. Files without a repository are
/// those of CoreCLR 3.1; those of dotnet/runtime belong to its main branch, not to a release.
fn cited(part: &'static str, generation: Generation) -> Option<Witness> {
    let is_read_in = if part.starts_with("sscli2 ") {
        // Shared Source CLI 2.0 has the code of .NET Framework 2.0.
        let family = generation.family();
        matches!(family.product, Product::Framework) && family.version.0 < 4
    } else if part.starts_with("docs") || part.contains("article") {
        return Some(Witness::Documented(part));
    } else if part.starts_with("unwinder_amd64.cpp") && !generation.is_unix() {
        // On Windows the OS unwinds: the runtime calls RtlVirtualUnwind with the entry of its own tables.
        false
    } else if part == "recordings" || part.contains("runtime#") || part.contains("dotnet/") {
        false
    } else {
        Generations::CORECLR_31.contains(generation)
    };
    is_read_in.then_some(Witness::Read(part))
}
