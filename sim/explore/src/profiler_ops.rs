//! Profiler actions that the runtime or the system does not tolerate.

use super::footprint::Footprint;
use super::history::TurnEvent;
use super::thread::CurrentThread;
use clr_runtime::Outcome;
use clr_runtime::ProfilerStatus;

impl CurrentThread<'_, '_> {
    /// Leaves the callback of a walk for code beyond the walk, as longjmp does: the rest of the
    /// runtime's walk is never executed (H-30). The callback must return at once, with any value
    /// but S_OK. Has no effect outside of such a callback.
    #[track_caller]
    pub fn escape(&self) {
        self.comes_from_caller();
        let state = self.kernel.state.borrow();
        let depth = state.threads.get(self.me.index()).map_or(0, |me| me.walk_callbacks);
        drop(state);
        if depth == 0 {
            return;
        }
        self.kernel.runtime.change_thread(self.os, |thread| thread.escapes = true);
        self.record(TurnEvent::ESCAPES);
        let mut state = self.kernel.state.borrow_mut();
        let target = state.threads.get(self.me.index()).and_then(|me| me.walks);
        let Some(target) = target else { return };
        self.kernel.touch(Footprint::thread(target));
        let suspended = self.kernel.suspensions(target) as usize;
        if let Some(thread) = state.threads.get_mut(target.index())
            && thread.suspended_by.len() < suspended
        {
            // No other thread will resume it.
            thread.suspended_by.push(self.me);
        }
    }

    /// Ends the interleaving as failed, because a walk reported a frame that is not on the stack.
    pub fn report_false_frame(&self) {
        self.record(TurnEvent::UNTRUE);
        self.fail("a reported frame is not on the stack");
    }

    /// Ends the interleaving as failed, because a walk from a seed reported a frame that is not on the stack (H-17).
    pub fn report_wrong_seed(&self) {
        self.record(TurnEvent::UNTRUE_SEED);
        self.fail("a frame of a walk from a seed is not on the stack");
    }

    /// Ends the interleaving as failed, because a walk claims to have the whole stack, and has not.
    pub fn report_false_claim(&self) {
        self.record(TurnEvent::CLAIMS);
        self.fail("a walk claims to have the whole stack, and has not");
    }

    /// Calls `RequestProfilerDetach`: afterwards the runtime refuses all calls (C-001).
    #[track_caller]
    pub fn request_detach(&self) {
        self.comes_from_caller();
        self.switch();
        self.kernel.touch(Footprint::ALL);
        self.record(TurnEvent::System("requests the profiler's detach"));
        let runtime = &self.kernel.runtime;
        let may_fail = || runtime.on(self.os).with_profiler(self).may_fail("RequestProfilerDetach");
        if runtime.generation.has_detach() && may_fail().is_ok() {
            runtime.change_process(|process| process.profiler = ProfilerStatus::Detaching);
        }
    }

    /// Unwinds this thread's stack with a library that caches its results without a lock: code that
    /// interrupts it on the same thread and also unwinds reads data that is being changed (G28).
    #[track_caller]
    pub fn unwind(&self) {
        self.comes_from_caller();
        self.record(TurnEvent::System("unwinds its stack"));
        if self.unwinds(true) {
            self.killed(Outcome::AccessViolation { at: 0 });
        }
        self.switch();
        self.unwinds(false);
    }

    /// Sets if the thread is in such a library. Returns true if it was before.
    fn unwinds(&self, now: bool) -> bool {
        let mut state = self.kernel.state.borrow_mut();
        let me = state.threads.get_mut(self.me.index());
        me.is_some_and(|me| core::mem::replace(&mut me.unwinds, now))
    }
}
