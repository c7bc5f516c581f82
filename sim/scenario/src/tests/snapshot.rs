//! Tests of snapshots of stacks placed by hand.

use super::*;
use clr_runtime::clause::Clause;

/// A stack with a helper on top: the walk is refused without a seed, and made with one.
const BARRIER: &str = r#"
stack {
    mode "cooperative"
    leaf "JIT_WriteBarrier+0x8" rsp=0x1fdff8
    jit "App.Foo+0x55" rsp=0x1fe000 { saves "rbx" }
    jit "App.Main+0x30" rsp=0x1fe050
    native "CallDescrWorkerInternal+0x7c" rsp=0x1fe090
}
snapshot by="native-walker" {
    expect on="windows" { result "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX"; clause "C-044" }
    expect on="unix" { result "E_NOTIMPL"; clause "C-019" }
}
snapshot seed="App.Foo" {
    nested thread="null"
    nested by="native-walker"
    expect {
        frame "App.Foo+0x55" rsp=0x1fe000
        frame "App.Main" rsp=0x1fe050 rbx=0xc0de0003
        marker "CallDescrWorkerInternal+0x7c" rsp=0x1fe090
        nested "CORPROF_E_STACKSNAPSHOT_UNSAFE"
        nested "CORPROF_E_STACKSNAPSHOT_UNSAFE"
        result "S_OK"
    }
}
snapshot seed="top-managed" {
    expect on="net10" others=#true { marker; result "S_OK" }
}
snapshot seed="leaf" stop-at=1
"#;

fn run(text: &str, generation: Generation) -> Vec<SnapshotReport> {
    parse(text).run_on(generation).unwrap()
}

#[test]
fn calls_have_the_expected_results() {
    for generation in Generation::ALL {
        let reports = run(BARRIER, generation);
        let snapshots: Vec<_> = reports.iter().map(|report| report.snapshot).collect();
        let net10 = generation.family().version.0 == 10;
        assert_eq!(snapshots, if net10 { vec![0, 1, 2, 3] } else { vec![0, 1, 3] });
        for report in &reports {
            assert!(report.is_right(), "{generation}: {:?}\n{}", report.differences, report.found);
        }
        let last = reports.last().unwrap();
        assert_eq!(last.found.outcome, HResult::UNMANAGED_CONTEXT.into());
        assert_eq!(last.expected, None);
    }
}

/// Returns the differences if the second call has another expectation.
fn differences(expect: &str) -> Vec<String> {
    let text = BARRIER.split("snapshot").next().unwrap();
    let text = format!("{text}snapshot seed=\"App.Foo\" {{ {expect} }}");
    let reports = run(&text, Generation::Net10Windows);
    reports[0].differences.iter().map(ToString::to_string).collect()
}

#[test]
fn wrong_results_are_reported() {
    let check = |expect: &str, wanted: &[&str]| assert_eq!(differences(expect), wanted, "{expect}");
    let whole = "frame \"App.Foo\"; frame \"App.Main\"; marker; ";
    check(&format!("expect {{ {whole} result \"S_OK\" }}"), &[]);
    check(&format!("expect {{ {whole} result \"E_FAIL\" }}"), &["expected: E_FAIL; found: S_OK"]);
    check(
        "expect { frame \"App.Foo\"; result \"S_OK\" }",
        &["callback 1 is not expected", "callback 2 is not expected"],
    );
    check(
        &format!("expect {{ {whole} marker; result \"S_OK\" }}"),
        &["expected callback 3 was not made"],
    );
    check(
        "expect { frame \"App.Main\"; frame \"App.Main+0x31\"; frame \"CallDescrWorkerInternal\"; result \"S_OK\" }",
        &[
            "callback 0 does not report the expected frame",
            "callback 1 does not report the expected frame",
            "callback 2 does not report the expected frame",
        ],
    );
    check(
        "expect others=#true { frame \"App.Main\"; frame \"App.Foo\"; result \"S_OK\" }",
        &["expected callback 1 was not made"],
    );
    check(
        &format!("expect context-flags=0 {{ {whole} result \"S_OK\" }}"),
        &[
            "callback 0 has ContextFlags 0x10000b, expected 0x0",
            "callback 1 has ContextFlags 0x10000b, expected 0x0",
            "callback 2 has ContextFlags 0x10000b, expected 0x0",
        ],
    );
    check(
        "expect { frame \"App.Foo\" context-flags=\"own\" rbx=1; frame \"App.Main\"; marker; result \"S_OK\" }",
        &[
            "callback 0 has ContextFlags 0x10000b, expected 0xc010000b",
            "callback 0 has rbx 0xc0de0203, expected 0x1",
        ],
    );
    // The value that App.Foo pushes is not that of its caller.
    check(
        "expect { frame \"App.Foo\"; frame \"App.Main\" stale=#true; marker; result \"S_OK\" }",
        &["callback 1 has rbx 0xc0de0003, expected 0xc0de0203"],
    );
    let nested = format!("nested; expect {{ {whole} nested \"S_OK\"; result \"S_OK\" }}");
    check(&nested, &["nested call 0: expected: S_OK; found: CORPROF_E_STACKSNAPSHOT_UNSAFE"]);
}

/// A walk from the Frame chain that leaves some registers unchanged.
const PREEMPTIVE: &str = r#"
stack {
    native "Sleep+0x10" rsp=0x1fd000
    jit "App.Foo+0x55" rsp=0x1fe000 { saves "rbx" "rbp" }
    jit "App.Main+0x30" rsp=0x1fe080
    native "CallDescrWorkerInternal+0x7c" rsp=0x1fe0c0
    frame "InlinedCallFrame" at=0x1fe010 to="App.Foo"
}
snapshot by="native-walker" {
    expect on="net10-windows" {
        frame "App.Foo" stale=#true
        frame "App.Main" stale="r12 r13 r14 r15 rsi rdi"
        marker stale="rsi rdi r12 r13 r14 r15"
        result "S_OK"
    }
}
"#;

/// The registers that App.Foo pushes are known again in its caller (C-096), the others are not
/// (C-098).
#[test]
fn some_registers_can_be_stale() {
    let differences = |text: &str| {
        let report = &run(text, Generation::Net10Windows)[0];
        report.differences.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(differences(PREEMPTIVE), [""; 0]);
    let canonical = parse(PREEMPTIVE).to_string();
    assert!(
        canonical.contains("frame \"App.Main\" stale=\"rsi rdi r12 r13 r14 r15\"\n"),
        "{canonical}"
    );
    let main = "\"App.Main\" stale=\"r12 r13 r14 r15 rsi rdi\"";
    let all = PREEMPTIVE.replace(main, "\"App.Main\" stale=#true");
    assert_eq!(differences(&all), ["callback 1 has rbx 0xc0de0003, expected 0x0"]);
    let one = PREEMPTIVE.replace(main, "\"App.Main\" stale=\"rsi rdi r12 r13 r14\"");
    assert_eq!(differences(&one).len(), 1);
    assert!(differences(&one)[0].starts_with("callback 1 has r15 0x0, expected 0xc0de"));
    // A register with a given value is not checked otherwise.
    let given = "\"App.Main\" stale=\"rsi rdi r12 r13 r14\" r15=";
    assert_eq!(differences(&PREEMPTIVE.replace(main, &format!("{given}0"))), [""; 0]);
    let other = differences(&PREEMPTIVE.replace(main, &format!("{given}1")));
    assert_eq!(other, ["callback 1 has r15 0x0, expected 0x1"]);
    let more = PREEMPTIVE.replace(main, "\"App.Main\" stale=\"rsi rdi r12 r13 r14 r15 rbx rax\"");
    assert_eq!(differences(&more), ["callback 1 has rbx 0xc0de0003, expected 0x0"]);
    // The expectation written from the result is equivalent.
    let mut found = parse(PREEMPTIVE);
    found.expect_results(clr_runtime::generation::Generations::of(&[Generation::Net10Windows]));
    let frames = &found.snapshots().next().unwrap().call.expect[0].frames;
    let stale: Vec<_> = frames.iter().map(|frame| &frame.stale).collect();
    let wanted = parse(PREEMPTIVE);
    let wanted = &wanted.snapshots().next().unwrap().call.expect[0].frames;
    assert_eq!(stale, wanted.iter().map(|frame| &frame.stale).collect::<Vec<_>>());
}

/// Registers and contexts are checked even if the text does not mention them.
#[test]
fn registers_and_contexts_are_always_checked() {
    let scenario = parse(BARRIER);
    let stack = scenario.stack.as_ref().unwrap();
    let set = stack.synthetic_thread(Generation::Net10Windows).build().unwrap();
    let expected = &stack.snapshots[1].expect[0];
    let found = stack.snapshots[1].make(&set);
    assert_eq!(expected.differences(&found), []);
    let after = |change: &dyn Fn(&mut FoundFrameReport, &mut ContextRules)| {
        let mut found: SnapshotResult = found.clone();
        change(&mut found.frame_reports[1], &mut found.rules);
        expected.differences(&found)
    };
    let changed = |register| {
        let differences = after(&|frame_report, _| {
            frame_report.frame_report.context.as_mut().unwrap().registers.set(register, 7);
        });
        assert!(
            matches!(differences[..], [SnapshotDifference::Register { frame_report: 1, register: it, found: 7, .. }] if it == register),
            "{differences:?}"
        );
    };
    for register in [Gpr::Rax, Gpr::Rbp, Gpr::R12, Gpr::R15, Gpr::Rsp] {
        changed(register);
    }
    let rip = after(&|frame_report, _| {
        frame_report.frame_report.context.as_mut().unwrap().registers.rip += 1;
    });
    assert!(matches!(rip[..], [SnapshotDifference::Rip { frame_report: 1, .. }]), "{rip:?}");
    let size = after(&|frame_report, _| frame_report.frame_report.context_size = 0xC20);
    assert!(matches!(size[..], [SnapshotDifference::ContextSize { found: 0xC20, .. }]), "{size:?}");
    let name = after(&|frame_report, _| frame_report.function = Some("App.Foo".to_owned()));
    assert_eq!(name, [SnapshotDifference::Function { frame_report: 1 }]);
    let none = after(&|frame_report, _| frame_report.frame_report.context = None);
    assert_eq!(none, [SnapshotDifference::Context { frame_report: 1 }]);
    let mut called = found.clone();
    called.nested[1].callbacks = 1;
    let called = expected.differences(&called);
    assert_eq!(called, [SnapshotDifference::NestedCallbacks { call: 1 }]);
}

/// A Frame that names a method and leads nowhere, below code far from the start of its function.
const FAR: &str = r#"
stack {
    native "Profiler+0x20" rsp=0x1fdf00
    jit "App.Large+0xfff0" rsp=0x1fe000
    jit "App.Small+0x20" rsp=0x1fe050
    native "CallDescrWorkerInternal+0x7c" rsp=0x1fe090
    frame "PrestubMethodFrame" at=0x1fdf40 method="App.Next"
    frame "InlinedCallFrame" at=0x1fdf80 to="App.Large"
}
snapshot
"#;

#[test]
fn large_functions_and_frames_that_lead_nowhere_can_be_placed() {
    for generation in Generation::ALL {
        for report in run(FAR, generation) {
            let labels: Vec<_> = report.found.frame_reports.iter().collect();
            let labels: Vec<_> = labels.iter().map(|it| &*it.frame_report.label).collect();
            let expected = ["App.Large+0xfff0", "App.Small+0x20", "CallDescrWorkerInternal+0x7c"];
            assert_eq!(labels, expected, "{generation}: {}", report.found);
            assert_eq!(report.found.outcome, HResult::OK.into(), "{generation}");
        }
    }
    let too_far = FAR.replace("0xfff0", "0x10000");
    assert!(too_far.parse::<crate::Scenario>().is_err());
}

/// A clause that has decided nothing is a difference, if calls decide by it, or if it is no rule of these runtimes.
#[test]
fn a_clause_has_to_have_decided_something() {
    let on = Generation::Net8Windows;
    let differences = |clauses: &str| {
        let text = BARRIER.replace("clause \"C-044\"", &format!("clause {clauses}"));
        run(&text.replace("on=\"windows\"", "on=net8-windows"), on).remove(0).differences
    };
    let named = |number| SnapshotDifference::Clause { named: Clause::new(number) };
    assert_eq!(differences("C-044"), []);
    assert_eq!(differences("C-019 C-044"), []);
    assert_eq!(differences("C-019"), [named(19)]);
    // No call decides by a clause about code; that of .NET 9 on Unix is not one of .NET 8.
    assert_eq!(differences("C-138"), []);
    assert_eq!(differences("C-170"), [named(170)]);
}
