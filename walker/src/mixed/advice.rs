//! What the HRESULTs of `DoStackSnapshot` ask of a profiler.

use crate::profiling::HResult;

/// What a profiler does about an HRESULT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// The walk came to its end. Without callbacks there was nothing managed: no thread of the runtime, or
    /// the first method is still being prepared.
    Use,
    /// The thread has no managed frames, or none that the runtime can find now: without a seed in a fast
    /// hook, or where the GC has redirected the thread. Or the walk left the stack: callbacks made before
    /// are right (contract §3.8), if its seed was. Keep what the unwinder has.
    UseWhatCame,
    /// The thread, or the runtime, is where it cannot be walked now: resume the thread and try it at the
    /// next sample, not in a loop (H-21, H-27).
    RetryLater,
    /// The call is not made for this platform or in this state: take another policy.
    ChangePolicy,
    /// The profiler is set up wrongly: no walk will ever work.
    FixSetup,
    /// The runtime lets go of the profiler: stop sampling (H-24).
    Stop,
}

/// What `DoStackSnapshot`'s result asks for (contract §2.2, §3.8).
#[must_use]
pub const fn advice(result: HResult) -> Advice {
    match result {
        HResult::OK => Advice::Use,
        // ABORTED: the own callback wanted no more. UNEXPECTED: memory could not be read.
        HResult::FAIL | HResult::ABORTED | HResult::UNEXPECTED => Advice::UseWhatCame,
        HResult::NOT_IMPLEMENTED => Advice::ChangePolicy,
        HResult::INVALID_ARGUMENT | HResult::INCONSISTENT_WITH_FLAGS => Advice::FixSetup,
        HResult::PROFILER_DETACHING => Advice::Stop,
        // UNMANAGED_CONTEXT, UNSAFE, ASYNCHRONOUS_UNSAFE, and what nobody has seen yet.
        _ => Advice::RetryLater,
    }
}
