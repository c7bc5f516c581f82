//! Properties of calls for threads of any shape, whole and damaged.

use clr_generate::{Seeded, SyntheticCall, minimize, synthetic_call, synthetic_calls};
use clr_tests::snapshot::{Checked, Mistake, check, check_with, with_stray_call};
use clr_tests::{cases, first_seed};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;

/// Number of calls in a full run.
const CALLS: u32 = 60_000;

/// Counts of a campaign.
#[derive(Default)]
struct Tally {
    sum: Checked,
    rejected: u32,
    whole: u32,
    expected: u32,
    outcomes: BTreeMap<String, u32>,
}

impl Tally {
    fn add(&mut self, checked: &Checked) {
        self.sum.callbacks += checked.callbacks;
        self.sum.calls += checked.calls;
        self.rejected += u32::from(checked.rejected);
        self.whole += u32::from(checked.whole);
        self.expected += u32::from(checked.expected);
        if let Some(outcome) = checked.outcome {
            let name = match outcome {
                clr_runtime::Outcome::AccessViolation { .. } => "access violation".to_owned(),
                outcome => outcome.to_string(),
            };
            *self.outcomes.entry(name).or_default() += 1;
        }
    }
}

/// Returns a case. One in sixteen has a Frame that generators do not make.
fn case(n: u64) -> SyntheticCall {
    let case = synthetic_call(&mut Seeded::new(first_seed().wrapping_add(n)));
    if n % 16 == 15 { with_stray_call(case) } else { case }
}

#[test]
fn promises_hold_of_any_thread() {
    let count = cases(CALLS);
    let mut tally = Tally::default();
    for n in 0..u64::from(count) {
        let case = case(n);
        match check(&case) {
            Ok(checked) => tally.add(&checked),
            Err(broken) => {
                let promise = broken.promise;
                let fails = |case: &SyntheticCall| {
                    check(case).is_err_and(|broken| broken.promise == promise)
                };
                let case = minimize(case, fails);
                let broken = check(&case).expect_err("the minimized case fails");
                panic!("{n}: {broken}\n{case:#x?}");
            }
        }
    }
    let Tally { sum, rejected, whole, expected, outcomes } = tally;
    println!("{count} cases, {} calls, {} callbacks", sum.calls, sum.callbacks);
    println!("{rejected} not set up, {whole} whole, {expected} expected");
    println!("{outcomes:#?}");
    assert!(rejected < count / 20 + 10, "{rejected} could not be set up");
    assert!(whole > count / 4 && expected > count / 4, "{whole} whole, {expected} expected");
}

/// A mistake in the model is as visible as the same mistake in the runtime.
#[test]
fn each_planted_mistake_is_noticed() {
    for mistake in Mistake::ALL {
        let notices =
            |case: &SyntheticCall| check(case).is_ok() && check_with(case, Some(mistake)).is_err();
        let case = (0..u64::from(CALLS)).find(|n| notices(&case(*n)));
        println!("{mistake:?} is noticed by case {case:?}");
        assert!(case.is_some(), "{mistake:?} is noticed by none of {CALLS} cases");
    }
}

#[test]
fn proptest_finds_and_shrinks_them_too() {
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(&synthetic_calls(), |case| {
        prop_assert!(case.target.activations.len() < 5 || case.target.frames.len() < 2);
        Ok(())
    });
    let Err(proptest::test_runner::TestError::Fail(_, case)) = result else {
        panic!("no case has five rows and two Frames: {result:?}");
    };
    assert_eq!((case.target.activations.len(), case.target.frames.len()), (5, 2), "{case:#x?}");
    assert_eq!(case.seed, None);
}
