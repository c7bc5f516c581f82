//! The recordings that tests read.

use clr_recording::Recording;
use clr_recording::vectors::decompress;
use std::path::Path;

/// Maximum size of a decompressed recording in bytes.
const LIMIT: usize = 1 << 28;

fn parse(bytes: &[u8]) -> Recording {
    let text = String::from_utf8(decompress(bytes, LIMIT).unwrap()).unwrap();
    Recording::parse(&text).unwrap()
}

/// Returns the embedded recordings, or the whole collection if `CLR_RECORDINGS` names its
/// directory.
pub(crate) fn recordings() -> Vec<(String, Recording)> {
    let Some(directory) = std::env::var_os("CLR_RECORDINGS") else {
        let files = clr_fixtures::all().iter().filter(|fixture| fixture.name.starts_with("clr/"));
        return files.map(|fixture| (fixture.name.to_owned(), parse(fixture.bytes))).collect();
    };
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.to_string_lossy().ends_with(".walks.jsonl.gz")).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), parse(&std::fs::read(path).unwrap()))).collect()
}
