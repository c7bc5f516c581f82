//! The end of profiling: `ProfilingAPIDetach` (src/vm/profdetach.cpp of CoreCLR 3.1).

use crate::info::{Call, HIGH_IMMUTABLE};
use crate::out::Answer;
use crate::session::{Inner, Session};
use clr_runtime::ProfilerStatus;
use clr_runtime::profiling::{Accepts, CallbackKind as Kind};
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
        self.runtime().change_process(|process| process.profiler = ProfilerStatus::Detaching);
        Ok(HResult::OK)
    }
}

impl Inner {
    /// Returns true if the profiler has asked to be detached, or was.
    pub(crate) fn is_detaching(&self) -> bool {
        self.stage().is_some_and(|stage| {
            let status = stage.runtime().process.get().profiler;
            matches!(status, ProfilerStatus::Detaching | ProfilerStatus::None)
        })
    }

    /// Detaches a profiler that has asked for it, once it has returned from all callbacks.
    pub(crate) fn detach_if_asked(&self) {
        if !self.is_detaching() || self.within.get().is_some() {
            return;
        }
        let (Some(stage), Some(target)) = (self.stage(), self.profiler.take()) else { return };
        // The thread that detaches is the runtime's own, and no callback is in progress on it.
        self.acting_as(stage.native(), || {
            self.enter("ProfilerDetachSucceeded", || target.detach_succeeded());
        });
        drop(target);
        stage.runtime().change_process(|process| process.profiler = ProfilerStatus::None);
        let on_detach = self.on_detach.take();
        if let Some(on_detach) = on_detach {
            on_detach();
        }
    }
}

impl Session {
    /// Ends the process: calls `Shutdown`, unless the program has ended with it, or the profiler is gone.
    pub(crate) fn shut_down(&self) {
        let inner = self.inner();
        let (Some(stage), Some(target)) = (inner.stage(), inner.profiler.borrow().clone()) else {
            return;
        };
        if stage.world().is_some_and(|world| world.borrow().has_exited()) {
            return;
        }
        let runtime = stage.runtime();
        runtime.change_process(|process| process.shutting_down = true);
        inner.acting_as(stage.stopped(), || {
            runtime.on(stage.stopped()).in_callback(Kind::Shutdown, |_| {
                inner.enter(Kind::Shutdown.name(), || target.shutdown());
            });
        });
    }

    /// Ends profiling: from now on the runtime refuses all calls but those of `IUnknown`.
    pub(crate) fn end_profiling(&self) {
        let inner = self.inner();
        drop(inner.profiler.take());
        if let Some(stage) = inner.stage() {
            stage.runtime().change_process(|process| process.profiler = ProfilerStatus::Detaching);
        }
    }
}
