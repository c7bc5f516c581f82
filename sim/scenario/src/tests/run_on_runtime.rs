//! Tests of calls at the stops of programs.

use super::*;

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

#[test]
fn waits_are_places_to_stop() {
    let text = |at: &str| {
        format!(
            r#"
function "App.Main" kind="jit" {{
    body {{
        start-thread "App.Work"
        sleep
        monitor-wait
        sleep
        tier-up "App.Finalize"
        new-finalizable "App.Finalize"
        collect
        await-finalizers
        join-thread "App.Work"
    }}
}}
function "App.Work" kind="jit" {{ body {{ sleep; work 9 }} }}
function "App.Finalize" kind="jit" {{ body {{ work 2 }} }}
thread "main" start="App.Main"
thread "worker" start="App.Work" by-program=#true
thread "finalizer" finalizer=#true
thread "tiers" tiering=#true
thread "gc" gc=#true
stop {at} {{ snapshot by="native-walker" suspended=#true }}
"#
        )
    };
    let places = [
        "at=sleep",
        "at=sleep visit=2",
        "at=monitor-wait",
        "at=await-finalizers",
        "at=join-thread",
        "at=gc",
        "thread=worker at=sleep",
        "thread=finalizer at=idle",
        "thread=tiers at=idle",
        "thread=gc at=idle",
    ];
    for generation in Generation::ALL {
        for at in places {
            let scenario = parse(&text(at));
            let mut looked = 0;
            scenario
                .at_stops(generation, |reached| {
                    let place = reached.world.wait_place(reached.thread).unwrap();
                    assert!(at.contains(&format!("at={}", place.name())), "{generation}: {at}");
                    assert!(!reached.world.is_cooperative(reached.thread), "{generation}: {at}");
                    looked += 1;
                })
                .unwrap();
            assert_eq!(looked, 1, "{generation}: {at}");
        }
        let found = parse(&text("at=sleep visit=3")).run_on(generation);
        assert!(matches!(found, Err(RunOnError::NotReached { .. })), "{generation}: {found:?}");
    }
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

const TWO_THREADS: &str = r#"
function "App.Main" kind="jit" { body { call "App.Foo"; new; p-invoke "Lib.Sleep" } }
function "App.Spin" kind="jit" { push "rbx" "rsi"; body { clobber "rbx"; work 9; call "App.Foo"; new } }
function "App.Foo" kind="jit" { body { work 3 } }
function "Lib.Sleep" { body { work 3 } }
thread "main"
thread "pool" start="App.Spin"
"#;

/// A stale seed has the registers of the walked thread at its own previous stop.
#[test]
fn a_stale_seed_is_of_the_walked_thread() {
    let calls = |at: &str| {
        format!(
            r#"{TWO_THREADS}
stop thread="pool" at="App.Spin" instruction=4 {{ snapshot by="native-walker" {{ expect {{ frame "App.Spin"; marker; result "S_OK" }} }} }}
stop thread="main" {at} {{
    other "pool" at="AllocateObject" instruction=1
    snapshot by="native-walker" thread="pool" seed="stale" {{
        expect on="windows" {{ frame "App.Spin"; marker; result "S_OK" }}
    }}
}}
"#
        )
    };
    for at in [r#"at="Lib.Sleep""#, r#"at="App.Foo" instruction=2"#] {
        let scenario = parse(&calls(at));
        let reports = scenario.run_on(Generation::Net8Windows).unwrap();
        let [stopped, stale] = &reports[..] else { panic!("{reports:?}") };
        assert!(stale.is_right(), "{at}: {:?}\n{}", stale.differences, stale.found);
        // The seed's place is that of the earlier stop: the thread is somewhere else by now.
        let label = |report: &crate::SnapshotReport| {
            report.found.frame_reports[0].frame_report.label.clone()
        };
        assert_eq!(label(stale), label(stopped), "{at}");
    }
}

/// A call is never made without the seed that it names, and the other calls of the stop are made.
#[test]
fn a_call_without_its_seed_is_an_error() {
    let text = format!(
        r#"{TWO_THREADS}
stop thread="main" at="Lib.Sleep" {{
    other "pool" at="App.Spin" instruction=4
    snapshot by="native-walker" seed="App.Main" {{ expect on="windows" {{ result "S_OK" }} }}
    snapshot by="native-walker" seed="App.Spin" {{ expect on="windows" {{ result "S_OK" }} }}
    snapshot by="native-walker" thread="pool" seed="App.Spin" {{ expect on="windows" {{ result "S_OK" }} }}
}}
"#
    );
    let scenario = parse(&text);
    let error = scenario.run_on(Generation::Net8Windows).unwrap_err();
    assert_eq!(error, RunOnError::NoSeed { stop: 0, snapshot: 1 });
    let words = scenario.named(error).to_string();
    assert_eq!(words, "thread main has no activation of App.Spin for the seed there");
    let made: Vec<_> = scenario.each_on(Generation::Net8Windows);
    let made: Vec<_> = made.iter().map(|(_, made)| made.is_ok()).collect();
    assert_eq!(made, [true, false, true]);
}

/// A position that the function does not have is an error of the run, too, and at once.
#[test]
fn a_stop_at_no_instruction_is_an_error() {
    let text = ALLOCATION.replace("at=\"Lib.Sleep\"", "at=\"Lib.Sleep\" instruction=99");
    let scenario = parse(&text);
    let error = scenario.run_on(Generation::Net10Windows).unwrap_err();
    let RunOnError::NoInstruction { stop: 1, thread: 0, count } = error else {
        panic!("{error:?}");
    };
    assert!((1..99).contains(&count));
    let words = scenario.named(error).to_string();
    let expected = format!(
        "thread main cannot stop at instruction 99 of Lib.Sleep: its instructions are 0 to {}",
        count - 1
    );
    assert_eq!(words, expected);
    // Reading with places finds it without a run.
    let problems = crate::Scenario::parse_with_places(&text).unwrap_err();
    assert_eq!(problems.problems().len(), 1, "{problems}");
    assert_eq!(problems.problems()[0].kind.code(), "no-instruction");
}

/// The callback of a call is that of the calling thread, which need not be the stopped one.
#[test]
fn the_callback_of_another_caller_is_known() {
    let text = format!(
        r#"{TWO_THREADS}
stop thread="main" at="Lib.Sleep" {{
    other "pool" callback="ObjectAllocated"
    snapshot by="pool" {{ expect on="windows" {{ result "S_OK" }} }}
    snapshot by="native-walker" {{ expect on="windows" {{ result "S_OK" }} }}
    snapshot {{ expect on="windows" {{ result "S_OK" }} }}
}}
"#
    );
    let scenario = parse(&text);
    let kinds: Vec<_> =
        scenario.snapshots().map(|at| scenario.callback_of(at.stop, at.call)).collect();
    let allocated = clr_runtime::profiling::CallbackKind::ObjectAllocated;
    assert_eq!(kinds, [Some(allocated), None, None]);
}

/// Hints for differences that an expectation does not mention mend the text.
#[test]
fn hints_mend_an_expectation_with_no_word_about_registers() {
    let text = |frame: &str| {
        format!(
            r#"
function "App.Caller" kind="jit" {{ push "rbx" "rsi"; body {{ clobber "rbx"; p-invoke "Lib.Sleep" }} }}
function "Lib.Sleep" {{ body {{ work 3 }} }}
stop at="Lib.Sleep" {{
    snapshot by="native-walker" {{
        expect on="net8-windows" {{ frame "App.Caller"{frame}; marker; result "S_OK" }}
    }}
}}
"#
        )
    };
    let hints = |frame: &str| {
        let scenario = parse(&text(frame));
        let report = scenario.run_on(Generation::Net8Windows).unwrap().remove(0);
        let expected = &scenario.stops[0].snapshots[0].expect[0];
        (expected.hints(&report.found, &report.differences), report.differences)
    };
    let (first, differences) = hints("");
    assert!(!differences.is_empty());
    assert_eq!(first.len(), 1, "{first:?}");
    let addition = first[0].split('`').nth(1).unwrap();
    assert!(addition.starts_with("stale="), "{addition}");
    let (none, differences) = hints(&format!(" {addition}"));
    assert_eq!((none, differences), (vec![], vec![]));
}
