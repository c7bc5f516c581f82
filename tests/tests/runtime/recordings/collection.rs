//! The recordings that tests read.

use super::*;
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

/// A recording with its name.
type Named = (String, Recording);

/// Returns the embedded recordings with their names. All tests share one parse.
pub(crate) fn embedded() -> &'static [Named] {
    static EMBEDDED: LazyLock<Vec<Named>> = LazyLock::new(|| {
        let files = clr_fixtures::all().iter().filter(|it| it.name.starts_with("clr/"));
        files.map(|file| (file.name.to_owned(), parse(file.bytes))).collect()
    });
    &EMBEDDED
}

/// Returns the recordings in a directory with their names, one after the other.
pub(crate) fn in_directory(directory: &OsStr) -> impl Iterator<Item = Named> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.to_string_lossy().ends_with(".walks.jsonl.gz")).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.into_iter().map(move |path| (name(&path), parse(&std::fs::read(&path).unwrap())))
}

/// Returns the embedded recordings, or the whole collection if `CLR_RECORDINGS` names its
/// directory.
pub(crate) fn recordings() -> &'static [Named] {
    static COLLECTION: LazyLock<Option<Vec<Named>>> = LazyLock::new(|| {
        std::env::var_os("CLR_RECORDINGS").map(|directory| in_directory(&directory).collect())
    });
    COLLECTION.as_deref().unwrap_or_else(embedded)
}
