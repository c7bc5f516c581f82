//! What is left of files when the system refuses something: each verb that writes, under each fault.
//!
//! After each: the old files or the new ones, nothing else in the folder, an exit code that the help has, an error that
//! names the file, and no hang. The faults are real: limits of the process, and system calls that `strace` has fail.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time after which a verb hangs.
const PATIENCE: Duration = Duration::from_mins(1);
/// A text that has another layout, and an expectation that does not hold.
const TEXT: &str = r#"function   "main" { body { work 9 } }
stop at="main+0x4"
"#;
const FAILS: &str =
    include_str!("../../../../fixtures/gallery/hazards/h-08-callback-takes-a-lock.kdl");
const RECORDING: &str = "clr/win31-async-alloc.walks.jsonl.gz";

/// The files of a folder, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// A command that writes.
struct Verb {
    args: &'static [&'static str],
    /// The file that is replaced, or `None` if all are new.
    old: Option<(&'static str, &'static str)>,
    /// What its errors name.
    named: &'static str,
}

const VERBS: [Verb; 9] = [
    Verb { args: &["fmt", "a.kdl"], old: Some(("a.kdl", TEXT)), named: "a.kdl" },
    Verb { args: &["new", "b.kdl"], old: None, named: "b.kdl" },
    Verb { args: &["new", "b.kdl", "--force"], old: Some(("b.kdl", "old")), named: "b.kdl" },
    Verb { args: &["generate", "--seed", "7", "-o", "g.kdl"], old: None, named: "g.kdl" },
    Verb { args: &["import", RECORDING, "--walk", "12", "-o", "w.kdl"], old: None, named: "w.kdl" },
    Verb { args: &["emit", "programs/tail_call.kdl", "-o", "deep/out"], old: None, named: "out/" },
    Verb {
        args: &["replay", "f.kdl", "--on", "net10-windows", "--html", "p.html", "--force"],
        old: Some(("f.kdl", FAILS)),
        named: "p.html",
    },
    Verb {
        args: &["explore", "f.kdl", "--on", "net10-windows", "--minimize", "s.kdl", "--force"],
        old: Some(("f.kdl", FAILS)),
        named: "s.kdl",
    },
    Verb { args: &["gen", "man", "-o", "."], old: None, named: "clrsim" },
];

/// How a verb has ended.
struct Ended {
    status: ExitStatus,
    err: String,
    files: Files,
}

/// Returns the files in a folder and below.
fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            found.insert(name, fs::read(entry.path()).unwrap_or_default());
        }
    }
    found
}

impl Verb {
    fn old(&self) -> Files {
        let old =
            self.old.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        old.collect()
    }

    /// Executes the verb in a folder of its own, by a shell that prepares the fault.
    fn run(&self, prepare: &str, out: Stdio) -> Ended {
        let folder = TempDir::new().unwrap();
        for (name, content) in self.old() {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let script = format!("{prepare} \"$0\" \"$@\"");
        let mut process = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_clrsim")])
            .args(self.args)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = process.stderr.take().unwrap();
        let err = thread::spawn(move || {
            let mut err = Vec::new();
            stderr.read_to_end(&mut err).unwrap();
            String::from_utf8_lossy(&err).into_owned()
        });
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = process.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > PATIENCE {
                process.kill().unwrap();
                process.wait().unwrap();
                panic!("{:?} hangs after {prepare}", self.args);
            }
            thread::sleep(Duration::from_millis(2));
        };
        Ended { status, err: err.join().unwrap(), files: files(folder.path()) }
    }

    /// Returns what the verb writes if nothing fails.
    fn undisturbed(&self) -> Ended {
        let ended = self.run("exec", Stdio::null());
        assert!(ended.status.code().is_some_and(|code| code < 2), "{:?}: {}", self.args, ended.err);
        assert_ne!(ended.files, self.old(), "{:?} writes nothing", self.args);
        ended
    }

    /// Checks what a fault has left. Returns true if the verb has not done its work.
    fn check(&self, ended: &Ended, undisturbed: &Ended, fault: &str) -> bool {
        let (args, Ended { status, err, files }) = (self.args, ended);
        let is_old = *files == self.old();
        let is_new = *files == undisturbed.files;
        let names: Vec<_> = files.keys().collect();
        assert!(is_old || is_new, "{args:?}, {fault}: {status}, {names:?}, {err}");
        assert!(status.code().is_some_and(|code| code <= 2), "{args:?}, {fault}: {status}, {err}");
        assert!(!err.contains("panicked"), "{args:?}, {fault}: {err}");
        let has_failed = *status != undisturbed.status;
        assert!(!has_failed || status.code() == Some(2), "{args:?}, {fault}: {status}, {err}");
        assert!(is_new || has_failed, "{args:?}, {fault}: nothing is written, {status}, {err}");
        has_failed
    }
}

#[test]
fn a_file_that_does_not_fit_is_not_written_in_part() {
    for verb in &VERBS {
        let undisturbed = verb.undisturbed();
        // Without the signal, writing fails with EFBIG.
        let fault = "trap '' XFSZ; ulimit -f 0; exec";
        let ended = verb.run(fault, Stdio::null());
        assert!(verb.check(&ended, &undisturbed, fault), "{:?}", verb.args);
        assert!(ended.files == verb.old(), "{:?}", verb.args);
        assert!(ended.err.contains(verb.named), "{:?}: {}", verb.args, ended.err);
        assert!(ended.err.contains("cannot be written"), "{:?}: {}", verb.args, ended.err);
    }
}

#[test]
fn a_verb_that_has_no_numbers_for_files_says_so() {
    let runs = |most: u32| {
        let prepare = format!("ulimit -n {most}; exec \"$0\" --version");
        let mut version = Command::new("sh");
        version.args(["-c", &prepare, env!("CARGO_BIN_EXE_clrsim")]);
        version.output().unwrap().status.success()
    };
    // Fewer, and the program itself is not loaded.
    let least = (3..20).find(|most| runs(*most)).unwrap();
    for verb in &VERBS {
        let undisturbed = verb.undisturbed();
        for most in least..least + 6 {
            let fault = format!("ulimit -n {most}; exec");
            verb.check(&verb.run(&fault, Stdio::null()), &undisturbed, &fault);
        }
    }
}

#[test]
fn an_output_that_takes_nothing_costs_no_file() {
    for verb in &VERBS {
        let undisturbed = verb.undisturbed();
        let full = File::options().write(true).open("/dev/full").unwrap();
        verb.check(&verb.run("exec", full.into()), &undisturbed, "a full output");
        let closed = verb.run("exec >&-;", Stdio::null());
        verb.check(&closed, &undisturbed, "a closed output");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = verb.run("exec", writer.into());
        assert!(!verb.check(&ended, &undisturbed, "a closed pipe"), "{:?}", verb.args);
    }
}

#[test]
fn a_folder_that_takes_no_files_is_named() {
    for args in [
        &["new", "/proc/clrsim.kdl"][..],
        &["generate", "--seed", "7", "-o", "/proc/clrsim.kdl"],
        &["emit", "programs/tail_call.kdl", "-o", "/proc/clrsim"],
        &["gen", "man", "-o", "/proc"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_clrsim")).args(args).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.starts_with("error: /proc/clrsim"), "{args:?}: {err}");
    }
}

/// Calls that a verb makes on its way to a file, and the errors that they can have.
const CALLS: [(&str, &[&str]); 6] = [
    ("openat", &["EMFILE", "EACCES"]),
    ("write", &["ENOSPC", "EIO", "EINTR"]),
    ("fsync", &["EIO"]),
    ("fchmod", &["EPERM"]),
    ("rename,renameat,renameat2,link,linkat", &["EIO", "EXDEV"]),
    ("mkdir", &["ENOSPC"]),
];

/// Returns the shell's command by which one call, by its number, goes wrong. It prints `INJECTED` to the file.
fn one_call(calls: &str, wrong: &str, number: u32, trace: &Path) -> String {
    let trace = trace.display();
    format!("strace -f -qq -o {trace} -e trace={calls} -e inject={calls}:{wrong}:when={number}")
}

/// Each call of each kind fails once.
#[test]
#[ignore = "asks strace"]
fn external_each_call_that_fails_leaves_old_or_new_files() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("trace");
    for verb in &VERBS {
        let undisturbed = verb.undisturbed();
        let mut failed = 0;
        for (calls, errors) in CALLS {
            for error in errors {
                for number in 1.. {
                    let fault = one_call(calls, &format!("error={error}"), number, &trace);
                    let ended = verb.run(&fault, Stdio::null());
                    if !fs::read_to_string(&trace).unwrap().contains("INJECTED") {
                        break;
                    }
                    failed += 1;
                    // Not a call of the tool: the system loads its libraries.
                    let is_loader = ended.status.code() == Some(127);
                    assert!(!is_loader || calls == "openat" && ended.files == verb.old());
                    if !is_loader {
                        verb.check(&ended, &undisturbed, &fault);
                    }
                }
            }
        }
        println!("{:?}: {failed} calls have failed", verb.args);
        assert!(failed > 10, "{:?}", verb.args);
    }
}

/// The process is killed before each call of each kind.
#[test]
#[ignore = "asks strace"]
fn external_a_verb_that_is_killed_leaves_old_or_new_files() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("trace");
    for verb in &VERBS {
        let undisturbed = verb.undisturbed();
        for (calls, _) in CALLS {
            for number in 1.. {
                let fault = one_call(calls, "signal=KILL", number, &trace);
                let mut ended = verb.run(&fault, Stdio::null());
                if !fs::read_to_string(&trace).unwrap().contains("killed by SIGKILL") {
                    break;
                }
                // Files of one command may appear one after another, and a new one may wait for its name.
                ended.files.retain(|name, _| {
                    let end = name.rsplit('/').next().unwrap_or(name);
                    !end.starts_with(".clrsim-")
                });
                for (name, content) in &ended.files {
                    let is_old = verb.old().get(name) == Some(content);
                    let is_new = undisturbed.files.get(name) == Some(content);
                    assert!(is_old || is_new, "{:?}, {fault}: {name}", verb.args);
                }
                for name in verb.old().keys() {
                    assert!(ended.files.contains_key(name), "{:?}, {fault}: {name}", verb.args);
                }
            }
        }
    }
}
