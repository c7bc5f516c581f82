//! The runtime as it was when a sample was taken.

use crate::process::Process;
use clr_walker::profiling::{CallError, FunctionId, HResult, ProfilerInfo, ReJitId};
use std::convert::Infallible;

/// The answers of the runtime about code, and for code that is freed since then, what it would have answered.
///
/// The runtime is not asked about such code: it would look at memory that is gone. No code ends meanwhile
/// ([`Process::asking`]).
pub(crate) struct AtTime<'p> {
    pub(crate) process: &'p Process,
    /// The time ([`crate::os::now`]).
    pub(crate) time: u64,
}

impl AtTime<'_> {
    /// Returns the method that was at an address and has ended since, else what `ask` says.
    fn ended_or<T>(
        &self,
        ip: u64,
        ask: impl FnOnce() -> Result<T, CallError<Infallible>>,
        ended: impl FnOnce(FunctionId, bool) -> Result<T, HResult>,
    ) -> Result<T, CallError<Infallible>> {
        match self.process.code.lifetimes().ended_at(ip, self.time) {
            Some((function, is_dynamic)) => ended(function, is_dynamic).map_err(CallError::Failed),
            None => ask(),
        }
    }
}

impl ProfilerInfo for AtTime<'_> {
    type Fatal = Infallible;

    /// Names no dynamic method, as the runtime does not.
    fn get_function_from_ip(&self, ip: u64) -> Result<FunctionId, CallError<Infallible>> {
        let named =
            |function, is_dynamic| if is_dynamic { Err(HResult::FAIL) } else { Ok(function) };
        self.ended_or(ip, || self.process.info.get_function_from_ip(ip), named)
    }

    fn get_function_from_ip3(
        &self,
        ip: u64,
    ) -> Result<(FunctionId, ReJitId), CallError<Infallible>> {
        let named = |function, _| Ok((function, ReJitId(0)));
        self.ended_or(ip, || self.process.info.get_function_from_ip3(ip), named)
    }
}
