//! Tests of generated synthetic threads.

use super::*;
use clr_generate::{SyntheticCall, synthetic_call};
use clr_runtime::generation::Generation;
use clr_runtime::{Funclet, MethodKind};
use clr_world::synthetic::CodeLocation;

fn drawn(count: u64) -> impl Iterator<Item = SyntheticCall> {
    (0..count).map(|seed| synthetic_call(&mut Seeded::new(seed)))
}

/// A source of choices that always answers 0.
struct Exhausted;

impl Choices for Exhausted {
    fn below(&mut self, _: u32) -> u32 {
        0
    }
}

#[test]
fn nothing_decides_but_the_choices() {
    assert!(drawn(50).eq(drawn(50)));
}

#[test]
fn without_choices_there_is_nothing_on_the_stack() {
    let case = synthetic_call(&mut Exhausted);
    assert_eq!(
        case,
        SyntheticCall { context_size: 0x4D0, ..SyntheticCall::new(case.target.clone()) }
    );
    assert!(case.target.activations.is_empty() && case.target.frames.is_empty());
}

#[test]
fn nearly_all_threads_can_be_built() {
    let refused = drawn(2000).filter(|case| case.target.build().is_err()).count();
    assert!(refused < 10, "{refused}");
}

#[test]
fn every_kind_of_value_is_generated() {
    let (mut frames, mut activations, mut shapes) = (BTreeSet::new(), BTreeSet::new(), [0; 5]);
    for case in drawn(4000) {
        let target = &case.target;
        frames.extend(target.frames.iter().map(|frame| (target.generation, frame.kind)));
        for activation in &target.activations {
            let kind = match activation.kind {
                MethodKind::Ordinary
                | MethodKind::UnmanagedCallersOnly
                | MethodKind::EntryPoint
                | MethodKind::ClassLibrary => 0,
                MethodKind::IlStub => 1,
                MethodKind::Dynamic => 2,
                MethodKind::ExceptionHandling => 3,
            };
            let size = activation.saves.len().min(2);
            activations.insert((activation.place, kind, activation.funclet, activation.leaf, size));
        }
        let seed = case.seed.is_some_and(|seed| seed.whole().is_none());
        let has = [
            !target.overwritten.is_empty(),
            target.hijacked.is_some(),
            target.exceptions.trackers.len() > 1,
            target.activations.len() > 30 && target.frames.len() > 3,
            seed,
        ];
        for (count, has) in shapes.iter_mut().zip(has) {
            *count += u32::from(has);
        }
    }
    for generation in Generation::ALL {
        for kind in clr_runtime::FrameKind::ALL {
            let drawn = frames.contains(&(generation, *kind));
            assert_eq!(drawn, kind.exists_in(generation), "{kind}, {generation}");
        }
    }
    for place in [CodeLocation::Heap, CodeLocation::ReadyToRun] {
        for kind in 0..4 {
            for funclet in [None, Some(Funclet::Handler), Some(Funclet::Filter)] {
                assert!(activations.contains(&(place, kind, funclet, false, 2)));
            }
        }
    }
    assert!(activations.contains(&(CodeLocation::Native, 0, None, true, 0)));
    assert!(shapes.iter().all(|count| *count > 20), "{shapes:?}");
}

#[test]
fn steps_lead_to_threads_that_can_be_built() {
    for case in drawn(30).filter(|case| case.target.build().is_ok()) {
        for smaller in shrunk(&case) {
            assert!(smaller != case && smaller.target.build().is_ok(), "{smaller:#x?}");
        }
    }
}

#[test]
fn irrelevant_parts_are_dropped() {
    let fails = |case: &SyntheticCall| {
        case.target.activations.iter().any(|activation| activation.funclet.is_some())
            && case.seed.is_some_and(|seed| seed.rsp.is_some())
    };
    let large = drawn(5000).find(fails).expect("there is one with a funclet and a seed");
    let small = minimize(large, fails);
    assert_eq!(small.target.activations.len(), 1, "{small:#x?}");
    assert!(small.target.frames.is_empty() && small.target.overwritten.is_empty());
    assert_eq!(small.target.generation, Generation::ALL[0]);
}
