//! Condition variables of the profiler.
//!
//! A notification wakes one of the threads that wait at that moment, and no other: the search
//! chooses which, as systems make no promise. A thread that begins to wait afterwards misses it.
//! There are no wake-ups without a reason.

use super::footprint::Footprint;
use super::history::TurnEvent;
use super::kernel::{Kernel, Waiting};
use super::lock::{ConditionVariable, LockName, LockState, ProfilerLock};
use super::thread::CurrentThread;

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
    fn wait(&mut self) -> u64 {
        let ticket = self.next;
        self.next += 1;
        self.waiters.push(ticket);
        ticket
    }

    /// Wakes one of the waiting threads that no notification wakes yet, or all.
    fn notify(&mut self, all: bool) {
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

    /// Removes a thread. Returns true if a notification has woken it.
    fn leave(&mut self, ticket: u64) -> bool {
        self.waiters.retain(|waiter| *waiter != ticket);
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

impl Kernel<'_> {
    /// Changes one of the profiler's condition variables.
    fn change_condition<T: Default>(
        &self,
        condition: u32,
        change: impl FnOnce(&mut ConditionState) -> T,
    ) -> T {
        let mut state = self.state.borrow_mut();
        state.conditions.get_mut(condition as usize).map(change).unwrap_or_default()
    }
}

impl CurrentThread<'_, '_> {
    /// Creates a condition variable.
    #[must_use]
    pub fn new_condition(&self) -> ConditionVariable {
        // The order of creation determines the numbers.
        self.changes_objects();
        let mut state = self.kernel.state.borrow_mut();
        state.conditions.push(ConditionState::default());
        ConditionVariable(state.conditions.len() as u32 - 1)
    }

    /// Releases a lock that this thread owns, waits until it is notified, for at most this time (µs)
    /// if there is a limit, and takes the lock again. Returns true if it was notified.
    ///
    /// Other threads may run before the lock is released: what the caller has tested may have
    /// changed by now, if the change needs no lock.
    #[track_caller]
    pub fn wait_on(
        &self,
        condition: ConditionVariable,
        lock: ProfilerLock,
        micros: Option<u64>,
    ) -> bool {
        self.comes_from_caller();
        self.switch();
        if self.kernel.is_over() {
            return false;
        }
        if self.kernel.owner(lock.0) != Some(self.me) {
            self.fail("a thread waits on a condition variable, and does not own the lock");
            return false;
        }
        let name = LockName::Profiler(lock.0);
        self.kernel.touch(Footprint::lock(name) | Footprint::condition(condition.0));
        let until = micros.map(|micros| self.now().saturating_add(micros));
        let depth = self.kernel.change_lock(lock.0, LockState::release_all);
        let ticket = self.kernel.change_condition(condition.0, ConditionState::wait);
        self.record(TurnEvent::Released(name));
        self.pause(Some(Waiting::Condition(condition.0, ticket)), until);
        self.kernel.touch(Footprint::condition(condition.0));
        let woken = self.kernel.change_condition(condition.0, |state| state.leave(ticket));
        if !woken && !self.kernel.is_over() {
            self.kernel.touch_time();
            self.record(TurnEvent::TimedOut);
        }
        self.take_back(lock, depth);
        woken
    }

    /// Takes a lock that a wait has released.
    fn take_back(&self, lock: ProfilerLock, depth: u32) {
        let name = LockName::Profiler(lock.0);
        while !self.kernel.is_over() {
            self.kernel.touch(Footprint::lock(name));
            if self.kernel.try_acquire(lock.0, self.me) {
                self.kernel.change_lock(lock.0, |lock| lock.depth = depth);
                self.record(TurnEvent::Acquired(name));
                return;
            }
            self.pause(Some(Waiting::Lock(lock.0)), None);
        }
    }

    /// Wakes one of the threads that wait on a condition variable, if there is one.
    #[track_caller]
    pub fn notify_one(&self, condition: ConditionVariable) {
        self.notify(condition, false);
    }

    /// Wakes all threads that wait on a condition variable.
    #[track_caller]
    pub fn notify_all(&self, condition: ConditionVariable) {
        self.notify(condition, true);
    }

    #[track_caller]
    fn notify(&self, condition: ConditionVariable, all: bool) {
        self.comes_from_caller();
        self.switch();
        self.kernel.touch(Footprint::condition(condition.0));
        self.kernel.change_condition(condition.0, |state| state.notify(all));
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
