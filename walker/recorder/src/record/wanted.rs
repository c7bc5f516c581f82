//! Which calls are written.

use super::frames::Chain;
use super::walk::{Answer, Call, Situation};
use clr_sampler::lock;
use clr_walker::profiling::HResult;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Mutex;

/// The calls that were made, by their shapes: the situation, the variant, the result, the Frames and the functions.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Maximum number of calls of a shape that are written.
    repeat: u32,
    /// Number of calls of each shape.
    made: Mutex<HashMap<u64, u32>>,
}

impl Wanted {
    pub(super) fn new(repeat: u32) -> Self {
        Self { repeat, made: Mutex::default() }
    }

    /// Counts a call. Returns true if it is written: fewer calls than the limit had its shape, and the runtime still
    /// has a profiler. 3.1 lets go of it in `Shutdown`, while other threads are in callbacks; no recorded state would
    /// explain what they get.
    pub(super) fn takes(
        &self,
        situation: &Situation,
        call: &Call,
        chain: &Chain,
        answer: &Answer,
    ) -> bool {
        if answer.result == HResult::PROFILER_DETACHING {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        (situation.name, call.variant, chain.is_cooperative, answer.result.0).hash(&mut hasher);
        for frame in &chain.frames {
            frame.kind.name.hash(&mut hasher);
        }
        for report in &answer.reports {
            report.function.map(|function| function.0).hash(&mut hasher);
        }
        let mut made = lock(&self.made);
        let count = made.entry(hasher.finish()).or_default();
        *count += 1;
        *count <= self.repeat
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::{Suspension, Thread};
    use super::*;

    fn takes(wanted: &Wanted, name: &'static str, result: HResult) -> bool {
        let situation = Situation {
            name,
            is_own: true,
            is_managed_walker: true,
            suspended: Suspension::Nothing,
        };
        let chain = Chain { is_cooperative: true, frames: Vec::new() };
        let answer = Answer { result, reports: Vec::new(), count: 0 };
        wanted.takes(&situation, &Call::unseeded(Thread::Null), &chain, &answer)
    }

    #[test]
    fn a_shape_is_written_as_often_as_wanted() {
        let wanted = Wanted::new(2);
        let taken = [HResult::OK, HResult::FAIL, HResult::OK, HResult::OK, HResult::FAIL]
            .map(|result| takes(&wanted, "callback:ThreadCreated", result));
        assert_eq!(taken, [true, true, true, false, true]);
        assert!(takes(&wanted, "callback:ThreadDestroyed", HResult::OK));
    }

    #[test]
    fn a_call_after_the_profiler_was_let_go_is_not_written() {
        let wanted = Wanted::new(1);
        assert!(!takes(&wanted, "callback:ThreadDestroyed", HResult::PROFILER_DETACHING));
    }
}
