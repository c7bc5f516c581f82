//! What is left of files when a call of the system fails: each that writes results, once.
//!
//! The calls are real: `strace` has them fail in a process of its own, which is this test.

use super::*;
use std::collections::BTreeMap;
use std::fs::{create_dir, read, read_dir, remove_dir_all};
use std::process::{Command, Output as Ended, Stdio};

/// The folder in which the process under test writes.
const FOLDER: &str = "RECORDER_TEST_FOLDER";
const TEST: &str = "output::tests::faults::external_each_call_that_fails_leaves_old_or_new_files";

/// A profile that takes the place of another one, and a line after others: before, and afterwards.
const PROFILE: [&str; 2] = ["old", "a new profile"];
const LINES: [&str; 2] = ["first\n", "first\nsecond\n"];

/// Calls on the way to a file, and the errors that they can have.
const CALLS: [(&str, &[&str]); 7] = [
    ("openat", &["EMFILE", "EACCES"]),
    ("write", &["ENOSPC", "EIO", "EINTR"]),
    ("fsync", &["EIO"]),
    ("fchmod", &["EPERM"]),
    ("rename", &["EIO", "EXDEV"]),
    ("lseek", &["EIO"]),
    ("flock", &["ENOLCK", "EINTR"]),
];

/// More lines than the harness prints by its own thread. `strace` counts the calls of each thread, so that a first write that
/// fails would be the harness's.
const HARNESS: u32 = 20;

/// A process under test that has ended.
struct Process {
    ended: Ended,
    /// What `strace` has printed.
    trace: String,
    files: BTreeMap<String, String>,
}

/// Writes the results in a process of which one call goes `wrong`.
fn run(calls: &str, wrong: &str, number: u32) -> Process {
    let folder = path("faults");
    create_dir(&folder).unwrap();
    std::fs::write(folder.join("profile"), PROFILE[0]).unwrap();
    std::fs::write(folder.join("lines"), LINES[0]).unwrap();
    let trace = path("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"]).arg(&trace);
    strace.args(["-e", &format!("inject={calls}:{wrong}:when={number}")]);
    strace.arg(std::env::current_exe().unwrap()).args(["--exact", TEST, "--ignored"]);
    let ended = strace.env(FOLDER, &folder).stdout(Stdio::null()).output().unwrap();
    let files = read_dir(&folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let content = String::from_utf8(read(entry.path()).unwrap()).unwrap();
        (entry.file_name().into_string().unwrap(), content)
    });
    let files = files.collect();
    let text = read_to_string(&trace).unwrap();
    remove_file(trace).unwrap();
    remove_dir_all(folder).unwrap();
    Process { ended, trace: text, files }
}

#[test]
#[ignore = "asks strace"]
fn external_each_call_that_fails_leaves_old_or_new_files() {
    if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
        let mut null = File::create("/dev/null").unwrap();
        (0..HARNESS).for_each(|_| assert_eq!(null.write(b"x").unwrap(), 1));
        replace(Some(&folder.join("profile")), PROFILE[1].as_bytes());
        append(Some(&folder.join("lines")), b"second\n");
        return;
    }
    for (calls, errors) in CALLS {
        let (mut failed, mut kept) = (0, 0);
        let faults = errors.iter().map(|error| format!("error={error}"));
        for fault in faults.chain(["signal=KILL".to_owned()]) {
            for number in if calls == "write" { HARNESS + 1 } else { 1 }.. {
                let Process { ended, trace, mut files } = run(calls, &fault, number);
                let is_killed = trace.contains("killed by SIGKILL");
                if !is_killed && !trace.contains("INJECTED") {
                    break;
                }
                failed += 1;
                let err = String::from_utf8_lossy(&ended.stderr);
                let what =
                    format!("{calls}, {fault}, {number}: {}, {files:?}, {err}", ended.status);
                assert!(!err.contains("panicked at walker"), "{what}");
                if is_killed {
                    files.retain(|name, _| !name.starts_with(".clr-recorder-"));
                }
                assert_eq!(files.len(), 2, "{what}");
                let is_new = [("profile", PROFILE), ("lines", LINES)].map(|(name, contents)| {
                    let place = contents.iter().position(|it| *it == files[name]);
                    place.unwrap_or_else(|| panic!("{what}")) == 1
                });
                if ended.status.success() && is_new != [true; 2] {
                    kept += 1;
                    let name = if is_new[0] { "/lines: " } else { "/profile: " };
                    assert!(err.contains("clr-recorder: ") && err.contains(name), "{what}");
                }
            }
        }
        println!("{calls}: {failed} calls have failed, {kept} with an old file");
        // Locks are not needed, and interrupted calls are made again.
        assert!(failed > 0 && (kept > 0 || calls == "flock"), "{calls}: {failed}, {kept}");
    }
}
