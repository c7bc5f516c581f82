//! `ForceGC` (contract §5.14).

use super::info::{Result, fail};
use super::{Caller, HResult, InfoMethod, ProfilerCallback, SuspensionReason};
use crate::frame::FRAME_TOP;
use crate::thread::ThreadObject;
use crate::{CallbackState, Lock, Suspension, TargetMemory, Wait};

/// The thread that performs a GC which the profiler forces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcRequest {
    /// The thread that forces it. The GC moves objects, or lets them survive where they are.
    Caller {
        /// Objects move.
        moves: bool,
    },
    /// The server GC's thread, which has been asked for it: after this number of GCs it is done.
    Server(u32),
}

impl<M: TargetMemory> Caller<'_, '_, M> {
    /// Answers `ForceGC`: see [`ProfilerInfo::force_gc`](clr_walker::profiling::ProfilerInfo::force_gc).
    pub(super) fn force_a_gc(&self) -> Result<()> {
        let runtime = self.runtime;
        self.notice(InfoMethod::ForceGC);
        if !runtime.process.get().gc_initialized {
            return fail(HResult::NOT_YET_AVAILABLE);
        }
        self.may_force_gc()?;
        self.asynchronous()?;
        let attaches = !runtime.generation.forces_gc_on_foreign_threads_only();
        if attaches && runtime.object_of(self.os).is_none() {
            self.may_fail("ForceGC")?;
        }
        if !runtime.generation.forces_gc_on_foreign_threads_only() {
            self.attach()?;
        }
        self.become_cooperative()?;
        // The caller waits preemptively: for the GC's lock, for threads that have to stop, or for the server GC.
        let was_cooperative = self.set_cooperative(false)?;
        let here = GcRequest::Caller { moves: true };
        match self.profiler.map_or(here, |profiler| profiler.request_gc(runtime)) {
            GcRequest::Server(number) => {
                self.wait(Wait::Gc(number));
            }
            GcRequest::Caller { moves } => self.collect(moves)?,
        }
        self.set_cooperative(was_cooperative)?;
        runtime.change_thread(self.os, |thread| {
            if thread.object.is_some() {
                thread.callback_state.0 |= CallbackState::FORCED_GC.0;
            }
        });
        Ok(())
    }

    /// Refuses threads of the runtime in callbacks, and those that might be in managed code (C-174). A GC-special thread
    /// counts as one of the runtime (assumed).
    fn may_force_gc(&self) -> Result<()> {
        let runtime = self.runtime;
        let is_special = runtime.thread(self.os, |thread| thread.is_gc_special) == Some(true);
        let object = runtime.object_of(self.os);
        if object.is_none() && !is_special {
            return Ok(());
        }
        if runtime.generation.forces_gc_on_foreign_threads_only() {
            return fail(HResult::FAIL);
        }
        let has_frames = match object {
            Some(id) => self.read(|memory| ThreadObject(id).top_frame(memory))? != FRAME_TOP,
            None => false,
        };
        let state = self.callback_state();
        let is_refused = has_frames || state.contains(CallbackState::IN_CALLBACK);
        if is_refused && !state.passes(CallbackState::FORCED_GC) {
            return fail(HResult::UNSUPPORTED_CALL_SEQUENCE);
        }
        Ok(())
    }

    /// Makes the calling thread one of the runtime.
    pub(super) fn attach(&self) -> Result<()> {
        let (runtime, os) = (self.runtime, self.os);
        let Some(profiler) = self.profiler.filter(|_| runtime.object_of(os).is_none()) else {
            return Ok(());
        };
        self.acquire(Lock::ThreadStore)?;
        profiler.attach(runtime, os);
        self.release(Lock::ThreadStore);
        if let Some(id) = runtime.object_of(os) {
            self.report(ProfilerCallback::ThreadCreated(id));
            self.report(ProfilerCallback::ThreadAssignedToOsThread(id));
        }
        Ok(())
    }

    /// Performs a GC as a thread of the program does (contract §6), on a preemptive thread.
    fn collect(&self, moves: bool) -> Result<()> {
        self.acquire(Lock::Gc)?;
        self.stop_threads(SuspensionReason::Gc)?;
        self.set_cooperative(true)?;
        self.report(ProfilerCallback::GarbageCollectionStarted);
        self.report(if moves {
            ProfilerCallback::MovedReferences
        } else {
            ProfilerCallback::SurvivingReferences
        });
        self.report(ProfilerCallback::RootReferences);
        self.report(ProfilerCallback::GarbageCollectionFinished);
        self.report_resume();
        self.runtime.change_process(|process| process.suspension = Suspension::None);
        self.set_cooperative(false)?;
        self.release(Lock::ThreadStore);
        self.report(ProfilerCallback::RuntimeResumeFinished);
        self.release(Lock::Gc);
        Ok(())
    }
}
