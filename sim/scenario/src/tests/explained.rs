//! Tests of explanations of the calls of texts.

use super::*;
use clr_runtime::clause::Clause;
use clr_runtime::explain::{Topic, deciding, parting};

const TEXT: &str = r#"
function "App.Main" kind="jit" { body { new; p-invoke "Lib.Sleep" } }
function "Lib.Sleep" { body { work 3 } }
stop callback="ObjectAllocated" {
    snapshot by="native-walker"
    snapshot by="native-walker" seed="top-managed"
}
stop at="Lib.Sleep" {
    snapshot "first"
    snapshot by="native-walker" {
        expect on="windows" { result "S_OK" }
        expect on="unix" { result "S_OK" }
    }
}
"#;

#[test]
fn stories_are_those_of_their_calls() {
    let scenario = parse(TEXT);
    let reported = scenario.explain_on(Generation::CoreClr31Windows).unwrap();
    let reports: Vec<_> = reported.iter().map(|reported| reported.report.clone()).collect();
    assert_eq!(scenario.run_on(Generation::CoreClr31Windows).unwrap(), reports);
    let [unseeded, seeded, ..] = &reported[..] else { panic!("{reported:?}") };
    let refusal = deciding(&unseeded.story).unwrap();
    assert_eq!((refusal.kind, refusal.clauses[0]), (Topic::Refusal, Clause::new(44)));
    assert!(refusal.text.contains("not in managed code"), "{refusal}");
    let start = deciding(&seeded.story).unwrap();
    assert_eq!((start.kind, start.clauses[0]), (Topic::Start, Clause::new(51)));
    for reported in &reported {
        let callbacks = reported.story.iter().filter(|line| line.kind == Topic::Callback).count();
        assert_eq!(callbacks, reported.report.found.frame_reports.len());
        assert!(!reported.events.is_empty());
        assert_eq!(parting(&reported.story, &reported.story), None);
    }
    // The explanations differ from the point where one call has a seed.
    let parted = parting(&unseeded.story, &seeded.story).unwrap();
    assert_eq!((parted.kind, parted.clauses[0]), (Topic::Check, Clause::new(43)));
}

#[test]
fn a_stop_that_is_not_reached_leaves_the_others() {
    let text = TEXT.replace("ObjectAllocated\"", "ObjectAllocated\" visit=2");
    let scenario = parse(&text);
    let each = scenario.explain_each_on(Generation::Net10Windows);
    let stops: Vec<_> =
        each.iter().map(|(at, made)| (at.stop, at.snapshot, made.is_ok())).collect();
    let wanted = [(0, 0, false), (0, 1, false), (1, 0, true), (1, 1, true)];
    assert_eq!(stops, wanted.map(|(stop, snapshot, made)| (Some(stop), snapshot, made)));
    for (at, made) in &each {
        match made {
            Ok(made) => {
                assert_eq!((made.report.stop, made.report.snapshot), (at.stop, at.snapshot));
            }
            Err(error) => assert!(matches!(error, RunOnError::NotReached { stop: 0, .. })),
        }
    }
}

#[test]
fn snapshots_have_their_places_in_the_text() {
    let scenario = parse(TEXT);
    let at: Vec<_> = scenario.snapshots().map(|it| (it.stop, it.snapshot)).collect();
    assert_eq!(at, [(Some(0), 0), (Some(0), 1), (Some(1), 0), (Some(1), 1)]);
    assert_eq!(scenario.snapshots().nth(2).unwrap().call.title.as_deref(), Some("first"));
    let places = Scenario::parse_with_places(TEXT).unwrap().1.snapshots;
    let lines: Vec<_> = places.iter().map(|place| place.node.line).collect();
    assert_eq!(lines, [5, 6, 9, 10]);
    let expect = [LineColumn { line: 11, column: 9 }, LineColumn { line: 12, column: 9 }];
    assert_eq!(places[3].expect, expect);
    let stack =
        "stack { native \"a+0x20\" rsp=0x1fe000; native \"b+0x20\" rsp=0x1fe040 }\n  snapshot\n";
    assert_eq!(SourceMap::of(stack).snapshots[0].node, LineColumn { line: 2, column: 3 });
    assert_eq!(parse(stack).snapshots().next().unwrap().stop, None);
}
