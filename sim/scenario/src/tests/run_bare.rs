//! Tests of the results at stops.

use super::*;

/// Two functions, an interrupt handler, and a loop; the stops are appended.
const PROGRAM: &str = "
function \"main\" {
    push \"rbx\"
    body { clobber \"rbx\"; loop 3 { call \"leaf\" } }
}
function \"leaf\" { unwind \"none\"; body { work 2 } }
function \"isr\" { entry \"interrupt\" }
";

fn reports(stops: &str) -> Vec<StopReport> {
    parse(&format!("{PROGRAM}{stops}")).run().unwrap()
}

fn reached(stops: &str) -> StopResult {
    let [StopReport { stop: 0, reached: Ok(reached) }] = &reports(stops)[..] else {
        panic!("{stops}");
    };
    reached.clone()
}

/// Returns the only walk at the only stop.
fn walk(expect: &str) -> WalkReport {
    let reached = reached(&format!("stop at=\"leaf\" {{ {expect} }}"));
    let [walk] = &reached.walks[..] else { panic!("{expect}") };
    walk.clone()
}

fn why(stops: &str) -> String {
    let [StopReport { reached: Err(why), .. }] = &reports(stops)[..] else { panic!("{stops}") };
    why.to_string()
}

#[test]
fn met_expectations_have_no_differences() {
    for expect in [
        "expect { frame \"leaf\" trust=\"leaf\"; frame \"main\" trust=\"body\" }",
        "expect ends=\"any\" { frame \"leaf\" }",
        "expect ends=\"any\"",
        "expect rules=\"coreclr\" { frame \"leaf\"; frame \"main\" }",
    ] {
        assert!(walk(expect).is_right(), "{expect}: {:?}", walk(expect).differences);
    }
}

#[test]
fn every_difference_is_reported() {
    let cases: &[(&str, &[UnwindDifference])] = &[
        ("expect { frame \"leaf\" }", &[UnwindDifference::Surplus { frame: 1 }]),
        (
            "expect { frame \"leaf\"; frame \"main\"; frame \"main\" }",
            &[UnwindDifference::Missing { frame: 2 }],
        ),
        ("expect { frame; frame \"main\" }", &[UnwindDifference::Function { frame: 0 }]),
        (
            "expect { frame \"leaf\"; frame \"main\" trust=\"leaf\" }",
            &[UnwindDifference::Trust { frame: 1 }],
        ),
        ("expect ends=\"stack\" { frame \"leaf\"; frame \"main\" }", &[UnwindDifference::End]),
    ];
    for (expect, differences) in cases {
        assert_eq!(walk(expect).differences, *differences, "{expect}");
    }
    let found = walk("expect").found.frames[0].registers.get(Gpr::Rbx);
    let expect = |value| format!("expect ends=\"any\" {{ frame \"leaf\" rbx={value} }}");
    assert!(walk(&expect(found)).is_right());
    let register = Gpr::Rbx;
    let difference = UnwindDifference::Register { frame: 0, register, expected: found - 1, found };
    assert_eq!(walk(&expect(found - 1)).differences, [difference]);
}

#[test]
fn a_stop_without_expectations_is_compared_with_the_shadow_stack() {
    let reached = reached("stop at=\"leaf\" visit=3");
    assert_eq!(reached.walks.len(), 1);
    assert!(reached.walks[0].is_right());
    assert_eq!(reached.walks[0].found.frames.len(), 2);
}

#[test]
fn stops_are_reported_in_the_order_of_the_text() {
    let order: Vec<_> = reports("stop \"end\"\nstop at=\"leaf\" visit=2\nstop after=0")
        .into_iter()
        .map(|report| (report.stop, report.reached.unwrap().executed))
        .collect();
    assert_eq!(order.iter().map(|(stop, _)| *stop).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(order[0].1 > order[1].1 && order[1].1 > 0 && order[2].1 == 0);
}

#[test]
fn an_interrupt_does_not_make_a_visit_two() {
    let at_leaf = reached("stop at=\"leaf\"").executed;
    let second = reached("stop at=\"leaf\" visit=2").executed;
    let interrupted =
        reached(&format!("interrupt after={at_leaf} handler=\"isr\"\nstop at=\"leaf\" visit=2"));
    // The handler's own instructions are executed additionally.
    assert!(interrupted.executed > second);
    assert_eq!(interrupted.walks[0].found.frames[0].offset, 0);
    let both = reached(&format!("interrupt after={at_leaf} handler=\"isr\"\nstop at=\"leaf\""));
    assert_eq!(both.executed, at_leaf);
    let fourth = format!("interrupt after={at_leaf} handler=\"isr\"\nstop at=\"leaf\" visit=4");
    assert!(why(&fourth).ends_with("; the instruction was reached 3 times"), "{}", why(&fourth));
}

#[test]
fn a_stop_that_is_not_reached_says_how_the_run_ended() {
    let ended = why("stop at=\"isr\"");
    assert!(ended.starts_with("the program ended after "), "{ended}");
    assert!(ended.ends_with("instructions: returned"), "{ended}");
    assert!(why("stop after=100000").ends_with("instructions: returned"));
    assert!(why("stop at=\"leaf\" visit=4").ends_with("; the instruction was reached 3 times"));
    let count = why("stop at=\"leaf\" instruction=50");
    assert_eq!(count, "the function's instructions are 0 to 2");
}

#[test]
fn a_program_that_goes_on_for_ever_is_left() {
    let nested = "loop 255 { loop 255 { loop 255 { loop 255 { work 1 } } } }";
    let text = format!("function \"main\" {{ body {{ {nested} }} }}\nstop \"end\"");
    let reports = parse(&text).run().unwrap();
    assert_eq!(reports[0].reached, Err(NotReached::Limit { visits: 0 }));
}

#[test]
fn the_end_has_the_frames_of_the_function_that_ended_the_program() {
    let of = |body: &str| {
        let text = format!(
            "function \"main\" {{ body {{ call \"last\" }} }}\n\
             function \"last\" {{ push \"rbx\"; body {{ {body} }}; no-end }}\n\
             stop \"end\" {{ expect {{ frame \"last\"; frame \"main\" }} }}"
        );
        parse(&text).run().unwrap().remove(0).reached.unwrap()
    };
    for body in ["stop", "throw"] {
        let walk = &of(body).walks[0];
        assert!(walk.is_right(), "{body}: {walk:?}");
    }
    let returned = reached("stop \"end\" { expect }");
    assert_eq!(returned.walks[0].found.frames, []);
    assert_eq!(returned.walks[0].found.end, FoundEnd::Base);
    assert!(returned.walks[0].is_right());
}

#[test]
fn threads_run_alone_with_registers_of_their_own() {
    let text = format!(
        "{PROGRAM}thread \"a\"\nthread \"b\"\nstop thread=\"b\" after=1\nstop thread=\"a\" after=1"
    );
    let rbp = parse(&text)
        .run()
        .unwrap()
        .into_iter()
        .map(|report| report.reached.unwrap().walks[0].found.frames[0].registers.get(Gpr::Rbp))
        .collect::<Vec<_>>();
    assert_ne!(rbp[0], rbp[1]);
}

#[test]
fn stops_and_expectations_have_places() {
    let text = "/* é */ function \"f\"\nstop after=0 {\n  /-expect\n  expect; expect\n}\n/-stop \"end\"\nstop \"end\"";
    let places = SourceMap::of(text).stops;
    let words: Vec<_> = places
        .iter()
        .map(|place| {
            let expect: Vec<_> = place.expect.iter().map(ToString::to_string).collect();
            format!("{} {}", place.node, expect.join(" "))
        })
        .collect();
    assert_eq!(words, ["2:1 4:3 4:11", "7:1 "]);
    assert_eq!(SourceMap::of("stop {"), SourceMap::default());
}
