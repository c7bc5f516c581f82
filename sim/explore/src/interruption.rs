//! Waits of calls of the system that a signal's handler ends, as on Linux: the call then fails with `EINTR`.

use super::footprint::Footprint;
use super::ids::ThreadIndex;
use super::kernel::Kernel;
use super::state::{Interruption, Waiting};

impl Kernel<'_> {
    /// Begins a call whose waits handlers end, or ends it (`None`).
    pub(super) fn set_interruption(&self, thread: ThreadIndex, by: Option<Interruption>) {
        self.change_activity(thread, |activity| {
            activity.interruption = by;
            activity.interrupted = false;
        });
    }

    /// Returns true if a handler has ended a wait of the call that a thread is in.
    pub(super) fn is_interrupted(&self, thread: ThreadIndex) -> bool {
        let state = self.state.borrow();
        let thread = state.threads.get(thread.index());
        thread.and_then(|it| it.activities.last()).is_some_and(|activity| activity.interrupted)
    }

    /// Ends the wait that a thread's code, a handler, has interrupted, if it is one that such a handler ends. `restarts`: the
    /// handler was set with `SA_RESTART`.
    pub(super) fn end_interrupted_wait(&self, thread: ThreadIndex, restarts: bool) {
        let waiting = {
            let state = self.state.borrow();
            let known = state.threads.get(thread.index());
            let Some([.., activity, _]) = known.map(|it| &it.activities[..]) else { return };
            let ends = match activity.interruption {
                None => false,
                Some(Interruption::UnlessRestarted) => !restarts,
                Some(Interruption::Always) => true,
            };
            activity.waiting.filter(|_| ends).map(|waiting| (waiting, known.map(|it| it.os)))
        };
        let Some((waiting, Some(os))) = waiting else { return };
        // What has come meanwhile ends the wait first.
        if self.has_come(waiting, os) {
            return;
        }
        let mut state = self.state.borrow_mut();
        if let Waiting::Condition(condition, ticket) = waiting {
            // A notification after this is for others.
            self.touch(Footprint::condition(condition));
            if let Some(condition) = state.conditions.get_mut(condition as usize) {
                condition.leave(ticket);
            }
        }
        let known = state.threads.get_mut(thread.index());
        let Some([.., activity, _]) = known.and_then(|it| it.activities.get_mut(..)) else {
            return;
        };
        activity.waiting = None;
        activity.until = None;
        activity.timed_out = true;
        activity.interrupted = true;
    }
}
