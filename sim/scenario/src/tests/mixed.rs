//! Tests of mixed walks in texts: execution, comparison with the expectation, and blessing.

use super::*;
use crate::bless;

/// A helper with a Frame, called by a stub; the walker must unwind both to reach the seed.
const STACK: &str = "stack {
    mode cooperative
    native \"JIT_New+0x80\" rsp=0x1fe000
    il-stub \"IL_STUB+0x40\" rsp=0x1fe200
    jit \"App.Foo+0x40\" rsp=0x1fe240 { saves rbx }
    native \"Root+0x7c\" rsp=0x1fe300
    frame HelperMethodFrame at=0x1fe0c0 to=App.Foo on=\"has_helper_method_frames=yes\"
}
";

const PROGRAM: &str = "function App.Main kind=jit { body { p-invoke Lib.Sleep; new } }
function Lib.Sleep { push rbx; body { work 3 } }
";

const WHOLE: &str = "native JIT_New+0x80 rsp=0x1fe000 seen-by=unwinder
    hidden IL_STUB+0x40 trust=body seen-by=unwinder
    managed App.Foo seen-by=both
    native Root+0x7c rsp=0x1fe300 seen-by=both";

/// Returns the differences on one generation, and the printed result.
fn differences(text: &str, generation: Generation) -> (Vec<MixedDifference>, String) {
    let mut reports = parse(text).mixed_on(generation).unwrap();
    assert_eq!(reports.len(), 1);
    let MixedReport { differences, found, .. } = reports.remove(0);
    (differences, found.to_string())
}

fn expecting(items: &str) -> String {
    format!("{STACK}mixed-walk policy=seeded {{ expect {{\n{items}\n}} }}")
}

#[test]
fn met_expectations_have_no_differences() {
    let text = expecting(&format!("{WHOLE}\ncomplete whole; result S_OK"));
    let on = Generation::CoreClr31Windows;
    assert_eq!(differences(&text, on), (Vec::new(), differences(&text, on).1));
    // On this generation other threads must not be walked, and the stub has no unwind data.
    let (others, found) = differences(&text, Generation::Net9Unix);
    assert!(found.contains("gap: "), "{found}");
    assert!(others.iter().any(|it| matches!(it, MixedDifference::Claim { .. })), "{others:?}");
    assert!(others.iter().any(|it| matches!(it, MixedDifference::Outcome { .. })), "{others:?}");
}

#[test]
fn unmet_expectations_are_differences() {
    use MixedDifference::{Claim, Missing, Other, Outcome, Surplus};
    let on = Generation::Net10Windows;
    let of = |items: &str| differences(&expecting(items), on).0;
    let all = format!("{WHOLE}\ncomplete whole; result S_OK");
    assert_eq!(of(&all), []);
    for (from, to) in [
        ("JIT_New+0x80", "JIT_New+0x81"),
        ("rsp=0x1fe000", "rsp=0x1fe008"),
        ("native JIT", "managed JIT"),
        ("seen-by=unwinder\n", "seen-by=both\n"),
    ] {
        assert_eq!(of(&all.replacen(from, to, 1)), [Other { item: 0 }], "{to}");
    }
    assert_eq!(of(&all.replace("trust=body", "trust=leaf")), [Other { item: 1 }]);
    let gap = all.replace("managed App.Foo seen-by=both", "gap not-stopped");
    let gap = of(&gap.replace("complete whole", "complete not-stopped"));
    assert!(matches!(gap[..], [Other { item: 2 }, Claim { .. }]), "{gap:?}");
    let last = "native Root+0x7c rsp=0x1fe300 seen-by=both";
    assert_eq!(of(&all.replace(last, "")), [Surplus { item: 3 }]);
    let more = all.replace(last, &format!("{last}\nunknown"));
    assert_eq!(of(&more), [Missing { item: 4 }]);
    let less = of(&all.replace("complete whole", "complete reportable"));
    assert!(matches!(less[..], [Claim { found: Some(MixedClaim::Whole), .. }]), "{less:?}");
    assert!(matches!(of(&all.replace("; result S_OK", ""))[..], [Outcome { expected: None, .. }]));
    assert!(matches!(of(&all.replace("S_OK", "E_FAIL"))[..], [Outcome { found: Some(_), .. }]));
}

#[test]
fn other_frames_may_come_between() {
    let on = Generation::Framework4;
    let text = expecting("managed App.Foo; native Root; complete whole; result S_OK");
    let text = text.replace("expect {", "expect others=#true {");
    assert_eq!(differences(&text, on).0, []);
    let swapped = text.replace("managed App.Foo; native Root", "native Root; managed App.Foo");
    assert_eq!(differences(&swapped, on).0, [MixedDifference::Missing { item: 1 }]);
}

/// A call that ends the process, or never ends, leaves no stack.
#[test]
fn a_walk_may_not_come_back() {
    let text = format!(
        "{}mixed-walk policy=signal-snapshot {{ expect {{ result blocked }} }}",
        STACK.replace("mode cooperative", "mode cooperative; code-manager-writer other")
    );
    // Later generations refuse to look up code in this state.
    let (others, found) = differences(&text, Generation::Framework2);
    assert_eq!(others, [], "{found}");
    assert_eq!(found, "the call waits for ever for another thread\n");
}

/// The buffer is smaller than the number of frames.
#[test]
fn a_full_buffer_is_reported() {
    let text = format!(
        "{STACK}mixed-walk policy=signal-snapshot capacity=2 {{ expect others=#true {{ native JIT_New; hidden IL_STUB; gap buffer-full; complete buffer-full; result S_FALSE }} }}"
    );
    let (others, found) = differences(&text, Generation::CoreClr31Windows);
    assert!(found.contains("gap: the stack has more frames than the buffer"), "{found}");
    assert!(!others.iter().any(|it| matches!(it, MixedDifference::Claim { .. })), "{found}");
}

/// Blesses the results of the scenario itself.
fn blessed(text: &str) -> String {
    let reports = |text: &str| {
        let scenario = parse(text);
        Generation::ALL.map(|it| (it, scenario.mixed_on(it).unwrap()))
    };
    let new = bless(text, Results::MixedWalks(&reports(text))).unwrap();
    // The new text needs no blessing.
    let again = reports(&new);
    assert!(again.iter().flat_map(|(_, reports)| reports).all(MixedReport::is_right), "{new}");
    assert_eq!(bless(&new, Results::MixedWalks(&again)).unwrap(), new);
    new
}

#[test]
fn walks_of_stacks_are_blessed() {
    let right = "mixed-walk policy=seeded {
    expect   on=windows from=documentation others=#true { managed App.Foo; complete whole
        result S_OK; clause C-051 } // kept
}
";
    let text = format!(
        "{STACK}snapshot\n{right}mixed-walk policy=synchronous in-callback=ObjectAllocated\n"
    );
    let new = blessed(&text);
    assert!(new.starts_with(&format!("{STACK}snapshot\n{right}")), "{new}");
    insta::assert_snapshot!(new);
    let wrong = text.replace("managed App.Foo", "managed App.Bar");
    insta::assert_snapshot!(blessed(&wrong));
}

#[test]
fn walks_where_programs_stop_are_blessed() {
    let stops = "stop callback=ObjectAllocated { mixed-walk policy=synchronous }
stop at=Lib.Sleep instruction=2 { mixed-walk policy=seeded; mixed-walk policy=runtime-suspended }
stop at=App.Main instruction=1 { mixed-walk policy=frame-pointers }
";
    insta::assert_snapshot!(blessed(&format!("{PROGRAM}{stops}")));
}

/// A stop that is not reached does not affect the others.
#[test]
fn a_stop_that_is_not_reached_does_not_affect_others() {
    let stops = "stop at=Lib.Sleep visit=9 { mixed-walk policy=seeded }
stop at=Lib.Sleep { mixed-walk policy=seeded; mixed-walk policy=signal-snapshot { expect on=new { complete whole; result S_OK } } }
";
    let scenario = parse(&format!("{PROGRAM}{stops}"));
    let made = |generation| -> Vec<_> {
        let each = scenario.each_mixed_on(generation).into_iter();
        each.map(|(at, made)| (at.stop, at.walk, made.is_ok())).collect()
    };
    let both = [(Some(0), 0, false), (Some(1), 0, true)];
    assert_eq!(made(Generation::Framework4), both);
    let all = [both[0], both[1], (Some(1), 1, true)];
    assert_eq!(made(Generation::Net10Unix), all);
    assert!(scenario.mixed_on(Generation::Net10Unix).is_err());
}
