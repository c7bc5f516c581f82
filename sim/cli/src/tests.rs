//! The tool as its user sees it, run in this process: under an emulator there is no other.

mod as_tests;
mod begin;
mod compare;
mod damaged;
mod diagnose;
mod emit;
mod errors;
mod explain;
mod fields;
mod histories;
mod hostile;
mod images;
mod import;
mod import_stacks;
mod inspect;
mod lint;
mod lsp;
mod mistakes;
mod people;
mod programs;
mod readme;
mod recordings;
mod rules;
mod run;
mod runtimes;
mod schema;
mod sequences;
mod show;
mod texts;
mod trace;
#[cfg(unix)]
mod whole;

use crate::args::Cli;
use crate::render::console::{Console, Quiet};
use crate::run_tool;
use crate::tests::texts::{ALLOCATION, BARRIER};
use anstream::StripStream;
use clap::CommandFactory as _;
use clr_runtime::generation::{Generation, Generations, QUESTIONS};
use clr_unwind::{Gpr, PeImage};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A recording of walks.
const WALKS: &str = "clr/linux31-callbacks-alloc-def.walks.jsonl.gz";

/// The exit code and the output of a run of the tool.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    code: u8,
    out: String,
    err: String,
}

impl Answer {
    /// Returns exit code and output as one text, for a snapshot.
    fn text(&self) -> String {
        let mut text = format!("exit code {}\n", self.code);
        for (name, content) in [("stdout", &self.out), ("stderr", &self.err)] {
            if !content.is_empty() {
                write!(text, "-- {name}\n{content}").unwrap();
            }
        }
        text
    }
}

/// Returns the output of a command that succeeds and reports no error.
#[track_caller]
fn printed(command: &str, args: &[&str]) -> String {
    let answer = clrsim(&[&[command], args].concat());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{command} {args:?}");
    answer.out
}

/// Returns the objects that a command prints with `--json`.
#[track_caller]
fn objects(command: &str, args: &[&str]) -> Vec<Value> {
    let json = printed(command, &[args, &["--json"]].concat());
    json.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs the tool without a terminal.
fn clrsim(args: &[&str]) -> Answer {
    let (mut out, mut err) = (StripStream::new(Vec::new()), StripStream::new(Vec::new()));
    let mut console =
        Console { out: &mut out, err: &mut err, progress: false, json: false, owns_signals: false };
    let args = ["clrsim"].iter().chain(args).map(OsString::from);
    let code = run_tool(args, &mut console);
    let text = |stream: StripStream<Vec<u8>>| String::from_utf8(stream.into_inner()).unwrap();
    Answer { code, out: text(out), err: text(err) }
}

/// Runs all embedded fixtures on all runtimes, searches included.
const SUMMARY: [&str; 2] = ["run", "--summary"];

/// Returns the answer to [`SUMMARY`], which takes minutes: the tests share one.
fn summary() -> &'static Answer {
    static ANSWER: OnceLock<Answer> = OnceLock::new();
    ANSWER.get_or_init(|| clrsim(&SUMMARY))
}

/// A temporary folder with the files of a test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Returns a path in the folder. The file need not exist.
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).into_os_string().into_string().unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the tool. The answer calls this folder DIR.
    fn clrsim(&self, args: &[&str]) -> Answer {
        let answer = clrsim(args);
        let own = self.path("").replace('\\', "/");
        let own = own.trim_end_matches('/');
        let named = |text: String| text.replace(own, "DIR");
        Answer { out: named(answer.out), err: named(answer.err), ..answer }
    }
}

/// Returns the lines of JSON in recorded answers.
fn snapshots_of<'t>(texts: &'t [&str]) -> Vec<&'t str> {
    texts.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with('{')).collect()
}

fn fixture(name: &str) -> &'static [u8] {
    clr_fixtures::get(name).unwrap()
}

/// Returns the decompressed content of a fixture.
fn content(name: &str) -> Vec<u8> {
    let limit = clr_recording::vectors::DECOMPRESSED_LIMIT;
    clr_recording::vectors::decompress(fixture(name), limit).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A generator of pseudo-random numbers with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn help_is_the_same_everywhere() {
    for (name, args) in [
        ("help", &["--help"][..]),
        ("help_short", &["-h"]),
        ("help_run", &["run", "--help"]),
        ("help_matrix", &["matrix", "--help"]),
        ("help_compare", &["compare", "--help"]),
        ("help_list", &["list", "--help"]),
        ("help_new", &["new", "--help"]),
        ("help_fmt", &["fmt", "--help"]),
        ("help_import", &["import", "--help"]),
        ("help_generate", &["generate", "--help"]),
        ("help_merge", &["merge", "--help"]),
        ("help_minimize", &["minimize", "--help"]),
        ("help_show", &["show", "--help"]),
        ("help_lint", &["lint", "--help"]),
        ("help_inspect", &["inspect", "--help"]),
        ("help_diagnose", &["diagnose", "--help"]),
        ("help_explain", &["explain", "--help"]),
        ("help_trace", &["trace", "--help"]),
        ("help_emit", &["emit", "--help"]),
        ("help_rules", &["rules", "--help"]),
        ("help_explore", &["explore", "--help"]),
        ("help_replay", &["replay", "--help"]),
        ("help_host", &["host", "--help"]),
        ("help_gen", &["gen", "--help"]),
        ("help_gen_schema", &["gen", "schema", "--help"]),
    ] {
        let answer = clrsim(args);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        insta::assert_snapshot!(name, answer.out);
    }
}

/// clap would wrap a longer line and leave one word on the next.
#[test]
fn lines_behind_the_options_fit_the_width_of_the_help() {
    for command in Cli::command().get_subcommands() {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let long: Vec<_> = text.lines().filter(|line| line.chars().count() > 100).collect();
        assert_eq!(long, [""; 0], "{}", command.get_name());
    }
}

#[test]
fn examples_of_the_help_work() {
    let mut count = 0;
    for command in [
        "run", "matrix", "compare", "list", "new", "fmt", "import", "show", "explain", "trace",
        "rules",
    ] {
        let help = clrsim(&[command, "--help"]).out;
        let examples = help.lines().filter_map(|line| line.strip_prefix("  clrsim "));
        // Other tests check the output of `run`.
        for example in examples.filter(|it| !it.contains(" my") && *it != "run") {
            // The files of one example exist as embedded fixtures only.
            let example = example.replace(" vec/", " win64/vec/");
            let args: Vec<_> = example.split_whitespace().collect();
            let code = if args == SUMMARY { summary().code } else { clrsim(&args).code };
            assert_eq!(code, 0, "{example}");
            count += 1;
        }
    }
    assert_eq!(count, 27);
}

#[test]
fn the_version_is_printed() {
    let answer = clrsim(&["--version"]);
    assert_eq!(
        answer.text(),
        format!("exit code 0\n-- stdout\nclrsim {}\n", env!("CARGO_PKG_VERSION"))
    );
}

/// A stream that is closed after some bytes.
struct Closing {
    left: usize,
}

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let taken = self.left.min(bytes.len());
        self.left -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write(b" ").map(|_| ())
    }
}

fn into_closing_pipes(args: &[&str], left: usize) -> u8 {
    let mut out = Quiet::new(Closing { left });
    let mut err = Quiet::new(Closing { left });
    let mut console =
        Console { out: &mut out, err: &mut err, progress: false, json: false, owns_signals: false };
    run_tool(["clrsim"].iter().chain(args).map(OsString::from), &mut console)
}

#[test]
fn a_reader_that_goes_away_changes_no_exit_code() {
    for left in [0, 1, 100] {
        assert_eq!(into_closing_pipes(&["show", "win64/img/gcc_O2.dll"], left), 0);
        assert_eq!(into_closing_pipes(&["run", "--filter", "gcc_O2"], left), 0);
        assert_eq!(into_closing_pipes(&["trace", "programs/tail_call.kdl"], left), 0);
        assert_eq!(into_closing_pipes(&["rules"], left), 0);
        assert_eq!(into_closing_pipes(&["explain", WALKS], left), 0);
        assert_eq!(into_closing_pipes(&["show", WALKS], left), 0);
        assert_eq!(into_closing_pipes(&["--help"], left), 0);
        assert_eq!(into_closing_pipes(&["show", "nowhere"], left), 2);
        assert_eq!(into_closing_pipes(&["no", "command"], left), 2);
    }
}

/// A stream that accepts no bytes.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    // The buffer, as in `main`, reports the error at the last flush at the latest.
    let mut buffered = BufWriter::new(Quiet::new(Full));
    let outputs: [&mut dyn Write; 2] = [&mut Quiet::new(Full), &mut buffered];
    for out in outputs {
        let mut err = StripStream::new(Vec::new());
        let mut console =
            Console { out, err: &mut err, progress: false, json: false, owns_signals: false };
        let args = ["clrsim", "show", "win64/img/gcc_O2.dll", "--function", "t_ack"];
        assert_eq!(run_tool(args.map(OsString::from), &mut console), 2);
        let err = String::from_utf8(err.into_inner()).unwrap();
        assert_eq!(err, "error: the output cannot be written: no storage space\n");
    }
}

#[test]
fn colours_are_for_people_only() {
    let coloured = |args: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console {
            out: &mut out,
            err: &mut err,
            progress: false,
            json: false,
            owns_signals: false,
        };
        run_tool(["clrsim"].iter().chain(args).map(OsString::from), &mut console);
        (out.contains(&0x1B), err.contains(&0x1B))
    };
    assert_eq!(coloured(&["run", "--filter", "gcc_O2"]), (true, false));
    assert_eq!(coloured(&["run", "--filter", "gcc_O2", "--json"]), (false, false));
    assert_eq!(coloured(&["show", "win64/img/gcc_O2.dll", "--json"]), (false, false));
    assert_eq!(coloured(&["show", "nowhere"]), (false, true));
    assert_eq!(coloured(&["trace", "programs/tail_call.kdl"]), (true, false));
    assert_eq!(coloured(&["trace", "programs/tail_call.kdl", "--json", "--stack"]), (false, false));
    assert_eq!(coloured(&["rules"]), (true, false));
    assert_eq!(coloured(&["explain", WALKS]), (true, false));
    assert_eq!(coloured(&["explain", WALKS, "--json"]), (false, false));
    assert_eq!(coloured(&["show", WALKS]), (true, false));
    let seeds = "gallery/seeds/hole-at-the-leaf.kdl";
    assert_eq!(coloured(&["compare", seeds]), (true, false));
    assert_eq!(coloured(&["compare", seeds, "--json"]), (false, false));
    assert_eq!(coloured(&["rules", "--json"]), (false, false));
}
