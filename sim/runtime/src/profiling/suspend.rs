//! Suspension of the target of a call on Windows (contract §2.4), and of the runtime.

use super::entry::Target;
use super::info::{Result as Called, fail};
use super::{CallbackKind, Caller, HResult, Outcome, ProfilerCallback, SuspensionReason};
use crate::explain::Event;
use crate::thread::{ThreadLife, ThreadObject};
use crate::{CallbackState, Lock, OsThreadId, Suspension, TargetMemory, Wait};
use clr_walker::profiling::ThreadId;

impl<M: TargetMemory> Caller<'_, '_, M> {
    /// Suspends the target, with one try. A target that is not a live thread ends the process
    /// (C-027, C-028).
    pub(super) fn suspend(&self, target: Target) -> Result<(), Outcome> {
        let runtime = self.runtime;
        let object = target.object;
        let count = self.read(|memory| object.external_count(memory))?.wrapping_add(1);
        self.change(|memory| object.set_external_count(memory, count))?;
        let known = runtime.thread_of(object.0, |thread| {
            (
                thread.os,
                thread.life == ThreadLife::Running && thread.handle != 0,
                thread.resists_suspension,
            )
        });
        let Some((os, true, resists)) = known.filter(|_| count != 1) else {
            runtime.record(|| Event::InvalidTarget);
            return Err(Outcome::ProcessKilled { code: HResult::INVALID_TARGET_THREAD.0 });
        };
        if resists {
            self.change(|memory| object.set_external_count(memory, count.wrapping_sub(1)))?;
            runtime.record(|| Event::SuspensionFailed);
            return Err(HResult::UNSAFE.into());
        }
        // The lock is taken first, so that the target cannot be suspended while it holds it.
        let logs = runtime.process.get().stress_log;
        if logs {
            self.acquire(Lock::StressLog)?;
        }
        let stopped = self.stop(object, os);
        if logs {
            self.release(Lock::StressLog);
        }
        let forbidden = stopped?;
        if forbidden != 0 {
            self.change(|memory| object.set_external_count(memory, count.wrapping_sub(1)))?;
            runtime.record(|| Event::SuspensionForbidden(forbidden));
            return Err(HResult::UNSAFE.into());
        }
        runtime.record(|| Event::Suspended(object.0));
        self.report(ProfilerCallback::RuntimeThreadSuspended(object.0));
        Ok(())
    }

    /// Suspends the target in the OS, unless it is in a forbid-suspend region: before, or when it
    /// has stopped (contract §2.4, steps 4 to 6). Returns the count of the region, 0 after success.
    fn stop(&self, object: ThreadObject, os: OsThreadId) -> Result<u32, Outcome> {
        let runtime = self.runtime;
        // While the caller suspends the target, it must not be suspended itself (C-030).
        self.forbid_own_suspension(true)?;
        let others_run = || {
            if let Some(profiler) = self.profiler {
                profiler.suspends(runtime, self.os);
            }
        };
        others_run();
        let before = self.read(|memory| object.forbid_suspend(memory))?;
        if before == 0 {
            others_run();
            runtime.change_thread(os, |thread| thread.suspended += 1);
        }
        self.forbid_own_suspension(false)?;
        if before != 0 {
            return Ok(before);
        }
        // The target may have entered a region in the meantime.
        let after = self.read(|memory| object.forbid_suspend(memory))?;
        if after != 0 {
            runtime.change_thread(os, |thread| thread.suspended -= 1);
        }
        Ok(after)
    }

    /// Resumes the target.
    pub(super) fn resume(&self, target: Target) {
        let runtime = self.runtime;
        let object = target.object;
        if let Some(os) = runtime.thread_of(object.0, |thread| thread.os) {
            runtime
                .change_thread(os, |thread| thread.suspended = thread.suspended.saturating_sub(1));
        }
        runtime.record(|| Event::Resumed(object.0));
        self.report(ProfilerCallback::RuntimeThreadResumed(object.0));
        // The object existed when the count was incremented; its disappearance is not noticed here.
        let _ = self.change(|memory| {
            let count = object.external_count(memory)?;
            object.set_external_count(memory, count.wrapping_sub(1))
        });
    }

    /// Stops all threads of the runtime but the caller, with the lock of the thread list taken.
    pub(super) fn stop_threads(&self, reason: SuspensionReason) -> Result<(), Outcome> {
        let (runtime, os) = (self.runtime, self.os);
        // Without a profiler to decide about waits, the owner of the lock does not run either.
        let _ = self.acquire(Lock::ThreadStore);
        self.report(ProfilerCallback::RuntimeSuspendStarted(reason));
        runtime.change_process(|process| process.suspension = Suspension::Suspending(os));
        self.report_own_suspension()?;
        // Without a profiler to decide about waits, no other thread runs.
        self.wait(Wait::ThreadsToStop);
        let end = || {
            runtime.change_process(|process| process.suspension = Suspension::Suspended(os));
        };
        if runtime.generation.suspends_before_finished() {
            end();
            self.report(ProfilerCallback::RuntimeSuspendFinished);
        } else {
            // The last callback is still part of the suspending phase (C-017, C-168).
            self.report(ProfilerCallback::RuntimeSuspendFinished);
            end();
        }
        Ok(())
    }

    /// Refuses callbacks in which no GC may be triggered. Threads outside of callbacks pass.
    ///
    /// # Errors
    /// Returns `CORPROF_E_UNSUPPORTED_CALL_SEQUENCE`.
    pub fn outside_callbacks_without_triggers(&self) -> Called<()> {
        let state = self.callback_state();
        let is_in_callback = state.contains(CallbackState::IN_CALLBACK);
        if is_in_callback && !state.passes(CallbackState::IN_TRIGGERS_SCOPE) {
            return fail(HResult::UNSUPPORTED_CALL_SEQUENCE);
        }
        Ok(())
    }

    /// Makes the callbacks with which the resumption of the runtime begins.
    pub(super) fn report_resume(&self) {
        self.report(ProfilerCallback::RuntimeResumeStarted);
        if let Some(own) = self.reported_as_suspending() {
            self.report(ProfilerCallback::RuntimeThreadResumed(own));
        }
    }

    /// Makes a callback that the profiler has asked for.
    pub(super) fn report(&self, callback: ProfilerCallback) {
        if self.runtime.process.get().requests(CallbackKind::from(callback)) {
            self.call_back(callback);
        }
    }

    /// Reports the suspension of the suspending thread itself, which counts as suspended. It must
    /// not be walked during this callback (C-132).
    pub(super) fn report_own_suspension(&self) -> Result<(), Outcome> {
        let Some(id) = self.reported_as_suspending() else { return Ok(()) };
        self.forbid_own_suspension(true)?;
        self.report(ProfilerCallback::RuntimeThreadSuspended(id));
        self.forbid_own_suspension(false)
    }

    /// Returns the suspending thread if the profiler knows it: nothing more is reported of a thread for
    /// which ThreadDestroyed was made (`EEToProfInterfaceImpl::RuntimeThreadSuspended` of 3.1).
    pub(super) fn reported_as_suspending(&self) -> Option<ThreadId> {
        let is_dead = self.runtime.thread(self.os, |thread| thread.reported_dead);
        self.runtime.object_of(self.os).filter(|_| is_dead != Some(true))
    }

    /// Enters or leaves a forbid-suspend region of the caller, if the runtime knows the caller.
    fn forbid_own_suspension(&self, enter: bool) -> Result<(), Outcome> {
        let Some(id) = self.runtime.object_of(self.os) else { return Ok(()) };
        let object = ThreadObject(id);
        self.change(|memory| {
            let count = object.forbid_suspend(memory)?;
            let count = if enter { count.wrapping_add(1) } else { count.wrapping_sub(1) };
            object.set_forbid_suspend(memory, count)
        })
    }
}
