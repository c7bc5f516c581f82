//! The page of the evidence: the support of each clause on each runtime.

use super::*;
use crate::project::coverage::traced;
use crate::recordings::embedded;
use crate::sequences::sequences;
use clr_recording::vectors::decompress;
use clr_runtime::clause::Witness;

/// Returns the number of replayed calls and sequences that a clause applies to on a runtime.
fn calls(clause: Clause, generation: Generation, coverage: &Coverage) -> Option<u64> {
    let Cover::Exercised(by) = coverage.cover(clause, generation) else { return None };
    by.iter().find(|(by, _)| *by == By::Recording).map(|(_, calls)| *calls)
}

/// Returns the list of the recordings of whose calls clauses apply to some.
fn observed(coverage: &Coverage) -> String {
    let mut lines = "# What each clause was observed in: a test writes it.\n".to_owned();
    for entry in clause::entries() {
        for generation in Generation::ALL {
            if let Some(name) = coverage.witness(entry.clause, generation) {
                writeln!(lines, "{}\t{generation}\t{name}", entry.clause).unwrap();
            }
        }
    }
    lines
}

/// Returns the cell of a clause on a runtime, or `None` if it does not hold there.
fn cell(entry: &ClauseEntry, generation: Generation, coverage: &Coverage) -> Option<String> {
    let support = entry.support(generation)?;
    let calls = calls(entry.clause, generation, coverage).map(|it| it.to_string());
    let mut cell = match support {
        Support::Assumed => "**assumed**".to_owned(),
        Support::Shown => format!("shown {}", calls.unwrap_or_default()).trim_end().to_owned(),
        Support::Observed => calls.unwrap_or_default(),
        Support::Read | Support::Documented => support.to_string(),
    };
    if entry.witness(generation).is_some_and(|witness| witness.is_under_wine(generation)) {
        cell.push('†');
    }
    Some(cell)
}

/// Returns the sources of a clause: its own, and the places that were read in other runtimes, each once. `clrsim rules`
/// says of which runtime.
fn sources(entry: &ClauseEntry) -> String {
    let mut sources = entry.source.to_owned();
    let mut seen = BTreeSet::new();
    for generation in Generation::ALL {
        if let Some(Witness::Read(place)) = entry.witness(generation)
            && place.contains('@')
        {
            let words = place.split("; ").filter(|part| !part.starts_with("the same in"));
            let place = words.collect::<Vec<_>>().join("; ");
            if seen.insert(place.clone()) {
                write!(sources, "; {place}").unwrap();
            }
        }
    }
    sources
}

/// Returns the number of bugs that take rules out, and that of those which recordings see.
fn bugs() -> [usize; 2] {
    let rows = |table: &str| -> Vec<Vec<String>> {
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        rows.map(|row| row.split('\t').map(str::to_owned).collect()).collect()
    };
    let all = rows(&read("tests/bugs.tsv"));
    let breaking: BTreeSet<_> =
        all.iter().filter(|row| row[1].contains("C-")).map(|row| &row[0]).collect();
    let shown = rows(&read("sim/runtime/src/clause/shown.tsv"));
    let seen: BTreeSet<_> = shown.iter().map(|row| &row[3]).collect();
    [breaking.len(), seen.len()]
}

fn page(coverage: &Coverage) -> String {
    let mut totals = BTreeMap::<Generation, [usize; Support::ALL.len()]>::new();
    let mut wine = 0;
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
                let Some(support) = entry.support(generation) else {
                    chapters.push_str(" – |");
                    continue;
                };
                totals.entry(generation).or_default()[support as usize] += 1;
                let cell = cell(entry, generation, coverage).unwrap();
                wine += usize::from(cell.ends_with('†'));
                write!(chapters, " {cell} |").unwrap();
            }
            write!(chapters, " {} |", sources(entry)).unwrap();
        }
        chapters.push('\n');
    }
    let sum = |kind: Support| totals.values().map(|counts| counts[kind as usize]).sum::<usize>();
    let cells: usize = Support::ALL.into_iter().map(sum).sum();
    let [breaking, seen] = bugs();
    let mut page = format!(
        "\
# The evidence

The support of each clause on each runtime on which it holds: {cells} cells. {} of them are shown,
{} observed, {} read, {} documented, and **{} assumed**. This page is written by a test.

* *shown* N: a recording of this runtime does not come out if the rule is taken out. N is as below.
* A number N: the clause applies to N calls and sequences of this runtime in `fixtures/clr` and
  `fixtures/sequences`, which were replayed with the recorded result, or to N answers in `sim/cli/tests/doors`,
  which the recorder gets from the simulated runtime, too, or to N unwinds in `fixtures/win64`, which CoreCLR's own
  unwinder had made.
* †: all of it was seen under wine, and nothing on Windows itself: {wine} cells.
* *read*: a source of this runtime was read; the last column names file and function. Files without a
  repository are those of CoreCLR 3.1, `sscli2` is Shared Source CLI 2.0 (.NET Framework 2.0).
  For .NET 8 to 11 no source of the release was at hand: source of another version was read, and compared with
  the machine code of the release, which the row names.
* *documented*: a page says so, without naming a runtime.
* **assumed**: nothing of this runtime shows it. What was observed or read elsewhere, or read at the
  main branch of dotnet/runtime, is taken to hold here too. [The last table](#what-it-would-take) says
  what it would take.
* –: the clause does not hold on this runtime.

`clrsim rules C-044` names the recording, the source or the page of each cell.

What *shown* costs: {breaking} planted bugs take rules out, and recordings see {seen} of them. They are
planted in one build; all recordings and sequences are then replayed with each. `.ci/bugs.py --shown` does
it in the nightly run: {COST}.

| Runtime | shown | observed | read | documented | assumed |
| --- | --- | --- | --- | --- | --- |
",
        sum(Support::Shown),
        sum(Support::Observed),
        sum(Support::Read),
        sum(Support::Documented),
        sum(Support::Assumed),
    );
    for generation in Generation::ALL {
        let counts = totals[&generation].map(|it| it.to_string()).join(" | ");
        writeln!(page, "| {generation} | {counts} |").unwrap();
    }
    page + &chapters + &wanted::table()
}

/// The measured cost of `.ci/bugs.py --shown`.
const COST: &str = "17 minutes of one processor, or 7 seconds for each bug";

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
fn the_list_of_observed_clauses_is_that_of_the_replays() {
    check("sim/runtime/src/clause/observed.tsv", &observed(measured()));
}

#[test]
fn the_page_of_evidence_has_every_clause_on_every_runtime() {
    check("sim/src/book/evidence.md", &page(measured()));
}

/// Returns the runtimes that a file of the fixtures was recorded in.
fn recorded_in(file: &str) -> Vec<Generation> {
    if let Some((_, recording)) = embedded().iter().find(|(name, _)| name == file) {
        return vec![recording.generation];
    }
    if file.starts_with("win64/vec/") {
        assert!(clr_fixtures::get(file).is_some(), "there is no {file}");
        return vec![Generation::CoreClr31Unix];
    }
    if file.starts_with("sim/cli/tests/doors/") {
        assert!(path(file).is_file(), "there is no {file}");
        return vec![traced(file)];
    }
    let found = sequences().find(|(name, ..)| name == file);
    let (.., recorded) = found.unwrap_or_else(|| panic!("there is no {file}"));
    recorded.runtimes.iter().filter_map(|it| it.generation).collect()
}

/// A witness that shows a clause is a recording of the runtime, and a bug that breaks the clause.
#[test]
fn what_shows_a_clause_is_there() {
    let bugs = read("tests/bugs.tsv");
    let mut problems = Vec::new();
    for entry in entries() {
        for generation in entry.generations.iter() {
            let Some(witness) = entry.witness(generation) else { continue };
            let cell = format!("{} on {generation}", entry.clause);
            if let Witness::Shown { bug, .. } = witness {
                let mut rows = bugs.lines().map(|row| row.split('\t').collect::<Vec<_>>());
                let breaks = |clauses: &str| {
                    clauses.split(' ').any(|clause| clause == entry.clause.to_string())
                };
                if !rows.any(|row| row[0] == bug && breaks(row[1])) {
                    problems.push(format!("{cell}: no bug {bug} breaks it"));
                }
            }
            if let Witness::Shown { .. } | Witness::Observed(_) = witness
                && !recorded_in(witness.name()).contains(&generation)
            {
                problems.push(format!("{cell}: {} is of another runtime", witness.name()));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Beginnings of the names of recordings made under wine whose headers do not say so.
const UNDER_WINE: [&str; 3] = ["clr/net9.0.22-windows-", "clr/net10.0.", "clr/net11.0.0-windows-"];

/// The page says of all recordings of Windows that they were made under wine.
#[test]
fn all_recordings_of_windows_were_made_under_wine() {
    for (name, recording) in embedded() {
        let text = decompress(clr_fixtures::get(name).unwrap(), 1 << 28).unwrap();
        let header = String::from_utf8(text).unwrap().lines().next().unwrap().to_owned();
        let is_under_wine = header.contains("under wine")
            || header.contains("Windows") && UNDER_WINE.iter().any(|it| name.starts_with(it));
        assert_eq!(is_under_wine, !recording.generation.is_unix(), "{name}: {header}");
    }
}
