//! `clrsim coverage`.

use super::clrsim;
use serde_json::Value;

#[test]
fn every_clause_is_covered_or_excused() {
    let answer = clrsim(&["coverage"]);
    assert_eq!(answer.code, 0, "{}", answer.out);
    assert!(answer.out.ends_with(" excused, 0 missing\n"), "{}", answer.out);
    assert!(answer.out.contains("\nC-004  s\n"), "it holds in Framework 2 alone");
    assert!(answer.out.lines().all(|line| line.trim_end() == line));
}

#[test]
fn json_has_a_line_for_each_clause_and_runtime() {
    let answer = clrsim(&["coverage", "--json"]);
    assert_eq!(answer.code, 0);
    let cells: Vec<Value> =
        answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cell = cells
        .iter()
        .find(|cell| cell["clause"] == "C-019" && cell["generation"] == "coreclr-3.1-unix")
        .unwrap();
    assert_eq!(cell["cover"], "exercised");
    assert!(cell["recordings"].as_u64() > Some(0) && cell["scenarios"].as_u64() > Some(0));
    assert_eq!((&cell["tested"], &cell["reason"]), (&Value::Bool(false), &Value::Null));
    let hole = cells.iter().find(|cell| cell["cover"] == "excused").unwrap();
    assert!(hole["reason"].as_str().unwrap().ends_with('.'));
    assert!(
        !cells.iter().any(|cell| cell["clause"] == "C-019" && cell["generation"] == "framework-2")
    );
}
