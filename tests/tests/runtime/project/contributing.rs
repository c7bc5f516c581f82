//! `CONTRIBUTING.md` explains every environment variable of the project, and paths in the guides
//! exist.

use super::*;

/// Guides at the top of the repository whose paths are checked.
const GUIDES: [&str; 2] = ["CONTRIBUTING.md", "ARCHITECTURE.md"];

/// Folders with sources.
const SOURCES: [&str; 5] = ["walker", "sim", "fixtures", "tests", "fuzz"];

/// Folders with scripts.
const SCRIPTS: [&str; 3] = [".ci", ".clusterfuzzlite", "fuzz/oss-fuzz"];

/// Returns true if `word` is the name of a variable of the project.
fn is_variable(word: &str) -> bool {
    word.strip_prefix("CLR_").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

/// Returns the variables among the words of a text.
fn variables(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| is_variable(word)).map(ToOwned::to_owned)
}

/// Returns the variables that the sources read: string literals that are a name and nothing else.
fn read_by_sources() -> BTreeSet<String> {
    let files = SOURCES.iter().flat_map(|folder| files(folder, &[".rs"]));
    let literals = |(_, text): (String, String)| {
        let literals = text.split('"').filter(|literal| is_variable(literal));
        literals.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    files.flat_map(literals).collect()
}

#[test]
fn every_variable_is_explained() {
    let guide = read(GUIDES[0]);
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let explained: BTreeSet<_> = rows.flat_map(variables).collect();
    let read = read_by_sources();
    assert!(read.len() > 5, "{read:?}");
    assert_eq!(explained, read, "left: rows of the table; right: variables that sources read");
    let named: BTreeSet<_> = variables(&guide).collect();
    assert_eq!(named, read, "left: variables in the guide; right: variables that sources read");
}

#[test]
fn scripts_set_only_variables_that_are_read() {
    let read = read_by_sources();
    for (script, text) in SCRIPTS.iter().flat_map(|folder| files(folder, &[""])) {
        for name in variables(&text) {
            assert!(read.contains(&name), "{script}: {name} is read nowhere");
        }
    }
}

/// Returns the paths that a page names, from the root: in backquotes with a slash, and in links.
fn paths(page: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut in_code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let quoted = line.split('`').skip(1).step_by(2).filter(|text| text.contains('/'));
            let links = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
            paths.extend(quoted.chain(links).map(ToOwned::to_owned));
        }
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    // `src/lib.rs` stands for that file of any crate.
    paths
        .retain(|path| !path.is_empty() && path.chars().all(is_plain) && !path.starts_with("src/"));
    paths
}

/// Returns true if the path exists, up to the first part that stands for any name (`NAME.kdl`) or
/// that builds create.
fn exists(named: &str) -> bool {
    let mut place = path("");
    for part in named.split('/').filter(|part| !part.is_empty()) {
        let stem = part.split('.').next().unwrap_or_default();
        let stands_for_any = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_uppercase());
        place.push(part);
        if CREATED.contains(&part) {
            return true;
        }
        if !place.exists() {
            return stands_for_any;
        }
    }
    true
}

#[test]
fn paths_are_found() {
    let page =
        "`a/b` or [c](d/e.md#f), `x y/z`, <https://g/h>, [i](https://j/k) `l`\n```\n`m/n`\n```";
    assert_eq!(paths(page), ["a/b", "d/e.md"]);
    assert!(exists("fixtures/gallery/CHAPTER/NAME.kdl") && exists("tests/tests/runtime/project/"));
    assert!(exists("fuzz/corpus/TARGET") && !exists("fixtures/gallerie") && !exists("NAMe/x"));
}

#[test]
fn every_path_exists() {
    let mut count = 0;
    for guide in GUIDES {
        for path in paths(&read(guide)) {
            assert!(exists(&path), "{guide}: there is no {path}");
            count += 1;
        }
    }
    assert!(count > 20, "{count} paths");
}
