//! Advice for HRESULTs.

use clr_walker::mixed::{Advice, advice};
use clr_walker::profiling::HResult;

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
