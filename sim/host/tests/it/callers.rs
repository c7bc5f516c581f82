//! Who may call which method: outside of callbacks a thread of the runtime may call the asynchronous ones alone.

use clr_com::*;
use clr_runtime::generation::Generation;
use clr_walker::profiling::HResult;
use clrsim::{Role, Session};
use std::mem::ManuallyDrop;

const TEXT: &str = r#"
function "App.Main" kind="jit" { body { call "App.Load" } }
function "App.Load" kind="jit" { body { work 1 } }
stop at="App.Load"
"#;

/// Each method with its callers.
const TABLE: &str = include_str!("../../../runtime/src/profiling/callers.tsv");

/// Methods with rules of their own, or that end what is tested here.
const APART: [&str; 4] = ["ForceGC", "SuspendRuntime", "ResumeRuntime", "RequestProfilerDetach"];

/// Calls each method as a thread of the runtime, outside of callbacks, with zeroes. Returns the methods that are simulated, and
/// true for those that were refused for their caller.
fn refused(generation: Generation) -> Vec<(&'static str, bool)> {
    let session = Session::open(TEXT, generation).unwrap();
    session.run_to_stop(0).unwrap();
    session.act_as(Role::Managed);
    // SAFETY: the session's object, which is not counted.
    let info = ManuallyDrop::new(unsafe { IUnknown::from_raw(session.info()) }.unwrap());
    let info = ManuallyDrop::new(info.cast::<ICorProfilerInfo15>().unwrap());
    let mut simulated = Vec::new();
    for slot in 3.. {
        let Some(method) = ICorProfilerInfo15::method(slot) else { break };
        if APART.contains(&method.name) {
            continue;
        }
        let words = vec![0; method.arguments.len()];
        // SAFETY: all pointers are NULL.
        let result = unsafe { info.call(slot, &words) };
        match result.map(|word| HResult(word as u32)) {
            Some(HResult::NOT_IMPLEMENTED) => {}
            result => {
                simulated.push((method.name, result == Some(HResult::UNSUPPORTED_CALL_SEQUENCE)));
            }
        }
    }
    simulated
}

#[test]
fn synchronous_methods_are_refused_outside_of_callbacks() {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<[&str; 3]> =
        rows.map(|row| row.split('\t').collect::<Vec<_>>().try_into().unwrap()).collect();
    for generation in Generation::ALL.into_iter().filter(|one| one.profiler_info() >= 15) {
        let simulated = refused(generation);
        assert!(simulated.len() > 40, "{generation}: {}", simulated.len());
        for (method, refused) in simulated {
            let row = rows.iter().find(|[name, ..]| *name == method).unwrap();
            let is_synchronous = matches!(row[1], "callbacks" | "triggers");
            assert_eq!(refused, is_synchronous, "{generation}: {method} is for {}", row[1]);
        }
    }
}
