//! Calls of `DoStackSnapshot` in an interleaving: which thread walks which, and the callbacks of walks.

use super::footprint::Footprint;
use super::history::TurnEvent;
use super::ids::ThreadIndex;
use super::thread::CurrentThread;
use super::verdict::ProfilerRule;
use clr_runtime::{Thread, ThreadLife};
use clr_walker::profiling::ThreadId;

impl CurrentThread<'_, '_> {
    /// Calls `walk`, which is a call of `DoStackSnapshot` for the thread `id`: 0 is the caller. While it lasts
    /// the target counts as walked by this thread. A target that has ended when it is over is noted, and so is
    /// one whose `ThreadDestroyed` has returned (H-04), unless the profiler has the runtime suspended: the lock
    /// of the list of threads, which the suspension holds, keeps the thread from leaving the list (contract §6).
    pub fn walk<T>(&self, id: ThreadId, walk: impl FnOnce() -> T) -> T {
        let target = self.is_about(id);
        let looks_at = target.map_or_else(Footprint::default, Footprint::thread);
        self.touching(looks_at | Footprint::SUSPENSION.read(), || {
            let before = self.set_walks(target);
            let ended = walk();
            self.set_walks(before);
            let kept = self.kernel.runtime.process.get().suspended_by_profiler;
            let is_over =
                |target: &Thread| target.id_is_over && !kept || target.life == ThreadLife::Dead;
            if target.is_some() && self.kernel.runtime.thread_of(id, is_over) == Some(true) {
                // The thread ended before or during the walk: its ThreadDestroyed did not wait for the walk.
                self.kernel.broke(self.me, ProfilerRule::WalkOutlivesThread);
            }
            ended
        })
    }

    /// Returns true if a walk of `id` may report this `ip` (VA): it is that of an activation on the thread's stack,
    /// or the thread is none of the program's.
    #[must_use]
    pub fn is_on_stack(&self, id: ThreadId, ip: u64) -> bool {
        let index = self.target_of(id).unwrap_or(self.me);
        index.0 >= self.kernel.apps
            || self.target(index).is_none_or(|target| target.is_on_stack(ip))
    }

    /// Begins a callback of the walk that this thread makes. Other threads may run before.
    pub fn begin_walk_callback(&self) {
        self.record(TurnEvent::SnapshotCallback);
        self.switch();
        self.kernel.change_thread(self.me, |me| me.walk_callbacks += 1);
    }

    /// Ends the callback.
    pub fn end_walk_callback(&self) {
        self.kernel
            .change_thread(self.me, |me| me.walk_callbacks = me.walk_callbacks.saturating_sub(1));
    }

    fn set_walks(&self, target: Option<ThreadIndex>) -> Option<ThreadIndex> {
        let mut state = self.kernel.state.borrow_mut();
        let me = state.threads.get_mut(self.me.index());
        me.and_then(|me| core::mem::replace(&mut me.walks, target))
    }

    /// Returns the thread with this id if it is another one, and notes that the call which has just begun is about it.
    pub(super) fn is_about(&self, id: ThreadId) -> Option<ThreadIndex> {
        let target = self.target_of(id);
        self.kernel.is_about(self.me, target);
        target
    }

    /// Returns the thread that a walk of `id` looks at, if it is another one.
    pub(super) fn target_of(&self, id: ThreadId) -> Option<ThreadIndex> {
        let os = self.kernel.runtime.thread_of(id, |thread| thread.os)?;
        self.kernel.index_of(os).filter(|target| *target != self.me)
    }
}
