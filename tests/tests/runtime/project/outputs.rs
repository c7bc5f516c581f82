//! The places that open files to write: one in each program that ships. A file that is written elsewhere is not written whole.

use super::lines::sources;
use super::*;

/// What opens, makes or names a file for writing.
const WRITES: [&str; 10] = [
    "fs::write(",
    "File::create",
    "fs::rename(",
    "fs::copy(",
    "hard_link(",
    "OpenOptions::new",
    "File::options(",
    "create_new(",
    ".truncate(true)",
    "set_len(",
];

/// The files that may, and what they write.
const WRITERS: [(&str, &str); 8] = [
    ("fixtures/build.rs", "the list of fixtures, for the compiler"),
    ("sim/cli/src/commands/host/child.rs", "the runtime's library, which its guard removes"),
    (
        "sim/cli/src/commands/host/journal.rs",
        "what a guest does, into a scratch file of its parent",
    ),
    ("sim/cli/src/commands/host/scratch.rs", "files without names, for processes of guests"),
    (
        "sim/cli/src/commands/host/trace.rs",
        "the calls of a guest, into a scratch file of its parent",
    ),
    ("sim/host/guest/src/scheduled/linux/fork.rs", "nothing: the device that takes all"),
    ("sim/cli/src/output/whole.rs", "all files of users"),
    ("walker/recorder/src/output.rs", "what the recorder sees, line by line"),
];

#[test]
fn files_are_written_in_one_place() {
    let mut found = BTreeSet::new();
    for (path, text, _) in sources().into_iter().filter(|(_, _, is_test)| !is_test) {
        let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for line in shipped.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            if WRITES.iter().any(|writes| line.contains(writes)) {
                found.insert((path.clone(), line.to_owned()));
            }
        }
    }
    let files: BTreeSet<_> = found.iter().map(|(path, _)| &**path).collect();
    assert_eq!(files, WRITERS.iter().map(|(path, _)| *path).collect(), "{found:#?}");
}
