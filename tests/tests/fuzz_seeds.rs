//! The seeds of the fuzz targets, run as tests.

use std::path::Path;

/// Runs `target` on each of its seeds; how many there are.
fn replay(name: &str, target: fn(&[u8])) -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(name);
    let mut seeds: Vec<_> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    seeds.sort();
    for seed in &seeds {
        let bytes = std::fs::read(seed).unwrap();
        assert!(!bytes.is_empty() && bytes.len() <= 4 << 10, "{}", seed.display());
        // Shown only if the target fails.
        println!("{}", seed.display());
        target(&bytes);
    }
    seeds.len()
}

#[test]
fn unwind_info() {
    assert!(replay("unwind_info", clr_tests::fuzz::unwind_info) >= 20);
}

#[test]
fn pe_image() {
    assert!(replay("pe_image", clr_tests::fuzz::pe_image) >= 5);
}

#[test]
fn vector_file() {
    assert!(replay("vector_file", clr_tests::fuzz::vector_file) >= 5);
}

#[test]
fn scenario() {
    assert!(replay("scenario", clr_tests::fuzz::scenario_text) >= 5);
}

#[test]
fn program() {
    assert!(replay("program", clr_tests::fuzz::program) >= 10);
}

#[test]
fn recording() {
    assert!(replay("recording", clr_tests::fuzz::recording) >= 5);
}
