//! The table of the mutants: whether texts notice that a rule is missing. `.ci/mutants.py` writes it.

use crate::repository::{path, read};
use clr_runtime::clause;
use std::collections::BTreeMap;

/// The words for the outcome of a clause's mutants.
const RESULTS: [&str; 5] = ["red", "crude", "green", "no mutant", "no text"];

#[test]
fn every_clause_has_a_row_in_the_table_of_mutants() {
    let table = read("tests/mutants.tsv");
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut clauses = Vec::new();
    for row in rows {
        let fields: Vec<_> = row.split('\t').collect();
        let [clause, result, mutant, text] = fields.try_into().unwrap();
        assert!(RESULTS.contains(&result), "{row}");
        *counts.entry(result).or_default() += 1;
        clauses.push(clause.to_owned());
        if matches!(result, "red" | "crude") {
            let (file, _) = mutant.split_once(": ").unwrap();
            assert!(path(file).is_file(), "{row}");
            assert!(clr_fixtures::get(&format!("gallery/{text}")).is_some(), "{row}");
        }
    }
    println!("{counts:?}");
    let all: Vec<_> = clause::entries().map(|entry| entry.clause.to_string()).collect();
    assert_eq!(clauses, all, "run .ci/mutants.py anew");
}
