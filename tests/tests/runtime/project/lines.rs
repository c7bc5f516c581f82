//! Lines of Rust, by crate: code that ships, code that tests it, and comments.

use super::*;

/// Lines of one crate, or of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Lines of code that ships.
    pub(crate) ships: usize,
    /// Lines of code in tests, benchmarks and fuzz targets.
    pub(crate) tests: usize,
    /// Lines of documentation and other comments.
    pub(crate) comments: usize,
}

/// Folders below which all code is that of tests.
const TESTS: [&str; 5] = ["tests", "benches", "fuzz", "examples", "testing"];

/// Returns the lines of each file of Rust, by its path from the root.
pub(crate) fn of_files() -> BTreeMap<String, Lines> {
    let files = sources().into_iter();
    files.map(|(path, text, is_test)| (path, count(&text, is_test))).collect()
}

/// Returns each file of Rust: its path from the root, its text, and whether it is one of tests.
pub(crate) fn sources() -> Vec<(String, String, bool)> {
    let files = files("", &[".rs"]);
    let modules: BTreeSet<_> =
        files.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    let is_test = |path: &str| {
        path.split('/').any(|part| TESTS.contains(&part) || part == "tests.rs")
            || modules.iter().any(|module| {
                path.strip_prefix(&**module)
                    .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            })
    };
    files.iter().map(|(path, text)| (path.clone(), text.clone(), is_test(path))).collect()
}

/// Returns the crate of a file: the folder of its `Cargo.toml`.
pub(crate) fn crate_of(path: &str) -> &str {
    let depth = match path.split('/').collect::<Vec<_>>()[..] {
        ["sim", "host", "guest", ..] => 3,
        ["sim", inner, ..] if !["src", "tests", "benches", "examples"].contains(&inner) => 2,
        ["walker", "com" | "dump" | "recorder" | "sampler" | "trace" | "unwind", ..] => 2,
        _ => 1,
    };
    path.match_indices('/').nth(depth - 1).map_or("", |(end, _)| &path[..end])
}

/// Returns the paths, without ending, of the modules that a file declares for tests alone.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match file {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        _ => format!("{folder}/{}", file.trim_end_matches(".rs")),
    };
    let mut modules = Vec::new();
    let mut of_tests = false;
    for line in text.lines().map(str::trim) {
        let declared = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "));
        if let Some((_, name)) = declared.filter(|_| of_tests) {
            modules.push(format!("{folder}/{name}"));
        }
        of_tests = line.starts_with("#[cfg(test)]") || of_tests && line.starts_with("#[");
    }
    modules
}

/// Counts the lines of a text. A block that `#[cfg(test)]` precedes is one of tests: it ends at the
/// first line that is indented as its first one and closes it.
fn count(text: &str, is_test: bool) -> Lines {
    let mut lines = Lines::default();
    let mut marked = false;
    let mut block: Option<usize> = None;
    for line in text.lines() {
        let (trimmed, indent) = (line.trim(), line.len() - line.trim_start().len());
        if trimmed.is_empty() {
            continue;
        }
        if trimmed.starts_with("//") {
            lines.comments += 1;
            continue;
        }
        if trimmed.starts_with("#[cfg(test)]") {
            marked = true;
        }
        if is_test || marked || block.is_some() {
            lines.tests += 1;
        } else {
            lines.ships += 1;
        }
        if block == Some(indent) && trimmed.starts_with('}') {
            block = None;
        } else if marked && block.is_none() && !trimmed.starts_with("#[") {
            block = trimmed.ends_with('{').then_some(indent);
            marked = block.is_none() && !trimmed.ends_with([';', '}', ',']);
        }
    }
    lines
}
