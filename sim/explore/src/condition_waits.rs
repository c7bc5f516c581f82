//! Condition variables of the profiler, as its threads wait on them.

use super::condition::ConditionState;
use super::footprint::Footprint;
use super::history::TurnEvent;
use super::ids::LockName;
use super::kernel::Kernel;
use super::lock::{ConditionVariable, LockState, ProfilerLock};
use super::state::Waiting;
use super::thread::CurrentThread;

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
            self.record_end_of_wait();
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
        self.notify(condition, false, true);
    }

    /// Wakes all threads that wait on a condition variable.
    #[track_caller]
    pub fn notify_all(&self, condition: ConditionVariable) {
        self.notify(condition, true, true);
    }

    /// Wakes one of the threads that wait on a condition variable, or all, on behalf of an object that remembers what has
    /// changed, such as a semaphore: nothing is lost if no thread waits.
    #[track_caller]
    pub fn wake(&self, condition: ConditionVariable, all: bool) {
        self.notify(condition, all, false);
    }

    #[track_caller]
    fn notify(&self, condition: ConditionVariable, all: bool, loses: bool) {
        self.comes_from_caller();
        self.switch();
        self.kernel.touch(Footprint::condition(condition.0));
        let waiting = self.kernel.change_condition(condition.0, |state| {
            state.notify(all);
            state.waiting()
        });
        if loses && waiting == 0 {
            self.record(TurnEvent::Unheard(condition.0));
        }
    }
}
