//! Subjects of recorded calls, and the reasons of their failures.

use super::history::TurnEvent;
use super::ids::ThreadIndex;
use super::kernel::Kernel;
use clr_runtime::explain::{Event, deciding, story};

impl Kernel<'_> {
    /// Notes that the call which a thread has just begun is about `target`.
    pub(super) fn is_about(&self, thread: ThreadIndex, target: Option<ThreadIndex>) {
        let mut state = self.state.borrow_mut();
        let turn = state.history.as_mut().and_then(|history| history.turns.last_mut());
        if let Some(turn) = turn.filter(|turn| turn.thread == thread)
            && let Some(TurnEvent::Called(_, about)) = turn.events.last_mut()
        {
            *about = target;
        }
    }

    /// Records the reason for the failure of a call with these events.
    pub(super) fn explain(&self, thread: ThreadIndex, events: &[Event]) {
        let story = story(&self.runtime, events);
        let Some(line) = deciding(&story) else { return };
        let mut state = self.state.borrow_mut();
        let Some(history) = &mut state.history else { return };
        history.reasons.push(line.to_string());
        let reason = history.reasons.len() as u32 - 1;
        drop(state);
        self.record(thread, TurnEvent::Refused(reason));
    }
}
