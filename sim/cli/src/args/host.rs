//! Arguments of `clrsim host`.

use super::{DrawArgs, Json, On, ScenarioArg, SearchArgs};
use clap::{Arg, Args};
use std::path::PathBuf;

const HOST_EXAMPLES: &str = "\
Examples:
  clrsim host libMyProfiler.so my.kdl
  clrsim host libMyProfiler.so my.kdl --on net8-unix,net9-unix
  clrsim host MyProfiler.dll my.kdl --clsid {3c2a5b7e-6d0f-4f0e-9c51-0a6b9d3f2c11} --json
  clrsim host libMyProfiler.so my.kdl --matrix
  clrsim host libMyProfiler.so my.kdl --trace calls.txt
  clrsim host libMyProfiler.so my.kdl --on net8-unix --compare real.trace.jsonl
  clrsim host libMyProfiler.so my.kdl --schedules 1000 --seed 7
  clrsim host libMyProfiler.so my.kdl --schedules 1000 --faults EnumThreads,DoStackSnapshot=E_FAIL
  clrsim host libMyProfiler.so my.kdl --schedules 100000 --strategy pct --jobs 8
  clrsim host libMyProfiler.so my.kdl --replay net8-unix:clr1:14b3a:6ac5a404:0d9f1c3e
  clrsim host libMyProfiler.so my.kdl --replay net8-unix:clr1:14b3a --html history.html
  clrsim host libMyProfiler.so my.kdl --replay net8-unix:clr1:14b3a --gdb

The library is that of a profiler, as it is shipped. It is loaded as a CLR does: DllGetClassObject
for IClassFactory, CreateInstance and QueryInterface for ICorProfilerCallback2, QueryInterface for
the newest callback that the runtime knows down to ICorProfilerCallback3, Initialize. Then the
scenario's program is executed, with the callbacks and hooks that the profiler has asked for;
Shutdown and the release of the runtime's references follow.

Each runtime has a process of its own, which the tool starts; without --on there is one, the newest
of this system, and with --matrix there are all. A profiler that ends it, never returns, or goes
beyond its limits (--timeout, --memory, --threads, --output), loses that process alone, also while
it is loaded. The profiler's output is printed at the end. What the profiler has started ends with
its process, and with the tool, however that ends.

Without --schedules threads of the profiler run, but the runtime refuses their calls.

With --schedules (x86-64: Linux with glibc, Windows) the profiler's own threads are scheduled,
together with those of the program: one runs at a time, and where they could observe each other a
search chooses the next one. Each interleaving has a process of its own. The outcomes are counted;
the first interleaving of each failure comes with its story, with the stacks of the profiler's
threads, and with the command that replays it. A crash, an exit and references that are left are
failures, too. The interleavings of random and pct depend on the seed and their number alone:
machines can share them by --first and --schedules, and the result does not depend on --jobs. Of a
single one the profiler's output is printed.

Below the counts stands what was looked at: the callbacks and calls with their results, the
profiler's threads, the number of different interleavings. What was not looked at is a failure: a
profiler that is not loaded; a call that a CLR answers and this runtime does not simulate; no walk,
though the profiler asked for the right to; a thread that never went on after its first wait; a
profiler that called nothing; what an explore of the text expects, which is about the text's own
profiler. --allow names one of these facts, if it has to be so.

With --faults calls of the runtime fail as a choice of the search, at most one in an interleaving,
where a CLR may and the simulated process has no reason to: SuspendRuntime is refused, EnumThreads
lacks memory, a walk fails before its first frame or after it. The story and the replay string say
which call. A search that was to make calls fail, and made none, fails.

--replay executes one interleaving again: its story, and each walk of a stack with the runtime's
decisions; or, drawn, its timeline. It works with another build of the library as long as that goes
the same way; a note says if the library or the scenario has changed.

With --trace all calls and callbacks are written with their arguments and results, in order, by
thread, with names instead of ids: as lines of JSON into a file *.jsonl, else as text. AddRef and
Release, and the hooks for enter, leave and tailcall, are not in it. clr-recorder writes the same
trace of any profiler in a real CLR (CLR_RECORDER=\"mode=trace profiler=PATH out=FILE\").

With --compare the story is compared with that of a trace, and the first difference of each thread
is printed, the first one first. Left out is what is chance, by rules that the book has (chapter
Traces), and what the program of the trace did with code that the text does not name; how much that
is, is said below. A comparison of nothing fails.

The verdict is one of

  clean          the profiler was loaded, and nothing was wrong
  findings       it was loaded, and something was wrong
  not-simulated  it called a method that a CLR answers, and this runtime does not
  unseen         something was not looked at: no walk, though it asked for it; no call at all; what
                 the text expects of its own profiler
  threads        it started threads, whatever happened then
  refused        it refused to be loaded, or has none of the interfaces
  unloadable     the system cannot load the library, or it exports no DllGetClassObject
  process-ended  the simulated runtime would have ended the process, or waited for ever
  stuck          the program cannot go on, for example after SuspendRuntime without ResumeRuntime
  died           the profiler ended its process: a crash, an abort, a call of exit
  hung           the profiler did not return in time
  limit          its process used more memory, threads or output than it may

Exit codes:
  0  every verdict is clean, and with --compare there is no difference; with --schedules or
     --replay, every interleaving ends well, and what was not looked at is allowed
  1  some verdict is another one, or --compare found a difference; with --schedules or --replay,
     some interleaving fails, or something was not looked at
  2  the arguments are wrong, a file is missing, or the scenario is no program
130  Ctrl-C ended a search: what was found so far was printed";

/// Load a profiler's library, unmodified, and run it over a scenario on a simulated runtime.
///
/// Prints what it called and with which results, what was refused and why, what is not simulated, its
/// mistakes, and each walk of a stack with the frames and the runtime's decisions.
#[derive(Debug, Args)]
#[command(after_help = HOST_EXAMPLES, mut_args(needing))]
#[cfg_attr(
    not(all(feature = "host", target_pointer_width = "64")),
    allow(dead_code, reason = "profilers are loaded with this feature, by processes of 64 bits")
)]
pub(crate) struct HostArgs {
    /// The profiler's library: .so, .dll or .dylib
    #[arg(value_name = "LIBRARY")]
    pub(crate) library: PathBuf,

    #[command(flatten)]
    pub(crate) scenario: ScenarioArg,

    #[command(flatten)]
    pub(crate) on: On,

    /// The class that DllGetClassObject is asked for. Many profilers ignore it [default: all zeros]
    #[arg(long, value_name = "CLSID", value_parser = class)]
    pub(crate) clsid: Option<String>,

    #[command(flatten)]
    pub(crate) search: SearchArgs,

    /// Allow that something is not looked at, by the words that the failure names: no-walk, nothing,
    /// not-loaded, not-judged, not-simulated:METHOD, stuck:THREAD, no-fault:METHOD. May be given several times
    #[arg(long, value_name = "FACT", value_parser = fact)]
    pub(crate) allow: Vec<String>,

    /// Execute one interleaving again, by its name: RUNTIME:clr1:…
    #[arg(long, value_name = "NAME", conflicts_with_all = ["schedules", "matrix", "journal"])]
    pub(crate) replay: Option<String>,

    #[command(flatten)]
    pub(crate) draw: DrawArgs,

    /// With --replay: stop at the end of the interleaving, before the profiler's threads go on, and start gdb there
    /// (Linux); with commands, separated by ;, gdb executes these alone
    #[arg(long, value_name = "COMMANDS", requires = "replay", num_args = 0..=1, default_missing_value = "")]
    pub(crate) gdb: Option<String>,

    /// Print a table instead: on which runtimes the profiler loads, and how it fares there
    #[arg(long)]
    pub(crate) matrix: bool,

    /// Write all calls and callbacks with their arguments and results: lines of JSON into *.jsonl, else text; - prints them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["schedules", "replay", "matrix"])]
    pub(crate) trace: Option<PathBuf>,

    /// Compare the story with a trace, of a real CLR or of before
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["schedules", "replay", "matrix"])]
    pub(crate) compare: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) json: Json,

    /// Be the process of one runtime, and write its journal into this file
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// As the process of one runtime: write the lines of the trace into this file
    #[arg(long, hide = true, value_name = "FILE", requires = "journal")]
    pub(crate) trace_lines: Option<PathBuf>,

    /// Be the process of one interleaving, and keep of it what this says
    #[cfg(all(windows, target_arch = "x86_64"))]
    #[arg(long, hide = true, value_name = "JSON")]
    pub(crate) history: Option<String>,
}

/// Limits of the processes of a profiler.
#[derive(Clone, Debug, Args)]
pub(crate) struct LimitArgs {
    /// The time after which a profiler that does not return is ended; in interleavings, that a thread
    /// may run without a call that is simulated [default: 20; in interleavings 10]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,

    /// The memory that a process of the profiler may use at a time [default: 4096]
    #[arg(long, value_name = "MIB")]
    pub(crate) memory: Option<u64>,

    /// The threads that a process of the profiler may have at a time [default: 512]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u64>,

    /// The output that a process of the profiler may make, its calls included [default: 64]
    #[arg(long, value_name = "MIB")]
    pub(crate) output: Option<u64>,
}

#[cfg(feature = "host")]
impl LimitArgs {
    /// Returns the arguments again, for a process of the tool.
    pub(crate) fn again(&self) -> Vec<String> {
        let Self { timeout, memory, threads, output } = *self;
        let all = [
            ("--timeout", timeout),
            ("--memory", memory),
            ("--threads", threads),
            ("--output", output),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.flat_map(|(name, value)| [name.to_owned(), value.to_string()]).collect()
    }
}

/// Options that need `--schedules`, and those that need `--replay`.
const NEEDING: [(&str, &[&str]); 2] = [
    (
        "schedules",
        &["strategy", "depth", "preemptions", "seed", "first", "jobs", "faults", "most_faults"],
    ),
    ("replay", &["draw", "html"]),
];

/// Returns an argument with what it needs beside it.
fn needing(arg: Arg) -> Arg {
    let id = arg.get_id().clone();
    if id == "schedules" {
        return arg.conflicts_with_all(["matrix", "journal"]);
    }
    match NEEDING.iter().find(|(_, options)| options.contains(&id.as_str())) {
        Some((needed, _)) => arg.requires(*needed),
        None => arg,
    }
}

/// Returns the words of a fact.
fn fact(text: &str) -> Result<String, String> {
    let is_alone = ["no-walk", "nothing", "not-loaded", "not-judged"].contains(&text);
    let names = |head: &str| text.strip_prefix(head).is_some_and(|name| !name.is_empty());
    if is_alone || ["not-simulated:", "stuck:", "no-fault:"].iter().any(|head| names(head)) {
        Ok(text.to_owned())
    } else {
        let all = "no-walk, nothing, not-loaded, not-judged, not-simulated:METHOD, stuck:THREAD, no-fault:METHOD";
        Err(format!("is none of {all}"))
    }
}

/// Returns a class id without braces.
fn class(text: &str) -> Result<String, String> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let is_digit = |(at, digit): (usize, char)| match at {
        8 | 13 | 18 | 23 => digit == '-',
        _ => digit.is_ascii_hexdigit(),
    };
    if inner.len() == 36 && inner.chars().enumerate().all(is_digit) {
        Ok(inner.to_owned())
    } else {
        Err("has another form than {00000000-0000-0000-0000-000000000000}".to_owned())
    }
}
