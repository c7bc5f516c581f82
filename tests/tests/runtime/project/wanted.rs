//! What it would take to know clauses on runtimes on which they are assumed.

use super::*;

/// A recording that would show clauses.
struct Wanted {
    clauses: &'static [u16],
    /// The recording, in words.
    recording: &'static str,
}

const fn wanted(clauses: &'static [u16], recording: &'static str) -> Wanted {
    Wanted { clauses, recording }
}

/// Recordings that would show the clauses on runtimes that can be recorded.
const WANTED: &[Wanted] = &[
    wanted(&[1], "calls while RequestProfilerDetach waits, by a thread of the profiler"),
    wanted(&[2, 18, 132], "a run from Initialize on, with suspensions, under the legacy handling"),
    wanted(&[3, 5], "calls after SetEventMask has taken the permission away, and given it back"),
    wanted(&[10], "a thread of the profiler that names no thread"),
    wanted(&[11], "a call for a thread of the server GC or of background GC"),
    wanted(&[12], "nothing: the GC is there before the EE counts as started"),
    wanted(
        &[15, 16],
        "calls for a target that is being walked: in the callback, and by another thread",
    ),
    wanted(
        &[17],
        "calls for other threads by the thread that suspends, in the middle of a suspension",
    ),
    wanted(
        &[20],
        "a thread of the profiler that walks a cooperative thread between SuspendRuntime and ResumeRuntime",
    ),
    wanted(&[23], "a seed with ContextFlags of 0"),
    wanted(&[24], "a call without a callback, which ends the process on Unix"),
    wanted(
        &[27],
        "a walk of a thread that was created and not started, or is inside the stress log",
    ),
    wanted(&[28], "the ThreadID of a destroyed thread, which ends the process"),
    wanted(&[29], "RuntimeThreadSuspended and Resumed asked for, and a walk of another thread"),
    wanted(&[30], "two managed walkers that walk each other"),
    wanted(
        &[33, 34],
        "a thread stopped by SuspendThread as it changes its mode: a chance of one in many thousand walks",
    ),
    wanted(&[36], "a walk while another thread publishes code: a chance as small"),
    wanted(&[41, 44], "seeds in padding, and in native code, of a thread in a method"),
    wanted(&[42], "a seed of zeros"),
    wanted(&[49], "a seed in a callback of the second pass, by a thread that is preemptive there"),
    wanted(&[50], "a call as an exception ends, in its last callbacks"),
    wanted(
        &[54, 55, 109, 111, 113],
        "seeds whose Rsp is nowhere, or readable and not on the stack",
    ),
    wanted(
        &[62, 63, 64, 66, 67],
        "dynamic methods and marshalled P/Invokes on the stack, at the leaf too",
    ),
    wanted(&[68], "nothing: a method that was inlined has no frame"),
    wanted(
        &[71, 72, 78, 79],
        "walks of threads in allocation, in P/Invokes and in helpers, at each of their instructions",
    ),
    wanted(&[74, 75, 77], "walks of threads that a GC has hijacked or redirected"),
    wanted(&[80], "a reverse P/Invoke right above an active P/Invoke without a frame between"),
    wanted(&[84, 85, 154], "filters and finally handlers that call, in normal execution, too"),
    wanted(&[108], "a walk as the first method of a thread is compiled"),
    wanted(&[112], "a damaged GS cookie, which ends the process"),
    wanted(
        &[114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 136, 173],
        "a door trace (`.ci/live --doors`) of the runtime with these calls",
    ),
    wanted(&[129], "ObjectAllocated"),
    wanted(
        &[137, 138, 139, 140, 141, 142, 143, 144, 146],
        "signals, or SuspendThread, at such an instruction of jitted code",
    ),
    wanted(&[147], "a look-up of every address of a code heap"),
    wanted(&[155], "GetFunctionFromIP of addresses below a code heap, which may end the process"),
    wanted(&[156], "a P/Invoke of precompiled code at the leaf"),
    wanted(&[157], "a GC while a walker suspends and looks code up: a hang, by chance"),
    wanted(&[158], "any walk with registers"),
    wanted(&[163, 164], "a walk in callbacks of exceptions"),
    wanted(&[160], "a walk in a handler of a hardware fault"),
    wanted(&[162], "seeds at the end of a page, on a machine with AVX-512"),
    wanted(&[165], "a handler left by a second exception"),
    wanted(&[168], "calls for other threads in the callbacks of a suspension"),
    wanted(
        &[176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190],
        "sequences of callbacks, of the programs in `fixtures/sequences`",
    ),
    wanted(&[174, 175], "a door trace with a thread of the profiler that forces GCs"),
];

/// The recording that shows anything of .NET Framework.
const FRAMEWORK: &str = "a recording on Windows with .NET Framework: no such machine was at hand, and its source is \
                         not public";

/// Returns the last table of the page: the clauses that are assumed on some runtime, and what it would take.
pub(super) fn table() -> String {
    let mut table = "
## What it would take

| Clause | Assumed on | Recording of | or the source there of |
| --- | --- | --- | --- |
"
    .to_owned();
    for entry in entries() {
        let assumed: Vec<_> = assumed(entry).filter(|it| !is_framework(*it)).collect();
        if !assumed.is_empty() {
            let wanted = WANTED.iter().find(|it| it.clauses.contains(&entry.clause.number()));
            let recording = wanted.map_or("?", |it| it.recording);
            let source = entry.source.split("; ").filter(|part| is_source(part));
            let source = source.collect::<Vec<_>>().join("; ");
            let on = Generations::of(&assumed);
            writeln!(table, "| {} | {on} | {recording} | {source} |", entry.clause).unwrap();
        }
    }
    let framework: usize =
        entries().map(|entry| assumed(entry).filter(|it| is_framework(*it)).count()).sum();
    writeln!(table, "| {framework} cells | .NET Framework | {FRAMEWORK} | |").unwrap();
    table
}

fn assumed(entry: &ClauseEntry) -> impl Iterator<Item = Generation> {
    let is_assumed = |it: &Generation| entry.support(*it) == Some(Support::Assumed);
    entry.generations.iter().filter(is_assumed)
}

fn is_framework(generation: Generation) -> bool {
    matches!(generation.family().product, Product::Framework)
}

/// Returns true if a part of a clause's sources is a file or function.
fn is_source(part: &str) -> bool {
    part != "recordings" && !part.starts_with("docs") && !part.contains('#')
}

#[test]
fn what_is_assumed_says_what_it_would_take() {
    let mut problems = Vec::new();
    let mut known = BTreeSet::new();
    for number in WANTED.iter().flat_map(|it| it.clauses) {
        assert!(known.insert(*number), "C-{number:03} twice");
    }
    for entry in entries() {
        let is_assumed = assumed(entry).any(|it| !is_framework(it));
        if is_assumed && !known.contains(&entry.clause.number()) {
            problems.push(entry.clause);
        }
    }
    assert!(problems.is_empty(), "{problems:?}");
}
