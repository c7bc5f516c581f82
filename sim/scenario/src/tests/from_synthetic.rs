//! Tests of texts of synthetic threads.

use super::*;

/// Every generated synthetic thread can be expressed as a text and is restored from it.
#[test]
fn stages_come_back_from_their_texts() {
    let (mut printed, mut right) = (0, 0);
    for seed in 0..2000 {
        let call = synthetic_call(&mut Seeded::new(seed));
        let stack = PlacedStack::of(&call.target).unwrap_or_else(|| panic!("{seed}: {call:#x?}"));
        assert_eq!(stack.synthetic_thread(call.target.generation), call.target, "{seed}");
        let scenario = Scenario::from_call(&call).unwrap();
        let one = Generations::of(&[call.target.generation]);
        let mut expecting = scenario;
        expecting.expect_results(one);
        // A synthetic thread that cannot be set up has no text.
        if call.target.build().is_err() {
            continue;
        }
        printed += 1;
        let text = expecting.to_string();
        let read = parse(&text);
        assert_eq!(read, expecting, "{seed}\n{text}");
        let reports = read.run_on(call.target.generation).unwrap();
        // An expectation cannot express that some registers are stale and others are not, nor that
        // saved registers were overwritten.
        right += usize::from(reports.iter().all(SnapshotReport::is_right));
        let differences = reports.iter().flat_map(|report| &report.differences);
        for difference in differences {
            let is_register = matches!(difference, SnapshotDifference::Register { .. });
            assert!(is_register, "{seed}\n{text}\n{difference}");
        }
    }
    assert!(printed > 1500 && right > 1000, "{printed}, {right}");
}

/// The call in the text has the same result as the call itself.
#[test]
fn calls_give_the_same_as_texts() {
    let (mut same, mut seeded) = (0, 0);
    for seed in 0..2000 {
        let mut call = synthetic_call(&mut Seeded::new(seed));
        let scenario = Scenario::from_call(&call).unwrap();
        call.target = scenario.stack.as_ref().unwrap().synthetic_thread(call.target.generation);
        let Ok(set) = call.target.build() else { continue };
        let bytes = call.seed.as_ref().map(|seed| seed.bytes(&set));
        let runtime = set.runtime();
        let mut made = Vec::new();
        let stop_at = call.stop_at;
        let mut callback = |frame: &mut clr_walker::profiling::SnapshotFrame<'_>| {
            made.push((frame.function.is_none(), frame.ip));
            let last = stop_at.is_some_and(|last| made.len() as u64 > u64::from(last));
            if last {
                clr_runtime::profiling::HResult::FALSE
            } else {
                clr_runtime::profiling::HResult::OK
            }
        };
        let direct = runtime.on(call.caller).do_stack_snapshot(
            &call.call(bytes.as_deref()),
            if call.null_callback { None } else { Some(&mut callback) },
        );
        let found = &scenario.run_on(call.target.generation).unwrap()[0].found;
        assert_eq!(found.outcome, direct, "{seed}: {call:#x?}");
        let frame_reports: Vec<_> = found
            .frame_reports
            .iter()
            .map(|frame_report| {
                (frame_report.frame_report.function.is_none(), frame_report.frame_report.ip)
            })
            .collect();
        assert_eq!(frame_reports, made, "{seed}");
        same += 1;
        seeded += usize::from(call.seed.is_some());
    }
    assert!(same > 1500 && seeded > 500, "{same}, {seeded}");
}
