//! Waits of calls of the system that a signal's handler ends, as on Linux: the call then fails with `EINTR`.

use super::footprint::Footprint;
use super::history::TurnEvent;
use super::state::{Interruption, Waiting};
use super::thread::CurrentThread;

impl CurrentThread<'_, '_> {
    /// Executes a call of the system whose waits a handler ends: they end as if their limit had passed, and
    /// [`is_interrupted`](Self::is_interrupted) says so until the call returns.
    pub fn interruptible<T>(&self, by: Interruption, call: impl FnOnce() -> T) -> T {
        self.kernel.change_activity(self.me, |activity| activity.interruption = Some(by));
        let done = call();
        self.kernel.change_activity(self.me, |activity| {
            activity.interruption = None;
            activity.interrupted = false;
        });
        done
    }

    /// Returns true if a handler has ended a wait of the current [`interruptible`](Self::interruptible) call.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        let state = self.kernel.state.borrow();
        let me = state.threads.get(self.me.index());
        me.and_then(|me| me.activities.last()).is_some_and(|activity| activity.interrupted)
    }

    /// Ends the wait that this code, a handler, has interrupted, if it is one that such a handler ends. `restarts`: the handler
    /// was set with `SA_RESTART`.
    pub fn ends_interrupted_wait(&self, restarts: bool) {
        let waiting = {
            let state = self.kernel.state.borrow();
            let me = state.threads.get(self.me.index());
            let Some([.., activity, _]) = me.map(|me| &me.activities[..]) else { return };
            let ends = match activity.interruption {
                None => false,
                Some(Interruption::UnlessRestarted) => !restarts,
                Some(Interruption::Always) => true,
            };
            activity.waiting.filter(|_| ends)
        };
        // What has come meanwhile ends the wait first.
        let Some(waiting) = waiting.filter(|waiting| !self.kernel.has_come(*waiting, self.os))
        else {
            return;
        };
        if let Waiting::Condition(condition, ticket) = waiting {
            // A notification after this is for others.
            self.kernel.touch(Footprint::condition(condition));
            self.kernel.change_condition(condition, |state| state.leave(ticket));
        }
        self.kernel.change_thread(self.me, |me| {
            let Some([.., activity, _]) = me.activities.get_mut(..) else { return };
            activity.waiting = None;
            activity.until = None;
            activity.timed_out = true;
            activity.interrupted = true;
        });
    }

    /// Records that a wait has ended before what it waited for.
    pub(super) fn record_end_of_wait(&self) {
        self.kernel.touch_time();
        let interrupted = self.is_interrupted();
        self.record(if interrupted { TurnEvent::Interrupted } else { TurnEvent::TimedOut });
    }
}
