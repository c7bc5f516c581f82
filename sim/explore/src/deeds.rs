//! What code of a profiler does that the runtime or the system does not forgive.

use super::footprint::Footprint;
use super::history::Happening;
use super::thread::Thread;
use clr_runtime::Outcome;
use clr_runtime::ProfilerStatus;

/// What is told where the registers of a thread are written.
pub(super) const REDIRECTS: &str = "writes the registers of a thread";
/// What is told where the callback of a walk does not return.
pub(super) const ESCAPES: &str = "leaves the callback of a walk by a jump";
/// What is told where a walk tells what is not there.
pub(super) const UNTRUE: &str = "is told of a frame that is not on the stack";

impl Thread<'_, '_> {
    /// Leaves the callback of a walk for code beyond the walk, as longjmp does: what the runtime does
    /// behind it is never done (H-30). The callback is to return at once, with anything but S_OK. Outside
    /// of such a callback there is nothing to leave.
    pub fn escape(&self) {
        let state = self.kernel.state.borrow();
        let told = state.threads.get(self.me.index()).map_or(0, |me| me.told);
        drop(state);
        if told == 0 {
            return;
        }
        self.kernel.runtime.change_thread(self.os, |thread| thread.escapes = true);
        self.tell(Happening::System(ESCAPES));
        let mut state = self.kernel.state.borrow_mut();
        let target = state.threads.get(self.me.index()).and_then(|me| me.walks);
        let Some(target) = target else { return };
        self.kernel.touch(Footprint::thread(target));
        let suspended = self.kernel.suspensions(target) as usize;
        if let Some(thread) = state.threads.get_mut(target.index())
            && thread.suspended_by.len() < suspended
        {
            // Nobody else will resume it.
            thread.suspended_by.push(self.me);
        }
    }

    /// Whether that has just been done.
    pub fn escapes(&self) -> bool {
        self.kernel.runtime.thread(self.os, |thread| thread.escapes).unwrap_or_default()
    }

    /// A walk has told of a frame that is not on the stack: the history ends here, as failed.
    pub fn was_told_untruth(&self) {
        self.tell(Happening::System(UNTRUE));
        self.fail("a frame was told that is not on the stack");
    }

    /// `RequestProfilerDetach`: from now on the runtime answers no calls (C-001).
    pub fn request_detach(&self) {
        self.switch();
        self.kernel.touch(Footprint::ALL);
        self.tell(Happening::System("requests the profiler's detach"));
        let runtime = &self.kernel.runtime;
        if runtime.generation.has_detach() {
            runtime.change_process(|process| process.profiler = ProfilerStatus::Detaching);
        }
    }

    /// Unwinds this thread's stack by a library that keeps what it has found, without a lock: whoever
    /// interrupts it and does the same on the same thread reads what is being changed (G28).
    pub fn unwind(&self) {
        self.tell(Happening::System("unwinds its stack"));
        if self.unwinds(true) {
            self.killed(Outcome::AccessViolation { at: 0 });
        }
        self.switch();
        self.unwinds(false);
    }

    /// Says whether it is in such a library; whether it was.
    fn unwinds(&self, now: bool) -> bool {
        let mut state = self.kernel.state.borrow_mut();
        let me = state.threads.get_mut(self.me.index());
        me.is_some_and(|me| core::mem::replace(&mut me.unwinds, now))
    }
}
