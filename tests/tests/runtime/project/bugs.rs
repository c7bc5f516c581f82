//! The list of planted bugs, which `.ci/bugs.py` plants: what it says of clauses, and of the models' own mistakes.

use super::*;
use clr_runtime::clause;

/// Clauses that no bug of the list breaks, so that nothing shows that a text would see one.
const UNBROKEN: [&str; 4] = [
    // No text names these.
    "C-029", "C-124",
    // An inlined method has no frame, and memory before a code heap is not simulated: no code is about them.
    "C-068", "C-155",
];

/// Returns a column of the list.
fn column(list: &str, number: usize) -> impl Iterator<Item = &str> {
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(move |row| row.split('\t').nth(number))
}

/// A new clause gets a bug that a text with its name sees.
#[test]
fn a_bug_of_the_list_breaks_each_clause() {
    let list = read("tests/bugs.tsv");
    let broken: BTreeSet<_> = column(&list, 1).flat_map(str::split_whitespace).collect();
    let all: Vec<_> = clause::entries().map(|entry| entry.clause.to_string()).collect();
    let unbroken: BTreeSet<_> =
        all.iter().map(String::as_str).filter(|clause| !broken.contains(clause)).collect();
    assert_eq!(unbroken, BTreeSet::from(UNBROKEN));
    assert_eq!(broken.len() + unbroken.len(), all.len(), "a clause of the list does not exist");
}

/// The models' own mistakes are planted in the runtime, too, under the same names.
#[test]
fn the_mistakes_of_the_models_are_in_the_list() {
    let list = read("tests/bugs.tsv");
    let bugs: BTreeSet<_> = column(&list, 0).collect();
    let lookups = clr_reference::lookups::Mistake::ALL.map(|mistake| format!("{mistake:?}"));
    let snapshots = clr_tests::snapshot::Mistake::ALL.map(|mistake| format!("{mistake:?}"));
    for mistake in lookups.iter().chain(&snapshots) {
        assert!(bugs.contains(mistake.as_str()), "{mistake}");
    }
}
