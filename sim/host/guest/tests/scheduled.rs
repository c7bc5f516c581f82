//! Guests' threads under the scheduler. Each interleaving is executed in a copy of the process, which has to have
//! one thread: this test has no harness.

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn main() {
    linux::main();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[path = "scheduled/profilers.rs"]
mod profilers;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[path = "scheduled/strangers.rs"]
mod strangers;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod linux {
    use super::{profilers, strangers};
    use clr_explore::{Random, Search as _, TestedProcess};
    use clr_guest::scheduled::{
        Detail, Died, GuestEnding, GuestProcess, HostedProfiler, ScheduledLibrary, after_faults,
    };
    use clr_runtime::generation::Generation;
    use std::collections::BTreeMap;
    use std::ffi::CString;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    /// Number of interleavings of each program.
    const HISTORIES: u64 = 60;
    /// Number of those that are repeated.
    const REPEATED: u64 = 20;

    pub(super) type Outcome = Result<GuestEnding, Died>;

    /// The headers that most guests include, which are read once for all of them.
    const HEADERS: &str = "#include \"guest.hpp\"\n#include <chrono>\n#include <condition_variable>\n\
         #include <future>\n#include <mutex>\n#include <thread>\n";
    /// The file with [`HEADERS`].
    static FIRST: OnceLock<PathBuf> = OnceLock::new();

    /// Returns a command that compiles C++.
    fn compiler() -> Command {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
        command.args([
            "-std=c++17",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fPIC",
            "-pthread",
        ]);
        command.arg("-I").arg(here.join("../include"));
        command.arg("-I").arg(here.join("../../cli/tests/guests"));
        command
    }

    fn execute(mut command: Command) {
        let output = command.output().expect("a C++ compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Compiles the headers.
    fn compile_headers(folder: &Path) {
        let path = folder.join("first.hpp");
        std::fs::write(&path, HEADERS).unwrap();
        let mut command = compiler();
        command.args(["-x", "c++-header"]).arg(&path).arg("-o").arg(folder.join("first.hpp.gch"));
        execute(command);
        FIRST.set(path).unwrap();
    }

    /// Compiles a guest.
    pub(super) fn compile(guest: &str, flags: &[&str], to: &Path) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests").join(guest);
        let mut command = compiler();
        command.arg("-shared").args(flags).arg("-include").arg(FIRST.get().unwrap());
        command.arg(source).arg("-o").arg(to);
        execute(command);
    }

    fn histories(library: &ScheduledLibrary, name: &str, count: u64) -> Vec<Outcome> {
        let (program, methods, hooks) = Default::default();
        let process =
            TestedProcess::new(&program, &methods, hooks, Generation::Net8Unix, &[]).unwrap();
        let main = library.export(&CString::new(name).unwrap()).expect("it is exported");
        // SAFETY: the exports take no arguments.
        let mut guest = unsafe { GuestProcess::new(&process, main) }.unwrap();
        let mut search = Random::new(1);
        (0..count)
            .map(|number| {
                assert!(search.begin(number));
                guest.run_in_copy(&mut search)
            })
            .collect()
    }

    /// Returns the number of interleavings with each outcome.
    pub(super) fn reported(outcomes: &[Outcome]) -> BTreeMap<String, usize> {
        let mut reported = BTreeMap::new();
        for outcome in outcomes {
            let words = match outcome {
                Ok(ending) => {
                    let end = ending.verdict.as_deref().unwrap_or("ends");
                    after_faults(end, &ending.failed_methods())
                }
                Err(died) => format!("{died:?}"),
            };
            *reported.entry(words).or_default() += 1;
        }
        reported
    }

    pub(super) fn main() {
        let folder = tempfile::tempdir().unwrap();
        compile_headers(folder.path());
        let path = folder.path().join("threads.so");
        compile("threads/threads.cpp", &[], &path);
        let library = ScheduledLibrary::load(&path).unwrap();
        let expected: [(&str, &[&str]); 17] = [
            ("fresh_globals", &["ends"]),
            ("hand_over", &["ends"]),
            ("lost_wake_up", &["ends", "lost wake-up"]),
            ("crossed_locks", &["deadlock: profiler's lock 1, profiler's lock 2", "ends"]),
            ("used_too_early", &["ends", "failed: SIGSEGV in used_too_early"]),
            ("patience", &["ends"]),
            ("the_rest", &["ends"]),
            ("leaves", &["failed: ends the process by _exit"]),
            ("semaphores", &["ends"]),
            ("drained_semaphore", &["ends", "lost wake-up"]),
            ("barriers", &["ends"]),
            ("lonely_barrier", &["lost wake-up"]),
            ("futexes", &["ends"]),
            ("futex_read_again", &["ends", "lost wake-up"]),
            ("locks_with_limits", &["ends"]),
            ("random_numbers", &["ends"]),
            ("woken_out_of_order", &["ends", "failed: ends the process by _exit"]),
        ];
        check(&library, &expected);
        let [spins] = &histories(&library, "spins", 1)[..] else { panic!("one history") };
        let verdict = spins.clone().unwrap().verdict.unwrap();
        assert!(verdict.contains("left the simulation"), "{verdict}");
        let path = folder.path().join("atomics.so");
        compile("threads/atomics.cpp", &["-std=c++20"], &path);
        let library = ScheduledLibrary::load(&path).unwrap();
        check(
            &library,
            &[("atomic_turns", &["ends"]), ("atomic_not_notified", &["ends", "lost wake-up"])],
        );
        let path = folder.path().join("unresolved.so");
        compile("threads/unresolved.cpp", &["-Wl,-z,lazy"], &path);
        check(&ScheduledLibrary::load(&path).unwrap(), &[("initialised_once", &["ends"])]);
        inside(&folder.path().join("inside.so"));
        of_rust(&folder.path().join("helper.so"));
        signals(&folder.path().join("signals.so"));
        refused(&folder.path().join("leaves.so"));
        without_report(&folder.path().join("damages.so"));
        profilers::check_coverage(folder.path());
        profilers::check(folder.path());
        strangers::check(folder.path());
        arguments(folder.path());
    }

    /// A program whose threads throw, with a handle, a GC and a call of native code.
    const CALLBACKS: &str = r#"
function "App.Main" kind="jit" {
    push "rbp"
    frame "rbp" set="after-saves"
    body {
        guarded { call "App.Thrower" }
        on-catch { work 1 }
        create-handle
        collect
        p-invoke-stub "Lib.Sleep"
    }
}
function "App.Other" kind="jit" {
    push "rbp"
    frame "rbp" set="after-saves"
    body {
        guarded { call "App.Thrower" }
        on-catch { work 1 }
    }
}
function "App.Thrower" kind="jit" { body { raise } }
function "Lib.Sleep" { body { work 3 } }
thread "main" start="App.Main"
thread "other" start="App.Other"
"#;

    /// Checks the arguments of callbacks in histories: the guest ends the process if one is wrong.
    fn arguments(folder: &Path) {
        let path = folder.join("callbacks.so");
        compile("threads/callbacks.cpp", &[], &path);
        let class = clrsim::Guid::parse("00000000-0000-0000-0000-000000000000").unwrap();
        let mut visit =
            HostedProfiler::open(&path, class, CALLBACKS, Generation::Net8Unix, None).unwrap();
        let mut search = Random::new(1);
        let run = |number| {
            assert!(search.begin(number));
            visit.run_in_copy(&mut search, Detail::Ending)
        };
        let outcomes: Vec<_> = (0..HISTORIES).map(run).collect();
        let reported = reported(&outcomes);
        println!("callbacks: {reported:?}");
        assert_eq!(reported.keys().collect::<Vec<_>>(), ["ends"]);
    }

    /// Checks the outcomes of the interleavings of exports, and that they repeat.
    fn check(library: &ScheduledLibrary, expected: &[(&str, &[&str])]) {
        for (name, kinds) in expected {
            let outcomes = histories(library, name, HISTORIES);
            let reported = reported(&outcomes);
            println!("{name}: {reported:?}");
            assert_eq!(reported.keys().collect::<Vec<_>>(), *kinds, "{name}");
            let again = histories(library, name, REPEATED);
            assert_eq!(outcomes[..REPEATED as usize], again, "{name}: the same seed");
            let digests = outcomes.iter().flatten().map(|ending| ending.digest);
            let different = digests.collect::<std::collections::BTreeSet<_>>().len();
            println!("  {different} different histories");
        }
    }

    /// Checks what connects threads besides their locks.
    fn inside(path: &Path) {
        compile("threads/inside.cpp", &[], path);
        let library = ScheduledLibrary::load(path).unwrap();
        check(
            &library,
            &[
                ("destructors_before_join", &["ends"]),
                ("destructors_after_exit", &["ends"]),
                ("destructors_of_detached", &["ends"]),
                (
                    "destructor_under_lock",
                    &["deadlock: end of a thread, profiler's lock 1", "ends"],
                ),
                ("pipe_is_polled", &["ends"]),
                ("pipe_is_read_to_its_end", &["ends"]),
                ("pipe_is_full", &["ends"]),
                ("pipe_of_handler", &["ends"]),
                ("pipe_without_writer", &["lost wake-up"]),
                ("pipe_nobody_joins", &["ends"]),
                ("pipe_drained_too_early", &["ends", "lost wake-up"]),
                ("counters", &["ends"]),
                ("sockets", &["ends"]),
                ("server", &["ends"]),
                ("limits", &["ends"]),
                ("ticks", &["ends"]),
                ("sets", &["ends"]),
                ("initialisations", &["ends"]),
            ],
        );
    }

    /// Checks a library of another language.
    fn of_rust(path: &Path) {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/threads/helper.rs");
        let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let mut command = Command::new(compiler);
        command.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort"]);
        let output = command.arg(source).arg("-o").arg(path).output().expect("a Rust compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let library = ScheduledLibrary::load(path).unwrap();
        let names = ["values_of_rust", "threads_detach", "helper_polls"];
        check(&library, &names.map(|name| (name, &["ends"][..])));
    }

    /// Checks signals and their handlers.
    fn signals(path: &Path) {
        compile("threads/signals.cpp", &[], path);
        let library = ScheduledLibrary::load(path).unwrap();
        check(
            &library,
            &[
                ("signal_handled", &["ends"]),
                ("signal_to_itself", &["ends"]),
                ("handler_with_information", &["ends"]),
                ("signal_to_nobody", &["ends"]),
                (
                    "signal_without_handler",
                    &[
                        "failed: the profiler sends signal #, for which it has no handler: it ends the process",
                    ],
                ),
                ("lock_in_handler", &["deadlock: profiler's lock 1", "ends"]),
                ("allocation_in_handler", &["deadlock: process heap", "ends"]),
                ("allocation_while_stopped", &["deadlock: process heap, wake-up", "ends"]),
                ("sleep_cut_short", &["ends", "failed: SIGABRT in (anonymous namespace)::require"]),
                ("sleep_to_the_end", &["ends"]),
                ("poll_cut_short", &["ends", "failed: SIGABRT in (anonymous namespace)::require"]),
                ("read_cut_short", &["ends", "failed: SIGABRT in (anonymous namespace)::require"]),
                ("read_restarted", &["ends"]),
                (
                    "semaphore_cut_short",
                    &["ends", "failed: SIGABRT in (anonymous namespace)::require"],
                ),
                ("semaphore_restarted", &["ends"]),
                ("pause_too_late", &["ends", "lost wake-up"]),
                ("suspended_for_signal", &["ends"]),
                ("timer_of_processors", &["ends"]),
                ("timer_of_thread", &["ends"]),
                ("timer_is_waited_for", &["ends"]),
                ("timer_starts_threads", &["ends"]),
                ("timer_expires_once", &["ends"]),
                ("timer_allocates", &["deadlock: process heap", "ends"]),
                (
                    "timer_without_handler",
                    &[
                        "ends",
                        "failed: the profiler sends signal #, for which it has no handler: it ends the process",
                    ],
                ),
                ("timer_used_after_end", &["ends", "failed: SIGABRT in ticks_if_alive"]),
                ("loading_while_stopped", &["deadlock: loader lock, wake-up", "ends"]),
            ],
        );
    }

    /// Most seconds of an interleaving that cannot go on.
    const AT_ONCE: u64 = 5;

    /// Checks the ends of processes that cannot report an ending: they come at once, and say what has happened.
    fn without_report(path: &Path) {
        // The compiler sees what is wrong.
        compile("threads/damages.cpp", &["-w"], path);
        let library = ScheduledLibrary::load(path).unwrap();
        let damaged =
            "SIGABRT ended the process, whose heap is damaged: malloc(): corrupted top size";
        let garbled = Died::Garbled.to_string();
        for (name, end) in [
            ("top_of_heap", damaged),
            ("writes_everywhere", &garbled),
            ("closes_everything", &garbled),
        ] {
            let begun = Instant::now();
            let [history] = &histories(&library, name, 1)[..] else { panic!("one history") };
            let died = history.as_ref().expect_err(name);
            println!("{name}: {died}");
            assert_eq!(died.to_string(), end, "{name}");
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(AT_ONCE), "{name}: {took:?}");
        }
        check(
            &library,
            // The words leave numbers out.
            &[
                (
                    "freed_twice",
                    &["failed: SIGABRT in freed_twice: free(): double free detected in tcache "],
                ),
                ("not_allocated", &["failed: SIGABRT in not_allocated: free(): invalid pointer"]),
                ("fails_an_assertion", &["failed: SIGABRT in fails_an_assertion"]),
            ],
        );
    }

    /// Checks that calls which wait outside of the simulation, or leave its process, end the interleaving with a message
    /// that names them.
    fn refused(path: &Path) {
        compile("threads/leaves.cpp", &[], path);
        let library = ScheduledLibrary::load(path).unwrap();
        for (name, call) in [
            ("polls", "poll"),
            ("polls_within_a_time", "poll"),
            ("selects", "select"),
            ("waits_for_events", "epoll_wait"),
            ("receives", "recv"),
            ("accepts", "accept"),
            ("connects", "connect"),
            ("reads", "read"),
            ("forks", "fork"),
            ("executes", "execl"),
            ("asks_a_shell", "system"),
            ("spawns", "posix_spawn"),
            ("waits_for_a_child", "waitpid"),
            ("polls_by_number", "poll"),
        ] {
            let [history] = &histories(&library, name, 1)[..] else { panic!("one history") };
            let verdict = history.clone().unwrap().verdict.unwrap();
            let words = format!("the profiler has left the simulation: it called {call}");
            assert!(verdict.ends_with(&words), "{name}: {verdict}");
        }
        check(&library, &[("simulated", &["ends"])]);
    }
}
