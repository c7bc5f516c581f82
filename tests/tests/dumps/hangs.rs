//! Why processes hang: the circles that are known of them.

use crate::collection::Dump;
use clr_dump::CoreDump;
use clr_inspect::{Cause, Diagnosis, Runtime, StackWalker, Verdict};
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) fn diagnose(process: &CoreDump<'_>) -> Diagnosis {
    let runtime = Runtime::find(process);
    let known = runtime.as_ref().map_err(|error| *error);
    let mut walker = StackWalker::new(process, process.code_map(), known.ok());
    Diagnosis::of(process, known, &mut walker)
}

/// Returns the threads of the circle. Where threads share a name, the youngest has a remark behind it.
pub(crate) fn circle(expected: &Value) -> BTreeSet<u64> {
    let threads = expected["threads"].as_array().unwrap();
    let id = |name: &Value| {
        let name = name.as_str().unwrap();
        let (bare, is_youngest) = match name.split_once(" (the youngest") {
            Some((bare, _)) => (bare, true),
            None => (name, false),
        };
        let mut named = threads.iter().filter(|thread| thread["name"] == bare);
        let thread = if is_youngest { named.next_back() } else { named.next() };
        thread.unwrap()["tid"].as_u64().unwrap()
    };
    expected["cycle"].as_array().unwrap().iter().map(id).collect()
}

/// Returns the number of the hazard that is known of a hang, where it has one.
const fn hazard(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::LockInCallback => Some("H-08"),
        Cause::LockOverCollection => Some("H-06"),
        Cause::LoaderLock => Some("H-12"),
        _ => None,
    }
}

#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn circles_are_as_expected() {
    for dump in Dump::all() {
        let expected = dump.json("expected");
        let found = diagnose(&dump.open());
        // .NET 8 does not say who suspends.
        let verdict = match (expected["hang"].as_bool().unwrap(), dump.name.starts_with("8.")) {
            (false, _) => Verdict::Nothing,
            (true, false) => Verdict::Proved,
            (true, true) => Verdict::Fits,
        };
        println!("{}: {:?} {:#?}", dump.name, found.verdict(), found.circles);
        assert_eq!(found.verdict(), verdict, "{}", dump.name);
        let threads: BTreeSet<_> =
            found.circles.iter().flat_map(|it| &it.edges).map(|edge| edge.from.into()).collect();
        assert_eq!(threads, circle(&expected), "{}", dump.name);
        assert!(found.circles.len() <= 1, "{}", dump.name);
        let cause = found.circles.first().map(|circle| circle.cause);
        // When the collection was made, joins in Shutdown had no number.
        if cause != Some(Cause::JoinUnderLock) {
            assert_eq!(cause.and_then(hazard), expected["hazard"].as_str(), "{}", dump.name);
        }
        assert_eq!(cause == Some(Cause::JoinUnderLock), dump.name.ends_with("-shutdown"));
    }
}

/// Names of functions decide nothing: without them all is the same.
#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn a_stripped_profiler_is_diagnosed_alike() {
    for dump in Dump::all() {
        let found = diagnose(&dump.open());
        let stripped = diagnose(&dump.open_stripped());
        assert_eq!(stripped.circles, found.circles, "{}", dump.name);
        assert_eq!(stripped.edges, found.edges, "{}", dump.name);
        assert_eq!(stripped.verdict(), found.verdict(), "{}", dump.name);
    }
}

/// Without files less is known. What is found then is right, or nothing.
#[test]
#[ignore = "needs the collection, in the folder that CLR_ORACLES names"]
fn without_files_nobody_is_accused_wrongly() {
    for dump in Dump::all() {
        let expected = circle(&dump.json("expected"));
        let found = diagnose(&dump.open_alone());
        println!("{}: {:?} {:?}", dump.name, found.verdict(), found.unknown.first());
        for edge in found.circles.iter().flat_map(|it| &it.edges) {
            assert!(expected.contains(&edge.from.into()), "{} {edge:?}", dump.name);
        }
    }
}
