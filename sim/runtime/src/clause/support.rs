//! The support of a clause on each of its runtimes.

use super::{Clause, ClauseEntry};
use crate::generation::{Generation, Generations, Known, Product, QUESTIONS};
use core::fmt;

/// The runtimes of whose recorded calls each clause applies to some: a line each. A test writes it
/// from the replays of all recordings of the fixtures.
const RECORDED: &str = include_str!("recorded.txt");

/// The support of a statement about one runtime, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// Recorded calls of the runtime, which were replayed with the same result.
    Observed,
    /// The source of the runtime.
    Read,
    /// The documentation, which names no runtime.
    Documented,
    /// Nothing of this runtime: it is taken to be as another one, or as its source at another
    /// version.
    Assumed,
}

impl Support {
    /// All kinds, strongest first.
    pub const ALL: [Self; 4] = [Self::Observed, Self::Read, Self::Documented, Self::Assumed];

    /// Returns the word: observed, read, documented, or assumed.
    pub const fn word(self) -> &'static str {
        match self {
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

/// Returns true if answers of the runtime were read in its own source.
pub fn is_source_read(generation: Generation) -> bool {
    QUESTIONS.iter().any(|question| matches!((question.known)(generation), Known::Read(_)))
}

impl ClauseEntry {
    /// Returns the support of the clause on a runtime, or `None` if it does not hold there.
    pub fn support(&self, generation: Generation) -> Option<Support> {
        if !self.generations.contains(generation) {
            return None;
        }
        if recorded(self.clause).any(|name| name == generation.name()) {
            return Some(Support::Observed);
        }
        let parts = self.source.split(';').map(str::trim);
        Some(parts.filter_map(|part| cited(part, generation)).min().unwrap_or(Support::Assumed))
    }
}

/// Returns the names of the runtimes of whose recorded calls a clause applies to some.
fn recorded(clause: Clause) -> impl Iterator<Item = &'static str> {
    let of = move |line: &'static str| line.strip_prefix(&clause.to_string());
    RECORDED.lines().find_map(of).unwrap_or_default().split_whitespace()
}

/// Returns what a part of a clause's sources says about a runtime. Files without a repository are
/// those of CoreCLR 3.1; those of dotnet/runtime belong to its main branch, not to a release.
fn cited(part: &str, generation: Generation) -> Option<Support> {
    let is_read_in = if part.starts_with("sscli2 ") {
        // Shared Source CLI 2.0 has the code of .NET Framework 2.0.
        let family = generation.family();
        matches!(family.product, Product::Framework) && family.version.0 < 4
    } else if part.starts_with("docs") || part.contains("article") {
        return Some(Support::Documented);
    } else if part == "recordings" || part.contains("runtime#") || part.contains("dotnet/") {
        false
    } else {
        Generations::CORECLR_31.contains(generation)
    };
    is_read_in.then_some(Support::Read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Generation::{CoreClr31Unix, Framework2, Framework4, Net10Windows};

    #[test]
    fn sources_support_only_the_runtime_they_belong_to() {
        let file = "stackwalk.cpp: StackFrameIterator::NextRaw";
        assert_eq!(cited(file, CoreClr31Unix), Some(Support::Read));
        assert_eq!(cited(file, Net10Windows), None);
        assert_eq!(cited("sscli2 stackwalk.cpp", Framework2), Some(Support::Read));
        assert_eq!(cited("sscli2 stackwalk.cpp", Framework4), None);
        assert_eq!(cited("sscli2 stackwalk.cpp", CoreClr31Unix), None);
        assert_eq!(cited("dotnet/runtime pal.h", Net10Windows), None);
        assert_eq!(cited("recordings", CoreClr31Unix), None);
        assert_eq!(cited("docs: DoStackSnapshot", Net10Windows), Some(Support::Documented));
    }

    #[test]
    fn a_result_is_supported_as_its_weakest_clause() {
        let clauses =
            |numbers: &[u16]| numbers.iter().copied().map(Clause::new).collect::<Vec<_>>();
        // C-006 was recorded, C-001 only read, C-148 is documented.
        let on = |numbers: &[u16], generation| Support::of(&clauses(numbers), generation);
        assert_eq!(on(&[6], CoreClr31Unix), Support::Observed);
        assert_eq!(on(&[6, 1], CoreClr31Unix), Support::Read);
        assert_eq!(on(&[6, 1, 148], CoreClr31Unix), Support::Documented);
        assert_eq!(on(&[6, 1, 148], Net10Windows), Support::Assumed);
        assert_eq!(on(&[6], Framework4), Support::Assumed);
        assert_eq!(on(&[], CoreClr31Unix), Support::Read);
        assert_eq!(on(&[], Framework4), Support::Assumed);
    }
}
