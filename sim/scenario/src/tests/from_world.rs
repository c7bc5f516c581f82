//! Tests of texts of generated programs.

use super::*;
use crate::reference_check::is_as_modelled;
use clr_generate::world::{By, WorldCall};
use clr_runtime::Outcome;
use clr_walker::profiling::SnapshotFlags;

/// Number of cases.
const CASES: u64 = 400;

/// The text moves the threads to the positions that they have in the case, and the result of its
/// call is that of the reference model.
#[test]
fn cases_come_back_from_their_texts() {
    let (mut said, mut same, mut modelled, mut with_others) = (0, 0, 0, 0);
    // A text moves one thread after the other to its position, so the order of several may differ.
    let (mut said_alone, mut same_alone) = (0, 0);
    for seed in 0..CASES {
        let case = world_case(&mut Seeded::new(seed));
        let Some(scenario) = Scenario::of_case(&case) else { continue };
        said += 1;
        with_others += u32::from(!scenario.stops[0].others.is_empty());
        let text = round_trip(&scenario);
        let generation = case.program.generation;
        let build = case.program.build().unwrap();
        let mut world = build.world(&case.program.threads).unwrap();
        case.execute(&mut world).unwrap();
        let count = world.thread_count();
        said_alone += u32::from(count == 1);
        let stands: Vec<_> = (0..count).map(|thread| world.rip(thread)).collect();
        scenario
            .at_stops(generation, |at_stop| {
                let there: Vec<_> = (0..count).map(|it| at_stop.world.rip(it)).collect();
                same += u32::from(there == stands);
                same_alone += u32::from(count == 1 && there == stands);
            })
            .unwrap();
        let Ok(reports) = scenario.run_on(generation) else { continue };
        for one in scenario.reference_predictions(generation).unwrap() {
            modelled += 1;
            let found = &reports[one.snapshot].found;
            assert!(is_as_modelled(found, &one.expected), "{seed}\n{text}\n{found}");
            // A different result is detected.
            let mut other = one.expected.clone();
            other.outcome = Outcome::Returned(HResult(0x8000_4321));
            assert!(!is_as_modelled(found, &other), "{seed}");
            if let Some(last) = one.expected.callbacks.last() {
                let mut other = one.expected.clone();
                other.callbacks.push(last.clone());
                assert!(!is_as_modelled(found, &other), "{seed}");
                let mut other = one.expected.clone();
                other.callbacks[0].context.registers.gpr[3] ^= 1;
                let has_context = found.frame_reports[0].frame_report.context.is_some();
                assert_eq!(is_as_modelled(found, &other), !has_context, "{seed}");
            }
        }
        let mut expecting = scenario.clone();
        expecting.expect_predictions(generation).unwrap();
        for report in expecting.run_on(generation).unwrap() {
            assert_eq!(report.differences, [], "{seed}\n{expecting}");
        }
        assert_eq!(scenario.against_model(generation), Ok(Vec::new()), "{seed}");
    }
    println!("{same} of {said}, with one thread {same_alone} of {said_alone}");
    assert_eq!(same_alone, said_alone);
    assert!(u64::from(said) > CASES / 2 && same * 100 > said * 90, "{said}, {same}");
    assert!(modelled * 2 > said && with_others > 10, "{modelled}, {with_others}");
}

/// A text contains all properties of a call.
#[test]
fn all_of_a_call_is_said() {
    let mut case = world_case(&mut Seeded::new(3));
    case.turns.clear();
    case.call = WorldCall {
        by: By::Profiler,
        target: 0,
        unnamed: true,
        flags: SnapshotFlags(0),
        seed: None,
        suspended_by_profiler: false,
        stop_at: Some(2),
    };
    let scenario = Scenario::of_case(&case).unwrap();
    assert_eq!(scenario.stops[0].at, StopAt::After(0));
    let text = scenario.to_string();
    let call = "snapshot by=\"native-walker\" thread=\"null\" flags=0x0 stop-at=3";
    assert!(text.contains(call) || text.contains(&call.replace("0x0", "0")), "{text}");
}
