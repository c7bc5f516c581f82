//! `clrsim host` with guests in C++ and in Rust: libraries that the tool loads as a CLR does.

use super::*;
use crate::external::fields::{described, fields};
use crate::external::tool::{Host, folder, guest, sources};

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
#[ignore = "external: needs a C++ compiler"]
fn a_sampler_is_loaded_called_and_explained() {
    let library = guest("sampler", &[]);
    let (code, text) = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]).run();
    assert_eq!(code, 0);
    insta::assert_snapshot!("sampler", text);
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_matrix_has_each_runtime() {
    let library = guest("sampler", &[]);
    let (code, text) = Host::new(&library, "jumps.kdl").args(&["--matrix"]).run();
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!("sampler_matrix", text);
    // This one wants ICorProfilerInfo10, which older runtimes lack.
    let library = guest("misuse", &[]);
    let (code, text) =
        Host::new(&library, "jumps.kdl").args(&["--matrix"]).env("GUEST_MISUSE", "leak").run();
    assert_eq!(code, 1, "{text}");
    insta::assert_snapshot!("leak_matrix", text);
}

/// What a text expects of searches with its own profiler is about another one.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn an_expectation_that_is_not_judged_is_no_success() {
    let library = guest("sampler", &[]);
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("expects.kdl");
    let text = std::fs::read_to_string(sources().join("jumps.kdl")).unwrap();
    let expects = "explore { expect on=\"net8-unix\" { survives } }";
    std::fs::write(&path, format!("{text}\n{expects}\n")).unwrap();
    let host = || Host::new(&library, path.to_str().unwrap());
    let account = host().args(&["--on", "net8-unix"]).object();
    assert_eq!(account["verdict"], "unseen", "{account:#}");
    let allowed = host().args(&["--on", "net8-unix", "--allow", "not-judged"]).object();
    assert_eq!(allowed["verdict"], "clean", "{allowed:#}");
    let elsewhere = host().args(&["--on", "net9-unix"]).object();
    assert_eq!(elsewhere["verdict"], "clean", "{elsewhere:#}");
}

/// Each way to misuse the interface has its verdict, its findings and, of a crash, its place.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn each_misuse_is_named() {
    let library = guest("misuse", &[]);
    let run = |way: &str| {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix", "--timeout", "4"]);
        // Few of the ways walk.
        host.args(&["--allow", "no-walk"]).env("GUEST_MISUSE", way).object()
    };
    for (way, verdict, found) in [
        ("", "clean", &[][..]),
        ("cancel", "refused", &[]),
        ("runs", "threads", &["started-threads"]),
        // It waits for the thread in Shutdown.
        ("waits", "threads", &["started-threads"]),
        ("keeps", "clean", &[]),
        ("leak", "findings", &["leak"]),
        ("after-release", "findings", &["use-after-release"]),
        ("over-release", "findings", &["over-release"]),
        ("behind", "findings", &["wrote-behind"]),
        ("wrong-id", "findings", &["unknown-id"]),
        ("null", "findings", &["null-pointer"]),
        ("wrong-thread", "process-ended", &["process-ended"]),
        ("stop", "clean", &[]),
        ("not-simulated", "not-simulated", &[]),
        ("late-hooks", "clean", &[]),
        ("detach", "clean", &[]),
    ] {
        let account = run(way);
        assert_eq!(account["verdict"], verdict, "{way}: {account:#}");
        assert_eq!(findings(&account), found, "{way}");
    }
    // A walk from the seed reads more than there is.
    let host = Host::new(&guest("hooks", &[]), "jumps.kdl").args(&["--on", "net8-unix"]);
    let account = host.env("GUEST_HOOKS", "6").object();
    assert_eq!(account["verdict"], "process-ended", "{account:#}");
    assert_eq!(findings(&account), ["small-seed", "process-ended"]);
    // The runtime stays suspended, and the other thread waits for that.
    let host = Host::new(&library, "two_threads.kdl").args(&["--on", "net8-unix"]);
    let account = host.env("GUEST_MISUSE", "suspends").object();
    assert_eq!(account["verdict"], "stuck");
    assert!(account["because"].as_str().unwrap().starts_with("all its threads wait"));
    // A crash is a crash on whatever thread.
    let failing = guest("failing_thread", &[]);
    let host = || Host::new(&failing, "two_threads.kdl").env("GUEST_FAILURE", "abort");
    let account = host().args(&["--on", "net8-unix"]).object();
    assert_eq!(account["verdict"], "died", "{account:#}");
    assert_eq!(findings(&account), ["started-threads"]);
    assert!(account["because"].as_str().unwrap().starts_with("SIGABRT in "), "{account:#}");
    assert!(host().args(&["--matrix"]).run().1.contains("  died  "));
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
#[ignore = "external: needs a C++ compiler"]
fn refusals_have_their_reasons() {
    let library = guest("misuse", &[]);
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
    assert_eq!(account["not_simulated"][0]["name"], "Save");
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_end_of_a_process_has_its_place() {
    let library = guest("misuse", &[]);
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

/// A profiler that was detached, or that has refused, is released and unloaded. Of the others only 3.1 releases one when the process
/// ends.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_profiler_is_unloaded_as_a_clr_does() {
    let library = guest("misuse", &[]);
    for (way, runtime, unloads, left) in [
        ("detach", "net8-unix", true, Some(0)),
        ("cancel", "net8-unix", true, Some(0)),
        ("", "net8-unix", false, None),
        ("", "coreclr-3.1-unix", false, Some(0)),
    ] {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", runtime]);
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
        assert_eq!(account["references_left"].as_u64(), left, "{way} {runtime}");
    }
}

/// Hooks of the four kinds come with the client's id, in order; methods that the mapper leaves out have
/// none. A walk in hooks that code calls itself begins at no frame that the runtime knows.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn hooks_come_with_ids() {
    let library = guest("hooks", &[]);
    let printed = |hooks: &str, runtime: &str| {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", runtime, "--allow", "no-walk"]);
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
#[ignore = "external: needs a C++ compiler"]
fn a_hook_in_c_is_noticed() {
    let library = guest("hooks", &[]);
    let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
    let account = host.env("GUEST_HOOKS", "5").object();
    assert_eq!(findings(&account), ["changed-return-value"; 2]);
    assert!(account["printed"].as_str().unwrap().starts_with("no client's id\nenter native"));
}

/// The recorder is a guest in Rust. It needs a thread of its own, which is the verdict.
#[test]
#[ignore = "external: builds the recorder"]
fn the_recorder_is_loaded_and_starts_a_thread() {
    let library = recorder::library();
    let out = folder().join("recorder.folded");
    let settings = format!("mode=sample out={}", out.display());
    let host = || {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "coreclr-3.1-unix"]);
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
#[ignore = "external: needs a C++ compiler"]
fn sanitizers_find_nothing_in_guests() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"];
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let answer = Command::new(compiler).arg("-print-file-name=libasan.so").output();
    let found = answer.map(|answer| String::from_utf8(answer.stdout).unwrap()).unwrap_or_default();
    let preloaded = Path::new(found.trim());
    assert!(preloaded.is_absolute(), "the C++ compiler has an AddressSanitizer of its own");
    for (name, variable, value) in [
        ("sampler", "GUEST_HOOKS", ""),
        ("hooks", "GUEST_HOOKS", "1"),
        ("hooks", "GUEST_HOOKS", "2"),
        ("hooks", "GUEST_HOOKS", "4"),
        ("misuse", "GUEST_MISUSE", "detach"),
    ] {
        let library = guest(name, &flags);
        let host = Host::new(&library, "jumps.kdl").args(&["--on", "net8-unix"]);
        let host = host.env("LD_PRELOAD", found.trim()).env("ASAN_OPTIONS", "detect_leaks=0");
        let host = host.args(&["--allow", "no-walk"]);
        let account = host.env(variable, value).object();
        assert_eq!(account["verdict"], "clean", "{name} {value}: {account:#}");
    }
}

/// The program calls an export of the library, in preemptive mode and with the text's numbers. One that the
/// library does not have is named.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn exports_of_the_library_are_called() {
    let library = guest("exports", &[]);
    let host = |text: &str| Host::new(&library, text).args(&["--on", "net8-unix"]);
    let account = host("exports.kdl").object();
    assert_eq!(account["verdict"], "clean", "{account:#}");
    assert_eq!(account["printed"], "1 4000000000 fedcba9876543210 255 0 7\n0 0 0 0 0 0\n");
    let walks = account["walks"].as_array().unwrap();
    assert_eq!(walks.len(), 2);
    for walk in walks {
        let frames = walk["frames"].as_array().unwrap().iter();
        let places: Vec<_> = frames.map(|frame| frame["place"].as_str().unwrap()).collect();
        assert!(matches!(&places[..], ["App.Load", "App.Main", _]), "{places:?}");
        assert_eq!((&walk["result"], &walk["within"]), (&"S_OK".into(), &"Note".into()));
    }
    let missing = host("missing_export.kdl").object();
    assert_eq!(missing["verdict"], "unloadable", "{missing:#}");
    assert_eq!(missing["because"], "it does not export NoteTwice, which the text calls");
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    {
        let (code, output) = host("missing_export.kdl").args(&["--schedules", "2"]).run();
        assert!(code == 1 && output.contains("it does not export NoteTwice"), "{output}");
        let (code, output) = host("exports.kdl").args(&["--schedules", "2"]).run();
        assert!(code == 0, "{output}");
    }
}

/// Exports get pointers to buffers, and what other exports have written there. What a text does not expect, and what is
/// written behind a buffer, is a finding, once.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn exports_get_buffers_of_the_text() {
    let library = guest("exports", &[]);
    let host = |text: &str| Host::new(&library, text).args(&["--on", "net8-unix"]);
    let account = host("buffers.kdl").object();
    assert_eq!(account["verdict"], "clean", "{account:#}");
    let printed = "a request 1\n42 3 4 5 1 7 8 9 10 11 12\na request 2\n43 3 4 5 1 7 8 9 10 11 4294967296\n1 0 0 0 0 0\n";
    assert_eq!(account["printed"], printed);
    let account = host("wrong_buffers.kdl").object();
    assert_eq!(account["verdict"], "findings", "{account:#}");
    assert_eq!(findings(&account), ["content", "wrote-behind", "content"], "{account:#}");
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    {
        let (code, output) = host("buffers.kdl").args(&["--schedules", "2"]).run();
        assert!(code == 0, "{output}");
        let (code, output) = host("wrong_buffers.kdl").args(&["--schedules", "2"]).run();
        println!("{output}");
        assert!(
            code == 1 && output.contains("after WriteLong small holds 0x1: the text expects 0x2"),
            "{output}"
        );
    }
}

/// A profiler that is loaded for notifications only is refused what changes the program (recorded on 8.0.34, 9.0.23, 10.0.15 and
/// 11.0.0); one whose LoadAsNotificationOnly fails is loaded as any other (8.0.34, 11.0.0). 3.1 does not ask.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_profiler_for_notifications_is_refused_what_changes_the_program() {
    let library = guest("notified", &[]);
    let printed = |runtime: &str, variables: &[&str]| {
        let host = Host::new(&library, "jumps.kdl").args(&["--on", runtime]);
        let host = variables.iter().fold(host, |host, variable| host.env(variable, "1"));
        let account = host.object();
        assert_eq!(account["verdict"], "clean", "{account:#}");
        account["printed"].as_str().unwrap().lines().next().unwrap().to_owned()
    };
    let invalid = "80070057";
    let refused =
        format!("{invalid} {invalid} 00000000 {invalid} {invalid} {invalid} 00000000 80131371 ");
    let changes = "00000000 00000000 00000000 00000000 00000000 8013137c 00000000 80131371 ";
    assert_eq!(printed("net10-unix", &["GUEST_NOTIFIED"]), refused);
    assert_eq!(printed("net10-unix", &[]), changes);
    assert_eq!(printed("net8-unix", &["GUEST_NOTIFIED", "GUEST_FAILS"]), changes);
    assert_eq!(printed("coreclr-3.1-unix", &["GUEST_NOTIFIED"]), changes);
}

/// A profiler that is attached has missed what was before, and is refused what only a start allows (recorded on 3.1.23, 8.0.34,
/// 9.0.23, 10.0.15 and 11.0.0). One that was detached can be attached again.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_profiler_is_attached_to_the_running_process() {
    let library = guest("attached", &[]);
    let host = |text: &str| Host::new(&library, text).args(&["--on", "net8-unix"]);
    let begins = |data: &str| {
        let refused =
            "8013136f 8013136f 8013136f 8013136f 80004005 80004005 8013136f 8013136f 80131373";
        format!("attach {data}\n80131355 {refused}\ncomplete 1\n")
    };
    let account = host("attach.kdl").object();
    assert_eq!(account["verdict"], "clean", "{account:#}");
    let compiles = "compiles 00000000 1\n";
    let printed = begins("hello 5") + compiles + compiles + "Shutdown 2\n";
    assert_eq!(account["printed"], printed);
    let account = host("attach.kdl").env("GUEST_DETACHES", "1").object();
    let once = format!("{compiles}00000000 80131367\ndetached\n");
    assert_eq!(
        account["printed"],
        begins("hello 5") + &once + &begins(" 0") + &once,
        "{account:#}"
    );
    let account = host("attach_refused.kdl").object();
    assert_eq!(account["verdict"], "refused", "{account:#}");
    assert_eq!(account["printed"], "attach refuse 6\n");
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    {
        let (code, output) = host("attach.kdl").args(&["--schedules", "4"]).run();
        assert!(code == 0, "{output}");
        let detaches = host("attach.kdl").env("GUEST_DETACHES", "1");
        let (code, output) = detaches.args(&["--schedules", "4"]).run();
        assert!(code == 0, "{output}");
    }
}

/// What the guest prints was the same in CLRs 8.0.34, 9.0.23, 10.0.15 and 11.0.0, but that the last two open a file for reading anew
/// each time.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_runtimes_library_gives_a_dispenser_of_metadata() {
    let library = guest("dispenser", &[]);
    let printed = |runtime: &str| {
        let account = Host::new(&library, "jumps.kdl").args(&["--on", runtime]).object();
        assert_eq!(account["verdict"], "clean", "{account:#}");
        account["printed"].as_str().unwrap().to_owned()
    };
    let expected = |same: u8, left: u8| {
        format!(
            "another class 80040111\nanother interface 80004002\na dispenser 00000000\n\
             the older interface 00000000\n1 left\nno path 80070057\nan empty path 80070057\n\
             no place 80070057\nno file 80070002\nwriting and not 80070057\n\
             no such interface 80004002\na scope 00000000\nanother 00000000\n\
             for reading 00000000\nthe same 00000000\n0 0 {same}\n\
             a new type: 1 here, 1 there\ntables 00000000\n0 0 {left} 0 left\n0 left\n"
        )
    };
    for (runtime, same) in
        [("net8-unix", 1), ("net9-unix", 1), ("net10-unix", 0), ("net11-unix", 0)]
    {
        assert_eq!(printed(runtime), expected(same, same), "{runtime}");
    }
}

/// What the guest prints was the same in CLRs 8.0.34, 9.0.23, 10.0.15 and 11.0.0.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn rows_of_a_manifest_are_changed() {
    let library = guest("assembly_emit", &[]);
    let account = Host::new(&library, "jumps.kdl").args(&["--on", "net11-unix"]).object();
    assert_eq!(account["verdict"], "clean", "{account:#}");
    assert_eq!(
        account["printed"],
        "assembly 00000000\nassembly 4 key, 8003, Other, 7.6.5.4 de, 101\n\
         less 00000000\nassembly 4 key, 8003, Third, 7.8.5.4 de, 1\nno assembly 80131124\n\
         file 00000000\nfile one.netmodule, 3 bytes, 0\n\
         less 00000000\nfile one.netmodule, 3 bytes, 0\nno file 80131124\n\
         type 00000000\ntype A.B in 23000001, 02000003, 2\n\
         less 00000000\ntype A.B in 23000001, 02000003, 2\nno type 80131124\n\
         resource 00000000\nresource r in 26000001, 10, 2\n\
         less 00000000\nresource r in 26000001, 10, 2\nno resource 80131124\n"
    );
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn what_is_no_profiler_is_said() {
    let text = sources().join("jumps.kdl");
    let host = |library: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
        command.args(["host", "--on", "net8-unix"]).arg(library).arg(&text).output().unwrap()
    };
    let missing = host(&folder().join("missing.so"));
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("missing.so: no such file"));
    let unloadable = host(&text);
    assert_eq!(unloadable.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unloadable.stdout).contains("unloadable: its library cannot"));
    let library = guest("nothing", &[]);
    let nothing = host(&library);
    assert_eq!(nothing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&nothing.stdout).replace("\n  ", " ");
    assert!(said.contains("it does not export DllGetClassObject"), "{said}");
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn every_field_is_described() {
    let library = guest("misuse", &[]);
    let mut printed = BTreeSet::new();
    for way in ["leak", "stop", "not-simulated"] {
        let host = Host::new(&library, "allocates.kdl").args(&["--on", "net8-unix"]);
        fields(&host.env("GUEST_MISUSE", way).object(), &mut printed);
    }
    assert_eq!(printed, described("host"));
}
