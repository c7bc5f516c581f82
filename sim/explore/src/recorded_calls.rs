//! Subjects of recorded calls, the reasons of their failures, and the clauses that decide calls.

use super::history::TurnEvent;
use super::ids::ThreadIndex;
use super::kernel::Kernel;
use super::report::join;
use clr_runtime::explain::{Event, InterruptedLog, deciding, story};

/// What is being recorded of a thread's calls, while other threads run. A thread that does not go on leaves its clauses.
pub(super) struct PutAside<'k, 'b> {
    pub(super) kernel: &'k Kernel<'b>,
    pub(super) log: InterruptedLog,
}

impl Drop for PutAside<'_, '_> {
    fn drop(&mut self) {
        self.kernel.note_clauses(self.log.events());
    }
}

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

    /// Returns true if the clauses that decide calls are noted.
    pub(super) fn notes_clauses(&self) -> bool {
        self.state.borrow().clauses.is_some()
    }

    /// Notes the clauses of the events of a call, if clauses are noted.
    pub(super) fn note_clauses(&self, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let generation = self.runtime.generation;
        if let Some(clauses) = &mut self.state.borrow_mut().clauses {
            join(clauses, events.iter().flat_map(|event| event.clauses(generation)));
        }
    }
}
