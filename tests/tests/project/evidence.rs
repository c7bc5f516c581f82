//! The page of the evidence: the support of each clause on each runtime.

use crate::coverage::measured;
use clr_runtime::clause::{Chapter, ClauseEntry};
use clr_runtime::generation::{Generation, Generations};
use clr_tests::coverage::{By, Cover, Coverage};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// The support of a clause on a runtime, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Support {
    /// Replayed calls of the runtime, which had the recorded result: how many.
    Observed(u64),
    /// The source of the runtime.
    Read,
    /// The documentation.
    Documented,
    /// Nothing of this runtime: another runtime, or its source, is taken to be the same.
    Assumed,
}

impl Support {
    const KINDS: [&str; 4] = ["observed", "read", "documented", "assumed"];

    /// Returns the index of the kind.
    const fn kind(self) -> usize {
        match self {
            Self::Observed(_) => 0,
            Self::Read => 1,
            Self::Documented => 2,
            Self::Assumed => 3,
        }
    }
}

/// Formats the cell of the table.
impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observed(calls) => write!(f, "{calls}"),
            Self::Assumed => f.write_str("**assumed**"),
            _ => f.write_str(Self::KINDS[self.kind()]),
        }
    }
}

/// Returns what a part of a clause's sources says about a runtime. Files without a repository are
/// those of CoreCLR 3.1; those of dotnet/runtime belong to its main branch, not to a release.
fn cited(part: &str, generation: Generation) -> Option<Support> {
    let read_in = if part.starts_with("sscli2 ") {
        Generations::NONE.with(Generations::from_word("framework-2").unwrap())
    } else if part.starts_with("docs") || part.contains("article") {
        return Some(Support::Documented);
    } else if part == "recordings" || part.contains("runtime#") || part.contains("dotnet/") {
        return None;
    } else {
        Generations::CORECLR_31
    };
    read_in.contains(generation).then_some(Support::Read)
}

/// Returns what supports a clause on a runtime.
fn support(entry: &ClauseEntry, generation: Generation, coverage: &Coverage) -> Support {
    if let Cover::Exercised(by) = coverage.cover(entry.clause, generation)
        && let Some((_, calls)) = by.iter().find(|(by, _)| *by == By::Recording)
    {
        return Support::Observed(*calls);
    }
    let parts = entry.source.split(';').map(str::trim);
    parts.filter_map(|part| cited(part, generation)).min().unwrap_or(Support::Assumed)
}

fn page(coverage: &Coverage) -> String {
    let mut totals = BTreeMap::<Generation, [usize; 4]>::new();
    let mut chapters = String::new();
    for chapter in Chapter::ALL {
        write!(chapters, "\n## {}\n\n| Clause |", chapter.title()).unwrap();
        for generation in Generation::ALL {
            write!(chapters, " {generation} |").unwrap();
        }
        let columns = " --- |".repeat(Generation::ALL.len());
        write!(chapters, " Sources |\n| --- |{columns} --- |").unwrap();
        for entry in chapter.entries() {
            write!(chapters, "\n| {} |", entry.clause).unwrap();
            for generation in Generation::ALL {
                if !entry.generations.contains(generation) {
                    chapters.push_str(" – |");
                    continue;
                }
                let support = support(entry, generation, coverage);
                totals.entry(generation).or_default()[support.kind()] += 1;
                write!(chapters, " {support} |").unwrap();
            }
            write!(chapters, " {} |", entry.source).unwrap();
        }
        chapters.push('\n');
    }
    let sum = |kind| totals.values().map(|counts| counts[kind]).sum::<usize>();
    let cells: usize = (0..4).map(sum).sum();
    let mut page = format!(
        "\
# The evidence

The support of each clause on each runtime on which it holds: {cells} cells. {} of them are observed,
{} read, {} documented, and **{} assumed**. This page is written by a test.

* A number N: the clause applies to N calls of this runtime in `fixtures/clr`, which were replayed with
  the recorded result.
* *read*: a source of this runtime was read; the last column names file and function. Files without a
  repository are those of CoreCLR 3.1, `sscli2` is Shared Source CLI 2.0 (.NET Framework 2.0).
* *documented*: a page says so, without naming a runtime.
* **assumed**: nothing of this runtime shows it. What was observed or read elsewhere, or read at the
  main branch of dotnet/runtime, is taken to hold here too.
* –: the clause does not hold on this runtime.

| Runtime | observed | read | documented | assumed |
| --- | --- | --- | --- | --- |
",
        sum(0),
        sum(1),
        sum(2),
        sum(3),
    );
    for generation in Generation::ALL {
        let [observed, read, documented, assumed] = totals[&generation];
        writeln!(page, "| {generation} | {observed} | {read} | {documented} | {assumed} |")
            .unwrap();
    }
    page + &chapters
}

/// `CLR_BLESS=1` writes the page.
#[test]
fn the_page_of_evidence_has_every_clause_on_every_runtime() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/src/book/evidence.md");
    let found = page(measured());
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(file, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(file).unwrap(), "CLR_BLESS=1 writes it anew");
}

#[test]
fn sources_support_only_the_runtime_they_belong_to() {
    use Generation::{CoreClr31Unix, Framework2, Net10Windows};
    let file = "stackwalk.cpp: StackFrameIterator::NextRaw";
    assert_eq!(cited(file, CoreClr31Unix), Some(Support::Read));
    assert_eq!(cited(file, Net10Windows), None);
    assert_eq!(cited("sscli2 stackwalk.cpp", Framework2), Some(Support::Read));
    assert_eq!(cited("sscli2 stackwalk.cpp", CoreClr31Unix), None);
    assert_eq!(cited("dotnet/runtime pal.h", Net10Windows), None);
    assert_eq!(cited("recordings", CoreClr31Unix), None);
    assert_eq!(cited("docs: DoStackSnapshot", Net10Windows), Some(Support::Documented));
}
