//! Events of the profiler.

use super::footprint::Footprint;
use super::lock::EventObject;
use super::state::Waiting;
use super::thread::CurrentThread;

impl CurrentThread<'_, '_> {
    /// Sets an event: all threads that wait for it can continue.
    #[track_caller]
    pub fn set(&self, event: EventObject) {
        self.change(event, true);
    }

    /// Resets an event.
    #[track_caller]
    pub fn reset(&self, event: EventObject) {
        self.change(event, false);
    }

    #[track_caller]
    fn change(&self, event: EventObject, to: bool) {
        self.comes_from_caller();
        self.switch();
        self.kernel.touch(Footprint::event(event.0));
        let mut state = self.kernel.state.borrow_mut();
        if let Some(set) = state.events.get_mut(event.0 as usize) {
            *set = to;
        }
        let now = state.now;
        let timed = state.timed.get(event.0 as usize) == Some(&true);
        if to
            && timed
            && let Some(at) = state.set_at.get_mut(event.0 as usize)
        {
            // The time of setting can be queried.
            self.kernel.touch_time();
            *at = Some(now);
        }
    }

    /// Returns true if a [timed](super::Setup::timed_event) event was set longer ago than this time (µs). With any other
    /// event the interleaving fails.
    #[must_use]
    pub fn was_set_before(&self, event: EventObject, micros: u64) -> bool {
        self.kernel.touch_time();
        if self.kernel.state.borrow().timed.get(event.0 as usize) == Some(&false) {
            self.fail("the time of an event is asked for that is not timed");
        }
        let state = self.kernel.state.borrow();
        let at = state.set_at.get(event.0 as usize).copied().flatten();
        at.is_some_and(|at| state.now.saturating_sub(at) > micros)
    }

    /// Waits until an event is set.
    #[track_caller]
    pub fn wait_for(&self, event: EventObject) {
        self.wait_until(event, None);
    }

    /// Waits until an event is set, for at most this time (µs). Returns true if it was set.
    #[expect(clippy::must_use_candidate, reason = "it waits, too")]
    #[track_caller]
    pub fn wait_at_most(&self, event: EventObject, micros: u64) -> bool {
        self.wait_until(event, Some(micros))
    }

    #[track_caller]
    fn wait_until(&self, event: EventObject, micros: Option<u64>) -> bool {
        self.comes_from_caller();
        self.switch_before(Waiting::Event(event.0), micros.is_some());
        self.kernel.touch(Footprint::event(event.0).read());
        if self.kernel.state.borrow().events.get(event.0 as usize) != Some(&false) {
            return true;
        }
        if self.is_interrupted() {
            self.record_end_of_wait();
            return false;
        }
        if micros == Some(0) {
            return false;
        }
        let until = micros.map(|micros| self.now().saturating_add(micros));
        let in_time = self.pause(Some(Waiting::Event(event.0)), until);
        if in_time {
            self.kernel.touch(Footprint::event(event.0).read());
        } else {
            self.record_end_of_wait();
        }
        in_time
    }
}
