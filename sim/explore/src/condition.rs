//! Condition variables of the profiler.
//!
//! A notification wakes one of the threads that wait at that moment, and no other: the search
//! chooses which, as systems make no promise. A thread that begins to wait afterwards misses it.
//! There are no wake-ups without a reason.

/// State of a condition variable.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct ConditionState {
    /// Tickets of the threads that wait, ascending.
    waiters: Vec<u64>,
    /// First ticket that each notification on its way does not wake, ascending.
    wakes: Vec<u64>,
    /// The next ticket.
    next: u64,
}

impl ConditionState {
    /// Adds a thread. Returns its ticket.
    pub(super) fn wait(&mut self) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.waiters.push(ticket);
        ticket
    }

    /// Wakes one of the waiting threads that no notification wakes yet, or all.
    pub(super) fn notify(&mut self, all: bool) {
        while self.wakes.len() < self.waiters.len() {
            self.wakes.push(self.next);
            if !all {
                return;
            }
        }
    }

    /// Returns true if a notification can wake the thread with this ticket.
    pub(super) fn wakes(&self, ticket: u64) -> bool {
        self.wakes.iter().any(|end| ticket < *end)
    }

    /// Removes a thread. Returns true if a notification has woken it, false if it was removed before.
    pub(super) fn leave(&mut self, ticket: u64) -> bool {
        let Some(place) = self.waiters.iter().position(|waiter| *waiter == ticket) else {
            return false;
        };
        self.waiters.remove(place);
        // The first one can wake the fewest others.
        let wake = self.wakes.iter().position(|end| ticket < *end);
        if let Some(wake) = wake {
            self.wakes.remove(wake);
        }
        wake.is_some()
    }

    /// Returns the number of threads that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

#[cfg(test)]
mod tests {
    use super::ConditionState;

    #[test]
    fn a_notification_wakes_one_that_waits_already() {
        let mut state = ConditionState::default();
        state.notify(false);
        let [first, second] = [state.wait(), state.wait()];
        assert!(!state.wakes(first), "nobody waited");
        state.notify(false);
        let late = state.wait();
        assert!(state.wakes(first) && state.wakes(second) && !state.wakes(late));
        state.notify(false);
        assert!(state.wakes(late));
        // The older notification is spent first, or it could wake no thread any more.
        assert!(state.leave(first));
        assert!(state.wakes(second) && state.wakes(late));
        assert!(state.leave(second));
        assert!(!state.wakes(late), "the other two were woken instead");
        assert_eq!(state.waiting(), 1);
        assert!(!state.leave(late));
        assert_eq!(state.waiting(), 0);
        let [gone, other] = [state.wait(), state.wait()];
        assert!(!state.leave(gone));
        state.notify(false);
        assert!(!state.leave(gone), "the notification is the other one's");
        assert!(state.leave(other));
    }

    #[test]
    fn a_notification_before_a_wait_does_not_end_it() {
        let mut state = ConditionState::default();
        let first = state.wait();
        state.notify(false);
        let late = state.wait();
        assert!(!state.leave(late), "it was on its way to the other one");
        assert!(state.leave(first));
    }

    #[test]
    fn notifications_beyond_the_waiting_threads_are_lost() {
        let mut state = ConditionState::default();
        let only = state.wait();
        state.notify(false);
        state.notify(true);
        assert!(state.leave(only));
        let next = state.wait();
        assert!(!state.wakes(next));
        assert!(!state.leave(next));
    }
}
