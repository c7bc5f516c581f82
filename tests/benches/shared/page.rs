//! A page of the book with a table that a benchmark writes.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Returns the path after `--page` among the arguments of this process; it is relative to the workspace.
pub(crate) fn argument() -> Result<Option<PathBuf>, &'static str> {
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--page" {
            let path = arguments.next().ok_or("--page needs a path")?;
            return Ok(Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)));
        }
    }
    Ok(None)
}

/// Puts `text` between the marks of a benchmark in the file at `path`.
pub(crate) fn replace(path: &Path, name: &str, text: &str) -> io::Result<()> {
    let [begin, end] = ["begin", "end"].map(|edge| format!("<!-- {name}:{edge} -->"));
    let content = fs::read_to_string(path)?;
    let replaced = content.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}\n{text}\n{end}{after}"))
    });
    let no_marks = || io::Error::other(format!("no {begin} … {end} in {}", path.display()));
    fs::write(path, replaced.ok_or_else(no_marks)?)
}
