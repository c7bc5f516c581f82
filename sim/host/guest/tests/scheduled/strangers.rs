//! Profilers with the habits of public ones: each in a right form, whose walks give frames, and in wrong ones, whose failure is found.

use super::linux::{compile, reported};
use clr_explore::{Random, Search as _};
use clr_guest::scheduled::{Detail, HostedProfiler};
use clr_guest::{GuestLimits, SearchCoverage, Unseen};
use clr_runtime::generation::Generation;
use clrsim::{CallKind, Guid};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Two threads: one compiles a method, and both call native code.
const THREADS: &str = include_str!("../../../../cli/tests/guests/threads.kdl");

/// Number of interleavings of a right form.
const RIGHT: u64 = 40;
/// Most interleavings in which the failure of a wrong form has to be found.
const WRONG: u64 = 400;

/// A wrong form, and its failure.
type Mistake = (u32, &'static str);

/// The profilers, by the number of their class.
const STRANGERS: &[(u32, &str, &[Mistake])] = &[
    (1, "raii_thread", &[(1, "failed: SIGSEGV")]),
    (2, "async_logger", &[(1, "lost wake-up")]),
    (3, "thread_pool", &[(1, "lost wake-up")]),
    (4, "self_pipe", &[(1, "deadlock: profiler's lock 1")]),
    (5, "event_loop", &[(1, "live-lock")]),
    (6, "shared_names", &[(1, "deadlock: profiler's lock 1")]),
    (7, "loaded_objects", &[(1, "deadlock: loader lock, profiler's lock 1")]),
    (8, "looked_up", &[(1, "deadlock: profiler's lock 1, profiler's lock 2")]),
    (
        9,
        "own_calls",
        &[
            (1, "lost wake-up"),
            (2, "failed: the profiler has left the simulation: it called clone"),
            (
                3,
                "failed: the profiler has left the simulation: it has not given back control: it runs on, in guest::OwnCalls::Shutdown",
            ),
        ],
    ),
    (10, "native_aot", &[(1, "deadlock: end of a thread, profiler's lock 1")]),
    (
        11,
        "signal_waiter",
        &[(
            1,
            "failed: the profiler sends signal #, for which it has no handler: it ends the process",
        )],
    ),
];

/// The runtimes: one that never releases the profiler's object, and one that does.
const RUNTIMES: [Generation; 2] = [Generation::Net8Unix, Generation::CoreClr31Unix];

/// Returns the class of a profiler in a form.
fn class(number: u32, form: u32) -> Guid {
    Guid::parse(&format!("{number:08x}-{form:04x}-0000-0000-000000000000")).unwrap()
}

fn open(library: &Path, class: Guid, on: Generation) -> HostedProfiler {
    let mut visit = HostedProfiler::open(library, class, THREADS, on, None).unwrap();
    visit.set_limits(GuestLimits { time: Duration::from_secs(2), ..GuestLimits::default() });
    visit
}

/// Checks that a right form ends well, and that its walks give frames. Returns the interleavings in words.
fn check_right(library: &Path, class: Guid, on: Generation) -> String {
    let mut visit = open(library, class, on);
    let mut search = Random::new(1);
    let mut coverage = SearchCoverage::default();
    let mut digests = BTreeSet::new();
    for number in 0..RIGHT {
        assert!(search.begin(number));
        let ending = visit.run_in_copy(&mut search, Detail::Ending).unwrap();
        assert_eq!(ending.verdict, None, "interleaving {number}");
        coverage.add(ending.digest, &ending.coverage);
        digests.insert(ending.digest);
    }
    // A thread of a language's runtime may wait for ever.
    let unseen = coverage.unseen();
    let mut unseen = unseen.iter().map(Unseen::words).filter(|words| !words.starts_with("stuck:"));
    assert_eq!(unseen.next(), None);
    let walks = coverage.calls(CallKind::Method).find(|(name, _)| *name == "DoStackSnapshot");
    let walked = walks.map_or(0, |(_, walks)| walks.interleavings);
    assert!(walked > 0);
    format!("{} different, {walked} with walks", digests.len())
}

/// Checks that the failure of a wrong form is found, and no other one. Returns the first interleaving that has it.
fn check_wrong(library: &Path, class: Guid, failure: &str) -> u64 {
    let mut visit = open(library, class, Generation::Net8Unix);
    let mut search = Random::new(1);
    for number in 0..WRONG {
        assert!(search.begin(number));
        let outcome = visit.run_in_copy(&mut search, Detail::Ending);
        match reported(&[outcome]).into_keys().next().as_deref() {
            Some("ends") => {}
            // The function of a crash depends on what the compiler has inlined.
            Some(found) if found.starts_with(failure) => return number,
            other => panic!("interleaving {number}: {other:?}"),
        }
    }
    panic!("{failure} is not found")
}

/// Checks all profilers.
pub(super) fn check(folder: &Path) {
    let library = folder.join("strangers.so");
    compile("strangers/strangers.cpp", &[], &library);
    for (number, name, mistakes) in STRANGERS {
        for on in RUNTIMES {
            println!("{name} {on}: {}", check_right(&library, class(*number, 0), on));
        }
        for (form, failure) in *mistakes {
            let first = check_wrong(&library, class(*number, *form), failure);
            println!("{name}: {failure}, the first: {first}");
        }
    }
    of_go(&folder.join("go.so"));
}

/// Checks a profiler that is half in Go.
fn of_go(library: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../include", "../../cli/tests/guests"];
    let folders = folders.map(|folder| format!("-I{}", here.join(folder).display()));
    let built = Command::new("go")
        .args(["build", "-buildmode=c-shared", "-o"])
        .arg(library)
        .arg(".")
        .current_dir(here.join("../tests/guests/go"))
        .env("GO111MODULE", "off")
        .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
        .env("CGO_CXXFLAGS", format!("-std=c++17 -O1 {}", folders.join(" ")))
        .output();
    let Ok(output) = built else {
        println!(
            "SKIPPED: a profiler in Go, as there is no Go compiler (`apt-get install golang-go`)"
        );
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!("go: {}", check_right(library, class(0, 0), Generation::Net8Unix));
}
