//! Searches that are divided among processes, as among machines.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const LOCK: &str = "gallery/hazards/h-08-callback-takes-a-lock.kdl";
const AVOIDED: &str = "gallery/hazards/h-08-callback-takes-a-lock-avoided.kdl";
const SUSPENSION: &str = "gallery/hazards/h-01-mutual-suspension.kdl";
const ON: &str = "net8-windows,net9-unix";

fn clrsim(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}

/// Searches in this number of processes at the same time. Returns the names of their files.
fn shards(folder: &Path, search: &[&str], of: u32) -> Vec<String> {
    let start = |number: u32| {
        let shard = format!("{number}/{of}");
        let arguments = [search, &["--shard", &shard, "--json"]].concat();
        clrsim(folder, &arguments).spawn().unwrap()
    };
    let processes: Vec<_> = (1..=of).map(start).collect();
    let ended = (1..=of).zip(processes).map(|(number, process)| {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.code().is_some_and(|code| code <= 1), "{output:?}");
        let name = format!("{number}-of-{of}.jsonl");
        fs::write(folder.join(&name), output.stdout).unwrap();
        name
    });
    ended.collect()
}

fn merge(folder: &Path, files: &[String], flags: &[&str]) -> Output {
    let files: Vec<_> = files.iter().map(String::as_str).collect();
    clrsim(folder, &[&["merge"], flags, &files[..]].concat()).output().unwrap()
}

/// The arguments of searches that one process makes with the same result.
const RANGES: [&[&str]; 4] = [
    &["explore", LOCK, "--on", ON, "--schedules", "60", "--seed", "3"],
    &["explore", SUSPENSION, "--on", ON, "--schedules", "50", "--strategy", "pct", "--keep-going"],
    &["explore", AVOIDED, "--on", ON, "--schedules", "40", "--strategy", "random", "--rules"],
    &["explore", AVOIDED, "--on", ON, "--schedules", "5", "--strategy", "pct", "--first", "9"],
];

#[test]
fn shards_of_numbers_are_one_search() {
    let folder = TempDir::new().unwrap();
    for search in RANGES {
        for flags in [&["--json"][..], &[]] {
            let whole = clrsim(folder.path(), &[search, flags].concat()).output().unwrap();
            for of in [1, 2, 3, 7] {
                let files = shards(folder.path(), search, of);
                let merged = merge(folder.path(), &files, flags);
                assert_eq!(text(&merged.stderr), "", "{search:?}");
                assert_eq!(text(&merged.stdout), text(&whole.stdout), "{search:?}, {of} shards");
                assert_eq!(merged.status.code(), whole.status.code(), "{search:?}, {of} shards");
            }
        }
    }
}

#[test]
fn shards_of_all_interleavings_are_the_same_for_every_number_of_them() {
    let folder = TempDir::new().unwrap();
    let by = ["--strategy", "exhaustive", "--preemptions", "1", "--schedules", "100000"];
    for (file, keep_going) in [(AVOIDED, false), (LOCK, false), (SUSPENSION, true)] {
        let keep: &[&str] = if keep_going { &["--keep-going"] } else { &[] };
        let search = [&["explore", file, "--on", "net8-windows"], &by[..], keep].concat();
        let whole = clrsim(folder.path(), &search).output().unwrap();
        let mut first: Option<Output> = None;
        for of in [1, 2, 3, 7] {
            let files = shards(folder.path(), &search, of);
            let merged = merge(folder.path(), &files, &["--json"]);
            assert_eq!(merged.status.code(), whole.status.code(), "{file}: {merged:?}");
            let first = first.get_or_insert(merged.clone());
            assert_eq!(text(&merged.stdout), text(&first.stdout), "{file}, {of} shards");
        }
        if file == AVOIDED {
            let merged = text(&first.unwrap().stdout);
            assert!(merged.contains("\"everything\":true"), "{merged}");
        }
    }
}

/// What is not all of one search is refused, with what is wrong.
#[test]
fn shards_that_are_missing_or_do_not_belong_are_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let search = ["explore", LOCK, "--on", ON, "--schedules", "20"];
    let files = shards(path, &search, 3);
    let refused = |files: &[String], words: &str| {
        let merged = merge(path, files, &[]);
        let said = text(&merged.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{said}");
        assert_eq!((merged.status.code(), merged.stdout.is_empty()), (Some(2), true), "{said}");
    };
    refused(&files[1..2], "of 3 shards, these on net9-unix are missing: 1, 3");
    let twice = [files.clone(), vec![files[1].clone()]].concat();
    refused(&twice, "shard 2 on net9-unix is there twice");
    let other = ["explore", LOCK, "--on", ON, "--schedules", "20", "--seed", "7"];
    fs::create_dir(path.join("other")).unwrap();
    let others = shards(&path.join("other"), &other, 3);
    let other = format!("other/{}", others[2]);
    refused(&[files[0].clone(), files[1].clone(), other], "seed is 7 instead of");
    fs::write(path.join("empty.jsonl"), "").unwrap();
    refused(&["empty.jsonl".to_owned()], "is empty");
    let whole = clrsim(path, &[&search[..], &["--json"]].concat()).output().unwrap();
    fs::write(path.join("whole.jsonl"), &whole.stdout).unwrap();
    refused(&["whole.jsonl".to_owned()], "line 1 is no shard of a search");
    let edited = |name: &str, from: &str, to: &str| {
        let text = fs::read_to_string(path.join(&files[0])).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        fs::write(path.join(name), text.replace(from, to)).unwrap();
        name.to_owned()
    };
    let version = concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"");
    let old = edited("old.jsonl", version, "\"version\":\"0.0.1\"");
    refused(&[old], "was written by clrsim 0.0.1");
    let far = edited("far.jsonl", "\"shard\":1,", "\"shard\":4,");
    refused(&[far], "there is no shard 4 of 3");
}

#[test]
fn a_text_that_was_edited_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let printed = clrsim(path, &["list", "--print", LOCK]).output().unwrap();
    let before = text(&printed.stdout);
    fs::write(path.join("it.kdl"), &before).unwrap();
    let files = shards(path, &["explore", "it.kdl", "--on", ON, "--schedules", "10"], 2);
    // Its layout is not what it says.
    fs::write(path.join("it.kdl"), format!("// a comment\n{before}")).unwrap();
    assert_ne!(merge(path, &files, &[]).status.code(), Some(2));
    let renamed = before.replacen("shows \"", "shows \"now ", 1);
    assert_ne!(renamed, before);
    fs::write(path.join("it.kdl"), renamed).unwrap();
    let merged = merge(path, &files, &[]);
    assert_eq!(merged.status.code(), Some(2));
    assert!(text(&merged.stderr).contains("was edited"), "{merged:?}");
}

#[test]
fn searches_that_cannot_be_divided_are_refused() {
    let folder = TempDir::new().unwrap();
    for (arguments, words) in [
        (&["--shard", "1/2", "--json", "--strategy", "guided"][..], "guided learns"),
        (
            &["--shard", "1/2", "--json", "--strategy", "exhaustive", "--faults", "all"],
            "is not divided",
        ),
        (&["--shard", "3/2", "--json"], "is no shard"),
        (&["--shard", "0/2", "--json"], "is no shard"),
        (&["--shard", "2", "--json"], "as 2/8"),
        (&["--shard", "1/2"], "--json"),
    ] {
        let output = clrsim(folder.path(), &[&["explore", LOCK], arguments].concat()).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(text(&output.stderr).contains(words), "{arguments:?}: {output:?}");
    }
}
