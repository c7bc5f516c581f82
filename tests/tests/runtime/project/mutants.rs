//! The tables of the mutants: whether texts notice that a rule is missing, which oracle sees a
//! planted bug, which fuzz target finds a known one, and how many mutants of all code the tests see.
//! `.ci/mutants.py`, `.ci/planted.py`, `.ci/known_bugs.py` and `.ci/mutation_score.py` write them.

use crate::project::repository::{path, read};
use clr_runtime::clause::{self, Clause};
use std::collections::{BTreeMap, BTreeSet};

/// The words for the outcome of a clause's mutants.
const RESULTS: [&str; 6] = ["red", "crude", "tested", "green", "no mutant", "no text"];

/// Returns the rows of a table.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split('\t').collect())
}

/// Returns a text without white space.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Returns the number of places of a piece of code in a file; white space does not count.
fn places(file: &str, code: &str) -> usize {
    squeezed(&read(file)).matches(&squeezed(&code.replace(['«', '»'], ""))).count()
}

/// Returns true if the gallery has this text, or if none is named.
fn is_text(text: &str) -> bool {
    text == "-" || clr_fixtures::get(&format!("gallery/{text}")).is_some()
}

#[test]
fn every_clause_has_a_row_in_the_table_of_mutants() {
    let table = read("tests/mutants.tsv");
    let planted = read("tests/planted.tsv");
    let planted: BTreeSet<_> = rows(&planted).map(|row| format!("planted: {}", row[0])).collect();
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut clauses = Vec::new();
    for row in rows(&table) {
        let [clause, result, mutant, text] = row[..] else { panic!("{row:?}") };
        assert!(RESULTS.contains(&result), "{row:?}");
        *counts.entry(result).or_default() += 1;
        clauses.push(clause.to_owned());
        match result {
            "red" | "crude" => {
                let (file, _) = mutant.split_once(": ").unwrap();
                assert!(path(file).is_file() || planted.contains(mutant), "{row:?}");
                assert!(is_text(text) && text != "-", "{row:?}");
            }
            "tested" => {
                let is_recording = clr_fixtures::get(&format!("clr/{text}")).is_some();
                let exists = text.contains("::") || is_recording || is_text(text);
                assert!(planted.contains(mutant) && exists, "{row:?}");
            }
            // The row gives the reason why no mutant takes the rule out.
            "no mutant" => assert!(!mutant.is_empty(), "{row:?}"),
            _ => {}
        }
    }
    println!("{counts:?}");
    let all: Vec<_> = clause::entries().map(|entry| entry.clause.to_string()).collect();
    assert_eq!(clauses, all, "run .ci/mutants.py anew");
}

/// A change of code in which bugs are planted moves them along; `.ci/planted.py` then runs anew.
#[test]
fn every_planted_bug_has_its_place_and_is_seen_by_an_oracle() {
    let table = read("tests/planted.tsv");
    let mut known = BTreeSet::new();
    for row in rows(&table) {
        let [bug, clauses, before, file, code, instead, ref oracles @ ..] = row[..] else {
            panic!("{row:?}")
        };
        for clause in clauses.split(' ') {
            assert!(clause.parse::<Clause>().is_ok(), "{row:?}");
        }
        assert!(!before.is_empty() && code != instead, "{row:?}");
        assert_eq!(places(file, code), 1, "{bug}: {code} in {file}");
        // A bug in several places has its results in the first row.
        match *oracles {
            [] => assert!(known.contains(bug), "{row:?}"),
            [texts, _, unit, model, recording] => {
                assert!(texts.split(' ').all(is_text), "{row:?}");
                let sees =
                    [texts, unit, model, recording].iter().any(|it| !matches!(*it, "-" | "?"));
                assert!(sees, "{bug} is seen by no oracle");
                known.insert(bug);
            }
            _ => panic!("{row:?}"),
        }
    }
}

/// A change of code in which bugs are planted moves them along.
#[test]
fn every_known_bug_has_its_place_and_was_searched_for() {
    let planted = read("tests/planted.tsv");
    let planted: BTreeSet<_> = rows(&planted).map(|row| row[0]).collect();
    let table = read("tests/known_bugs.tsv");
    let mut bugs = BTreeMap::new();
    for row in rows(&table) {
        let [bug, layer, targets, file, ref code @ ..] = row[..] else { panic!("{row:?}") };
        match *code {
            [] => assert!(file == "tests/planted.tsv" && planted.contains(bug), "{row:?}"),
            [code, instead] => {
                assert!(code != instead && !planted.contains(bug), "{row:?}");
                assert_eq!(places(file, code), 1, "{bug}: {code} in {file}");
            }
            _ => panic!("{row:?}"),
        }
        for target in targets.split(' ') {
            assert!(path(&format!("fuzz/fuzz_targets/{target}.rs")).is_file(), "{row:?}");
        }
        bugs.insert(bug, (layer, targets));
    }
    assert_eq!(bugs.len(), 40);
    let layers: BTreeSet<_> = bugs.values().map(|(layer, _)| *layer).collect();
    assert_eq!(layers, BTreeSet::from(["mixed", "parser", "runtime", "schedule", "walker"]));
    let wanted: BTreeSet<_> = bugs
        .iter()
        .flat_map(|(bug, (layer, targets))| targets.split(' ').map(move |it| [*bug, *layer, it]))
        .collect();
    let found = read("tests/known_bugs_found.tsv");
    let found: BTreeSet<_> = rows(&found).map(|row| [row[0], row[1], row[2]]).collect();
    assert_eq!(found, wanted, "run .ci/known_bugs.py anew");
}

/// The tables name the models' own mistakes as they are: each planted in the runtime, too.
#[test]
fn the_mistakes_of_the_models_are_planted_in_the_runtime_too() {
    let table = read("tests/planted.tsv");
    let of_model: BTreeMap<_, _> =
        rows(&table).filter(|row| row.len() > 9).map(|row| (row[0], row[9])).collect();
    let lookups = clr_tests::lookups::Mistake::ALL.map(|mistake| format!("{mistake:?}"));
    let snapshots = clr_tests::snapshot::Mistake::ALL.map(|mistake| format!("{mistake:?}"));
    for mistake in lookups.iter().chain(&snapshots) {
        let model = of_model.get(mistake.as_str());
        assert!(model.is_some_and(|model| *model != "-"), "{mistake}: {model:?}");
    }
}

/// The table of scores counts the survivors that are listed, and each of them is in a file that exists.
#[test]
fn each_mutant_that_survives_is_listed() {
    let (scores, survivors) = (read("tests/mutation_score.tsv"), read("tests/survivors.tsv"));
    let mut listed = BTreeMap::<_, [usize; 2]>::new();
    for row in rows(&survivors) {
        let [result, mutant, ref reason @ ..] = row[..] else { panic!("{row:?}") };
        assert!(["survived", "not reached"].contains(&result) && reason.len() < 2, "{row:?}");
        let (file, _) = mutant.split_once(": ").unwrap();
        assert!(path(file).is_file(), "{row:?}");
        let (folder, _) = file.rsplit_once('/').unwrap();
        let is_open = reason.is_empty();
        listed.entry(folder.to_owned()).or_default()[usize::from(is_open)] += 1;
    }
    for row in rows(&scores).filter(|row| row[0].contains("/src")) {
        let numbers: Vec<usize> = row[1..7].iter().map(|number| number.parse().unwrap()).collect();
        let [_, _, caught, timeout, argued, open] = numbers[..] else { panic!("{row:?}") };
        assert_eq!(listed.remove(row[0]).unwrap_or_default(), [argued, open], "{row:?}");
        // In tenths of a per cent.
        let (seen, all) = (caught + timeout, caught + timeout + open);
        let share = row[7].replace('.', "").parse().unwrap_or(0_usize);
        assert!((share * all).abs_diff(1_000 * seen) <= all, "{row:?}");
    }
    assert!(listed.is_empty(), "{listed:?}");
}
