//! Failures reported by users: each public thread that a simulator can reproduce has its fixture.

use super::*;
use clr_scenario::{ExpectedOutcome, MixedClaim, WalkEnd};

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chapter {
    /// A lock that the suspended thread owns.
    Locks,
    /// A leaf address that is neither managed nor unwindable, or whose kind is uncertain.
    Leaf,
    /// Frames in an unexpected state, possibly because of exceptions.
    Frames,
    /// Threads, modules or code that are created and destroyed.
    Lifetimes,
    /// HRESULTs, and calls at the wrong place.
    Codes,
}

/// The rows that a simulator reproduces with their cause: number, chapter, and threads, of which
/// the header of a fixture must name one.
#[rustfmt::skip]
const ROWS: [(u8, Chapter, &[&str]); 43] = {
    use Chapter::{Codes, Frames, Leaf, Lifetimes, Locks};
    [
        (1, Leaf, &["coreclr#25676", "runtime#13068", "coreclr#25607"]),
        (2, Frames, &["coreclr#26579", "coreclr#26985", "coreclr#27300"]),
        (3, Locks, &["runtime#32286"]),
        (6, Leaf, &["coreclr#25589"]),
        (7, Codes, &["runtime#8615"]),
        (8, Leaf, &["runtime#13171", "coreclr#25923"]),
        (10, Frames, &["runtime#103443"]),
        (11, Codes, &["runtime#103210"]),
        (12, Frames, &["runtime#130220", "runtime#132301"]),
        (13, Frames, &["coreclr#25652"]),
        (14, Locks, &["coreclr#23024"]),
        (15, Codes, &["coreclr#26576", "coreclr#27041"]),
        (16, Lifetimes, &["runtime#72023"]),
        (17, Locks, &["runtime#110062"]),
        (20, Leaf, &["runtime#105712"]),
        (21, Leaf, &["runtime#57962"]),
        (22, Leaf, &["coreclr#12070"]),
        (23, Leaf, &["runtime#66238"]),
        (24, Frames, &["runtime#127044"]),
        (26, Frames, &["clrmd#242"]),
        (27, Locks, &["dd-trace#5808", "dd-trace#5812"]),
        (28, Lifetimes, &["dd-trace#5197", "pyroscope#62"]),
        (29, Leaf, &["dd-trace#4753", "libunwind#648", "libunwind#924"]),
        (31, Lifetimes, &["dd-trace#5729"]),
        (32, Lifetimes, &["dd-trace#7956", "dd-trace#4564", "dd-trace#4707"]),
        (33, Leaf, &["dd-trace#8177", "dd-trace-dotnet#8177"]),
        (34, Leaf, &["dd-trace#9232", "dd-trace-dotnet#9232"]),
        (35, Leaf, &["dd-trace#8671", "dd-trace-dotnet#8671"]),
        (36, Locks, &["dd-trace#3625", "pyroscope#129"]),
        (37, Locks, &["dd-trace#2747", "dd-trace#2740", "dd-trace#3787"]),
        (38, Locks, &["opentelemetry-dotnet-instrumentation#4591"]),
        (39, Locks, &["opentelemetry-dotnet-instrumentation#5038"]),
        (40, Locks, &["newrelic-dotnet-agent#3826"]),
        (41, Codes, &["newrelic-dotnet-agent#3717"]),
        (42, Codes, &["signalfx-dotnet-tracing#368"]),
        (43, Codes, &["dotnet-monitor#1336"]),
        (44, Leaf, &["ebpf-profiler#1892", "ebpf-profiler#1881"]),
        (47, Locks, &["capemon#12", "julia#60690", "StackWalker#58", "remotery#177"]),
        (48, Leaf, &["wasmtime#3859", "wasmtime#3864"]),
        (49, Leaf, &["pe-unwind-info", "framehop#13", "symbolic#645"]),
        (51, Codes, &["The profiling blog"]),
        (52, Frames, &["The profiling blog"]),
        (53, Locks, &["The profiling blog"]),
    ]
};

/// The chapters about stacks, and the one about locks, whose interleavings are searched.
const CHAPTERS: [Chapter; 4] = [Chapter::Leaf, Chapter::Frames, Chapter::Codes, Chapter::Locks];

/// Rows whose fixtures show only the correct walk, because the failing unwinder is not simulated.
const RIGHT_ONLY: [u8; 2] = [29, 44];

/// The results of a row's fixtures.
#[derive(Default)]
struct Ends {
    files: u32,
    named: bool,
    well: bool,
    badly: bool,
}

impl Ends {
    fn see(&mut self, well: bool) {
        self.well |= well;
        self.badly |= !well;
    }

    fn file(&mut self, text: &str, scenario: &Scenario, threads: &[&str]) {
        self.files += 1;
        let header = text.lines().take_while(|line| line.starts_with("//"));
        self.named |= header.into_iter().any(|line| threads.iter().any(|it| line.contains(it)));
        let placed = scenario.stack.iter().flat_map(|stack| &stack.snapshots);
        let calls = scenario.stops.iter().flat_map(|stop| &stop.snapshots).chain(placed);
        for expect in calls.flat_map(|call| &call.expect) {
            let ok = expect.result == ExpectedOutcome::Returned(HResult::OK);
            self.see(ok && !expect.frames.is_empty());
        }
        for expect in scenario.mixed_walks().flat_map(|at| &at.says.expect) {
            let well = match expect.claim {
                Some(MixedClaim::Whole | MixedClaim::Reportable) => true,
                // This is the best possible claim for native code while the runtime is suspended.
                Some(MixedClaim::WithoutLeaf) => {
                    expect.result == Some(ExpectedOutcome::Returned(HResult::OK))
                }
                _ => false,
            };
            self.see(well);
        }
        for walk in scenario.stops.iter().flat_map(|stop| &stop.expect) {
            self.see(walk.ends == WalkEnd::Base);
        }
        for history in scenario.explore.iter().flat_map(|explore| &explore.expect) {
            self.see(matches!(history.ends, ExpectedEnd::Survives { .. }));
        }
    }
}

#[test]
fn every_row_of_four_chapters_has_a_fixture_that_fails_and_one_that_passes() {
    let mut problems = Vec::new();
    for (number, chapter, threads) in ROWS {
        let mut ends = Ends::default();
        let start = format!("field/g{number:02}-");
        let files = gallery().filter(|(name, ..)| name.starts_with(&start));
        files.for_each(|(_, text, scenario)| ends.file(text, scenario, threads));
        let Ends { files, named, well, badly } = ends;
        let badly = badly || RIGHT_ONLY.contains(&number);
        if CHAPTERS.contains(&chapter) && !(files > 0 && named && well && badly) {
            problems.push(format!(
                "g{number:02}: {files} files; header names its thread: {named}; something \
                 passes: {well}; something fails: {badly}"
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Fixtures belong to existing rows; the other rows are reproduced in part.
#[test]
fn rows_are_listed_once_and_fixtures_belong_to_one() {
    const IN_PART: [u8; 12] = [4, 5, 9, 18, 19, 25, 30, 45, 46, 50, 54, 55];
    assert!(ROWS.is_sorted_by(|one, next| one.0 < next.0));
    for file in clr_fixtures::gallery().iter().filter(|file| file.name.starts_with("field/")) {
        let number = file.name.strip_prefix("field/g").and_then(|rest| rest.get(..2)?.parse().ok());
        let number: u8 =
            number.unwrap_or_else(|| panic!("{}: the name has no row number", file.name));
        let known =
            ROWS.iter().any(|activation| activation.0 == number) || IN_PART.contains(&number);
        assert!(known, "{}", file.name);
    }
}
