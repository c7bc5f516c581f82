//! The files that one addition touches: `ARCHITECTURE.md` lists them for an example of each kind.

use super::*;
use crate::project::lines::sources;

/// Returns a name in the one spelling that all of its spellings have.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns true if a line that is no comment has the name, in any spelling.
fn names(text: &str, name: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')))
        .any(|word| plain(word) == name)
}

/// Returns the words of a column that are in backquotes.
fn quoted(column: &str) -> Vec<String> {
    column.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_page_lists_the_files_that_name_an_addition() {
    let page = read("ARCHITECTURE.md");
    let (_, table) = page.split_once("| to add | for example | files |\n|---|---|---|\n").unwrap();
    let sources: Vec<_> = sources().into_iter().filter(|(.., is_test)| !is_test).collect();
    let mut rows = 0;
    let mut wrong = String::new();
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let columns: Vec<_> = row.split('|').collect();
        let (example, listed) = (&quoted(columns[2])[0], quoted(columns[3]));
        let wanted = plain(example);
        let naming = sources.iter().filter(|(_, text, _)| names(text, &wanted));
        let found: BTreeSet<_> = naming.map(|(path, ..)| path.clone()).collect();
        let of_rust = |path: &&String| Path::new(path).extension().is_some_and(|it| it == "rs");
        let shipped: BTreeSet<_> = listed.iter().filter(of_rust).cloned().collect();
        for (sign, path) in found
            .difference(&shipped)
            .map(|path| ("not listed", path))
            .chain(shipped.difference(&found).map(|path| ("does not name it", path)))
        {
            writeln!(wrong, "{example}: {path}: {sign}").unwrap();
        }
        // Pages name it somewhere. Folders have files of their own for each.
        let is_page = |path: &&String| Path::new(path).extension().is_some_and(|it| it == "md");
        for path in listed.iter().filter(is_page) {
            assert!(names(&read(path), &wanted), "{example}: {path} does not name it");
        }
        rows += 1;
    }
    assert!(rows >= 6, "{rows} rows");
    assert!(wrong.is_empty(), "ARCHITECTURE.md, \"Where an addition goes\":\n{wrong}");
}
