//! A runtime that is not asked.

use clr_walker::profiling::{CallError, FunctionId, HResult, ProfilerInfo};
use std::convert::Infallible;

/// The absence of a runtime, for walks by [`Policy::Signal`](clr_walker::mixed::Policy::Signal), which ask none: of a process
/// without one, or one that hangs. No frame is a method then; those of native images have their offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoRuntime;

impl ProfilerInfo for NoRuntime {
    type Fatal = Infallible;

    fn get_function_from_ip(&self, _: u64) -> Result<FunctionId, CallError<Infallible>> {
        Err(HResult::FAIL.into())
    }
}
