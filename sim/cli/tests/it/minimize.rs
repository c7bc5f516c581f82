//! `clrsim minimize` with a command: this file's own program, which stands for a fuzz target.

use clr_generate::{Seeded, SmallProgram};
use clr_scenario::Scenario;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Returns the content of the file that is the last argument of this process.
fn input() -> Vec<u8> {
    std::fs::read(std::env::args_os().next_back().unwrap()).unwrap()
}

/// Fails in two ways for bytes of a "format": a mark, followed by the number of a fault.
#[test]
#[ignore = "is run on a file, as a target is"]
fn target_of_bytes() {
    let bytes = input();
    let mark = bytes.windows(4).position(|four| four.starts_with(b"BUG"));
    match mark.and_then(|at| bytes.get(at + 3)) {
        Some(1) => panic!("offset {} of {} is wrong", mark.unwrap(), bytes.len()),
        Some(2) => panic!("the other fault"),
        Some(3) => std::process::exit(77),
        _ => {}
    }
}

/// Fails slowly for bytes of which a thousand are left.
#[test]
#[ignore = "is run on a file, as a target is"]
fn slow_target() {
    std::thread::sleep(std::time::Duration::from_millis(50));
    let bytes = input();
    assert!(bytes.len() < 1_000, "too many");
}

/// Fails for programs with several functions, given as bytes or as a text.
#[test]
#[ignore = "is run on a file, as a target is"]
fn target_of_programs() {
    use arbitrary::{Arbitrary as _, Unstructured};
    let bytes = input();
    let text = str::from_utf8(&bytes).ok().and_then(|text| Scenario::parse(text).ok());
    let program = match text {
        Some(scenario) => scenario.program,
        None => SmallProgram::arbitrary(&mut Unstructured::new(&bytes)).unwrap().0,
    };
    let count = program.functions.len();
    assert!(count < 2, "{count} functions, the first is \"{}\"", program.functions[0].name);
}

/// Fails for the layout of a text, which no scenario has.
#[test]
#[ignore = "is run on a file, as a target is"]
fn target_of_texts() {
    let text = String::from_utf8(input()).unwrap();
    assert!(!text.contains("{ }"), "an empty block in {} bytes", text.len());
}

/// A temporary folder, and the last runs of the tool in it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `clrsim minimize` on an input with one of this file's targets. Returns the exit code,
    /// the output and what was written.
    fn minimize(
        &self,
        input: &[u8],
        arguments: &[&str],
        output: &str,
        target: &str,
    ) -> (i32, String, Vec<u8>) {
        let file = self.path("input");
        std::fs::write(&file, input).unwrap();
        let output = self.path(output);
        let _ = std::fs::remove_file(&output);
        let answer = Command::new(env!("CARGO_BIN_EXE_clrsim"))
            .args([&"minimize".into(), &file.into_os_string(), &"-o".into(), output.as_os_str()])
            .args(arguments)
            .arg("--")
            .arg(std::env::current_exe().unwrap())
            .args(["--nocapture", "--ignored", "--exact", &format!("minimize::{target}")])
            .output()
            .unwrap();
        let text = [answer.stdout, answer.stderr].concat();
        let folder = self.0.path().to_str().unwrap().replace('\\', "/");
        let text = String::from_utf8(text).unwrap().replace(&folder, "DIR");
        // The place of a panic has a line number.
        let keeps = text.lines().map(|line| match line.split_once("minimize.rs:") {
            Some((before, rest)) => {
                let message = rest.split_once(": ").map_or("", |(_, message)| message);
                let before = before.replace('\\', "/");
                format!("{before}minimize.rs:LINE: {message}\n")
            }
            None => format!("{line}\n"),
        });
        let left = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        let left: Vec<_> =
            left.filter(|path| *path != self.path("input") && *path != output).collect();
        assert!(left.is_empty(), "{left:?}");
        let written = std::fs::read(output).unwrap_or_default();
        (answer.status.code().unwrap(), keeps.collect(), written)
    }
}

/// Bytes with a mark in the middle.
fn marked(fault: u8) -> Vec<u8> {
    [&[7; 90][..], b"BUG", &[fault], b"BUG\x02", &[9; 30]].concat()
}

#[test]
fn bytes_become_fewer_for_the_same_panic() {
    let folder = Folder::new();
    let (code, out, written) = folder.minimize(&marked(1), &[], "small", "target_of_bytes");
    assert_eq!((code, &*written), (0, &b"BUG\x01"[..]), "{out}");
    insta::assert_snapshot!(out, @"
    keeps: sim/cli/tests/it/minimize.rs:LINE: offset # of # is wrong
    written: DIR/small, 4 bytes of 128
    ");
    // The other fault, of which there is one as well, is another finding.
    let (_, _, written) = folder.minimize(&marked(2), &[], "small", "target_of_bytes");
    assert_eq!(written, b"BUG\x02");
    // A process that exits has its exit code.
    let (_, out, written) =
        folder.minimize(&marked(3), &["--target", "pe_image"], "small", "target_of_bytes");
    assert_eq!(written, b"BUG\x03", "{out}");
    let (code, out, written) = folder.minimize(b"BUG\x01", &[], "small", "target_of_bytes");
    assert_eq!((code, &*written), (0, &b"BUG\x01"[..]));
    assert!(out.contains("unchanged: nothing smaller was found than its 4 bytes"), "{out}");
}

#[test]
fn a_command_that_succeeds_leaves_nothing_to_keep() {
    let folder = Folder::new();
    let (code, out, written) = folder.minimize(&[1, 2, 3], &[], "small", "target_of_bytes");
    assert_eq!((code, written), (1, vec![]));
    insta::assert_snapshot!(
        out,
        @"DIR/input: the command does not fail, so there is nothing to keep"
    );
    let (code, out, _) =
        folder.minimize(&marked(1), &["--target", "eh_frame"], "my.kdl", "target_of_bytes");
    assert_eq!(code, 2);
    insta::assert_snapshot!(out, @"
    keeps: sim/cli/tests/it/minimize.rs:LINE: offset # of # is wrong
    error: DIR/input: is no text, and none can stand for it: bytes of eh_frame become a file that is not called *.kdl
    ");
}

/// Bytes of a program become a text, which the target fails on for the same reason.
#[test]
fn programs_become_texts() {
    let folder = Folder::new();
    let mut random = Seeded::new(5);
    let bytes: Vec<u8> = (0..100).flat_map(|_| random.bits().to_le_bytes()).collect();
    let target = ["--target", "program"];
    let (code, out, written) = folder.minimize(&bytes, &target, "my.kdl", "target_of_programs");
    let text = String::from_utf8(written).unwrap();
    assert_eq!(code, 0, "{out}");
    insta::assert_snapshot!(format!("{out}--\n{text}"), @r#"
    keeps: sim/cli/tests/it/minimize.rs:LINE: # functions, the first is ""
    written: DIR/my.kdl, 7 lines of 152
      dropped: 5 functions
    --
    // Made smaller by clrsim minimize, from 152 lines.
    function "f0" {
        unwind "none"
    }

    function "f1" {
        unwind "none"
    }
    "#);
    // The text is an input, too.
    let (code, out, again) = folder.minimize(text.as_bytes(), &[], "my.kdl", "target_of_programs");
    assert!(code == 0 && again.len() <= text.len(), "{out}");
    let folder = Folder::new();
    let (_, _, bytes) = folder.minimize(&bytes, &target, "small", "target_of_programs");
    assert!(bytes.len() < 100, "{}", bytes.len());
}

/// If the model of a text does not fail, its lines and characters are removed.
#[test]
fn layouts_are_made_smaller() {
    let folder = Folder::new();
    let text = "// a comment\nstack { }\nsnapshot by=\"native-walker\"\n";
    let (code, out, written) = folder.minimize(text.as_bytes(), &[], "my.kdl", "target_of_texts");
    assert_eq!((code, &*written), (0, &b"{ }"[..]), "{out}");
}

/// The first Ctrl-C ends the search, and what was found so far is written.
#[cfg(unix)]
#[test]
fn ctrl_c_writes_what_was_found_so_far() {
    use std::io::Read as _;
    let folder = Folder::new();
    let input: Vec<u8> = (0..2_000_u32).map(|byte| byte as u8).collect();
    let (file, output) = (folder.path("input"), folder.path("small"));
    std::fs::write(&file, &input).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_clrsim"))
        .args([&"minimize".into(), &file.into_os_string(), &"-o".into(), output.as_os_str()])
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--ignored", "--exact", "minimize::slow_target"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{out}");
    assert!(out.contains("small is what was found so far; the same command"), "{out}");
    let written = std::fs::read(output).unwrap();
    assert!((1_000..2_000).contains(&written.len()), "{}", written.len());
}
