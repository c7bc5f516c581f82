//! Shared code of the tests of the whole system.

pub mod coverage;
pub mod dwarf;
pub mod every_instruction;
pub mod fragments;
pub mod funclets;
pub mod fuzz;
pub mod loaded;
pub mod lookups;
pub mod mixed;
pub mod mutants;
pub mod peers;
pub mod recorded;
pub mod scheduled;
pub mod shape;
pub mod snapshot;
pub mod world;

use std::path::PathBuf;

/// Part of the cases of a property that a plain `cargo test` runs.
const QUICK: f64 = 0.1;

/// Returns the number of cases that a property is tested with: `full` times the variable
/// `CLR_TEST_CASES` (1 in `.ci/run`, more for campaigns, 0.05 for a slow emulator; unset, 0.1), and
/// at least 1.
#[must_use]
pub fn cases(full: u32) -> u32 {
    let factor = std::env::var("CLR_TEST_CASES")
        .ok()
        .and_then(|factor| factor.parse::<f64>().ok())
        .unwrap_or(QUICK);
    #[expect(clippy::cast_sign_loss, reason = "a negative factor gives 0 here")]
    let cases = (f64::from(full) * factor) as u32;
    cases.max(1)
}

/// Returns 1 in a full run, and up to 10 in one with fewer [`cases`]: of texts, such a run takes one in this many.
#[must_use]
pub fn one_in() -> usize {
    (10 / cases(10).min(10)) as usize
}

/// Returns the number of a test campaign: the variable `CLR_TEST_SEED`, or 0. Machines can share a
/// campaign if each uses another number.
#[must_use]
pub fn seed() -> u64 {
    std::env::var("CLR_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

/// Returns the first of 2⁴⁰ case seeds that belong to this [`seed`] only.
#[must_use]
pub fn first_seed() -> u64 {
    seed().wrapping_mul(1 << 40)
}

/// Returns the directory that `CLR_ORACLES` names, which holds the whole collection of images with
/// vectors, and the names of its images, ascending.
///
/// # Panics
/// If the variable is not set, or the directory cannot be read.
#[must_use]
pub fn oracle_images() -> (PathBuf, Vec<String>) {
    let directory = std::env::var_os("CLR_ORACLES").expect("CLR_ORACLES names a folder");
    let directory = PathBuf::from(directory);
    let entries = std::fs::read_dir(directory.join("img")).expect("CLR_ORACLES has a folder img");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    (directory, names)
}
