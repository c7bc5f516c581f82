//! The weight of the repository: `tests/figures.tsv`. A count that has grown by more than a tenth is
//! an error; seconds are only printed, by `.ci/run --nightly`, which measures them.

use super::*;
use crate::project::lines::{Lines, crate_of, of_files, sources};

/// The table, from the root of the repository.
const TABLE: &str = "tests/figures.tsv";

/// Additions whose price is counted: the files that name one.
const ADDITIONS: [&str; 3] = ["ForceGC", "GetClassFromTokenAndTypeArgs", "unmanaged-callers-only"];

/// Endings of the names of files that can name an addition, and of those with commands for CI.
const TEXTS: [&str; 12] =
    [".rs", ".kdl", ".md", ".snap", ".txt", ".tsv", ".hpp", ".h", ".cpp", ".py", ".dict", ".json"];

/// Returns all counts by name.
fn counts() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (file, Lines { ships, tests, comments }) in of_files() {
        for (kind, lines) in [("ship", ships), ("test", tests), ("comment", comments)] {
            for of in ["all crates", crate_of(&file)] {
                *counts.entry(format!("lines that {kind}, {of}")).or_default() += lines;
            }
        }
    }
    for (file, text, _) in sources().iter().filter(|(_, _, is_test)| !is_test) {
        let count = unsafe_uses(text);
        if count > 0 {
            *counts.entry(format!("uses of unsafe, {}", crate_of(file))).or_default() += count;
        }
    }
    for addition in ADDITIONS {
        counts.insert(format!("files that name {addition}"), naming(addition));
    }
    let lines =
        |texts: &[(String, String)]| texts.iter().map(|(_, text)| text.lines().count()).sum();
    let scripts = files(".ci", &[""]);
    let is_script = |(path, text): &&(String, String)| {
        text.starts_with("#!") || Path::new(path).extension().is_some_and(|it| it == "py")
    };
    let scripts: Vec<_> = scripts.iter().filter(is_script).cloned().collect();
    counts.insert("lines of Python and bash in .ci".into(), lines(&scripts));
    counts.insert("facts that tests and texts allow to be unseen".into(), allowed());
    counts.insert("lines of CHANGELOG.md".into(), read("CHANGELOG.md").lines().count());
    counts.insert("profile tables".into(), read("Cargo.toml").matches("\n[profile.").count());
    let locked = read("Cargo.lock");
    let ours = |package: &&str| !package.contains("\nsource = ");
    let packages: Vec<_> = locked.split("[[package]]").skip(1).collect();
    let own = packages.iter().copied().filter(|package| ours(package)).count();
    counts.insert("dependencies, those of tests included".into(), packages.len() - own);
    counts.insert("seeds of fuzz targets".into(), paths("fuzz/seeds"));
    counts.extend(test_executables().map(|count| ("test executables".into(), count)));
    counts
}

/// Counts the blocks, functions and implementations that a text declares unsafe.
fn unsafe_uses(text: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let uses = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    code.map(|line| uses.iter().map(|it| line.matches(it).count()).sum::<usize>()).sum()
}

/// Counts the uses of `--allow` by tests, the callbacks of texts that have to be absent, and the threads that have to be stuck.
fn allowed() -> usize {
    let uses = |texts: &[(String, String)], words: &str| -> usize {
        texts.iter().map(|(_, text)| text.matches(words).count()).sum()
    };
    let own = "tests/tests/runtime/project/figures.rs";
    let code: Vec<_> = files("", &[".rs"]).into_iter().filter(|(path, _)| path != own).collect();
    let texts = files("fixtures", &[".kdl"]);
    uses(&code, "\"--allow\"") + uses(&texts, "most=0 in=\"each\"") + uses(&texts, "    stuck \"")
}

/// Counts the files that name an addition, in whatever spelling.
fn naming(addition: &str) -> usize {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|letter| !matches!(letter, '_' | '-'));
        letters.flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(addition);
    let own = ["tests/tests/runtime/project/figures.rs", TABLE];
    let texts = files("", &TEXTS);
    let names =
        |(path, text): &&(String, String)| !own.contains(&&**path) && plain(text).contains(&wanted);
    texts.iter().filter(names).count()
}

/// Counts the files below a folder.
fn paths(folder: &str) -> usize {
    fs::read_dir(path(folder)).unwrap().map(Result::unwrap).fold(0, |count, entry| {
        let below = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        count + if entry.file_type().unwrap().is_dir() { paths(&below) } else { 1 }
    })
}

/// Counts the targets that `cargo test --workspace` makes an executable of.
fn test_executables() -> Option<usize> {
    let metadata = cargo_metadata()?;
    let packages = metadata["packages"].as_array().unwrap();
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    Some(targets.filter(|target| target["test"] == true).count())
}

/// Returns the rows of the table: figure, value at the reviewed commit, value now, command.
fn rows(table: &str) -> Vec<[&str; 4]> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split('\t').collect::<Vec<_>>().try_into().unwrap()).collect()
}

#[test]
fn no_count_has_grown_by_more_than_a_tenth() {
    let (table, mut counts) = (read(TABLE), counts());
    let mut grown = Vec::new();
    let comments = table.lines().filter(|line| line.starts_with('#'));
    let mut written: Vec<_> = comments.map(str::to_owned).collect();
    for [name, before, now, command] in rows(&table) {
        let count = counts.remove(name);
        let value = count.map_or(now.to_owned(), |count| count.to_string());
        written.push(format!("{name}\t{before}\t{value}\t{command}"));
        let bound = now.parse().map_or(usize::MAX, |now: usize| now + now / 10);
        grown.extend(
            count.filter(|count| *count > bound).map(|count| format!("{name}: {now} → {count}")),
        );
    }
    for (name, count) in counts {
        grown.push(format!("{name}: no row → {count}"));
        written.push(format!("{name}\t-\t{count}\t"));
    }
    if std::env::var_os("CLR_BLESS").is_some() {
        return fs::write(path(TABLE), written.join("\n") + "\n").unwrap();
    }
    assert!(
        grown.is_empty(),
        "{TABLE}: more than a tenth above the recorded figures:\n{}\nMake it less, or record the new \
         price with CLR_BLESS=1 and say in the commit what it buys.",
        grown.join("\n")
    );
}
