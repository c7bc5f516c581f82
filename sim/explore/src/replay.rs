//! Replays one interleaving by its schedule string.

use super::ending::Ending;
use super::ids::ThreadIndex;
use super::schedule_string::{InjectedFault, ScheduleString, by_itself};
use super::search::{Choice, FallibleCall, Injector, Progress, Search};
use clr_runtime::profiling::CallFault;

/// A search that replays one interleaving.
#[derive(Clone, Debug)]
pub struct ReplaySearch {
    schedule: ScheduleString,
    next: usize,
    /// Number of failures so far.
    failed: usize,
    strayed: bool,
}

impl ReplaySearch {
    /// Creates the replay of this schedule string.
    #[must_use]
    pub const fn new(schedule: ScheduleString) -> Self {
        Self { schedule, next: 0, failed: 0, strayed: false }
    }
}

impl Search for ReplaySearch {
    fn begin(&mut self, number: u64) -> bool {
        self.next = 0;
        self.failed = 0;
        self.strayed = false;
        number == 0
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        let usual = by_itself(at.runnable, at.last);
        let Some((turn, thread)) = self.schedule.turns.get(self.next).copied() else {
            return usual;
        };
        if turn > at.turn {
            return usual;
        }
        self.next += 1;
        if turn == at.turn && at.runnable.contains(&thread) {
            return Some(thread);
        }
        self.strayed = true;
        usual
    }

    fn end(&mut self, _: &Ending) {}

    fn injector(&mut self) -> Option<&mut dyn Injector> {
        if self.schedule.faults.is_empty() { None } else { Some(self) }
    }

    /// Strays if a chosen thread could not run at its turn, or the turn was never reached; if a call did not fail, or was
    /// never made.
    fn progress(&self) -> Progress {
        let strayed = self.strayed
            || self.next < self.schedule.turns.len()
            || self.failed < self.schedule.faults.len();
        Progress { strayed, covered: None }
    }
}

impl Injector for ReplaySearch {
    fn fails(&mut self, call: FallibleCall) -> Option<CallFault> {
        let of = |fault: &&InjectedFault| (fault.thread, fault.call) == (call.thread, call.number);
        let InjectedFault { result, frames, .. } = *self.schedule.faults.iter().find(of)?;
        let fault = call.possible.find(result, frames);
        self.failed += usize::from(fault.is_some());
        fault
    }
}
