//! The ordered checks before the walk (contract §2.2).

use super::{Call, Context, Death, HResult, Outcome, Runtime};
use crate::runtime::{Existence, Thread};

impl<M: ?Sized> Runtime<'_, M> {
    /// What the walk begins with: a seed, or the Frame chain alone. An error is how the call ends
    /// without a walk.
    pub(super) fn start(&self, target: &Thread, call: &Call) -> Result<Option<Context>, Outcome> {
        let refuse = |result| Err(Outcome::Returned(result));
        if !self.process.started {
            return refuse(HResult::UNSAFE);
        }
        if !self.process.snapshot_enabled {
            return refuse(HResult::INCONSISTENT_WITH_FLAGS);
        }
        if call.flags & !1 != 0 {
            return refuse(HResult::INVALID_ARGUMENT);
        }
        if target.existence == Existence::None {
            return refuse(HResult::OK);
        }
        if target.hijack_locked {
            return refuse(HResult::UNSAFE);
        }
        let other = !call.own_thread;
        if other && call.caller_is_managed && self.process.suspending {
            return refuse(HResult::UNSAFE);
        }
        if target.forbids_suspension {
            return refuse(HResult::UNSAFE);
        }
        let suspends = other && !self.process.suspended_by_profiler;
        if suspends {
            if self.generation.is_unix() {
                return refuse(HResult::NOT_IMPLEMENTED);
            }
            if target.existence == Existence::Dead {
                return Err(Outcome::Killed(Death::InvalidTargetThread));
            }
        }
        let mut seed = call.seed;
        if !target.cooperative {
            seed = None;
        } else if other {
            if self.generation.is_unix() {
                return refuse(HResult::NOT_IMPLEMENTED);
            }
            if target.in_system_call {
                return refuse(HResult::UNSAFE);
            }
            if let Some(current) = call.current {
                let rsp = current.registers.rsp();
                if target.frames.first().is_some_and(|frame| frame.at < rsp) {
                    return refuse(HResult::UNSAFE);
                }
            }
            seed = seed.or(call.current);
        }
        if let Some(seed) = seed {
            if self.code.find(seed.registers.rip).is_none() {
                return refuse(HResult::UNMANAGED_CONTEXT);
            }
        } else if target.exception.second_pass_native {
            return refuse(HResult::UNMANAGED_CONTEXT);
        }
        Ok(seed)
    }
}
