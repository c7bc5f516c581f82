//! Advice for each HRESULT of `DoStackSnapshot`.

use crate::profiling::HResult;

/// The recommended reaction of a profiler to an HRESULT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// The walk is complete. Without callbacks there was nothing managed: the thread is not the
    /// runtime's, or its first method is still being prepared.
    Use,
    /// The thread has no managed frames, or none that the runtime can find now: without a seed in a
    /// fast hook, or after the GC has redirected the thread. Or the walk left the stack: callbacks
    /// made before are correct (contract §3.8) if the seed was. Keep the unwinder's frames.
    UseWhatCame,
    /// The thread or the runtime is in a state in which it cannot be walked: resume the thread and
    /// try again at the next sample, not in a loop (H-21, H-27).
    RetryLater,
    /// The call is not supported on this platform or in this state: use another policy.
    ChangePolicy,
    /// The profiler is set up wrongly: no walk will ever work.
    FixSetup,
    /// The runtime is detaching the profiler: stop sampling (H-24).
    Stop,
}

/// Returns the advice for a result of `DoStackSnapshot` (contract §2.2, §3.8).
pub const fn advice(result: HResult) -> Advice {
    match result {
        HResult::OK => Advice::Use,
        // ABORTED: the walker's own callback ended the walk. UNEXPECTED: memory could not be read.
        HResult::FAIL | HResult::ABORTED | HResult::UNEXPECTED => Advice::UseWhatCame,
        HResult::NOT_IMPLEMENTED => Advice::ChangePolicy,
        HResult::INVALID_ARGUMENT | HResult::INCONSISTENT_WITH_FLAGS => Advice::FixSetup,
        HResult::PROFILER_DETACHING => Advice::Stop,
        // UNMANAGED_CONTEXT, UNSAFE, ASYNCHRONOUS_UNSAFE, and HRESULTs not seen yet.
        _ => Advice::RetryLater,
    }
}
