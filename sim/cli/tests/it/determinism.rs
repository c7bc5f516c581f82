//! The same command prints the same bytes, wherever and under whatever circumstances it is run.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const LOCK: &str = "gallery/hazards/h-08-callback-takes-a-lock.kdl";
const SUSPENSION: &str = "gallery/hazards/h-01-mutual-suspension.kdl";
const WRITER: &str = "gallery/hazards/h-09-frozen-writer.kdl";
const WALKS: &str = "clr/win31-async-alloc.walks.jsonl.gz";
const STUBS: &str = "gallery/seeds/c-039-stubs.kdl";
const ON: &str = "net8-windows";
/// An argument that stands for `--jobs` and their number.
const JOBS: &str = "JOBS";

/// The verbs that print or write, each in the ways in which the order of work or a table of names could show.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["--help"],
    &["explore", LOCK, "--on", ON, "--json", JOBS],
    &[
        "explore",
        SUSPENSION,
        "--on",
        ON,
        "--strategy",
        "pct",
        "--seed",
        "9",
        "--schedules",
        "40",
        JOBS,
    ],
    &["explore", SUSPENSION, "--on", ON, "--strategy", "exhaustive", "--preemptions", "1", JOBS],
    &["explore", WRITER, "--on", ON, "--strategy", "guided", "--schedules", "40", "--json", JOBS],
    &["explore", LOCK, "--on", ON, "--keep-going", "--schedules", "100", "--seed", "3", JOBS],
    &["explore", LOCK, "--on", ON, "--minimize", "small.kdl", JOBS],
    &["replay", LOCK, "--on", ON, "--draw"],
    &["replay", LOCK, "--on", ON, "--html", "page.html"],
    &["run", "--json", "--filter", "gallery/hazards/h-03", JOBS],
    &["run", "--filter", "clr/win31-s", JOBS],
    &["run", "--json", "--filter", "win64/vec/asm", JOBS],
    &["run", "--format", "junit", "--filter", "gallery/clauses/c-00", JOBS],
    &["run", "--format", "libtest", "--filter", "gallery/clauses/c-00", JOBS],
    &["matrix", STUBS, "--json"],
    &["matrix", STUBS],
    &["compare", "gallery/seeds/hole-at-the-leaf.kdl", "--json"],
    &["explain", WALKS, "--walk", "12", "--json"],
    &["explain", STUBS],
    &["import", WALKS, "--walk", "12", "-o", "walk.kdl"],
    &["show", WALKS, "--case", "12"],
    &["show", "win64/img/gcc_O2.dll", "--json"],
    &["trace", "programs/tail_call.kdl", "--json"],
    &["emit", "programs/tail_call.kdl", "-o", "images"],
    &["generate", "--seed", "7"],
    &["generate", "--kind", "stack", "--seed", "8", "-o", "stack.kdl"],
    &["lint", "win64/img/gcc_O2.dll", "win64/img/clang_O2.dll", "--json", JOBS],
    &["list", "--json"],
    &["rules", "--json"],
    &["runtimes", "--json"],
    &["new", "new.kdl"],
    &["fmt", "--check", "nowhere.kdl"],
    &["run", "nowhere.kdl", "--json"],
    &["gen", "completions", "zsh"],
    &["gen", "schema", "text"],
    &["gen", "man", "-o", "."],
    &["help", "run"],
    &["run", "inputs", JOBS],
    &["run", "inputs", "--json", JOBS],
    &["list", "inputs"],
    &["fmt", "--check", "inputs"],
    &["fmt", "inputs/stubs.kdl"],
    &["minimize", "inputs/stubs.kdl", "--clause", "C-039", "-o", "inputs/small.kdl"],
    &["explain", "inputs/w.walks.jsonl.gz", "--walk", "12"],
    &["lint", "inputs/gcc_O2.dll", "inputs/sample.dylib"],
    &["lint", "inputs/gcc_O2.dll", "--format", "sarif"],
    &["inspect", "inputs/core"],
    &["diagnose", "inputs/core"],
    &["diagnose", "inputs/core", "--json"],
    &["import", "inputs/core"],
    &["run", "inputs.kdl"],
    &["lint", "inputs.kdl"],
    &["run", "inputs", "inputs/nowhere/a.kdl"],
];

/// Files that commands read, and the fixtures that they are copies of.
const INPUTS: &[(&str, &str)] = &[
    ("stubs.kdl", STUBS),
    ("below/hole.kdl", "gallery/seeds/hole-at-the-leaf.kdl"),
    ("w.walks.jsonl.gz", WALKS),
    ("asm_raw.vec.gz", "win64/vec/asm_raw.vec.gz"),
    ("asm_raw.dll", "win64/img/asm_raw.dll"),
    ("gcc_O2.dll", "win64/img/gcc_O2.dll"),
    ("sample.dylib", "macho/sample.dylib"),
    ("core", "dumps/9.0.23-joined.core.gz"),
];

/// Verbs that are not among the commands: `.ci/wine` runs profilers' libraries, a server prints answers to what it reads, and what
/// `merge` prints is compared byte by byte with the whole search, in `shards.rs`.
const ELSEWHERE: [&str; 3] = ["host", "lsp", "merge"];

/// Circumstances that a result must not depend on.
struct Around {
    jobs: &'static str,
    folder: &'static str,
    environment: &'static [(&'static str, &'static str)],
    /// True if nothing else is in the environment.
    is_bare: bool,
}

const USUAL: Around = Around { jobs: "1", folder: "a", environment: &[], is_bare: false };

const AROUND: [Around; 5] = [
    USUAL,
    Around { jobs: "2", ..USUAL },
    Around { jobs: "7", folder: "b/a long name with blanks/\u{e4}", ..USUAL },
    Around {
        environment: &[
            ("LC_ALL", "tr_TR.UTF-8"),
            ("LANG", "tr_TR.UTF-8"),
            ("TZ", "Pacific/Kiritimati"),
            ("HOME", "/nonexistent"),
            ("RUST_BACKTRACE", "1"),
            ("RUST_LOG", "trace"),
            ("TERM", "dumb"),
            ("CI", "true"),
        ],
        ..USUAL
    },
    Around { is_bare: true, ..USUAL },
];

/// What comes of a command: the exit code, what it prints, and the files that it writes.
#[derive(Debug, PartialEq, Eq)]
struct Result {
    code: Option<i32>,
    printed: [String; 2],
    files: BTreeMap<String, Vec<u8>>,
}

fn files(folder: &Path, below: &str, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = format!("{below}/{}", entry.file_name().unwrap().to_str().unwrap());
        if entry.is_dir() {
            files(&entry, &name, all);
        } else {
            all.insert(name, fs::read(&entry).unwrap());
        }
    }
}

/// Writes what commands read; and beside the folder a text that cannot be read.
fn write_inputs(folder: &Path) {
    fs::create_dir_all(folder.join("below")).unwrap();
    for (name, fixture) in INPUTS {
        let bytes = clr_fixtures::get(fixture).unwrap_or_else(|| panic!("{fixture} is missing"));
        let mut content = bytes.to_vec();
        // The verbs that read dumps want them as the kernel writes them.
        if *name == "core" {
            content.clear();
            GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
        }
        fs::write(folder.join(name), content).unwrap();
    }
    fs::write(folder.with_extension("kdl"), "function \"a\u{202e}\u{1b}[31m\" {\n").unwrap();
}

/// Returns the tool that is tested.
fn here() -> Command {
    Command::new(env!("CARGO_BIN_EXE_clrsim"))
}

fn run(mut command: Command, arguments: &[&str], around: &Around) -> Result {
    let root = TempDir::new().unwrap();
    let folder = root.path().join(around.folder);
    fs::create_dir_all(&folder).unwrap();
    if arguments.iter().any(|argument| argument.starts_with("inputs")) {
        write_inputs(&folder.join("inputs"));
    }
    command.current_dir(&folder).env_remove("COLUMNS").env_remove("CLICOLOR_FORCE");
    if around.is_bare {
        command.env_clear();
        // Windows starts no program without it.
        command.envs(std::env::vars_os().filter(|(name, _)| name == "SystemRoot"));
    }
    command.envs(around.environment.iter().copied());
    for argument in arguments {
        match *argument {
            JOBS => command.args(["--jobs", around.jobs]),
            other => command.arg(other),
        };
    }
    let output = command.output().unwrap();
    let mut all = BTreeMap::new();
    files(&folder, "", &mut all);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Result {
        code: output.status.code(),
        printed: [text(output.stdout), text(output.stderr)],
        files: all,
    }
}

#[test]
fn results_depend_on_the_arguments_alone() {
    for arguments in COMMANDS {
        let first = run(here(), arguments, &USUAL);
        assert!(first.code.is_some_and(|code| code <= 2), "{arguments:?}: {first:?}");
        assert!(!first.printed[1].contains("unexpected argument"), "{arguments:?}: {first:?}");
        for around in &AROUND {
            let again = run(here(), arguments, around);
            assert_eq!(
                again, first,
                "{arguments:?} with {} jobs in {}",
                around.jobs, around.folder
            );
        }
    }
}

#[test]
fn every_verb_is_run() {
    let help = run(here(), &["--help"], &USUAL).printed[0].clone();
    let (_, rest) = help.split_once("Commands:\n").unwrap();
    let (list, _) = rest.split_once("\n\n").unwrap();
    let verbs = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs: Vec<_> = verbs.filter(|verb| !verb.is_empty()).collect();
    assert!(verbs.contains(&"run") && verbs.len() > 15, "{verbs:?}");
    for verb in verbs {
        let is_run = COMMANDS.iter().any(|arguments| arguments.first() == Some(&verb));
        assert!(is_run != ELSEWHERE.contains(&verb), "{verb}");
    }
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "needs the tool for Windows, and wine: `.ci/cross x86_64-pc-windows-gnu` has both"]
fn windows_has_the_same_results() {
    let tool = std::env::var_os("CLRSIM_WINDOWS").expect("CLRSIM_WINDOWS names a clrsim.exe");
    let mut others = Vec::new();
    for arguments in COMMANDS {
        let mut wine = Command::new("wine");
        wine.arg(&tool).env("WINEDEBUG", "-all");
        let [mut there, here] = [wine, here()].map(|command| run(command, arguments, &USUAL));
        // wine's own services complain there, too: they are started by the first of its programs.
        let [_, said] = &mut there.printed;
        *said = said.split_inclusive('\n').filter(|line| !line.starts_with("wine")).collect();
        if there != here {
            others.push(format!("{arguments:?}\n  Windows: {there:?}\n  Linux: {here:?}"));
        }
    }
    assert!(others.is_empty(), "{} of {}:\n{}", others.len(), COMMANDS.len(), others.join("\n"));
}
