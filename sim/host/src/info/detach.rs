//! The request to be detached.

use super::{Call, HIGH_IMMUTABLE};
use crate::out::Answer;
use clr_runtime::ProfilerStatus;
use clr_runtime::profiling::Accepts;
use clr_walker::profiling::HResult;

impl Call<'_> {
    /// Answers RequestProfilerDetach: the profiler is called no more, and is unloaded as soon as it has
    /// returned. `EnsureProfilerDetachable` has the refusals. The time that it
    /// gives is not waited for.
    pub(crate) fn request_detach(&self, _milliseconds: u32) -> Answer {
        self.caller().begin(Accepts::All)?;
        let process = self.runtime().process.get();
        if !process.started {
            return Ok(HResult::RUNTIME_UNINITIALIZED);
        }
        match process.profiler {
            ProfilerStatus::Active => {}
            ProfilerStatus::InitializingForStartup | ProfilerStatus::InitializingForAttach => {
                return Ok(HResult::PROFILER_NOT_YET_INITIALIZED);
            }
            _ => return Ok(HResult::PROFILER_DETACHING),
        }
        let has_third = self.session.profiler.borrow().as_ref().is_some_and(|one| one.has_third());
        if !has_third {
            return Ok(HResult::CALLBACK3_REQUIRED);
        }
        if process.event_mask.0 & self.session.generation.immutable_events() != 0
            || self.session.high_events.get() & HIGH_IMMUTABLE != 0
        {
            return Ok(HResult::IMMUTABLE_FLAGS_SET);
        }
        if self.session.hooks.are_set() {
            return Ok(HResult::IRREVERSIBLE_INSTRUMENTATION_PRESENT);
        }
        self.caller().may_fail(self.method)?;
        self.runtime().change_process(|process| process.profiler = ProfilerStatus::Detaching);
        let begin = self.session.on_request.borrow().clone();
        if let (Some(me), Some(begin)) = (self.session.current(), begin) {
            self.session.switching(|| begin(me));
        }
        Ok(HResult::OK)
    }
}
