//! Profilers over texts: one that does everything right, and one for each way to be wrong.

use super::linux::{Outcome, compile, reported};
use clr_explore::{Ending, Faults, Random, Search as _};
use clr_guest::SearchCoverage;
use clr_guest::scheduled::{Detail, Executed, HostedProfiler, in_workers};
use clr_runtime::generation::Generation;
use clr_runtime::profiling::CallFaults;
use clrsim::{CallKind, Guid};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Two threads: one compiles a method, and both call native code.
const THREADS: &str = include_str!("../../../../cli/tests/guests/threads.kdl");

/// A thread of an image's code compiles two methods, one after the other.
const IMAGE: &str = include_str!("../../../tests/guests/samplers/image.kdl");

/// Two threads ask the profiler for a sample.
const REQUESTS: &str = include_str!("../../../tests/guests/samplers/requests.kdl");

/// A thread asks the profiler for a sample.
const REQUEST_ALONE: &str = r#"
function "App.Main" kind="jit" { body { p-invoke "Lib.Request" } }
function "Lib.Request" { export "RequestSample" 1 100 }
"#;

/// A thread asks the profiler for a sample, and stays in cooperative mode.
const SUPPRESSED: &str = r#"
function "App.Main" kind="jit" { body { p-invoke-suppressed "Lib.Request" } }
function "Lib.Request" { export "RequestSample" 1 100 }
"#;

/// Two threads: one compiles, and both allocate.
const ALLOCATIONS: &str = include_str!("../../../tests/guests/samplers/allocations.kdl");

/// A thread compiles a method, and calls native code that allocates.
const MALLOCS: &str = r#"
function "App.Main" kind="jit" { body { first-call "App.Load"; p-invoke "Lib.Sort" } }
function "App.Load" kind="jit" { body { work 1 } }
function "Lib.Sort" { body { malloc; malloc } }
"#;

/// A thread that allocates in native code, and another one that loads a library.
const CROSSWISE: &str = r#"
function "App.Main" kind="jit" { body { first-call "App.Load"; p-invoke "Lib.Sort" } }
function "App.Load" kind="jit" { body { work 1 } }
function "Lib.Sort" { body { malloc; malloc; malloc } }
function "App.Other" kind="jit" { body { p-invoke "Lib.Load" } }
function "Lib.Load" { body { load-library; load-library } }
thread "main" start="App.Main"
thread "other" start="App.Other"
"#;

/// A thread of an image's code, and another one that makes a GC.
const COLLECTS: &str = r#"
function "App.Main" kind="ready-to-run" { body { first-call "App.Load"; loop 200 { work 50 } } }
function "App.Load" kind="jit" { body { work 1 } }
function "App.Other" kind="jit" { body { loop 6 { collect } } }
thread "main" start="App.Main"
thread "other" start="App.Other"
"#;

/// A guest over a text.
#[derive(Clone, Copy)]
struct Case {
    source: &'static str,
    mistake: &'static str,
    text: &'static str,
    on: Generation,
    /// Maximum number of interleavings.
    budget: u64,
    /// The outcomes.
    outcomes: &'static [&'static str],
    /// The hazard that the first failure's story names, or "".
    hazard: &'static str,
    /// The failures that the search injects, or "".
    faults: &'static str,
}

const ENDS: &[&str] = &["ends"];
const DEADLOCK: &[&str] = &["deadlock: profiler's lock 1", "ends"];
const LOST: &[&str] = &["ends", "lost wake-up"];
const SUSPENDED: &[&str] =
    &["deadlock: suspended runtime, wake-up", "deadlock: thread store, wake-up", "ends"];
const UNLOADED: &[&str] = &["ends", "failed: SIGSEGV in unloaded code"];
const OUTLIVED: &[&str] = &["ends", "rule broken: WalkOutlivesThread"];
const SAMPLER: &str = "../../../cli/tests/guests/thread_sampler.cpp";
const REQUEST: &str = "samplers/request_sampler.cpp";
const SIGNAL: &str = "samplers/signal_sampler.cpp";
const ALLOCATION: &str = "samplers/allocation_sampler.cpp";
const TICKING: &str = "samplers/ticking_sampler.cpp";
const ENDING: &str = "samplers/ending_profiler.cpp";
const DETACHING: &str = "samplers/detaching_profiler.cpp";
const EXITING: &str = "samplers/exiting_profiler.cpp";

const fn case(
    source: &'static str,
    mistake: &'static str,
    text: &'static str,
    budget: u64,
    outcomes: &'static [&'static str],
    hazard: &'static str,
) -> Case {
    let (on, faults) = (Generation::Net8Unix, "");
    Case { source, mistake, text, on, budget, outcomes, hazard, faults }
}

const CASES: &[Case] = &[
    case(SAMPLER, "RIGHT", THREADS, 200, ENDS, ""),
    case(SAMPLER, "RIGHT", IMAGE, 200, ENDS, ""),
    // A thread that ends by itself does not hold the lock of the list of threads in ThreadDestroyed.
    case(SAMPLER, "LOCK_IN_THREAD_DESTROYED", THREADS, 200, ENDS, ""),
    case(
        SAMPLER,
        "WAIT_WITH_LOCK",
        THREADS,
        200,
        &["deadlock: profiler's lock 1, profiler's lock 2", "ends"],
        "H-05",
    ),
    case(SAMPLER, "NOTIFY_WITHOUT_LOCK", THREADS, 500, LOST, ""),
    // The sampler waits, with the runtime suspended, for what a thread would say that waits for the resume.
    case(SAMPLER, "RESUME_FORGOTTEN", THREADS, 60, SUSPENDED, "H-23"),
    case(SAMPLER, "WITHOUT_SUSPENSION", THREADS, 200, OUTLIVED, "H-04"),
    // A thread whose ThreadDestroyed has returned is not removed yet: a walk of it does no harm for a moment.
    on_windows(case(
        SAMPLER,
        "WITHOUT_SUSPENSION",
        THREADS,
        200,
        &[
            "ends",
            "process killed: the process is killed: CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD",
            "rule broken: WalkOutlivesThread",
        ],
        "H-04",
    )),
    case(SAMPLER, "LISTED_BEFORE_SUSPENSION", THREADS, 400, OUTLIVED, "H-04"),
    case(SAMPLER, "PUBLISHED_LATE", THREADS, 60, &["ends", "failed: SIGSEGV"], ""),
    case(
        SAMPLER,
        "JOIN_UNDER_LOCK",
        THREADS,
        60,
        &["deadlock: end of a thread, profiler's lock 1", "ends"],
        "H-34",
    ),
    case(SAMPLER, "LOG_AFTER_RESUME", IMAGE, 200, ENDS, ""),
    case(
        SAMPLER,
        "LOG_WHILE_SUSPENDED",
        IMAGE,
        200,
        &["deadlock: profiler's lock 1, suspended runtime", "ends"],
        "H-23",
    ),
    // On Unix seeds are ignored.
    case(SAMPLER, "OLD_SEED", IMAGE, 200, ENDS, ""),
    on_windows(case(
        SAMPLER,
        "OLD_SEED",
        IMAGE,
        200,
        &["ends", "failed: a frame of a walk from a seed is not on the stack"],
        "H-17",
    )),
    failing("all", case(SAMPLER, "RIGHT", THREADS, 200, ENDS, "")),
    case(SAMPLER, "RETURNS_WITHOUT_LIST", THREADS, 200, ENDS, ""),
    failing(
        "EnumThreads",
        case(
            SAMPLER,
            "RETURNS_WITHOUT_LIST",
            THREADS,
            60,
            &[
                "deadlock: suspended runtime, wake-up, after an injected failure of EnumThreads",
                "deadlock: thread store, wake-up, after an injected failure of EnumThreads",
                "ends",
            ],
            "",
        ),
    ),
    // A thread that is cooperative cannot be walked, without an injected failure.
    failing(
        "DoStackSnapshot",
        case(
            SAMPLER,
            "RETURNS_WITHOUT_WALK",
            THREADS,
            60,
            &[
                "deadlock: suspended runtime, wake-up",
                "deadlock: suspended runtime, wake-up, after an injected failure of DoStackSnapshot",
                "deadlock: thread store, wake-up",
                "deadlock: thread store, wake-up, after an injected failure of DoStackSnapshot",
                "ends",
            ],
            "",
        ),
    ),
    case(REQUEST, "RIGHT", REQUESTS, 200, ENDS, ""),
    // The worker waits for the requesting thread to leave cooperative mode.
    case(
        REQUEST,
        "RIGHT",
        SUPPRESSED,
        20,
        &["deadlock: suspension of the runtime, wake-up"],
        "H-23",
    ),
    case(REQUEST, "ANSWER_MISSED", REQUEST_ALONE, 200, LOST, ""),
    case(
        REQUEST,
        "PUBLISHED_UNDER_LOCK",
        REQUESTS,
        60,
        &["deadlock: profiler's lock 1, wake-up"],
        "",
    ),
    case(REQUEST, "ENDED_WORKER_ASKED", REQUESTS, 60, &["lost wake-up"], ""),
    case(ALLOCATION, "RIGHT", ALLOCATIONS, 200, ENDS, ""),
    case(
        ALLOCATION,
        "WAIT_IN_CALLBACK",
        ALLOCATIONS,
        200,
        &["deadlock: profiler's lock 1, suspension of the runtime", "ends"],
        "H-23",
    ),
    case(SIGNAL, "RIGHT", MALLOCS, 200, ENDS, ""),
    case(SIGNAL, "RIGHT", COLLECTS, 200, ENDS, ""),
    case(SIGNAL, "LOCK_IN_HANDLER", MALLOCS, 60, DEADLOCK, "H-28"),
    case(SIGNAL, "ALLOCATES_IN_HANDLER", MALLOCS, 60, &["deadlock: process heap", "ends"], "H-28"),
    case(SIGNAL, "PRINTS_IN_HANDLER", MALLOCS, 60, &["deadlock: process heap", "ends"], "H-28"),
    // Another thread has the loader, and wants the heap, which the interrupted one has.
    case(
        SIGNAL,
        "FINDS_SYMBOL_IN_HANDLER",
        CROSSWISE,
        1_000,
        &["deadlock: loader lock, process heap", "ends"],
        "H-28",
    ),
    case(
        SIGNAL,
        "LOOKS_UP_IN_HANDLER",
        CROSSWISE,
        1_000,
        &["deadlock: loader lock, process heap", "ends"],
        "H-28",
    ),
    // The sampler waits for the heap, whose owner waits in its handler for the sampler.
    case(
        SIGNAL,
        "ALLOCATES_WHILE_STOPPED",
        MALLOCS,
        60,
        &["deadlock: process heap, wake-up", "ends"],
        "",
    ),
    case(SIGNAL, "ASKS_IN_HANDLER", COLLECTS, 300, &["deadlock: interrupted wait", "ends"], "H-31"),
    case(SIGNAL, "WAITS_FOR_EVER", THREADS, 600, LOST, ""),
    ticking("SLEEP_FOR"),
    ticking("WAIT_FOR"),
    ticking("WAIT_FOR_PREDICATE"),
    ticking("WAIT_UNTIL_STEADY"),
    ticking("WAIT_UNTIL_SYSTEM"),
    ticking("CONDITION_ANY"),
    ticking("TIMED_MUTEX"),
    ticking("FUTURE"),
    ticking("SEMAPHORE"),
    ticking("NANOSLEEP"),
    ticking("CLOCK_NANOSLEEP"),
    ticking("USLEEP"),
    ticking("POLL"),
    ticking("SELECT"),
    ticking("EPOLL"),
    ticking("TIMER"),
    // Later runtimes never release the profiler's object: its destructor does no harm.
    case(ENDING, "RIGHT", IMAGE, 60, ENDS, ""),
    case(ENDING, "NOT_JOINED", IMAGE, 60, ENDS, ""),
    case(ENDING, "JOINED_FOR_EVER", IMAGE, 60, ENDS, ""),
    on_core_3_1(case(ENDING, "RIGHT", IMAGE, 60, ENDS, "")),
    on_core_3_1(case(
        ENDING,
        "NOT_JOINED",
        IMAGE,
        60,
        &["failed: std::terminate in guest::Ending::Release"],
        "",
    )),
    on_core_3_1(case(ENDING, "JOINED_FOR_EVER", IMAGE, 60, &["lost wake-up"], "")),
    case(DETACHING, "RIGHT", THREADS, 20, ENDS, ""),
    case(DETACHING, "WORKER_GOES_ON", THREADS, 20, UNLOADED, ""),
    // Static objects are destroyed while the worker goes on.
    case(EXITING, "RIGHT", MALLOCS, 10, ENDS, ""),
    case(
        EXITING,
        "NOT_JOINED",
        MALLOCS,
        5,
        &["failed: std::terminate in guest::Worker::~Worker"],
        "",
    ),
    case(EXITING, "JOINED_FOR_EVER", MALLOCS, 5, &["lost wake-up"], ""),
    case(EXITING, "DESTROYED_WHILE_WAITED_ON", MALLOCS, 10, LOST, ""),
    case(EXITING, "USED_AFTERWARDS", MALLOCS, 20, &["ends", "failed: SIGSEGV"], ""),
    on_windows(case(
        SIGNAL,
        "RIGHT",
        MALLOCS,
        20,
        &["failed: the profiler sends a signal, which threads on Windows do not take"],
        "",
    )),
];

/// A thread compiles nothing.
const NOTHING: &str = r#"function "App.Main" kind="jit" { body { work 1 } }"#;

/// Profilers whose initialisers start a thread, which the profiler's own code meets, or do not return.
const INITIALISERS: &[Case] = &[
    case(INITIALISER, "STARTS_THREAD", NOTHING, 40, ENDS, ""),
    case(INITIALISER, "WAITS_ANYWAY", NOTHING, 40, &["ends", "lost wake-up"], ""),
    case(INITIALISER, "CRASHES", NOTHING, 3, &["failed: SIGSEGV"], ""),
    case(INITIALISER, "EXITS", NOTHING, 3, &["failed: ends the process by exit"], ""),
];
const INITIALISER: &str = "threads/initialiser.cpp";

const fn on_windows(case: Case) -> Case {
    Case { on: Generation::Net8Windows, ..case }
}

const fn on_core_3_1(case: Case) -> Case {
    Case { on: Generation::CoreClr31Unix, ..case }
}

/// A sampler that ticks in this way while the program runs.
const fn ticking(by: &'static str) -> Case {
    let outcomes = &["deadlock: profiler's lock 1, suspended runtime", "ends"];
    case(TICKING, by, IMAGE, 60, outcomes, "H-23")
}

const fn failing(faults: &'static str, case: Case) -> Case {
    Case { faults, ..case }
}

/// Returns the story of an interleaving.
fn story(executed: &Executed<'_>) -> Vec<u8> {
    let Ending { verdict: Some(verdict), history: Some(history), .. } = executed.ending else {
        return Vec::new();
    };
    let rows = clr_story::story(verdict, history);
    rows.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n").into_bytes()
}

/// Number of interleavings after which a case ends that has shown all of its outcomes, and of those that are repeated.
const ENOUGH: u64 = 40;

/// Checks the outcomes of each profiler, the hazards that the stories name, and that interleavings repeat.
pub(super) fn check(folder: &Path) {
    let cases: Vec<_> = CASES.iter().chain(INITIALISERS).collect();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut wrong = Vec::new();
    let ended = in_workers(
        jobs,
        |worker, send| {
            // A guest of its own for each worker: none finds half of a file.
            let folder = folder.join(worker.to_string());
            std::fs::create_dir(&folder).unwrap();
            for case in cases.iter().skip(worker).step_by(jobs) {
                if let Err(why) = case.check(&folder) {
                    send(why.as_bytes());
                }
            }
        },
        |why| wrong.push(String::from_utf8_lossy(why).into_owned()),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    ended.expect("each worker checks its cases");
}

impl Case {
    /// Checks the outcomes of a profiler, the hazard that its story names, and that interleavings repeat.
    fn check(&self, folder: &Path) -> Result<(), String> {
        let name = format!("{} {} {} {}", self.source, self.mistake, self.on, self.faults);
        let stem = Path::new(self.source).file_stem().unwrap().to_string_lossy().into_owned();
        let path = folder.join(format!("{stem}-{}.so", self.mistake));
        if !path.exists() {
            compile(self.source, &[&format!("-DMISTAKE={}", self.mistake)], &path);
        }
        let class = Guid::parse("00000000-0000-0000-0000-000000000000").unwrap();
        let mut visit = HostedProfiler::open(&path, class, self.text, self.on, None).unwrap();
        let which = match self.faults {
            "" => CallFaults::default(),
            words => CallFaults::from_words(words).unwrap(),
        };
        let mut search = Faults { which, most: 1 }.around(1, Box::new(Random::new(1)));
        let mut run = |number, kept| {
            assert!(search.begin(number));
            visit.run_in_copy(&mut *search, kept)
        };
        let mut outcomes: Vec<Outcome> = Vec::new();
        for number in 0..self.budget {
            outcomes.push(run(number, Detail::Ending));
            if number >= ENOUGH && self.outcomes != ENDS && self.is_met(&reported(&outcomes)) {
                break;
            }
        }
        let reported = reported(&outcomes);
        let fails = |outcome: &Outcome| outcome.as_ref().map_or(true, |it| it.verdict.is_some());
        let first = outcomes.iter().position(fails);
        let story = first.and_then(|first| run(first as u64, Detail::Description(&story)).ok());
        let story =
            story.map(|ending| String::from_utf8(ending.description).unwrap()).unwrap_or_default();
        let hazard = story.lines().find_map(|line| line.trim().strip_prefix("H-")?.get(..2));
        let hazard = hazard.map(|number| format!("H-{number}")).unwrap_or_default();
        println!("{name}: {reported:?} {hazard}, the first: {first:?}");
        let again = outcomes.iter().take(ENOUGH as usize);
        let repeats =
            again.zip(0..).all(|(outcome, number)| *outcome == run(number, Detail::Ending));
        assert!(repeats, "{name}: the same seed");
        let has_hazard = hazard == self.hazard || !self.faults.is_empty() && self.outcomes != ENDS;
        if has_hazard && self.is_met(&reported) {
            return Ok(());
        }
        Err(format!("{name}: {reported:?} {hazard}\n{story}"))
    }

    /// Returns true if these outcomes are those of the case.
    fn is_met(&self, reported: &BTreeMap<String, usize>) -> bool {
        // The function depends on what the compiler has inlined.
        let crashes = ["failed: SIGSEGV in unloaded code", "failed: SIGSEGV"];
        let end = |end: &String| {
            let crash = crashes.into_iter().find(|crash| end.starts_with(crash));
            crash.unwrap_or(end).to_owned()
        };
        let ends: BTreeSet<_> = reported.keys().map(end).collect();
        if self.faults.is_empty() || self.outcomes == ENDS {
            return ends.iter().eq(self.outcomes);
        }
        // Few interleavings have the failure where it does harm: not each outcome has to be among them.
        let after = ends.iter().any(|end| end.contains("after an injected failure"));
        after && ends.iter().all(|end| self.outcomes.contains(&end.as_str()))
    }
}

/// Number of interleavings of a guest whose coverage is checked.
const COVERED: u64 = 300;

/// Guests that end well, and the words of what was not looked at.
const HABITS: &[(&str, &[&str])] = &[
    ("NOTHING", &["nothing"]),
    ("REFUSES", &["not-loaded"]),
    ("NEVER_WALKS", &["no-walk"]),
    ("WALKS_IN_VAIN", &["no-walk"]),
    ("WALKS_RARELY", &[]),
    ("WALKS_ALWAYS", &[]),
    ("CALLS_WHAT_IS_MISSING", &["not-simulated:Save"]),
    ("CALLS_WHAT_IS_OBSOLETE", &[]),
    ("IDLE_WORKER", &["stuck:thread 1 of the profiler"]),
];

/// Checks what searches of guests that end well have looked at.
pub(super) fn check_coverage(folder: &Path) {
    let mut walked = Vec::new();
    for (habit, expected) in HABITS {
        let path = folder.join(format!("coverage-{habit}.so"));
        compile("samplers/coverage.cpp", &[&format!("-DHABIT={habit}")], &path);
        let class = Guid::parse("00000000-0000-0000-0000-000000000000").unwrap();
        let on = Generation::Net8Unix;
        let mut visit = HostedProfiler::open(&path, class, THREADS, on, None).unwrap();
        let mut search = Random::new(1);
        let mut coverage = SearchCoverage::default();
        for number in 0..COVERED {
            assert!(search.begin(number));
            let ending = visit.run_in_copy(&mut search, Detail::Ending).unwrap();
            assert_eq!(ending.verdict, None, "{habit}");
            coverage.add(ending.digest, &ending.coverage);
        }
        let unseen = coverage.unseen();
        let words: Vec<_> = unseen.iter().map(clr_guest::Unseen::words).collect();
        assert_eq!(words, *expected, "{habit}");
        let mut idle = coverage.threads().values().flat_map(|it| it.still_waits_for.keys());
        let is_lost = idle.any(|what| what.ends_with(", which no thread gave"));
        assert_eq!(is_lost, *habit == "IDLE_WORKER", "{habit}");
        let walks = coverage.calls(CallKind::Method).find(|(name, _)| *name == "DoStackSnapshot");
        println!("{habit}: {} different, {walks:?}", coverage.different());
        walked.push((*habit, walks.map_or(0, |(_, walks)| walks.interleavings)));
    }
    let of = |habit| walked.iter().find(|(it, _)| *it == habit).unwrap().1;
    assert_eq!((of("NEVER_WALKS"), of("WALKS_ALWAYS")), (0, COVERED));
    assert!((1..COVERED).contains(&of("WALKS_RARELY")), "{walked:?}");
}
