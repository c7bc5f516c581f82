//! Comparison of observed results in real runtimes, situation by situation, with the scenarios that
//! rebuild them: each scenario has an observed result, and each observed result is rebuilt or
//! listed as a gap with a reason.

use super::*;
use clr_scenario::{Provenance, SnapshotResult};
use clr_tests::shape::shape;
use std::fmt;

/// Fixture with the results of all calls.
const OBSERVED: &str = "situations/observed.tsv";
/// Fixture with the results that are not rebuilt.
const GAPS: &str = "situations/gaps.tsv";

/// Generations that were recorded.
const RECORDED: [Generation; 4] = [
    Generation::CoreClr31Unix,
    Generation::Net9Unix,
    Generation::CoreClr31Windows,
    Generation::Net10Windows,
];

/// Calls of the same kind in the same situation with the same result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    situation: String,
    call: String,
    generation: String,
    result: String,
    /// Order of the callbacks; `-` if none is given, which means that there were no callbacks.
    shape: String,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { situation, call, generation, result, shape } = self;
        write!(f, "{situation}, {call}, {generation}: {result} {shape}")
    }
}

/// Returns the lines of a table, without comments: a cell each, and the last field.
fn table(name: &str) -> Vec<(Cell, String)> {
    let text = core::str::from_utf8(clr_fixtures::get(name).unwrap()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
            let [situation, call, generation, result, shape, last] = fields.try_into().unwrap();
            (Cell { situation, call, generation, result, shape }, last)
        })
        .collect()
}

fn observed() -> BTreeMap<Cell, u64> {
    table(OBSERVED).into_iter().map(|(cell, count)| (cell, count.parse().unwrap())).collect()
}

/// A scenario, with the situation that it rebuilds.
struct Rebuilt {
    file: &'static str,
    situation: &'static str,
    scenario: &'static Scenario,
}

fn rebuilt_files() -> Vec<Rebuilt> {
    let files = gallery().filter(|(name, ..)| name.starts_with("situations/"));
    let rebuilt = files.map(|(file, text, scenario)| {
        let situation = text.lines().next().and_then(|line| line.strip_prefix("// situation: "));
        let situation = situation.unwrap_or_else(|| panic!("{file} names no situation"));
        Rebuilt { file, situation, scenario }
    });
    rebuilt.collect()
}

/// Returns the kind of a call: its title without the number that distinguishes calls of one kind.
fn kind(call: &SnapshotCall) -> &str {
    let title = call.title.as_deref().unwrap_or_default();
    let numbered = title.strip_suffix(')').and_then(|title| title.rsplit_once(" ("));
    match numbered {
        Some((kind, number)) if number.parse::<u32>().is_ok() => kind,
        _ => title,
    }
}

fn shape_of(found: &SnapshotResult) -> String {
    shape(found.frame_reports.iter().map(|report| report.function.is_some()))
}

/// Returns the outcomes that the gallery rebuilds, and the problems of its files.
fn rebuild(observed: &BTreeMap<Cell, u64>) -> (BTreeSet<Cell>, Vec<String>) {
    let (mut rebuilt, mut problems) = (BTreeSet::new(), Vec::new());
    for file in rebuilt_files() {
        for generation in RECORDED {
            let reports = match calls(file.file, generation) {
                Ok(reports) => reports,
                Err(error) => {
                    problems.push(format!("{}, {generation}: {error}", file.file));
                    continue;
                }
            };
            for report in reports {
                let call = file.scenario.call(report.stop, report.snapshot).unwrap();
                let title = call.title.as_deref().unwrap_or_default();
                let name = format!("{}, {generation}, {title}", file.file);
                for difference in &report.differences {
                    problems.push(format!("{name}: {difference}"));
                }
                let outcome = |result: String, shape: &str| Cell {
                    situation: file.situation.to_owned(),
                    call: kind(call).to_owned(),
                    generation: generation.to_string(),
                    result,
                    shape: shape.to_owned(),
                };
                let (result, shape) = (report.found.outcome.to_string(), shape_of(&report.found));
                let mut found = outcome(result.clone(), &shape);
                if shape == "none" && !observed.contains_key(&found) {
                    found = outcome(result, "-");
                }
                let expected = report.expected.map(|expected| call.expect[expected].from);
                match observed.get(&found) {
                    None => problems.push(format!("{name}: never observed: {found}")),
                    count if expected != Some(Provenance::Observed(count.copied())) => {
                        problems.push(format!("{name}: {found} was observed {count:?} times"));
                    }
                    Some(_) => {
                        rebuilt.insert(found);
                    }
                }
                // On Unix the results of nested calls were counted, too.
                let refused = outcome(HResult::UNSAFE.to_string(), "-");
                let mut nested = report.found.nested.iter().flat_map(|nested| &nested.outcomes);
                let is_refused = |ended: &Outcome| ended.to_string() == refused.result;
                if generation.is_unix()
                    && nested.next().is_some_and(is_refused)
                    && observed.contains_key(&refused)
                {
                    rebuilt.insert(refused);
                }
            }
        }
    }
    (rebuilt, problems)
}

#[test]
fn situations_have_the_observed_results() {
    let observed = observed();
    let (rebuilt, mut problems) = rebuild(&observed);
    let gaps: BTreeMap<_, _> = table(GAPS).into_iter().collect();
    for cell in observed.keys() {
        match (rebuilt.contains(cell), gaps.contains_key(cell)) {
            (true, true) => problems.push(format!("rebuilt and a gap: {cell}")),
            (false, false) => problems.push(format!("neither rebuilt nor a gap: {cell}")),
            _ => {}
        }
    }
    for (gap, reason) in &gaps {
        if !observed.contains_key(gap) {
            problems.push(format!("a gap that was never observed: {gap}"));
        }
        if reason.is_empty() {
            problems.push(format!("a gap without a reason: {gap}"));
        }
    }
    let count = |cells: &mut dyn Iterator<Item = &Cell>| -> u64 {
        cells.filter_map(|cell| observed.get(cell)).sum()
    };
    println!(
        "{} of {} outcomes rebuilt, {} of {} calls; {} gaps",
        rebuilt.len(),
        observed.len(),
        count(&mut rebuilt.iter()),
        count(&mut observed.keys()),
        gaps.len(),
    );
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_situation_is_rebuilt() {
    let observed = observed();
    let situations: BTreeSet<_> = observed.keys().map(|cell| cell.situation.as_str()).collect();
    assert_eq!(situations.len(), 95);
    let rebuilt: BTreeSet<_> = rebuilt_files().into_iter().map(|file| file.situation).collect();
    assert_eq!(rebuilt, situations);
}

#[test]
fn callbacks_are_distinguished_by_their_shape() {
    for (callbacks, expected) in [
        ("", "none"),
        ("mmN", "mN"),
        ("mNmmN", "mNmN"),
        ("mNmmNmN", "(mN)*"),
        ("NmNmNmN", "N(mN)*"),
        ("mNmNmNmm", "(mN)*m"),
        ("mNNmNmN", "mNNmNmN"),
        ("NmNmN", "NmNmN"),
    ] {
        assert_eq!(shape(callbacks.chars().map(|c| c == 'm')), expected);
    }
}
