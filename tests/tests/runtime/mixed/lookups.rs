//! Calls of the methods that look code up, on every runtime, against their model.

use super::*;
use clr_reference::lookups::{Lookup, Mistake, expected};
use clr_tests::lookups::{lookup, observed};

/// Number of calls in a full run.
const CALLS: u32 = 20_000;

fn drawn(n: u32) -> Lookup {
    lookup(&mut Seeded::new(first_seed().wrapping_add(u64::from(n))))
}

#[test]
fn code_is_looked_up_as_the_model_says() {
    let count = cases(CALLS);
    let mut found = 0;
    for lookup in (0..count).map(drawn) {
        let observed = observed(&lookup).expect("the process can be set up");
        assert_eq!(observed, expected(&lookup, None), "{lookup:#x?}");
        found += u32::from(observed.result.is_ok());
    }
    println!("{count} calls, {found} of them answered");
    assert!(found > count / 4, "{found} of {count}");
}

/// A mistake in the model is as visible as the same mistake in the runtime.
#[test]
fn each_mistake_in_looking_code_up_is_noticed() {
    for mistake in Mistake::ALL {
        let notices = |lookup: &Lookup| {
            let observed = observed(lookup).expect("the process can be set up");
            observed == expected(lookup, None) && observed != expected(lookup, Some(mistake))
        };
        let number = (0..CALLS).find(|n| notices(&drawn(*n)));
        println!("{mistake:?} is noticed by call {number:?}");
        assert!(number.is_some(), "{mistake:?} is noticed by none of {CALLS} calls");
    }
}
