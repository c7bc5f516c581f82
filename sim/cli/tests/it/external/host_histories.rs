//! `clrsim host --schedules` and `--replay`: interleavings of guests with threads of their own.

use super::fields::{described, fields};
use super::tool::{self, Host, guest};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A search of a guest's interleavings.
fn search(library: &Path, failure: &str, histories: &str) -> Host {
    Host::new(library, "two_threads.kdl")
        .args(&["--on", "net8-unix", "--schedules", histories, "--timeout", "3"])
        .env("GUEST_FAILURE", failure)
}

fn replay(library: &Path, failure: &str, name: &str) -> Host {
    Host::new(library, "two_threads.kdl").args(&["--replay", name]).env("GUEST_FAILURE", failure)
}

/// Returns the outcomes that fail, by their ends.
fn failures(found: &Value) -> Vec<&str> {
    let outcomes = found["outcomes"].as_array().unwrap();
    outcomes.iter().map(|it| it["end"].as_str().unwrap()).filter(|end| *end != "ends").collect()
}

/// Returns the name of the first failure's interleaving.
#[track_caller]
fn name(found: &Value) -> String {
    let outcomes = found["outcomes"].as_array().unwrap();
    let failed = outcomes.iter().find(|it| it["end"] != "ends").expect("a failure");
    failed["replay"].as_str().unwrap().to_owned()
}

/// The source of the guest.
const SOURCE: &str = include_str!("../../guests/failing_thread.cpp");

/// A way to fail, its verdict, and the frames from the failure on: a name, or a method of the guest and the
/// code of its line.
type Failure = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const WORK: &str = "guest::Failing::work";
const FAILURES: [Failure; 6] = [
    (
        "unpublished",
        "failed: SIGSEGV in guest::Failing::use",
        &[("guest::Failing::use", "*made += 1"), (WORK, "use();")],
    ),
    ("throw", "failed: std::terminate in guest::Failing::work", &[(WORK, "throw std::")]),
    ("abort", "failed: SIGABRT in guest::Failing::work", &[("abort", ""), (WORK, "std::abort()")]),
    ("exit", "failed: ends the process by exit", &[("exit", ""), (WORK, "std::exit(7)")]),
    (
        "overflow",
        "failed: SIGSEGV in guest::Failing::overflow",
        &[("guest::Failing::overflow", "int overflow(")],
    ),
    (
        "spin",
        "failed: the profiler has left the simulation: it has not given back control: it runs on, in guest::Failing::spin",
        &[("guest::Failing::spin", "for (;;)"), (WORK, "spin();")],
    ),
];

/// Returns frames as stories print them.
fn stack(frames: &[(&str, &str)]) -> String {
    let frame = |(name, code): &(&str, &str)| {
        if code.is_empty() {
            return (*name).to_owned();
        }
        let line = SOURCE.lines().position(|line| line.contains(code)).unwrap() + 1;
        format!("{name} (failing_thread.cpp:{line})")
    };
    frames.iter().map(frame).collect::<Vec<_>>().join(" < ")
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn each_failure_has_its_verdict_and_its_stack() {
    let library = guest("failing_thread", &[]);
    assert_eq!(search(&library, "none", "40").run().0, 0);
    for (failure, verdict, frames) in FAILURES {
        // Each such interleaving takes seconds.
        let histories = if failure == "spin" { "1" } else { "40" };
        let (code, objects) = search(&library, failure, histories).objects();
        assert_eq!(code, 1, "{failure}");
        assert_eq!(failures(&objects[0]), [verdict], "{failure}: {:#}", objects[0]);
        let failed =
            objects[0]["outcomes"].as_array().unwrap().iter().find(|it| it["end"] != "ends");
        let story = failed.unwrap()["failed"]["story"].to_string();
        assert!(story.contains(&stack(frames)), "{failure}: {}: {story}", stack(frames));
        assert_eq!(failed.unwrap()["repeats"], true, "{failure}");
    }
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn mistakes_without_a_verdict_are_failures() {
    let library = guest("failing_thread", &[]);
    for (failure, end, finding) in [
        ("leak", "findings: references to ICorProfilerThreadEnum are left", "leak"),
        ("released", "was called on object 1, which had been released", "use-after-release"),
    ] {
        let (code, objects) = search(&library, failure, "40").objects();
        assert_eq!(code, 1, "{failure}");
        let [found] = failures(&objects[0])[..] else { panic!("{:#}", objects[0]) };
        assert!(found.contains(end), "{found}");
        let (code, replayed) = replay(&library, failure, &name(&objects[0])).objects();
        assert_eq!(code, 1);
        assert_eq!(replayed[0]["findings"][0]["finding"], finding, "{:#}", replayed[0]);
    }
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_result_does_not_depend_on_the_number_of_processes() {
    let library = guest("failing_thread", &[]);
    for strategy in ["random", "pct"] {
        let found = |jobs| {
            search(&library, "unpublished", "60")
                .args(&["--strategy", strategy, "--jobs", jobs, "--first", "7"])
                .objects()
        };
        let one = found("1");
        assert_eq!(one.1[0]["outcomes"].as_array().unwrap().len(), 2, "{:#}", one.1[0]);
        assert_eq!(one, found("3"), "{strategy}");
    }
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn searches_that_learn_go_from_history_to_history() {
    let library = guest("failing_thread", &[]);
    let found = |strategy: &[&str]| {
        let mut objects = search(&library, "none", "5000").args(strategy).objects().1;
        objects.remove(0)
    };
    let all = found(&["--strategy", "exhaustive", "--preemptions", "0"]);
    assert_eq!(all["everything"], true, "{all:#}");
    let histories = all["schedules"].as_u64().unwrap();
    assert!((2..5000).contains(&histories), "{histories}");
    let guided = |seed| {
        let args = ["--strategy", "guided", "--seed", seed];
        search(&library, "unpublished", "40").args(&args).objects()
    };
    assert_eq!(guided("1"), guided("1"));
}

/// A profiler with a thread of its own, under the scheduler: the right one survives, and of one with a
/// mistake the first failure comes with its story and repeats.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[test]
#[ignore = "external: needs a C++ compiler"]
fn histories_of_a_profiler_with_threads_are_searched() {
    let search = |mistake: &str| {
        let library = guest("thread_sampler", &[&format!("-DMISTAKE={mistake}")]);
        let host = Host::new(&library, "threads.kdl");
        host.args(&["--on", "net8-unix", "--schedules", "200"])
    };
    let right = search("RIGHT");
    assert_eq!(right.run().0, 0);
    let (code, output) = search("WAIT_WITH_LOCK").run();
    assert_eq!(code, 1, "{output}");
    // The numbers depend on the compiler's library.
    for line in [
        "deadlock: profiler's lock 1, profiler's lock 2",
        "    thread 1 of the profiler waits for the profiler's lock \"mutex 2\", which is owned by other",
        "    owns the profiler's lock \"mutex 2\"",
        "    owns the thread store and the profiler's lock \"mutex 1\"",
        "  H-05: ThreadDestroyed waits for a walker that waits for it",
        "  again: clrsim host LIBRARY ",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    let lost = search("NOTIFY_WITHOUT_LOCK").args(&["--seed", "1"]).object();
    assert_eq!(lost["outcomes"][1]["end"], "lost wake-up", "{lost:#}");
    assert_eq!(lost["outcomes"][1]["repeats"], true);
}

/// A thread samples all others; ThreadDestroyed waits for it with a lock that the walks' callback takes.
fn sampler() -> std::path::PathBuf {
    guest("thread_sampler", &["-DMISTAKE=WAIT_WITH_LOCK"])
}

/// One of two mistakes with the same verdict does not hide the other; each story has the thread that hangs with it.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn failures_at_different_places_are_told_apart() {
    let library = guest("failing_thread", &[]);
    let found = search(&library, "waits", "60").objects().1.remove(0);
    assert_eq!(failures(&found), ["lost wake-up"; 2]);
    let (_, told) = search(&library, "waits", "60").run();
    for part in ["waits_early", "waits_late", "waits for the end of", "Shutdown"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_history_is_replayed_explained_and_drawn() {
    let library = sampler();
    let mut printed = BTreeSet::new();
    let host = |args: &[&str]| Host::new(&library, "threads.kdl").args(args);
    let found = host(&["--on", "net8-unix", "--schedules", "200"]).objects().1.remove(0);
    fields(&found, &mut printed);
    // One that is not loaded has what was not looked at.
    let nothing = Host::new(&guest("nothing", &[]), "threads.kdl");
    let unseen = nothing.args(&["--on", "net8-unix", "--schedules", "1"]).objects().1.remove(0);
    fields(&unseen, &mut printed);
    let left = search(&guest("failing_thread", &[]), "left", "40").objects().1.remove(0);
    fields(&left, &mut printed);
    assert_eq!(printed, described("host --schedules"));
    let name = name(&found);
    let (code, mut replayed) = host(&["--replay", &name]).objects();
    let replayed = replayed.remove(0);
    assert_eq!(code, 1);
    assert_eq!(replayed["end"], "deadlock: profiler's lock 1, profiler's lock 2");
    assert_eq!(
        (&replayed["library_changed"], &replayed["text_edited"], &replayed["strayed"]),
        (&Value::Bool(false), &Value::Bool(false), &Value::Bool(false))
    );
    let mut printed = BTreeSet::new();
    fields(&replayed, &mut printed);
    // Interleavings that end well have names, too.
    let walking = (0..20).map(|first: u32| {
        let args = ["--on", "net8-unix", "--schedules", "1", "--first", &first.to_string()];
        host(&args).objects().1.remove(0)["outcomes"][0]["replay"].as_str().unwrap().to_owned()
    });
    let mut walking = walking.map(|name| (host(&["--replay", &name]).objects().1.remove(0), name));
    let walks = |(replayed, _): &(Value, String)| {
        let mut walks = replayed["walks"].as_array().unwrap().iter();
        replayed["end"] == "ends" && walks.any(|walk| walk["frames"] != Value::Array(Vec::new()))
    };
    let (walked, walking) = walking.find(walks).expect("an interleaving with walks");
    fields(&walked, &mut printed);
    printed.insert("finding".to_owned());
    assert_eq!(printed, described("host --replay"));
    let (code, story) = host(&["--replay", &walking]).run();
    assert_eq!(code, 0, "{story}");
    for line in ["ends well", "walks", "in no callback, without a seed", "App."] {
        assert!(story.contains(line), "{line}: {story}");
    }
    // The runtime may be said, and has to be the one in the name.
    let (_, also) = host(&["--replay", &name, "--on", "net8-unix,net9-unix"]).objects();
    assert_eq!(also[0]["end"], replayed["end"]);
    let (code, _) = host(&["--replay", &name, "--on", "net9-unix"]).noted();
    assert_eq!(code, 2);
    let (_, drawn) = host(&["--replay", &name, "--draw"]).run();
    let waits = "waits for the profiler's lock \"mutex 2\", which is owned by ┄▷ other";
    assert!(drawn.contains(waits), "{drawn}");
    let (code, page) = page_of(&library, &name);
    assert_eq!(code, Some(1));
    assert!(page.contains("guest::Sampler::ThreadDestroyed"), "the stack is in the last turn");
}

/// Draws an interleaving of a guest. Returns the exit code and the page.
fn page_of(library: &Path, name: &str) -> (Option<i32>, String) {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("history.html");
    let mut drawing = Command::new(env!("CARGO_BIN_EXE_clrsim"));
    drawing.arg("host").arg(library).arg(tool::sources().join("threads.kdl"));
    let drawn = drawing.args(["--replay", name, "--html"]).arg(&page).output().unwrap();
    (drawn.status.code(), std::fs::read_to_string(page).unwrap())
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_guests_refused_call_has_its_target_and_its_reason() {
    let library = guest("thread_sampler", &["-DMISTAKE=WITHOUT_SUSPENSION"]);
    let found = Host::new(&library, "threads.kdl")
        .args(&["--on", "net8-unix", "--schedules", "1"])
        .objects();
    let name = found.1[0]["outcomes"][0]["replay"].as_str().unwrap().to_owned();
    let (code, page) = page_of(&library, &name);
    assert_eq!(code, Some(0));
    for words in [
        "\"calls DoStackSnapshot of main\"",
        "\"DoStackSnapshot: E_NOTIMPL\"",
        "\"refused: no other thread can be walked here unless the profiler has suspended the runtime [C-019]\"",
        "\"thread 1 of the profiler\"",
        "\"takes the profiler's lock \\\"mutex 1\\\"\"",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

/// The first Ctrl-C ends a search with what was found so far and the way to go on.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn ctrl_c_ends_a_search_with_what_was_found() {
    use std::os::unix::process::CommandExt as _;
    let library = sampler();
    for jobs in ["1", "2"] {
        let child = Command::new(env!("CARGO_BIN_EXE_clrsim"))
            .arg("host")
            .arg(&library)
            .arg(tool::sources().join("threads.kdl"))
            .args(["--on", "net8-unix", "--schedules", "4000000000", "--seed", "7", "--jobs", jobs])
            .stdout(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_secs(3));
        // As a terminal does: to the processes of all interleavings.
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
        let answer = child.wait_with_output().unwrap();
        let out = String::from_utf8(answer.stdout).unwrap();
        assert_eq!(answer.status.code(), Some(130), "{out}");
        assert!(out.contains("  stopped: interrupted\n"), "{out}");
        assert!(out.contains("deadlock: profiler's lock 1, profiler's lock 2"), "{out}");
        let go_on = out.lines().find_map(|line| line.split_once("to go on: clrsim ")).unwrap().1;
        let words: Vec<_> = go_on.split(' ').collect();
        let after = |flag: &str| {
            let at = words.iter().position(|word| *word == flag).unwrap();
            words[at + 1].parse::<u64>().unwrap()
        };
        assert_eq!((after("--seed"), after("--jobs")), (7, jobs.parse().unwrap()));
        assert!(after("--first") > 0, "{go_on}");
        assert_eq!(after("--first") + after("--schedules"), 4_000_000_000);
        // The printed command is one, with fewer interleavings.
        let (go_on, _) = go_on.rsplit_once(' ').unwrap();
        let mut again = Command::new(env!("CARGO_BIN_EXE_clrsim"));
        let again = again.args(go_on.split(' ')).arg("3").output().unwrap();
        let again = String::from_utf8(again.stdout).unwrap();
        assert!(again.contains(" 3 interleavings from "), "{again}");
    }
}

/// A name works with another build of the guest, and a note says that it is another one.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_changed_guest_is_noted() {
    let library = sampler();
    let host = |library: &Path, args: &[&str]| Host::new(library, "threads.kdl").args(args);
    let found = host(&library, &["--on", "net8-unix", "--schedules", "200"]).objects().1.remove(0);
    let flags = ["-DMISTAKE=WAIT_WITH_LOCK", "-O2"];
    let other = guest("thread_sampler", &flags);
    let (code, replayed) = host(&other, &["--replay", &name(&found), "--json"]).noted();
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_eq!((code, &replayed["library_changed"]), (1, &Value::Bool(true)));
    assert_eq!(replayed["end"], "deadlock: profiler's lock 1, profiler's lock 2");
    let right = guest("thread_sampler", &["-DMISTAKE=RIGHT"]);
    let (_, replayed) = host(&right, &["--replay", &name(&found), "--json"]).noted();
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    assert_ne!(replayed["end"], "deadlock: profiler's lock 1, profiler's lock 2");
}

#[test]
#[ignore = "external: needs a C++ compiler, and gdb"]
fn a_debugger_sees_the_threads_where_the_history_ends() {
    let library = sampler();
    let host = |args: &[&str]| Host::new(&library, "threads.kdl").args(args);
    let found = host(&["--on", "net8-unix", "--schedules", "200"]).objects().1.remove(0);
    let (_, seen) = host(&["--replay", &name(&found), "--gdb", "thread apply all bt"]).noted();
    assert!(seen.contains("guest::Sampler::ThreadDestroyed"), "{seen}");
    assert!(seen.contains("guest::Sampler::sample"), "{seen}");
}

/// Returns the path of a sanitizer's library, which has to be in the process before the guest.
fn sanitizer(name: &str) -> String {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let answer = Command::new(compiler).arg(format!("-print-file-name={name}")).output().unwrap();
    let found = String::from_utf8(answer.stdout).unwrap().trim().to_owned();
    assert!(Path::new(&found).is_absolute(), "the C++ compiler has sanitizers of its own");
    found
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn sanitizers_find_nothing_of_the_scheduler() {
    for (flag, library, histories, options) in [
        ("-fsanitize=address,undefined", "libasan.so", "40", "detect_leaks=0"),
        ("-fsanitize=thread", "libtsan.so", "6", "halt_on_error=1"),
    ] {
        let preloaded = sanitizer(library);
        let found = |mistake: &str| {
            let mistake = format!("-DMISTAKE={mistake}");
            let flags = [flag, "-fno-sanitize=vptr", "-fno-sanitize-recover=all", "-O1", &mistake];
            let library = guest("thread_sampler", &flags);
            let host = Host::new(&library, "threads.kdl");
            let host = host.args(&["--on", "net8-unix", "--schedules", histories]);
            let host = host.env("LD_PRELOAD", &preloaded).env("ASAN_OPTIONS", options);
            host.env("TSAN_OPTIONS", options).objects().1.remove(0)
        };
        let right = found("RIGHT");
        assert_eq!(failures(&right), Vec::<&str>::new(), "{library}: {right:#}");
        // The flag is a data race, whatever the order of the threads.
        let racy = found("NOTIFY_WITHOUT_LOCK");
        let found_it = "the profiler ended its process with 66";
        assert_eq!(failures(&racy).contains(&found_it), library == "libtsan.so", "{racy:#}");
    }
}

/// A text says that a broken rule is a failure, and that each instruction is a switch point.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_text_says_what_fails_a_history() {
    let library = guest("thread_sampler", &["-DMISTAKE=LOG_WHILE_SUSPENDED"]);
    let folder = TempDir::new().unwrap();
    let text = std::fs::read_to_string(tool::sources().join("threads.kdl")).unwrap();
    let search = |explore: &str| {
        let path = folder.path().join("text.kdl");
        std::fs::write(&path, format!("{text}\n{explore}\n")).unwrap();
        let host = Host::new(&library, path.to_str().unwrap());
        host.args(&["--on", "net8-unix", "--schedules", "40"]).objects().1.remove(0)
    };
    let harmless = search("");
    assert_eq!(failures(&harmless), Vec::<&str>::new());
    let broken = &harmless["broken"][0];
    assert_eq!(broken["rule"], "lock-while-suspended", "{harmless:#}");
    assert!(broken["count"].as_u64().is_some_and(|count| 0 < count && count <= 40));
    let rules = search("explore rules=#true");
    assert_eq!(rules["broken"].as_array().map(Vec::len), Some(0), "{rules:#}");
    assert_eq!(failures(&rules), ["rule broken: LockWhileSuspended"]);
    let instructions = search("explore instructions=#true");
    assert_eq!(failures(&instructions), Vec::<&str>::new());
    let expects = search("explore { expect on=\"net8-unix\" { survives } }");
    assert_eq!(expects["coverage"]["unseen"][0]["allow"], "not-judged", "{expects:#}");
    let elsewhere = search("explore { expect on=\"net8-windows\" { survives } }");
    assert_eq!(elsewhere["coverage"]["unseen"].as_array().map(Vec::len), Some(0), "{elsewhere:#}");
    let digest = |found: &Value| found["outcomes"][0]["replay"].as_str().unwrap().len();
    assert!(digest(&instructions) > digest(&search("")), "there are more turns");
}

/// The library and the text that the chapter on C++ profilers begins its search with.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_example_of_the_chapter_has_its_deadlock() {
    let chapter = include_str!("../../../../src/book/cpp_profiler.md");
    let text = include_str!("../../../../host/example/deadlock.kdl");
    assert!(chapter.contains(&format!("```kdl\n{text}```")), "{text}");
    let library = guest("../../../host/example/deadlock", &[]);
    let host = Host::new(&library, "../../../host/example/deadlock.kdl");
    let (code, objects) = host.args(&["--on", "net8-unix", "--schedules", "100"]).objects();
    assert_eq!(code, 1);
    assert_eq!(failures(&objects[0]), ["deadlock: profiler's lock 1, suspended runtime"]);
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_search_names_rules_that_are_broken_without_harm() {
    let library = guest("thread_sampler", &["-DMISTAKE=LOG_WHILE_SUSPENDED"]);
    let host = Host::new(&library, "threads.kdl").args(&["--on", "net8-unix", "--schedules", "40"]);
    let (code, out) = host.run();
    assert_eq!(code, 0);
    assert!(out.contains("break a rule without harm: no lock may be taken while"), "{out}");
    assert!(out.contains("with `explore rules=#true` in the text these are failures"), "{out}");
    let library = guest("failing_thread", &[]);
    let (code, out) = search(&library, "none", "10").run();
    assert!(code == 0 && !out.contains("rule"), "{out}");
}

/// An interleaving does not fail by a thread that waits for ever, if nothing waits for it: the search says so.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_thread_that_is_left_waiting_is_named() {
    let library = guest("failing_thread", &[]);
    let what = "a notification of condition 0, which came when no thread waited";
    let (code, out) = search(&library, "left", "40").run();
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains(&format!("end while thread 1 of the profiler still waits for {what}")),
        "{out}"
    );
    let (_, found) = search(&library, "left", "40").objects();
    let left = found[0]["waiting"].as_array().unwrap();
    let late = left.iter().find(|it| it["waits_for"] == what).expect("it waits");
    let (code, replayed) = replay(&library, "left", late["replay"].as_str().unwrap()).run();
    let words = replayed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code == 0 && words.contains(&format!("still waited for {what}")), "{replayed}");
    assert_eq!(
        search(&library, "none", "40").objects().1[0]["waiting"].as_array().unwrap().len(),
        0
    );
}

/// A profiler that is loaded by its class alone: the commands name it.
#[test]
#[ignore = "external: needs a C++ compiler"]
fn the_class_is_named_where_it_is_needed() {
    let library = guest("failing_thread", &["-DCLASS_IS_CHECKED"]);
    let host = |args: &[&str]| {
        let host = Host::new(&library, "two_threads.kdl").args(&["--on", "net8-unix"]);
        host.args(args).env("GUEST_FAILURE", "abort").run().1
    };
    let refused = host(&["--schedules", "1"]);
    let why = "the profiler is not loaded: DllGetClassObject returned CLASS_E_CLASSNOTAVAILABLE";
    assert!(refused.contains(why), "{refused}");
    let class = "{6f0e1c52-3d1a-4b7e-9a0c-2d5e8f7b1a43}";
    let found = host(&["--schedules", "20", "--clsid", class]);
    assert!(found.contains("SIGABRT in"), "{found}");
    let again = "two_threads.kdl --clsid 6f0e1c52-3d1a-4b7e-9a0c-2d5e8f7b1a43 --replay net8-unix:";
    assert!(found.contains(again), "{found}");
}

#[test]
#[ignore = "external: needs a C++ compiler"]
fn a_profiler_that_is_not_loaded_fails_once_unless_that_is_allowed() {
    let library = guest("nothing", &[]);
    let search = |allow: &[&str]| {
        let host = Host::new(&library, "two_threads.kdl");
        host.args(&["--on", "net8-unix", "--schedules", "50"]).args(allow).objects()
    };
    let (code, found) = search(&[]);
    let found = &found[0];
    assert_eq!((code, &found["schedules"]), (1, &Value::from(1)));
    assert_eq!(failures(found), ["not loaded: it does not export DllGetClassObject"]);
    assert_eq!(found["coverage"]["unseen"][0]["allow"], "not-loaded");
    let (code, found) = search(&["--allow", "not-loaded"]);
    assert_eq!((code, &found[0]["coverage"]["unseen"][0]["allowed"]), (0, &Value::from(true)));
}

/// A text says what its searches have to cover: the number of calls, their results and threads, and the order of
/// callbacks.
#[test]
#[ignore = "needs a C++ compiler"]
fn a_search_covers_what_its_text_demands() {
    let library = guest("failing_thread", &[]);
    let folder = TempDir::new().unwrap();
    let text = folder.path().join("demands.kdl");
    let program = include_str!("../../guests/two_threads.kdl");
    let unmet = |demands: &str| {
        std::fs::write(&text, format!("{program}coverage {{ {demands} }}\n")).unwrap();
        let host = Host::new(&library, text.to_str().unwrap()).env("GUEST_FAILURE", "none");
        let (code, found) =
            host.args(&["--on", "net8-unix", "--schedules", "30", "--allow", "no-walk"]).objects();
        let unmet = found[0]["coverage"]["unmet"].as_array().unwrap().clone();
        let fails = found[0]["outcomes"].as_array().unwrap().iter().any(|it| it["end"] != "ends");
        assert_eq!(code == 0, unmet.is_empty() && !fails, "{:#}", found[0]);
        unmet.iter().map(|it| it.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let met = "callback \"JITCompilationFinished\" least=1 most=1 by=\"main\" in=\"each\"
        callback \"ObjectAllocated\" most=0 in=\"each\"
        order \"JITCompilationStarted\" \"JITCompilationFinished\" \"Shutdown\"
        call \"SetEventMask\" returns=\"S_OK\" in=\"each\"";
    assert_eq!(unmet(met), [""; 0]);
    for (demand, says) in [
        ("callback \"JITCompilationFinished\" by=\"other\"", "comes 0 to 0 times"),
        ("call \"SetEventMask\" least=2", "comes 1 to 1 times"),
        ("call \"SetEventMask\" returns=\"E_FAIL\"", "SetEventMask with E_FAIL comes 0 to 0"),
        ("order \"JITCompilationFinished\" \"JITCompilationStarted\"", "in this order"),
        ("order \"JITCompilationStarted\" \"JITCompilationStarted\"", "in this order"),
    ] {
        let found = unmet(demand);
        assert!(matches!(&found[..], [one] if one.contains(says)), "{demand}: {found:?}");
    }
    assert_eq!(unmet("call \"SetEventMask\" least=2 on=\"windows\""), [""; 0]);
    // Threads have their names in a plain visit, too.
    for (thread, is_met) in [("main", true), ("other", false)] {
        let demand = format!("callback \"JITCompilationFinished\" by=\"{thread}\"");
        std::fs::write(&text, format!("{program}coverage {{ {demand} }}\n")).unwrap();
        let host = Host::new(&guest("sampler", &[]), text.to_str().unwrap());
        let (_, found) = host.args(&["--on", "net8-unix"]).objects();
        let because = found[0]["because"].as_str().unwrap_or_default().to_owned();
        assert_eq!(!because.contains("on other comes 0 to 0"), is_met, "{:#}", found[0]);
    }
}
