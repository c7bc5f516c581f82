//! A recorded call of `DoStackSnapshot`: its arguments, the state before it, and its result.

use super::frames::Chain;
use super::reads::{Passed, Word};
use clr_sampler::os;
use clr_unwind::Registers;
use clr_walker::profiling::{FunctionId, HResult, StackBounds};
use std::collections::BTreeMap;

/// The place and the time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Situation {
    /// `callback:NAME`, `cross-thread` …
    pub(crate) name: &'static str,
    /// True if the calling thread is the target.
    pub(crate) is_own: bool,
    /// True if the runtime knows the calling thread.
    pub(crate) is_managed_walker: bool,
    /// The part of the process that the recorder has suspended.
    pub(crate) suspended: Suspension,
}

/// The part of a process that the recorder has suspended during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspension {
    Nothing,
    /// The runtime, between SuspendRuntime and ResumeRuntime.
    Runtime,
    /// The target, by the operating system.
    Target,
}

/// The thread argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    Null,
    Own,
    Other,
}

/// A seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seed {
    /// The way in which it was made.
    pub(super) made: &'static str,
    pub(super) registers: Registers,
    /// ContextFlags.
    pub(super) flags: u32,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Name of the variant.
    pub(super) variant: &'static str,
    pub(super) thread: Thread,
    pub(super) flags: u32,
    pub(super) seed: Option<Seed>,
    /// The callback with this index returns S_FALSE.
    pub(super) stop_at: Option<usize>,
}

/// Arguments of a `StackSnapshotCallback`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) function: Option<FunctionId>,
    pub(super) ip: u64,
    pub(super) has_frame_info: bool,
    pub(super) context_size: u32,
    /// The registers and ContextFlags of the context, if there was one.
    pub(super) context: Option<(Registers, u32)>,
}

impl Report {
    /// Returns true if this can be the callback of a frame with this address and stack pointer (VA).
    pub(super) fn is_at(&self, ip: u64, sp: u64) -> bool {
        self.ip == ip && self.context.is_none_or(|(registers, _)| registers.rsp() == sp)
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) result: HResult,
    /// The first callbacks.
    pub(super) reports: Vec<Report>,
    /// Number of all callbacks.
    pub(super) count: usize,
}

impl Answer {
    /// Returns the stack pointer of the last callback, if it had registers.
    pub(super) fn last_sp(&self) -> Option<u64> {
        let (registers, _) = self.reports.last()?.context?;
        Some(registers.rsp())
    }
}

/// The state of the runtime's own that follows from the result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing special.
    Usual,
    /// The runtime has not started.
    NotStarted,
    /// The target must not be suspended.
    ForbidsSuspension,
    /// The target is in a system call, so that its registers do not count.
    InSystemCall,
    /// The target was in cooperative mode for a moment, though the profiler had suspended the runtime.
    Cooperative,
    /// Native code dispatches an exception in its second pass.
    SecondPass,
    /// The exception is over, and the target has not gone on after its catch (C-050).
    TrackerGone,
}

/// The callback in which the runtime may have ended an exception, and the thread has not gone on yet.
const HANDLE_DESTROYED: &str = "callback:HandleDestroyed";

impl State {
    /// Returns the state that follows from a call's result. `has_started`: the runtime has answered a call.
    pub(super) fn of(walk: &Walk, has_started: bool) -> Self {
        let (situation, is_cooperative) = (&walk.situation, walk.chain.is_cooperative);
        match walk.answer.result {
            HResult::UNSAFE if !has_started => Self::NotStarted,
            HResult::UNSAFE if situation.suspended == Suspension::Target && is_cooperative => {
                Self::InSystemCall
            }
            // Nothing forbids to suspend the thread there: seeds in native code are looked at.
            HResult::UNSAFE if situation.is_own && situation.name == HANDLE_DESTROYED => {
                Self::TrackerGone
            }
            HResult::UNSAFE => Self::ForbidsSuspension,
            // A suspended runtime refuses only threads in cooperative mode.
            HResult::NOT_IMPLEMENTED
                if situation.suspended == Suspension::Runtime && !is_cooperative =>
            {
                Self::Cooperative
            }
            HResult::UNMANAGED_CONTEXT if walk.start().is_none() => Self::SecondPass,
            _ => Self::Usual,
        }
    }
}

impl Walk {
    /// Makes a call as far as it is known at once. The thread's registers are not.
    pub(super) fn new(
        situation: Situation,
        call: &Call,
        target: u32,
        stack: StackBounds,
        chain: Chain,
        answer: Answer,
    ) -> Self {
        Self {
            situation,
            call: *call,
            made_at: os::now(),
            state: State::Usual,
            target,
            stack,
            chain,
            leaf: None,
            passed: Passed::new(),
            words: BTreeMap::new(),
            answer,
        }
    }

    /// Returns the registers that a walk starts with: a target in preemptive mode has none.
    pub(super) fn start(&self) -> Option<&Registers> {
        let own = self.call.seed.as_ref().map(|seed| &seed.registers);
        own.or(self.leaf.as_ref()).filter(|_| self.chain.is_cooperative)
    }
}

/// A whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    pub(super) situation: Situation,
    /// The time when it was made ([`os::now`]).
    pub(super) made_at: u64,
    pub(super) call: Call,
    pub(super) state: State,
    /// Number of the target.
    pub(super) target: u32,
    pub(super) stack: StackBounds,
    pub(super) chain: Chain,
    /// The registers of a target that the recorder has suspended.
    pub(super) leaf: Option<Registers>,
    pub(super) passed: Passed,
    pub(super) words: BTreeMap<u64, Word>,
    pub(super) answer: Answer,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_walker::profiling::StackRoot;

    fn unsafe_walk(name: &'static str, is_own: bool, suspended: Suspension) -> Walk {
        let situation = Situation { name, is_own, is_managed_walker: is_own, suspended };
        let call = Call::unseeded(Thread::Null);
        let stack = StackBounds { limit: 0x1000, base: 0x2000, root: StackRoot::Undefined };
        let chain = Chain { is_cooperative: true, frames: Vec::new() };
        let answer = Answer { result: HResult::UNSAFE, reports: Vec::new(), count: 0 };
        Walk::new(situation, &call, 1, stack, chain, answer)
    }

    #[test]
    fn the_cause_of_an_unsafe_call_depends_on_its_situation() {
        let own = |name| unsafe_walk(name, true, Suspension::Nothing);
        assert_eq!(State::of(&own(HANDLE_DESTROYED), false), State::NotStarted);
        assert_eq!(State::of(&own(HANDLE_DESTROYED), true), State::TrackerGone);
        assert_eq!(
            State::of(&own("callback:GarbageCollectionStarted"), true),
            State::ForbidsSuspension
        );
        let other = |suspended| unsafe_walk("cross-thread", false, suspended);
        assert_eq!(State::of(&other(Suspension::Target), true), State::InSystemCall);
        assert_eq!(State::of(&other(Suspension::Nothing), true), State::ForbidsSuspension);
    }
}
