//! `clrsim host` with guests that do harm while they are loaded, or without end: each is named, and leaves nothing behind.

use super::tool::{Host, guest};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Limits that are reached in no time.
const LIMITS: [&str; 6] = ["--memory", "100", "--threads", "50", "--output", "1"];

fn host(variable: &str, harm: &str) -> Host {
    // A system that is busy needs time for the others.
    let time = if harm.starts_with("spin") { "1" } else { "30" };
    let host = Host::new(&guest("initialiser", &[]), "two_threads.kdl").args(&LIMITS);
    host.args(&["--on", "net8-unix", "--timeout", time]).env(variable, harm)
}

fn visit(variable: &str, harm: &str) -> Value {
    host(variable, harm).object()
}

/// Returns the processes of a guest that was told with this word what to do, whoever has started them.
fn processes(word: &str) -> Vec<String> {
    let is_of = |process: &String| {
        let variables = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == format!("GUEST_WORD={word}").as_bytes())
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.map(|one| one.file_name().to_string_lossy().into_owned()).filter(is_of).collect()
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn initialisers_and_callbacks_without_end_are_named() {
    let cases = [
        ("crash", "died", "SIGILL in "),
        ("exit", "died", "an exit with the code 7 in "),
        ("abort", "died", "SIGABRT in "),
        ("throw", "died", "SIGABRT in "),
        ("spin", "hung", "it did not return from "),
        ("print", "limit", "it printed, or called, without end: more than 1 MiB, in "),
        ("allocate", "limit", "it used more than 100 MiB of memory, in "),
        ("threads", "limit", "it had more than 50 threads at a time, in "),
    ];
    for (harm, verdict, because) in cases {
        for (variable, place) in
            [("GUEST_INITIALISER", "LoadLibrary"), ("GUEST_DOES", "JITCompilationStarted")]
        {
            let account = visit(variable, harm);
            assert_eq!(account["verdict"], verdict, "{harm}: {account:#}");
            assert_eq!(account["because"], format!("{because}{place}"), "{harm}");
        }
    }
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn interleavings_have_the_same_limits() {
    for (harm, end) in [
        (
            "spin",
            "failed: the profiler has left the simulation: it has not given back control: it runs on, in guest::harm",
        ),
        ("allocate", "the profiler is beyond a limit: it used more than 100 MiB of memory"),
        ("threads", "failed: the profiler is beyond a limit: it had more than # threads at a time"),
    ] {
        for variable in ["GUEST_INITIALISER", "GUEST_DOES"] {
            let (code, found) = host(variable, harm).args(&["--schedules", "2"]).objects();
            assert_eq!(code, 1);
            let outcomes = found[0]["outcomes"].as_array().unwrap();
            assert_eq!(outcomes.len(), 1, "{harm}: {:#}", found[0]);
            assert_eq!(outcomes[0]["end"], end, "{variable}={harm}");
        }
    }
    // Of a single one the output is printed.
    let (code, text) = host("GUEST_DOES", "print").args(&["--schedules", "1"]).run();
    assert_eq!(code, 1);
    assert!(text.contains("printed, or called, without end: more than 1 MiB"));
    assert!(text.len() < 2 << 20, "{}", text.len());
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn processes_of_a_guest_end_with_it() {
    let account = host("GUEST_DOES", "fork").env("GUEST_WORD", "forks").object();
    assert_eq!(account["verdict"], "clean", "{account:#}");
    assert_eq!(account["processes_left"], 1);
    assert_eq!(processes("forks"), [""; 0]);
    let account = host("GUEST_DOES", "spin-after-fork").env("GUEST_WORD", "spins").object();
    assert_eq!(account["verdict"], "hung", "{account:#}");
    assert_eq!(processes("spins"), [""; 0]);
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn nothing_is_left_when_the_tool_is_killed() {
    let library = guest("initialiser", &[]);
    let temporary = tempfile::tempdir().unwrap();
    for (word, harm, args) in [
        ("visit", "spin-after-fork", &[][..]),
        ("search", "spin", &["--schedules", "4", "--jobs", "2"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
        let text = super::tool::sources().join("two_threads.kdl");
        command.arg("host").arg(&library).arg(text).args(["--on", "net8-unix"]).args(args);
        command.env("GUEST_DOES", harm).env("GUEST_WORD", word).env("TMPDIR", temporary.path());
        let mut tool = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let wait_for = |is_so: &dyn Fn(usize) -> bool| {
            let start = Instant::now();
            while !is_so(processes(word).len()) {
                assert!(start.elapsed() < Duration::from_secs(20), "{:?}", processes(word));
                sleep(Duration::from_millis(20));
            }
        };
        // The tool, and the guard or the workers, and the guest.
        wait_for(&|count| count >= 4);
        tool.kill().unwrap();
        tool.wait().unwrap();
        wait_for(&|count| count == 0);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }
}
