//! Tests that clause marks (`C-014`) in the sources name existing clauses.

use clr_runtime::clause::Clause;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the Rust files in `folder` and below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries.map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Parses the number at the start of `text` if its count of digits is in the range.
fn number(text: &str, digits: core::ops::RangeInclusive<usize>) -> Option<u16> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).filter(|number| digits.contains(&number.len()))?.parse().ok()
}

/// Returns the clauses that a text names: marks of three digits, and constants.
fn marks(text: &str) -> Vec<Clause> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let written = text
        .match_indices("C-")
        .filter(|(at, _)| !text[..*at].ends_with(is_part))
        .filter_map(|(at, mark)| number(&text[at + mark.len()..], 3..=3));
    let constant = "Clause::new(";
    let made = text
        .match_indices(constant)
        .filter_map(|(at, _)| number(&text[at + constant.len()..], 1..=5));
    written.chain(made).map(Clause::new).collect()
}

#[test]
fn marks_are_found() {
    let found = marks("(C-014, C-015 to C-017), Clause::new(3); ABC-018, C-19, C-0200, UTC-021");
    assert_eq!(found, [14, 15, 17, 3].map(Clause::new));
}

#[test]
fn every_mark_names_a_clause() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (folder, least) in [("walker/src", 1), ("sim", 50)] {
        let mut count = 0;
        for file in sources(&root.join(folder)) {
            // Tests of clauses have to name some that do not exist.
            let path = file.to_string_lossy().replace('\\', "/");
            let tests = ["/clause/tests.rs", "/cli/src/tests/clauses.rs", "/book/references.rs"];
            if tests.iter().any(|test| path.ends_with(test)) {
                continue;
            }
            let text = fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            for (n, line) in text.lines().enumerate() {
                for clause in marks(line) {
                    assert!(clause.entry().is_some(), "{path}:{}: {clause}", n + 1);
                    count += 1;
                }
            }
        }
        assert!(count >= least, "{folder}: {count} marks");
    }
}
