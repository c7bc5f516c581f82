//! Advice for HRESULTs.

use super::*;
use clr_walker::mixed::advice;

#[test]
fn every_result_asks_for_something() {
    for (result, expected) in [
        (HResult::OK, Advice::Use),
        (HResult::FAIL, Advice::UseWhatCame),
        (HResult::ABORTED, Advice::UseWhatCame),
        (HResult::UNEXPECTED, Advice::UseWhatCame),
        (HResult::UNMANAGED_CONTEXT, Advice::RetryLater),
        (HResult::UNSAFE, Advice::RetryLater),
        (HResult::ASYNCHRONOUS_UNSAFE, Advice::RetryLater),
        (HResult::NOT_IMPLEMENTED, Advice::ChangePolicy),
        (HResult::INVALID_ARGUMENT, Advice::FixSetup),
        (HResult::INCONSISTENT_WITH_FLAGS, Advice::FixSetup),
        (HResult::PROFILER_DETACHING, Advice::Stop),
    ] {
        assert_eq!(advice(result), expected, "{result}");
    }
}

/// Texts and command lines have these names.
#[test]
fn policies_have_names_and_threads() {
    let itself = Policy::ALL.iter().filter(|policy| policy.is_for_itself());
    let names: Vec<_> = itself.map(|policy| policy.name()).collect();
    assert_eq!(names, ["signal", "synchronous"]);
    let others = Policy::ALL.iter().filter(|policy| !policy.is_for_itself());
    let names: Vec<_> = others.map(|policy| policy.name()).collect();
    assert_eq!(names, ["unseeded", "seeded", "runtime-suspended", "frame-pointers"]);
}
