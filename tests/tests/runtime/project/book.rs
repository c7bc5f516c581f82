//! The book: its texts, its page of clauses, and the ids that it defines.

use super::*;
use clr_scenario::Scenario;
use clr_story::Hazard;
use core::fmt::Write as _;

/// The page that a test writes.
const CLAUSES: &str = "sim/src/book/clauses.md";

/// Returns the texts (the `kdl` code blocks) of a chapter.
fn texts(chapter: &str) -> impl Iterator<Item = &str> {
    let blocks = chapter.split("```kdl\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default())
}

#[test]
fn every_text_has_its_expected_results() {
    let (mut snapshots, mut walks) = (0, 0);
    for (file, chapter) in files("sim/src/book", &[".md"]) {
        for text in texts(&chapter) {
            let scenario: Scenario = text.parse().unwrap_or_else(|e| panic!("{file}: {e}"));
            for generation in Generation::ALL {
                for report in scenario.mixed_on(generation).unwrap() {
                    walks += 1;
                    let (found, wrong) = (&report.found, &report.differences);
                    assert!(report.is_right(), "{file}, {generation}: {wrong:?}\n{found}");
                    assert!(report.expected.is_some(), "{file}: nothing is expected");
                }
                for report in scenario.run_on(generation).unwrap() {
                    snapshots += 1;
                    let (found, wrong) = (&report.found, &report.differences);
                    assert!(report.is_right(), "{file}, {generation}: {wrong:?}\n{found}");
                    assert!(report.expected.is_some(), "{file}: nothing is expected");
                }
            }
        }
    }
    assert!(snapshots > 40, "{snapshots}");
    assert!(walks > 15, "{walks}");
}

fn clauses() -> String {
    let mut page = "\
# The clauses

The rules of the CLR that the simulator keeps, in the project's own words. Code, fixtures and
explanations name them by number; `clrsim rules C-014` prints one. This page is written by a test
from [the tables](clr_runtime::clause).
"
    .to_owned();
    for chapter in Chapter::ALL {
        writeln!(page, "\n## {}\n", chapter.title()).unwrap();
        for entry in entries().filter(|entry| entry.chapter == *chapter) {
            let on = entry.generations;
            // An opening bracket would start a link.
            let rule = entry.rule.replace('[', "\\[");
            writeln!(page, "* **{}** ({on}) {rule}", entry.clause).unwrap();
        }
    }
    page
}

/// Checks the generated page. With `CLR_BLESS=1` the test writes it.
#[test]
fn the_page_of_clauses_has_them_all() {
    if std::env::var_os("CLR_BLESS").is_some() {
        std::fs::write(path(CLAUSES), clauses()).unwrap();
    }
    assert_eq!(clauses(), read(CLAUSES), "CLR_BLESS=1 rewrites it");
}

#[test]
fn each_id_is_defined_once_and_found() {
    let mut seen = BTreeSet::new();
    for reference in all() {
        assert!(seen.insert((reference.kind, &reference.id)), "{} is defined twice", reference.id);
        assert!(!reference.title.is_empty() && !reference.text.is_empty(), "{reference:?}");
        assert_eq!(find(&reference.id), Ok(reference));
    }
    let count = |kind| seen.iter().filter(|(of, _)| *of == kind).count();
    // Of what has no list of its own, none is lost: an addition needs no change here.
    let least = [clause::entries().count(), Hazard::ALL.len(), 64, 26, 25, 21, 55];
    let counts = Kind::ALL.map(count);
    assert!(counts.iter().zip(least).all(|(count, least)| *count >= least), "{counts:?}");
}

#[test]
fn spellings_of_an_id_are_alike() {
    for (spellings, id) in [
        (&["C-014", "c-14", "14", "C14"][..], "C-014"),
        (&["H-08", "h8"], "H-08"),
        (&["§2.6", "§ 2.6", " §2.06"], "§2.6"),
        (&["Row 13a", "row 13A", "row13a"], "Row 13a"),
        (&["D-15", "d15"], "D-15"),
        (&["E-6", "E-06", "e6"], "E-6"),
        (&["G17", "G-17", "g17"], "G17"),
    ] {
        for spelling in spellings {
            assert_eq!(find(spelling).unwrap().id, id, "{spelling}");
        }
    }
}

#[test]
fn unknown_ids_name_their_neighbors() {
    let error = |id: &str| find(id).unwrap_err().to_string();
    assert_eq!(error("§2.10"), "there is no §2.10; the nearest are §2.9 and §3");
    assert_eq!(error("Row 13f"), "there is no Row 13f; the nearest are Row 13e and Row 14");
    let last = Hazard::ALL.last().unwrap();
    assert_eq!(error("H-99"), format!("there is no H-99; the nearest is {last}"));
    assert_eq!(error("C-000"), "there is no C-000; the nearest is C-001");
    for id in ["", "X-1", "C-", "§", "Row", "§2.", "G1x", "E--6"] {
        assert_eq!(find(id).unwrap_err().nearest, Vec::<String>::new(), "{id}");
    }
}

#[test]
fn texts_are_plain() {
    let row = find("Row 18").unwrap();
    assert!(row.text.starts_with("Condition: cleanup"), "{}", row.text);
    assert_eq!(row.title, "The entry-check table");
    let bug = find("G17").unwrap();
    assert!(bug.text.starts_with("Reports: runtime#110062\n"), "{}", bug.text);
    let is_linked = |text: &str| text.contains("](") || text.contains("\\[");
    assert!(!all().iter().any(|reference| is_linked(&reference.text)));
    assert!(find("§8.2").unwrap().text.contains("Rip := [Rsp], Rsp += 8"));
}
