//! The recordings that tests read.

use clr_recording::Recording;
use clr_recording::vectors::decompress;
use std::ffi::OsStr;
use std::path::Path;

/// Maximum size of a decompressed recording in bytes.
const LIMIT: usize = 1 << 28;

/// Compares the counts of the embedded recordings with the snapshot; prints those of others.
macro_rules! check {
    ($counts:expr) => {
        if std::env::var_os("CLR_RECORDINGS").is_none() {
            insta::assert_snapshot!($counts);
        } else {
            println!("{}", $counts);
        }
    };
}
pub(crate) use check;

fn parse(bytes: &[u8]) -> Recording {
    let text = String::from_utf8(decompress(bytes, LIMIT).unwrap()).unwrap();
    Recording::parse(&text).unwrap()
}

/// Returns the embedded recordings with their names.
pub(crate) fn embedded() -> impl Iterator<Item = (&'static str, Recording)> {
    let files = clr_fixtures::all().iter().filter(|fixture| fixture.name.starts_with("clr/"));
    files.map(|fixture| (fixture.name, parse(fixture.bytes)))
}

/// Returns the recordings in a directory with their names, one after the other.
pub(crate) fn in_directory(directory: &OsStr) -> impl Iterator<Item = (String, Recording)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.to_string_lossy().ends_with(".walks.jsonl.gz")).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.into_iter().map(move |path| (name(&path), parse(&std::fs::read(&path).unwrap())))
}

/// Returns the embedded recordings, or the whole collection if `CLR_RECORDINGS` names its
/// directory.
pub(crate) fn recordings() -> Vec<(String, Recording)> {
    match std::env::var_os("CLR_RECORDINGS") {
        Some(directory) => in_directory(&directory).collect(),
        None => embedded().map(|(name, recording)| (name.to_owned(), recording)).collect(),
    }
}
