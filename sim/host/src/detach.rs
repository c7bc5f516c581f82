//! The end of profiling: `ProfilingAPIDetach` (src/vm/profdetach.cpp of CoreCLR 3.1).

use crate::inner::Inner;
use clr_runtime::ProfilerStatus;
use clr_runtime::profiling::CallbackKind as Kind;

impl Inner {
    /// Ends profiling: from now on the runtime makes no callback, and refuses all calls but those of `IUnknown`.
    pub(crate) fn end_profiling(&self) {
        drop(self.profiler.take());
        if let Some(stage) = self.stage() {
            stage.runtime().change_process(|process| process.profiler = ProfilerStatus::Detaching);
        }
    }

    /// Ends profiling after `Shutdown` if the runtime does: `TerminateProfiling` of src/vm/profilinghelper.cpp of CoreCLR 3.1. A
    /// profiler that is about to be detached is left to the thread that detaches.
    pub(crate) fn end_after(&self, callback: Kind) {
        let ends = callback == Kind::Shutdown && self.generation.releases_profiler_at_end();
        if ends && !self.is_detaching() {
            self.end_profiling();
        }
    }

    /// Returns true if the profiler has asked to be detached, or was.
    pub(crate) fn is_detaching(&self) -> bool {
        self.stage().is_some_and(|stage| {
            let status = stage.runtime().process.get().profiler;
            matches!(status, ProfilerStatus::Detaching | ProfilerStatus::None)
        })
    }

    /// Detaches a profiler that has asked for it, once it has returned from all callbacks.
    pub(crate) fn detach_if_asked(&self) {
        // A profiler that the end of the process has released is not detached.
        let is_loaded = self.profiler.borrow().is_some();
        if !is_loaded || !self.is_detaching() || self.within.get().is_some() {
            return;
        }
        let Some(stage) = self.stage() else { return };
        // The thread that detaches is the runtime's own, and no callback is in progress on it.
        self.acting_as(stage.native(), || self.detach());
        let on_detach = self.on_detach.take();
        if let Some(on_detach) = on_detach {
            on_detach();
        }
    }

    /// Tells the profiler that it is detached, and forgets it.
    pub(crate) fn detach(&self) {
        let (Some(stage), Some(target)) = (self.stage(), self.profiler.take()) else { return };
        self.enter("ProfilerDetachSucceeded", || target.detach_succeeded());
        drop(target);
        stage.runtime().change_process(|process| process.profiler = ProfilerStatus::None);
    }
}
