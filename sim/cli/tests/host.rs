//! `clrsim host` with guests in C++ and in Rust: libraries that the tool loads as a CLR does.
//!
//! The guests are compiled where there is a compiler; elsewhere the tests say that they were not run.
#![cfg(target_pointer_width = "64")]

#[path = "../src/tests/fields.rs"]
mod fields;
mod recorder;

use fields::{described, fields};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The folder of the guests' sources and texts.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests")
}

/// The folder of the compiled guests.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| TempDir::new().unwrap()).path()
}

/// Says that a test was not run, which is a failure where it must be.
fn skipped(why: &str) {
    assert!(std::env::var_os("CLR_TESTS_COMPLETE").is_none(), "not run: {why}");
    eprintln!("not run: {why}");
}

/// Returns true if the compiler makes code for this process, which may run in an emulator.
fn is_for_this_processor(compiler: &str) -> bool {
    let answer = Command::new(compiler).arg("-dumpmachine").output();
    answer.is_ok_and(|answer| {
        String::from_utf8_lossy(&answer.stdout).starts_with(std::env::consts::ARCH)
    })
}

/// Compiles a guest as a library. Returns `None`, and says so, if there is no compiler.
fn guest(name: &str, flags: &[&str]) -> Option<PathBuf> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if !is_for_this_processor(&compiler) {
        skipped("no C++ compiler for this processor");
        return None;
    }
    let library = TempDir::new_in(folder()).unwrap().keep().join(format!("lib{name}.so"));
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/include");
    let output = Command::new(compiler)
        .args(["-std=c++17", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread"])
        .args(flags)
        .arg("-I")
        .arg(include)
        .arg(sources().join(name).with_extension("cpp"))
        .arg("-o")
        .arg(&library)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(library)
}

/// The tool, with a guest and a text.
struct Host {
    command: Command,
    library: String,
}

impl Host {
    fn new(library: &Path, text: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
        command.arg("host").arg(library).arg(sources().join(text));
        Self { command, library: library.to_string_lossy().into_owned() }
    }

    fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Returns the exit code and what was printed; the library is called LIBRARY.
    fn run(mut self) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command.output().unwrap();
        let errors = String::from_utf8_lossy(&stderr);
        assert_eq!(errors, "");
        let text = String::from_utf8(stdout).unwrap();
        (status.code().unwrap(), text.replace(&self.library, "LIBRARY"))
    }

    /// Returns the exit code and the objects of `--json`.
    fn objects(self) -> (i32, Vec<Value>) {
        let (code, text) = self.args(&["--json"]).run();
        (code, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// Returns the only object of `--json`, whose verdict the exit code agrees with.
    #[track_caller]
    fn object(self) -> Value {
        let (code, objects) = self.objects();
        let [object] = <[Value; 1]>::try_from(objects).unwrap();
        assert_eq!(code == 0, object["verdict"] == "clean", "{object:#}");
        object
    }
}

fn findings(account: &Value) -> Vec<&str> {
    let all = account["findings"].as_array().unwrap();
    all.iter().map(|one| one["finding"].as_str().unwrap()).collect()
}

/// Returns the results of a method's calls, with their numbers.
fn results<'v>(account: &'v Value, method: &str) -> BTreeMap<&'v str, u64> {
    let calls = account["calls"].as_array().unwrap().iter();
    let results = calls
        .filter(|call| call["name"] == method)
        .flat_map(|call| call["results"].as_array().unwrap());
    results.map(|one| (one["name"].as_str().unwrap(), one["count"].as_u64().unwrap())).collect()
}

#[test]
fn a_sampler_is_loaded_called_and_explained() {
    let Some(library) = guest("sampler", &[]) else { return };
    let (code, text) = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]).run();
    assert_eq!(code, 0);
    insta::assert_snapshot!("sampler", text);
}

#[test]
fn the_matrix_has_each_runtime() {
    let Some(library) = guest("sampler", &[]) else { return };
    let (code, text) = Host::new(&library, "jumps.kdl").args(&["--matrix"]).run();
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!("sampler_matrix", text);
    // This one wants ICorProfilerInfo10, which older runtimes lack.
    let Some(library) = guest("misuse", &[]) else { return };
    let (code, text) =
        Host::new(&library, "jumps.kdl").args(&["--matrix"]).env("GUEST_MISUSE", "leak").run();
    assert_eq!(code, 1, "{text}");
    insta::assert_snapshot!("leak_matrix", text);
}

/// Each way to misuse the interface has its verdict, its findings and, of a crash, its place.
#[test]
fn each_misuse_is_named() {
    let Some(library) = guest("misuse", &[]) else { return };
    let run = |way: &str| {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix", "--timeout", "4"]);
        host.env("GUEST_MISUSE", way).object()
    };
    for (way, verdict, found) in [
        ("", "clean", &[][..]),
        ("cancel", "refused", &[]),
        ("runs", "threads", &["started-threads"]),
        // It waits for the thread in Shutdown.
        ("waits", "threads", &["started-threads"]),
        ("leak", "findings", &["leak"]),
        ("after-release", "findings", &["use-after-release"]),
        ("over-release", "findings", &["over-release"]),
        ("behind", "findings", &["wrote-behind"]),
        ("wrong-id", "findings", &["unknown-id"]),
        ("null", "findings", &["null-pointer", "leak"]),
        ("wrong-thread", "process-ended", &["process-ended"]),
        ("stop", "clean", &[]),
        ("not-simulated", "clean", &[]),
        ("late-hooks", "clean", &[]),
        ("detach", "clean", &[]),
    ] {
        let account = run(way);
        assert_eq!(account["verdict"], verdict, "{way}: {account:#}");
        assert_eq!(findings(&account), found, "{way}");
    }
    // A walk from the seed reads more than there is.
    if let Some(library) = guest("hooks", &[]) {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
        let account = host.env("GUEST_HOOKS", "6").object();
        assert_eq!(account["verdict"], "process-ended", "{account:#}");
        assert_eq!(findings(&account), ["small-seed", "process-ended"]);
    }
    // The runtime stays suspended, and the other thread waits for that.
    let host = Host::new(&library, "two_threads.kdl").args(&["--on", "net8-unix"]);
    let account = host.env("GUEST_MISUSE", "suspends").object();
    assert_eq!(account["verdict"], "stuck");
    assert!(account["because"].as_str().unwrap().starts_with("all its threads wait"));
    // A thread that is over before anybody looks is noticed by its call.
    let account = run("joins");
    assert_eq!(account["verdict"], "threads");
    assert!(findings(&account).contains(&"wrong-thread"), "{account:#}");
    assert_eq!(
        results(&account, "SetEventMask"),
        BTreeMap::from([("S_OK", 1), ("CLRSIM_E_WRONG_THREAD", 1)])
    );
}

#[test]
fn refusals_have_their_reasons() {
    let Some(library) = guest("misuse", &[]) else { return };
    let run = |way: &str| {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
        host.env("GUEST_MISUSE", way).object()
    };
    let account = run("late-hooks");
    let refused = &account["refusals"][0];
    assert_eq!(refused["result"], "CORPROF_E_CALL_ONLY_FROM_INIT");
    assert_eq!(refused["why"], "only Initialize may call the method");
    let refused = |way: &str| {
        let account = run(way);
        let all = account["refusals"].as_array().unwrap().iter();
        all.map(|one| one["result"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Before the runtime has started (C-002).
    assert_eq!(
        refused("early"),
        ["CORPROF_E_STACKSNAPSHOT_UNSAFE", "CORPROF_E_RUNTIME_UNINITIALIZED"]
    );
    assert_eq!(refused("detach"), [""; 0]);
    assert_eq!(refused("flags-detach"), ["CORPROF_E_IMMUTABLE_FLAGS_SET"]);
    assert_eq!(refused("hooks-detach"), ["CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT"]);
    let account = run("stop");
    let refused = &account["refusals"][0];
    assert_eq!(refused["result"], "CORPROF_E_STACKSNAPSHOT_ABORTED");
    assert_eq!(refused["clauses"][0], "C-105");
    let account = run("not-simulated");
    assert_eq!(account["not_simulated"][0]["name"], "ForceGC");
}

#[test]
fn the_end_of_a_process_has_its_place() {
    let Some(library) = guest("misuse", &[]) else { return };
    let ended = |way: &str| {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix", "--timeout", "2"]);
        let account = host.env("GUEST_MISUSE", way).object();
        [&account["verdict"], &account["because"]].map(|text| text.as_str().unwrap().to_owned())
    };
    assert_eq!(ended("exit"), ["died", "an exit with the code 7 in Initialize"]);
    assert_eq!(ended("leaves"), ["died", "it called exit in Initialize"]);
    assert_eq!(ended("hang"), ["hung", "it did not return from JITCompilationStarted"]);
    if cfg!(unix) {
        assert_eq!(ended("abort"), ["died", "SIGABRT in Initialize"]);
        assert_eq!(ended("crash"), ["died", "SIGSEGV in JITCompilationStarted"]);
        assert_eq!(
            ended("crash-in-walk"),
            [
                "died",
                "SIGSEGV in JITCompilationStarted, in it DoStackSnapshot, in it StackSnapshotCallback"
            ]
        );
    }
}

/// A profiler that was detached, or that has refused, is released and unloaded.
#[test]
fn a_profiler_is_unloaded_as_a_clr_does() {
    let Some(library) = guest("misuse", &[]) else { return };
    for (way, unloads) in [("detach", true), ("cancel", true), ("", false)] {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
        let account = host.env("GUEST_MISUSE", way).object();
        let steps = account["steps"].as_array().unwrap();
        let unloaded = steps.last().unwrap()["name"] == "FreeLibrary";
        assert_eq!(unloaded, unloads, "{way}");
        let names: Vec<_> = account["callbacks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names.contains(&"Shutdown"), way.is_empty(), "{way}");
        assert_eq!(names.contains(&"ProfilerDetachSucceeded"), way == "detach", "{way}");
        // The guest's own reference is the factory's, which has released it.
        assert_eq!(account["references_left"], 0, "{way}");
    }
}

/// Hooks of the four kinds come with the client's id, in order; methods that the mapper leaves out have
/// none. A walk in hooks that code calls itself begins at no frame that the runtime knows.
#[test]
fn hooks_come_with_ids() {
    let Some(library) = guest("hooks", &[]) else { return };
    let printed = |hooks: &str, runtime: &str| {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", runtime]);
        let account = host.env("GUEST_HOOKS", hooks).object();
        assert_eq!(account["verdict"], "clean", "{account:#}");
        account["printed"].as_str().unwrap().to_owned()
    };
    let slow = "\
enter App.Main 00000000: App.Main native
enter App.Load 00000000: App.Load App.Main native
tailcall App.Load 00000000: App.Load App.Main native
enter App.Work 00000000: App.Work App.Main native
leave App.Work 00000000: App.Work App.Main native
leave App.Main 00000000: App.Main native
";
    for runtime in ["net8-unix", "coreclr-3.1-windows"] {
        assert_eq!(printed("1", runtime), slow, "{runtime}");
        assert_eq!(printed("2", runtime), slow, "{runtime}");
        let with_info: String = slow
            .lines()
            .map(|line| match line.split_once(" 00000000:") {
                Some((front, rest)) if front.starts_with("enter") => {
                    format!("{front} 8007007a 24 00000000:{rest}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        assert_eq!(printed("4", runtime), with_info, "{runtime}");
    }
    if cfg!(target_arch = "x86_64") {
        let fast = "enter 1 80004005:\nenter 1 80004005:\ntailcall 1 80004005:\nenter 1 80004005:\nleave 1 80004005:\nleave 1 80004005:\n";
        assert_eq!(printed("3", "net8-unix"), fast);
    }
}

/// On Unix the argument of a hook for entering is in r14, and hooks keep the return value.
#[cfg(all(target_arch = "x86_64", unix))]
#[test]
fn a_hook_in_c_is_noticed() {
    let Some(library) = guest("hooks", &[]) else { return };
    let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
    let account = host.env("GUEST_HOOKS", "5").object();
    assert_eq!(findings(&account), ["changed-return-value"; 2]);
    assert!(account["printed"].as_str().unwrap().starts_with("no client's id\nenter native"));
}

/// The recorder is a guest in Rust. It needs a thread of its own, which is the verdict.
#[test]
fn the_recorder_is_loaded_and_starts_a_thread() {
    let Some(library) = recorder::library() else {
        return skipped("cargo of the build does not run here");
    };
    let out = folder().join("recorder.folded");
    let settings = format!("mode=sample out={}", out.display());
    let host = || {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
        host.env("CLR_RECORDER", &settings)
    };
    // It makes objects of its own class alone.
    let account = host().object();
    assert_eq!(account["verdict"], "refused");
    assert_eq!(
        account["because"],
        "DllGetClassObject: CLASS_E_CLASSNOTAVAILABLE: --clsid names the class"
    );
    let account = host().args(&["--clsid", recorder::CLASS]).object();
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        assert_eq!(account["verdict"], "threads", "{account:#}");
        assert_eq!(account["references_left"], 0);
        assert_eq!(results(&account, "GetCodeInfo4"), BTreeMap::from([("S_OK", 1)]));
    }
}

/// The sanitizers' libraries have to be in the process before the guest.
#[cfg(target_os = "linux")]
#[test]
fn sanitizers_find_nothing_in_guests() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"];
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let answer = Command::new(compiler).arg("-print-file-name=libasan.so").output();
    let found = answer.map(|answer| String::from_utf8(answer.stdout).unwrap()).unwrap_or_default();
    let preloaded = Path::new(found.trim());
    if !preloaded.is_absolute() {
        return skipped("the C++ compiler has no AddressSanitizer of its own");
    }
    for (name, variable, value) in [
        ("sampler", "GUEST_HOOKS", ""),
        ("hooks", "GUEST_HOOKS", "1"),
        ("hooks", "GUEST_HOOKS", "2"),
        ("hooks", "GUEST_HOOKS", "4"),
        ("misuse", "GUEST_MISUSE", "detach"),
    ] {
        let Some(library) = guest(name, &flags) else { return };
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
        let host = host.env("LD_PRELOAD", found.trim()).env("ASAN_OPTIONS", "detect_leaks=0");
        let account = host.env(variable, value).object();
        assert_eq!(account["verdict"], "clean", "{name} {value}: {account:#}");
    }
}

/// A profiler with a thread of its own, under the scheduler: the right one survives, and of one with a
/// mistake the first failure comes with its story and repeats.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[test]
fn histories_of_a_profiler_with_threads_are_searched() {
    let search = |mistake: &str| {
        let library = guest("thread_sampler", &[&format!("-DMISTAKE={mistake}")])?;
        let host = Host::new(&library, "threads.kdl");
        Some(host.args(&["--on", "net8-unix", "--schedules", "200"]))
    };
    let Some(right) = search("RIGHT") else { return };
    assert_eq!(right.run().0, 0);
    let (code, output) = search("LOCK_IN_THREAD_DESTROYED").unwrap().run();
    assert_eq!(code, 1, "{output}");
    // The numbers depend on the compiler's library.
    for line in [
        "deadlock: profiler's lock 1, thread store",
        "    thread 1 of the profiler waits for the thread store, which is owned by other",
        "    owns the profiler's lock \"mutex 1\"",
        "  H-05: ThreadDestroyed waits for a walker that waits for it",
        "  again: clrsim host LIBRARY ",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    let lost = search("NOTIFY_WITHOUT_LOCK").unwrap().args(&["--seed", "1"]).object();
    assert_eq!(lost["outcomes"][1]["end"], "lost wake-up", "{lost:#}");
    assert_eq!(lost["outcomes"][1]["repeats"], true);
    let mut printed = BTreeSet::new();
    fields(&lost, &mut printed);
    assert_eq!(printed, described("host --schedules"));
}

#[test]
fn what_is_no_profiler_is_said() {
    let text = sources().join("jumps.kdl");
    let host = |library: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
        command.args(["host", "--on", "net8-unix"]).arg(library).arg(&text).output().unwrap()
    };
    let missing = host(&folder().join("missing.so"));
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("missing.so: entity not found"));
    let unloadable = host(&text);
    assert_eq!(unloadable.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unloadable.stdout).contains("unloadable: its library cannot"));
    let Some(library) = guest("nothing", &[]) else { return };
    let nothing = host(&library);
    assert_eq!(nothing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&nothing.stdout).replace("\n  ", " ");
    assert!(said.contains("it does not export DllGetClassObject"), "{said}");
}

#[test]
fn every_field_is_described() {
    let Some(library) = guest("misuse", &[]) else { return };
    let mut printed = BTreeSet::new();
    for way in ["leak", "stop", "not-simulated"] {
        let host = Host::new(&library, "allocates.kdl").args(&["--on", "net8-unix"]);
        fields(&host.env("GUEST_MISUSE", way).object(), &mut printed);
    }
    assert_eq!(printed, described("host"));
}
