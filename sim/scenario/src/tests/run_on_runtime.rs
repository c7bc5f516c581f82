//! Tests of calls at the stops of programs.

use super::parse;
use crate::RunOnError;
use clr_runtime::generation::Generation;

const ALLOCATION: &str = r#"
function "App.Main" kind="jit" { body { call "App.Foo" } }
function "App.Foo" kind="jit" { body { new; p-invoke "Lib.Sleep" } }
function "Lib.Sleep" { body { work 3 } }
stop callback="ObjectAllocated" {
    snapshot {
        expect {
            frame "App.Foo"
            frame "App.Main"
            marker "CallDescrWorkerInternal"
            result "S_OK"
        }
    }
    snapshot by="native-walker" {
        expect on="windows" { result "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX" }
        expect on="unix" { result "E_NOTIMPL" }
    }
    snapshot by="native-walker" seed="top-managed" {
        expect on="windows" {
            frame "App.Foo"
            frame "App.Main"
            marker "CallDescrWorkerInternal"
            result "S_OK"
        }
    }
}
stop at="Lib.Sleep" {
    snapshot by="native-walker" {
        expect on="windows" {
            frame "App.Foo" stale=#true
            frame "App.Main"
            marker "CallDescrWorkerInternal"
            result "S_OK"
        }
    }
}
"#;

#[test]
fn programs_are_walked_where_they_stop() {
    let scenario = parse(ALLOCATION);
    for generation in Generation::ALL {
        let reports = scenario.run_on(generation).unwrap();
        assert_eq!(reports.len(), if generation.is_unix() { 2 } else { 4 });
        for report in reports {
            assert_eq!(report.differences, [], "{generation}: {}", report.found);
        }
    }
}

#[test]
fn a_stop_that_is_not_reached_is_an_error() {
    let text = ALLOCATION.replace("ObjectAllocated\"", "ObjectAllocated\" visit=2");
    let found = parse(&text).run_on(Generation::Net10Windows);
    let Err(RunOnError::NotReached { stop: 0, thread: 0, .. }) = found else {
        panic!("{found:?}");
    };
}

#[test]
fn the_runtime_s_own_functions_are_places_to_stop() {
    let text = ALLOCATION.replace("at=\"Lib.Sleep\"", "at=\"AllocateObject\" instruction=1");
    let text = text.replace("frame \"App.Foo\" stale=#true", "frame \"App.Main\"");
    let reports = parse(&text).run_on(Generation::CoreClr31Windows).unwrap();
    // In cooperative mode, with a native leaf on top.
    assert!(reports[3].differences.len() > 1, "{}", reports[3].found);
    assert_eq!(reports[3].found.frame_reports, []);
}

/// The stopped thread is not the one that is walked: its place makes no difference.
#[test]
fn another_thread_is_held_against_its_own_registers() {
    let text = |at: &str, frame: &str| {
        format!(
            r#"
function "App.Main" kind="jit" {{ body {{ call "App.Foo"; clobber "rax"; new; p-invoke "Lib.Sleep" }} }}
function "App.Foo" kind="jit" {{ body {{ work 3 }} }}
function "App.Spin" kind="jit" {{ push "rbx" "rsi"; body {{ clobber "rax"; clobber "rbx"; work 9 }} }}
function "Lib.Sleep" {{ body {{ work 3 }} }}
thread "main"
thread "pool" start="App.Spin"
stop thread="main" {at} {{
    other "pool" at="App.Spin" instruction=5
    snapshot by="native-walker" thread="pool" {{
        expect {{ frame "App.Spin" {frame}; marker "CallDescrWorkerInternal"; result "S_OK" }}
    }}
    snapshot by="native-walker" thread="pool" seed="top-managed" {{
        expect {{ frame "App.Spin"; marker "CallDescrWorkerInternal"; result "S_OK" }}
    }}
}}
"#
        )
    };
    let run =
        |at: &str, frame: &str| parse(&text(at, frame)).run_on(Generation::Net8Windows).unwrap();
    for at in
        [r#"at="Lib.Sleep""#, r#"at="App.Foo" instruction=2"#, r#"callback="ObjectAllocated""#]
    {
        for report in run(at, "") {
            assert!(report.is_right(), "{at}: {:?}\n{}", report.differences, report.found);
        }
        let wrong = &run(at, "rbx=1")[0];
        assert_eq!(wrong.differences.len(), 1, "{at}: {:?}", wrong.differences);
    }
}
