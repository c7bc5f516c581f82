//! The same binary through both doors: the recorder in a CLR, and as a guest of the simulated runtime.
//!
//! In a CLR it traces the program `walker/recorder/workloads/Doors.cs` (`.ci/live --doors`; the files
//! `doors/*.txt.gz`), here `doors/doors.kdl`, a text of the same shape. Where the traces differ one side is
//! wrong, or the text cannot say what the program does: each difference is known, with its reason.

mod trace;

use crate::external::recorder;
use clr_recording::vectors::decompress;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use trace::{Comparison, compare, read};

/// The runtimes with traces.
const RUNTIMES: [&str; 11] = [
    "coreclr-3.1-unix",
    "coreclr-3.1-windows",
    "net8-unix",
    "net8-windows",
    "net9-unix",
    "net9-unix-legacy-exceptions",
    "net9-windows",
    "net10-unix",
    "net10-windows",
    "net11-unix",
    "net11-windows",
];

/// The one on which nothing is thrown: its exception handling hangs under wine.
const CALM: &str = "net8-windows";

/// Maximum size of a decompressed trace in bytes.
const LIMIT: usize = 1 << 20;

/// The callbacks that `.ci/live --doors` asks for.
const EVENTS: &str = "jit,loads,exceptions,gc,threads,suspensions,allocations";

/// The side that a difference is to be mended on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The simulated runtime is wrong, or lacks something.
    Simulator,
    /// The text is not the whole program: texts cannot say it, or this one does not.
    Text,
}

/// Differences that are known.
struct Known {
    /// The runtimes; none are all.
    on: &'static [&'static str],
    /// The differences. A `*` at the end stands for anything.
    differences: &'static [&'static str],
    side: Side,
    reason: &'static str,
}

const KNOWN: [Known; 10] = [
    Known {
        on: &[],
        differences: &["ClassLoadFinished, GetClassIDInfo2: *"],
        side: Side::Text,
        reason: "a text has no delegates",
    },
    Known {
        on: &[],
        differences: &[
            "only in the CLR: JITCompilationStarted Doors.Main",
            "only in the CLR: JITCompilationFinished Doors.Main",
            "only in the CLR: JITCompilationStarted Doors.Begins",
            "only in the CLR: JITCompilationFinished Doors.Begins",
            "only in the CLR: JITCompilationStarted Doors.Called",
            "only in the CLR: JITCompilationFinished Doors.Called",
        ],
        side: Side::Text,
        reason: "only `first-call` compiles a method: those that threads start in, and those that native \
                 code calls, have their code from the start",
    },
    Known {
        on: &[],
        differences: &[
            "only in the CLR: ObjectAllocated Callback",
            "only in the CLR: ObjectAllocated System.Action",
            "only in the CLR: ObjectAllocated System.Guid",
            "only in the CLR: ObjectAllocated System.InvalidOperationException",
            "only in the CLR: ObjectAllocated System.Reflection.RuntimeAssembly",
            "only in the CLR: ObjectAllocated System.String",
            "only in the CLR: ObjectAllocated System.Threading.Thread",
            "only in the CLR: ObjectAllocated System.Threading.ThreadStart",
            "only in the CLR: ObjectAllocated ?CORPROF_E_CLASSID_IS_ARRAY",
            "ObjectAllocated, GetClassIDInfo: *",
            "ObjectAllocated, GetClassIDInfo2: *",
            "ObjectAllocated, GetObjectSize2: *",
            "ExceptionThrown, GetClassFromObject: *",
            "ExceptionThrown, GetObjectSize2: *",
        ],
        side: Side::Text,
        reason: "texts say no classes of objects: all are of System.Object; and what the runtime itself \
                 allocates, such as stack traces, is not simulated",
    },
    Known {
        on: &[],
        differences: &["only in the CLR: HandleCreated", "only in the CLR: HandleDestroyed"],
        side: Side::Simulator,
        reason: "an exception in flight has no handle",
    },
    Known {
        on: &[],
        differences: &["RuntimeThreadSuspended: [DoStackSnapshot(another's id, 0): E_*"],
        side: Side::Simulator,
        reason: "the suspending phase begins after the suspending thread's own callback \
                 (`ThreadSuspend::SuspendRuntime`, src/vm/threadsuspend.cpp of 3.1), simulated before it: \
                 CORPROF_E_STACKSNAPSHOT_UNSAFE (C-017)",
    },
    Known {
        on: &[
            "coreclr-3.1-unix",
            "coreclr-3.1-windows",
            "net10-unix",
            "net10-windows",
            "net11-unix",
            "net11-windows",
        ],
        differences: &[
            "JITCompilationStarted Doors.Works: *",
            "JITCompilationFinished Doors.Works: *",
            "ObjectAllocated System.Object: [DoStackSnapshot(NULL, 0): S_OK Doors.Works Doors.Begins + *",
        ],
        side: Side::Text,
        reason: "3.1, 10 and 11 start a thread in a method of the core library, which stays on the stack",
    },
    Known {
        on: &["coreclr-3.1-windows"],
        differences: &[
            "ThreadCreated own: [DoStackSnapshot(another's id, 0): S_OK + Doors.Starts Doors.Main *",
            "ThreadAssignedToOSThread own: [DoStackSnapshot(another's id, 0): S_OK + Doors.Starts *",
            "ThreadDestroyed own: [DoStackSnapshot(another's id, 0): S_OK + Doors.Starts Doors.Main *",
        ],
        side: Side::Text,
        reason: "the main thread waits for the other one in a method of the core library, in the text in its own",
    },
    Known {
        on: &["net9-windows", "net10-windows", "net11-windows"],
        differences: &[
            "ThreadCreated own: [], simulated [DoStackSnapshot(another's id, 0): S_OK *",
            "ThreadAssignedToOSThread own: [], simulated [DoStackSnapshot(another's id, 0): S_OK *",
            "ThreadDestroyed own: [], simulated [DoStackSnapshot(another's id, 0): S_OK *",
            "JITCompilationStarted Doors.Works: *",
            "JITCompilationFinished Doors.Works: *",
            "ObjectAllocated System.Object: [*",
        ],
        side: Side::Simulator,
        reason: "the thread that EnumThreads lists first is that of the finalizers from .NET 9 on, and has no methods; it is \
                 the main thread in 3.1, and simulated on all runtimes",
    },
    Known {
        on: &["net8-windows", "net11-windows"],
        differences: &[
            "Shutdown: [DoStackSnapshot(another's id, 0): CORPROF_E_STACKSNAPSHOT_UNSAFE], simulated []",
            "Shutdown, SuspendRuntime: *",
            "JITCompilationStarted Doors.Calls: [DoStackSnapshot(another's id, 0): \
             CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX], simulated [DoStackSnapshot(another's id, 0): E_FAIL]",
            "ClassLoadFinished Callback: [DoStackSnapshot(another's id, 0): \
             CORPROF_E_STACKSNAPSHOT_UNSAFE], simulated [DoStackSnapshot(another's id, 0): E_FAIL]",
        ],
        side: Side::Text,
        reason: "where the finalizers' thread is at that time is chance",
    },
    Known {
        on: &["net11-unix", "net11-windows"],
        differences: &[
            "only in the CLR: JITCompilationStarted Doors.call_back",
            "only in the CLR: JITCompilationFinished Doors.call_back",
            "ObjectAllocated System.Object: [DoStackSnapshot(NULL, 0): S_OK Doors.Called * Doors.call_back Doors.Calls *",
        ],
        side: Side::Text,
        reason: "a P/Invoke with marshalling is a method of .NET 11, of the class that declares it; in the text that of another \
                 class, with its code from the start",
    },
];

/// Returns the folder of the texts and traces.
fn doors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doors")
}

/// Runs the recorder as a guest of a text with more settings and arguments, and returns its trace and what was printed.
fn guest(
    library: &Path,
    (text, runtime): (&Path, &str),
    settings: &str,
    arguments: &[&str],
) -> (String, String) {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("trace");
    let settings = format!("mode=calls module=Doors.dll {settings} out={}", trace.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_clrsim"));
    command.arg("host").arg(library).arg(text).args(["--on", runtime]).args(arguments);
    command.args(["--clsid", recorder::CLASS]).env("CLR_RECORDER", settings);
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{runtime}: {printed}");
    (std::fs::read_to_string(trace).unwrap(), printed)
}

/// The recorder's own thread samples meanwhile, in many orders. Before .NET 9 a thread that resumes the runtime clears the mark of
/// another one that has suspended it (C-127), as this recorder does in callbacks.
#[cfg(target_env = "gnu")]
#[test]
#[ignore = "external: builds the recorder"]
fn the_recorders_sampling_thread_is_scheduled() {
    let library = recorder::library();
    let settings = "sampler=1 events=jit,threads,gc,suspensions";
    let (trace, printed) = guest(
        &library,
        (&doors().join("one_method.kdl"), "net9-unix"),
        settings,
        &["--schedules", "40"],
    );
    assert!(printed.contains("40  ends"), "{printed}");
    assert!(trace.contains("walks of the sampler: S_OK with frames"), "{trace}");
}

/// A thread of the recorder forces GCs: what it gets, and what the runtime answers it afterwards.
///
/// On Windows the recorder walks another thread as well, by the id of the first one: in a search that of the runtime's start, which ends (C-028).
#[cfg(target_env = "gnu")]
#[test]
#[ignore = "external: builds the recorder"]
fn a_thread_that_forces_gcs_gets_the_same_answers() {
    let library = recorder::library();
    let (text, folder) = (doors().join("one_method.kdl"), doors().join("forced-gc"));
    for runtime in RUNTIMES.into_iter().filter(|runtime| !runtime.ends_with("windows")) {
        let settings = format!("collector=1 events={EVENTS}");
        let (trace, printed) = guest(&library, (&text, runtime), &settings, &["--schedules", "1"]);
        assert!(printed.contains("1  ends"), "{printed}");
        let mut lines =
            trace.lines().skip_while(|line| !line.starts_with("A thread of the profiler"));
        let block: Vec<_> = lines
            .next()
            .into_iter()
            .chain(lines.take_while(|line| line.starts_with(' ')))
            .collect();
        let real = std::fs::read_to_string(folder.join(format!("{runtime}.txt"))).unwrap();
        assert_eq!(block, real.lines().collect::<Vec<_>>(), "{runtime}");
    }
}

/// Returns the program without the calls of the methods that throw.
fn without_exceptions(text: &str) -> String {
    let throws = ["first-call \"Doors.Catches\"", "first-call \"Doors.Nests\""];
    let lines = text.lines().filter(|line| !throws.contains(&line.trim()));
    lines.collect::<Vec<_>>().join("\n")
}

impl Known {
    /// Returns the index of the pattern that a difference on a runtime has.
    fn find(&self, runtime: &str, difference: &str) -> Option<usize> {
        let matches = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(start) => difference.starts_with(start),
            None => difference == *pattern,
        };
        let is_on = self.on.is_empty() || self.on.contains(&runtime);
        self.differences.iter().position(|pattern| is_on && matches(pattern))
    }
}

#[test]
#[ignore = "external: builds the recorder"]
fn the_recorder_gets_the_same_answers_in_a_clr_and_in_the_simulated_runtime() {
    let library = recorder::library();
    let text = doors().join("doors.kdl");
    let folder = TempDir::new().unwrap();
    let calm = folder.path().join("calm.kdl");
    std::fs::write(&calm, without_exceptions(&std::fs::read_to_string(&text).unwrap())).unwrap();
    let (mut used, mut unknown) = (BTreeSet::new(), Vec::new());
    for runtime in RUNTIMES {
        let real = std::fs::read(doors().join(format!("{runtime}.txt.gz"))).unwrap();
        let real = String::from_utf8(decompress(&real, LIMIT).unwrap()).unwrap();
        let text = if runtime == CALM { &calm } else { &text };
        let (trace, printed) = guest(&library, (text, runtime), &format!("events={EVENTS}"), &[]);
        assert!(printed.contains("clean: it was loaded, and nothing was wrong"), "{printed}");
        let (real, simulated) = (read(&real), read(&trace));
        let Comparison { callbacks, calls, differences } = compare(&real, &simulated);
        let mut of_simulator = 0;
        for difference in &differences {
            let mut known = KNOWN.iter().enumerate();
            let found = known.find_map(|(at, known)| Some((at, known.find(runtime, difference)?)));
            if let Some((at, pattern)) = found {
                used.insert((at, pattern));
                of_simulator += usize::from(KNOWN[at].side == Side::Simulator);
            } else {
                unknown.push(format!("{runtime}: {difference}"));
            }
        }
        println!(
            "{runtime}: {callbacks} callbacks of {} in the CLR and {} simulated, {calls} calls, {} \
             differences, {of_simulator} of the simulator",
            real.len(),
            simulated.len(),
            differences.len()
        );
        let least = if runtime == CALM { (30, 1200) } else { (70, 3000) };
        assert!(callbacks > least.0 && calls > least.1, "{runtime}");
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    for (at, known) in KNOWN.iter().enumerate() {
        assert!(!known.reason.is_empty());
        for (pattern, difference) in known.differences.iter().enumerate() {
            assert!(used.contains(&(at, pattern)), "no longer a difference: {difference}");
        }
    }
}
