//! Tests that every clause is exercised where it holds, or is listed with a reason.

use super::*;
use crate::recordings::embedded;
use crate::sequences::sequences;
use clr_recording::vectors::decompress;
use std::sync::OnceLock;

/// Maximum size of decompressed unwinds in bytes.
const LIMIT: usize = 1 << 28;

/// Folder of the traces that the recorder has taken in CLRs.
const DOORS: &str = "sim/cli/tests/doors";

/// Maximum size of a decompressed trace in bytes.
const TRACE: usize = 1 << 20;

/// Returns the runtime of a trace, whose file has its name.
pub(crate) fn traced(file: &str) -> Generation {
    let name = file.rsplit('/').next().and_then(|name| name.split_once(".txt"));
    let generation = name.and_then(|(name, _)| Generation::from_name(name));
    generation.unwrap_or_else(|| panic!("{file} is of no runtime"))
}

/// Returns the names of the traces, and their texts.
fn traces() -> impl Iterator<Item = (String, String)> {
    names(DOORS, &[".txt", ".txt.gz"]).into_iter().map(|name| {
        let bytes = std::fs::read(path(&name)).unwrap();
        let is_plain = std::str::from_utf8(&bytes).is_ok();
        let bytes = if is_plain { bytes } else { decompress(&bytes, TRACE).unwrap() };
        (name, String::from_utf8(bytes).unwrap())
    })
}

/// Returns the coverage by all recordings of the fixtures and all texts of the gallery.
pub(crate) fn measured() -> &'static Coverage {
    static MEASURED: OnceLock<Coverage> = OnceLock::new();
    MEASURED.get_or_init(measure)
}

fn measure() -> Coverage {
    let mut coverage = Coverage::new();
    for (name, recording) in embedded() {
        coverage.add_recording(name, recording).unwrap();
    }
    for (name, scenario, recorded) in sequences() {
        coverage.add_sequence(&name, &scenario, &recorded).unwrap();
    }
    for (name, trace) in traces() {
        coverage.add_trace(&name, traced(&name), &trace);
    }
    for fixture in clr_fixtures::all() {
        let name =
            fixture.name.strip_prefix("win64/vec/").and_then(|it| it.strip_suffix(".vec.gz"));
        if let Some(name) = name {
            let image = clr_fixtures::get(&format!("win64/img/{name}.dll")).unwrap();
            let vectors = decompress(fixture.bytes, LIMIT).unwrap();
            coverage.add_unwinds(fixture.name, image, &vectors).unwrap();
        }
    }
    for (_, _, scenario) in gallery() {
        coverage.add_scenario(scenario).unwrap();
    }
    coverage
}

#[test]
fn no_clause_has_lost_its_cover() {
    let mut missing = String::new();
    for (clause, generation, cover) in measured().cells() {
        if cover == Cover::Missing {
            writeln!(missing, "{clause} on {generation}").unwrap();
        }
    }
    assert_eq!(missing, "", "exercise them, or explain why not in `coverage::HOLES`");
}

#[test]
fn holes_are_holes() {
    let coverage = measured();
    for hole in HOLES {
        assert!(hole.reason.ends_with('.'), "{}", hole.reason);
        for number in hole.clauses {
            let clause = Clause::new(*number);
            let excused = |cover: &Cover| matches!(cover, Cover::Excused(_));
            let covers: Vec<_> = hole
                .generations
                .iter()
                .map(|generation| coverage.cover(clause, generation))
                .collect();
            assert!(covers.iter().any(excused), "{clause} is exercised everywhere");
        }
    }
}

/// A test that [`TESTED`] names must exist, and name the clause.
#[test]
fn tests_that_are_named_name_their_clauses() {
    for tested in TESTED {
        let text = read(tested.file);
        let signature = format!("fn {}(", tested.test);
        let at = text.find(&signature).unwrap_or_else(|| panic!("{}: {signature}", tested.file));
        let end = text[at..].find("\n}").map_or(text.len(), |end| at + end);
        // The documentation comment is before the function.
        let start = text[..at].rfind("\n}").unwrap_or(0);
        for number in tested.clauses {
            let clause = Clause::new(*number).to_string();
            assert!(text[start..end].contains(&clause), "{} does not name {clause}", tested.test);
        }
    }
}
