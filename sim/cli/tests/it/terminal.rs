//! The tool as a process: the width and the colours of its output, and Ctrl-C.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A text whose search never ends by itself.
const SAFE: &str = "function \"App.Main\" kind=\"jit\" { body { work 9 } }
profiler {
    lock \"a\"
    thread \"x\" { lock \"a\" { sleep 1 } }
    thread \"y\" { lock \"a\" { sleep 1 } }
}
";

fn clrsim(args: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
    for variable in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    let output = command.args(args).envs(variables.iter().copied()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The width of the longest line in characters.
fn width(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn output_fits_the_columns() {
    let clauses = ["rules", "C-044", "C-051"];
    assert!((81..=100).contains(&width(&clrsim(&clauses, &[]))));
    assert!((41..=60).contains(&width(&clrsim(&clauses, &[("COLUMNS", "60")]))));
    assert!((81..=100).contains(&width(&clrsim(&clauses, &[("COLUMNS", "300")]))));
    assert!((81..=100).contains(&width(&clrsim(&clauses, &[("COLUMNS", "wide")]))));
    let table = ["compare", "gallery/seeds/hole-at-the-leaf.kdl", "--on", "net8-windows"];
    let (all, narrow) = (clrsim(&table, &[]), clrsim(&table, &[("COLUMNS", "60")]));
    assert!(all.contains("IL_STUB_ReversePInvoke:App.OnData+0x10"), "{all}");
    assert!(!narrow.contains("IL_STUB_ReversePInvoke:App.OnData+0x10"), "{narrow}");
    assert!(width(&narrow) <= width(&all));
    assert!((41..=60).contains(&width(&clrsim(&["run", "-h"], &[("COLUMNS", "60")]))));
}

/// A text that fails and one whose walks differ between runtimes.
const FAILS: &str = "function \"App.Main\" kind=\"jit\" { body { new } }
stop callback=\"ObjectAllocated\" {
    snapshot by=\"native-walker\" { expect { frame \"App.Main\" rbx=7; result \"S_OK\" } }
}
";

/// No line is wider than the terminal, unless it is one word.
#[test]
fn every_line_fits_from_40_to_200_columns() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let (fails, safe) = (path("fails.kdl", FAILS), path("safe.kdl", SAFE));
    let deadlock = "gallery/hazards/h-08-callback-takes-a-lock.kdl";
    for args in [
        &["run", &fails][..],
        &["matrix", &fails],
        &["compare", "gallery/seeds/hole-at-the-leaf.kdl", "--on", "net8-windows"],
        &["explain", &fails, "--on", "net8-windows"],
        &["explain", "clr/win31-async-alloc.walks.jsonl.gz", "--walk", "12"],
        &["show", "win64/vec/gcc_O2.vec.gz"],
        &["show", "clr/win31-sync-gc.walks.jsonl.gz"],
        &["show", "win64/img/gcc_O2.dll", "--function", "t_ack"],
        &["trace", "programs/tail_call.kdl", "--stack", "--limit", "20"],
        &["explore", deadlock, "--on", "net8-windows", "--schedules", "50"],
        &["explore", &safe, "--on", "net8-windows", "--schedules", "3"],
        &["lint", "win64/img/gcc_O2.dll"],
        &["list", "lock"],
        &["rules", "C-044", "H-08", "G17"],
        &["runtimes"],
        &["runtimes", "net8-windows"],
        &["runtimes", "--diff", "net9-unix", "net10-unix"],
        &[],
    ] {
        for columns in [40, 57, 80, 123, 200] {
            let text = clrsim(args, &[("COLUMNS", &columns.to_string())]);
            assert!(!text.is_empty(), "{args:?}");
            for line in text.lines().filter(|line| line.chars().count() > columns) {
                let words = line.trim_end_matches(" \\").split_whitespace().count();
                assert_eq!(words, 1, "{args:?} at {columns} columns: {line}");
            }
        }
    }
}

/// Texts for files keep their lines.
#[test]
fn documents_are_not_broken() {
    for args in [
        &["list", "--print", "gallery/seeds/hole-at-the-leaf.kdl"][..],
        &["generate", "--seed", "7"],
        &["rules", "C-044", "--json"],
    ] {
        assert_eq!(clrsim(args, &[("COLUMNS", "40")]), clrsim(args, &[]), "{args:?}");
    }
}

#[test]
fn colours_are_as_the_variables_say() {
    let has_colours =
        |variables: &[(&str, &str)]| clrsim(&["rules", "C-044"], variables).contains('\u{1B}');
    assert!(!has_colours(&[]), "a pipe has none");
    assert!(has_colours(&[("CLICOLOR_FORCE", "1")]));
    assert!(!has_colours(&[("CLICOLOR_FORCE", "")]));
    assert!(!has_colours(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

/// The first Ctrl-C ends a search with what was found so far and the way to go on.
#[test]
fn ctrl_c_prints_what_was_found_so_far() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("safe.kdl");
    std::fs::write(&path, SAFE).unwrap();
    let path = path.to_str().unwrap();
    for jobs in ["1", "2"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_clrsim"))
            .args(["explore", path, "--schedules", "4000000000", "--seed", "7", "--jobs", jobs])
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{out}");
        let line = out.lines().find(|line| line.contains("survives")).unwrap();
        assert!(line.ends_with(" interleavings, then interrupted"), "{line}");
        let words: Vec<_> = line.split_whitespace().collect();
        let done: u64 = words[words.len() - 4].parse().unwrap();
        assert!(done > 0, "{line}");
        let go_on = out.lines().find_map(|line| line.split_once("to go on: clrsim ")).unwrap().1;
        assert!(go_on.contains(&format!("--seed 7 --first {done} ")), "{go_on}");
        assert!(go_on.ends_with(&format!("--schedules {}", 4_000_000_000 - done)), "{go_on}");
        // The printed command is one, with fewer interleavings.
        let (go_on, _) = go_on.rsplit_once(' ').unwrap();
        let args: Vec<_> = go_on.split(' ').chain(["20"]).collect();
        let out = clrsim(&args, &[]);
        assert!(out.contains("survives 20 interleavings\n"), "{out}");
    }
}
