//! Checks before the walk (contract §2.2, §2.8), as far as worlds can reach them: the first rule
//! that applies decides.

use super::activations::ThreadFacts;
use super::runtimes;
use super::{CallFacts, CallerKind};
use clr_runtime::generation::Os;
use clr_runtime::profiling::HResult;

/// The result of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
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
    Row(usize, u32),
}
use Decision::{Chain, Return};

/// A call and its target, which is a thread of the runtime.
pub(super) struct Call<'a> {
    pub question: &'a CallFacts,
    pub target: &'a ThreadFacts,
}

type Rule = (fn(&Call<'_>) -> bool, fn(&Call<'_>) -> Decision);

/// The rules, from row 5 of contract §2.2 on: earlier rows always pass in a world.
const RULES: &[Rule] = &[
    // 5: C-007.
    (|call| call.question.flags.0 > 1, |_| Return(HResult::INVALID_ARGUMENT)),
    // 6: C-010.
    (|call| call.has_no_target(), |_| Return(HResult::OK)),
    // 8: C-017.
    (
        |call| call.question.caller == CallerKind::Managed && call.target.suspending,
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
    // 13d: C-033.
    (|call| call.is_other() && call.has_frame_below_sp(), |_| Return(HResult::UNSAFE)),
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
        |call| call.start().map_or(Chain, |(activation, flags)| Decision::Row(activation, flags)),
    ),
];

impl Call<'_> {
    pub(super) fn is_other(&self) -> bool {
        self.question.caller != CallerKind::Target
    }

    /// Returns true if a lookup of code may have to wait: another thread writes to the tables.
    fn waits_for_code(&self) -> bool {
        self.question.caller != CallerKind::Native && self.target.code_busy
    }

    fn is_unix(&self) -> bool {
        self.target.generation.family().os == Os::Unix
    }

    fn has_no_target(&self) -> bool {
        self.question.unnamed && self.question.caller == CallerKind::Native
    }

    fn has_frame_below_sp(&self) -> bool {
        let rsp = self.target.activations.first().map(|activation| activation.registers.rsp());
        let top = self.target.frames.first().map(|frame| frame.at);
        !runtimes::is_framework_2(self.target.generation.family())
            && top.zip(rsp).is_some_and(|(top, rsp)| top < rsp)
    }

    /// Returns the index of the activation that a cooperative target's walk starts at, with its
    /// ContextFlags: of the seed, or of the leaf for a call by another thread.
    fn start(&self) -> Option<(usize, u32)> {
        let own = runtimes::own_flags(self.target.generation.family());
        self.question.seed.or_else(|| self.is_other().then_some((0, own)))
    }

    fn starts_unmanaged(&self) -> bool {
        let activation =
            self.start().map(|(activation, _)| self.target.activations.get(activation));
        activation
            .is_some_and(|activation| activation.is_none_or(|activation| !activation.is_managed()))
    }
}

/// Returns the decision of the first rule that applies.
pub(super) fn decide(call: &Call<'_>) -> Decision {
    let first = RULES.iter().find(|(applies, _)| applies(call));
    first.map_or(Chain, |(_, decision)| decision(call))
}
