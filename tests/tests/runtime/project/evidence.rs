//! The page of the evidence: the support of each clause on each runtime.

use super::*;

/// The support of a clause on a runtime.
enum Cell {
    /// Replayed calls of the runtime, which had the recorded result: how many.
    Calls(u64),
    /// The source of the runtime, the documentation, or nothing.
    Other(Support),
}

impl Cell {
    const fn support(&self) -> Support {
        match self {
            Self::Calls(_) => Support::Observed,
            Self::Other(support) => *support,
        }
    }
}

/// Formats the cell of the table.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls(calls) => write!(f, "{calls}"),
            Self::Other(Support::Assumed) => f.write_str("**assumed**"),
            Self::Other(support) => write!(f, "{support}"),
        }
    }
}

/// Returns the number of replayed calls that a clause applies to on a runtime.
fn calls(clause: Clause, generation: Generation, coverage: &Coverage) -> Option<u64> {
    let Cover::Exercised(by) = coverage.cover(clause, generation) else { return None };
    by.iter().find(|(by, _)| *by == By::Recording).map(|(_, calls)| *calls)
}

/// Returns the runtimes of whose recorded calls each clause applies to some.
fn recorded(coverage: &Coverage) -> String {
    let mut lines = String::new();
    for entry in clause::entries() {
        let is_recorded = |it: &Generation| calls(entry.clause, *it, coverage).is_some();
        let names: Vec<_> =
            Generation::ALL.into_iter().filter(is_recorded).map(Generation::name).collect();
        if !names.is_empty() {
            writeln!(lines, "{} {}", entry.clause, names.join(" ")).unwrap();
        }
    }
    lines
}

/// Returns the cell of a clause on a runtime, or `None` if it does not hold there.
fn cell(entry: &ClauseEntry, generation: Generation, coverage: &Coverage) -> Option<Cell> {
    let support = entry.support(generation)?;
    let calls = calls(entry.clause, generation, coverage);
    Some(calls.map_or(Cell::Other(support), Cell::Calls))
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
                let Some(cell) = cell(entry, generation, coverage) else {
                    chapters.push_str(" – |");
                    continue;
                };
                totals.entry(generation).or_default()[cell.support() as usize] += 1;
                write!(chapters, " {cell} |").unwrap();
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

/// Compares a generated file; `CLR_BLESS=1` writes it.
fn check(file: &str, found: &str) {
    let file = path(file);
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(&file, found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(file).unwrap(), "CLR_BLESS=1 writes it anew");
}

/// The library's list comes first: the page follows it after the next compilation.
#[test]
fn the_list_of_recorded_clauses_is_that_of_the_replays() {
    check("sim/runtime/src/clause/recorded.txt", &recorded(measured()));
}

#[test]
fn the_page_of_evidence_has_every_clause_on_every_runtime() {
    check("sim/src/book/evidence.md", &page(measured()));
}
