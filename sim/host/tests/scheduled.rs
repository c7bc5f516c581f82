//! Guests' threads under the scheduler. Each history is executed in a copy of the process, which has to have
//! one thread: this test has no harness.

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
fn main() {
    linux::main();
}

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
fn main() {
    eprintln!("skipped: guests are scheduled on Linux on x86-64 alone");
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod linux {
    use clr_explore::{Random, Search as _, TestedProcess};
    use clr_runtime::generation::Generation;
    use clrsim::scheduled::{
        Died, GuestEnding, GuestProcess, Kept, ScheduledLibrary, ScheduledVisit,
    };
    use std::collections::BTreeMap;
    use std::ffi::CString;
    use std::path::Path;
    use std::process::Command;

    /// Number of histories of each program.
    const HISTORIES: u64 = 60;

    type Outcome = Result<GuestEnding, Died>;

    /// Compiles a guest. Returns false, and says so, if there is no compiler.
    fn compile(guest: &str, flags: &[&str], to: &Path) -> bool {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = here.join("tests/guests/threads").join(guest);
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let mut command = Command::new(&compiler);
        command.args([
            "-std=c++17",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
        ]);
        command.args(flags).arg("-I").arg(here.join("include"));
        command.arg("-I").arg(here.join("../cli/tests/guests"));
        let Ok(output) = command.arg("-pthread").arg(source).arg("-o").arg(to).output() else {
            eprintln!("skipped: no {compiler}");
            return false;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        true
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

    /// Returns the number of histories with each outcome.
    fn told(outcomes: &[Outcome]) -> BTreeMap<String, usize> {
        let mut told = BTreeMap::new();
        for outcome in outcomes {
            let words = match outcome {
                Ok(ending) => ending.verdict.clone().unwrap_or_else(|| "ends".to_owned()),
                Err(died) => format!("{died:?}"),
            };
            *told.entry(words).or_default() += 1;
        }
        told
    }

    pub(super) fn main() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("threads.so");
        if !compile("threads.cpp", &[], &path) {
            return;
        }
        let library = ScheduledLibrary::load(&path).unwrap();
        let expected: [(&str, &[&str]); 15] = [
            ("hand_over", &["ends"]),
            ("lost_wake_up", &["ends", "lost wake-up"]),
            ("crossed_locks", &["deadlock: profiler's lock 1, profiler's lock 2", "ends"]),
            ("used_too_early", &["Signal(11)", "ends"]),
            ("patience", &["ends"]),
            ("the_rest", &["ends"]),
            ("leaves", &["Exit(3)"]),
            ("semaphores", &["ends"]),
            ("drained_semaphore", &["ends", "lost wake-up"]),
            ("barriers", &["ends"]),
            ("lonely_barrier", &["lost wake-up"]),
            ("futexes", &["ends"]),
            ("futex_read_again", &["ends", "lost wake-up"]),
            ("locks_with_limits", &["ends"]),
            ("random_numbers", &["ends"]),
        ];
        check(&library, &expected);
        let [spins] = &histories(&library, "spins", 1)[..] else { panic!("one history") };
        let verdict = spins.clone().unwrap().verdict.unwrap();
        assert!(verdict.contains("left the simulation"), "{verdict}");
        let path = folder.path().join("atomics.so");
        assert!(compile("atomics.cpp", &["-std=c++20"], &path));
        let library = ScheduledLibrary::load(&path).unwrap();
        check(
            &library,
            &[("atomic_turns", &["ends"]), ("atomic_not_notified", &["ends", "lost wake-up"])],
        );
        profilers(folder.path());
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
        assert!(compile("callbacks.cpp", &[], &path));
        let class = clrsim::Guid::parse("00000000-0000-0000-0000-000000000000").unwrap();
        let mut visit =
            ScheduledVisit::open(&path, class, CALLBACKS, Generation::Net8Unix).unwrap();
        let mut search = Random::new(1);
        let run = |number| {
            assert!(search.begin(number));
            visit.run_in_copy(&mut search, Kept::Ending)
        };
        let outcomes: Vec<_> = (0..HISTORIES).map(run).collect();
        let told = told(&outcomes);
        println!("callbacks: {told:?}");
        assert_eq!(told.keys().collect::<Vec<_>>(), ["ends"]);
    }

    /// Checks the outcomes of the histories of exports, and that they repeat.
    fn check(library: &ScheduledLibrary, expected: &[(&str, &[&str])]) {
        for (name, kinds) in expected {
            let outcomes = histories(library, name, HISTORIES);
            let told = told(&outcomes);
            println!("{name}: {told:?}");
            assert_eq!(told.keys().collect::<Vec<_>>(), *kinds, "{name}");
            assert_eq!(outcomes, histories(library, name, HISTORIES), "{name}: the same seed");
            let digests = outcomes.iter().flatten().map(|ending| ending.digest);
            let different = digests.collect::<std::collections::BTreeSet<_>>().len();
            println!("  {different} different histories");
        }
    }

    /// A program with two threads, of which one compiles a method and both call native code.
    const TEXT: &str = r#"
function "App.Main" kind="jit" { body { first-call "App.Load"; p-invoke "Lib.Sleep" } }
function "App.Load" kind="jit" { body { work 1 } }
function "App.Other" kind="jit" { body { p-invoke "Lib.Sleep"; new } }
function "Lib.Sleep" { body { work 3 } }
thread "main" start="App.Main"
thread "other" start="App.Other"
"#;

    /// A profiler that samples from a thread of its own, and the same with a mistake.
    fn profilers(folder: &Path) {
        let mistakes: [(&str, u64, &[&str]); 4] = [
            ("RIGHT", 200, &["ends"]),
            (
                "LOCK_IN_THREAD_DESTROYED",
                200,
                &["deadlock: profiler's lock 1, thread store", "ends"],
            ),
            ("NOTIFY_WITHOUT_LOCK", 500, &["ends", "lost wake-up"]),
            ("RESUME_FORGOTTEN", 60, &["ends", "lost wake-up"]),
        ];
        for (mistake, count, kinds) in mistakes {
            let path = folder.join(mistake).with_extension("so");
            assert!(compile(
                "../../../../cli/tests/guests/thread_sampler.cpp",
                &[&format!("-DMISTAKE={mistake}")],
                &path
            ));
            let class = clrsim::Guid::parse("00000000-0000-0000-0000-000000000000").unwrap();
            let mut visit = ScheduledVisit::open(&path, class, TEXT, Generation::Net8Unix).unwrap();
            let mut histories = |count| {
                let mut search = Random::new(1);
                let run = |number| {
                    assert!(search.begin(number));
                    visit.run_in_copy(&mut search, Kept::Ending)
                };
                (0..count).map(run).collect::<Vec<_>>()
            };
            let outcomes = histories(count);
            let told = told(&outcomes);
            println!("{mistake}: {told:?}");
            assert_eq!(told.keys().collect::<Vec<_>>(), kinds, "{mistake}");
            assert_eq!(outcomes[..20], histories(20), "{mistake}: the same seed");
        }
    }
}
