//! Checks before the walk (contract §2.2, §2.8): the first rule that applies decides.

use super::activations::ThreadFacts;
use super::{CallFacts, CallerKind, runtimes};
use clr_runtime::generation::Os;
use clr_runtime::profiling::HResult;
use clr_runtime::{ContextSafety, ProfilerStatus, Suspension};
use clr_walker::profiling::EventMask;

/// The result of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The call returns at once.
    Return(HResult),
    /// The process ends with this code.
    Kill(HResult),
    /// The reference model does not cover the case.
    Unsaid,
    /// The walk starts at the topmost Frame.
    Chain,
    /// The walk starts at the activation with this index, with the seed's ContextFlags or the
    /// thread's own.
    Report(usize, u32),
}
use Decision::{Chain, Return};

/// A call and its target, which is a thread of the runtime.
pub(crate) struct Call<'a> {
    pub question: &'a CallFacts,
    pub target: &'a ThreadFacts,
}

type Rule = (fn(&Call<'_>) -> bool, fn(&Call<'_>) -> Decision);

/// The rules, with their rows of contract §2.2.
const RULES: &[Rule] = &[
    // 1: C-001.
    (
        |call| !call.is_2() && call.target.process.profiler == ProfilerStatus::Detaching,
        |_| Return(HResult::PROFILER_DETACHING),
    ),
    // 2: C-002.
    (|call| !call.target.process.started, |_| Return(HResult::UNSAFE)),
    // 3: C-004, C-003.
    (|call| call.is_2() && !call.is_enabled(), |_| Return(HResult::INVALID_ARGUMENT)),
    (|call| !call.is_enabled(), |_| Return(HResult::INCONSISTENT_WITH_FLAGS)),
    // 5: C-007.
    (|call| call.question.flags.0 > 1, |_| Return(HResult::INVALID_ARGUMENT)),
    // 6: C-010, C-011, C-012.
    (|call| call.has_no_target(), |_| Return(HResult::OK)),
    (
        |call| call.target.gc_special && !call.is_2() || !call.target.process.gc_initialized,
        |_| Return(HResult::OK),
    ),
    // 7: C-014.
    (|call| call.target.hijack_locked, |_| Return(HResult::UNSAFE)),
    // 8: C-017.
    (
        |call| call.question.caller == CallerKind::Managed && call.is_suspending(),
        |_| Return(HResult::UNSAFE),
    ),
    // 9: C-018.
    (|call| call.target.forbidden, |_| Return(HResult::UNSAFE)),
    // 10: C-019.
    (
        |call| call.is_other() && call.is_unix() && !call.question.suspended_by_profiler,
        |_| Return(HResult::NOT_IMPLEMENTED),
    ),
    // 10a: C-028.
    (
        |call| call.is_other() && !call.question.suspended_by_profiler && call.target.gone,
        |_| Decision::Kill(HResult::INVALID_TARGET_THREAD),
    ),
    // Framework 2 reads the CONTEXT before the mode (contract §2.3).
    (
        |call| {
            call.is_2()
                && call.is_other()
                && call.question.seed.is_none()
                && call.target.safety == ContextSafety::Unreadable
        },
        |_| Return(HResult::FAIL),
    ),
    // 12 and 15: C-037, C-048. The seed is ignored.
    (
        |call| !call.target.cooperative && call.target.exceptions.unwinds_natively,
        |_| Return(HResult::UNMANAGED_CONTEXT),
    ),
    // 16: C-050.
    (
        |call| !call.target.cooperative && call.target.exceptions.inconsistent,
        |_| Return(HResult::UNSAFE),
    ),
    // Whether a thread waits for the lock in a world where no other thread runs, or gives up,
    // depends on the caller's mode and callback (contract §2.6, C-036). A thread that the runtime
    // does not know takes no lock.
    (|call| call.waits_for_code() && !call.target.cooperative, |_| Decision::Unsaid),
    // 12.
    (|call| !call.target.cooperative, |_| Chain),
    // 13: C-020.
    (|call| call.is_other() && call.is_unix(), |_| Return(HResult::NOT_IMPLEMENTED)),
    (|call| call.waits_for_code(), |_| Decision::Unsaid),
    // 13a: C-032. 13d: C-033.
    (
        |call| {
            let is_unsafe = call.target.safety != ContextSafety::Safe || call.has_frame_below_sp();
            call.is_other() && !call.is_2() && is_unsafe
        },
        |_| Return(HResult::UNSAFE),
    ),
    (|call| call.has_other_seed(), |_| Decision::Unsaid),
    // 14a: C-038, C-044.
    (|call| call.starts_unmanaged(), |_| Return(HResult::UNMANAGED_CONTEXT)),
    // 15: C-048.
    (
        |call| call.start().is_none() && call.target.exceptions.unwinds_natively,
        |_| Return(HResult::UNMANAGED_CONTEXT),
    ),
    // 16: C-050.
    (|call| call.target.exceptions.inconsistent, |_| Return(HResult::UNSAFE)),
    // 17: C-043, C-051; C-045 without a seed.
    (
        |_| true,
        |call| {
            call.start().map_or(Chain, |(activation, flags)| Decision::Report(activation, flags))
        },
    ),
];

impl Call<'_> {
    pub(crate) fn is_other(&self) -> bool {
        self.question.caller != CallerKind::Target
    }

    /// Returns true if a lookup of code may have to wait: another thread writes to the tables.
    fn waits_for_code(&self) -> bool {
        self.question.caller != CallerKind::Native && self.target.code_busy
    }

    fn is_2(&self) -> bool {
        runtimes::is_framework_2(self.target.generation.family())
    }

    fn is_enabled(&self) -> bool {
        let process = &self.target.process;
        process.event_mask.contains(EventMask::ENABLE_STACK_SNAPSHOT)
            && process.profiler != ProfilerStatus::None
    }

    fn is_suspending(&self) -> bool {
        matches!(self.target.process.suspension, Suspension::Suspending(_))
    }

    fn is_unix(&self) -> bool {
        self.target.generation.family().os == Os::Unix
    }

    fn has_no_target(&self) -> bool {
        self.question.unnamed && self.question.caller == CallerKind::Native
    }

    fn has_frame_below_sp(&self) -> bool {
        self.target.frames.first().is_some_and(|frame| frame.at < self.target.rsp)
    }

    /// Returns the index of the activation that a cooperative target's walk starts at, with its
    /// ContextFlags: of the seed, or of the leaf for a call by another thread.
    fn start(&self) -> Option<(usize, u32)> {
        let own = runtimes::own_flags(self.target.generation.family());
        self.question.seed.or_else(|| self.is_other().then_some((0, own)))
    }

    fn has_other_seed(&self) -> bool {
        let count = self.target.activations.len();
        self.question.seed.is_some_and(|(activation, _)| activation >= count)
    }

    fn starts_unmanaged(&self) -> bool {
        let activation =
            self.start().map(|(activation, _)| self.target.activations.get(activation));
        activation
            .is_some_and(|activation| activation.is_none_or(|activation| !activation.is_managed()))
    }
}

/// Returns the decision of the first rule that applies.
pub(crate) fn decide(call: &Call<'_>) -> Decision {
    let first = RULES.iter().find(|(applies, _)| applies(call));
    first.map_or(Chain, |(_, decision)| decision(call))
}
