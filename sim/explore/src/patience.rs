//! Limits of waits that pass while other threads can run, as a choice of the search.
//!
//! Other threads may be arbitrarily slow, so a limit may pass at any turn. But a wait is mostly over long before: if each turn of
//! a wait offered that, hardly a wait would end otherwise. So a thread is patient: the longer its limit, the later this is
//! offered, and the more often another thread was chosen, the later again. A limit below a time slice passes at any turn, as a
//! sleep does. And a loop that waits with a limit is not to go on for ever: after a thread's limits have passed twice, each of the
//! others that can run has a turn before the next one.

use super::ids::ThreadIndex;
use super::state::{State, Thread};
use core::fmt;

/// Time that a turn may take if its thread is slow (µs): a time slice of the system.
const SLICE: u64 = 10_000;
/// Number of turns after which the longest limit may pass: a program is short, and its profiler may wait for a minute.
const LONGEST: u64 = 16;

/// A bound on limits of waits that pass in an exhaustive search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitBound {
    /// A limit passes only when no thread can go on.
    Last,
    /// Limits pass while other threads can run, after the turns that they last, of a thread twice before each other thread
    /// that can run has had a turn.
    Early,
}

/// Formats a clause: `with limits …`.
impl fmt::Display for LimitBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last => {
                f.write_str("with limits of waits that pass only when no thread can go on")
            }
            Self::Early => write!(
                f,
                "with limits of waits that pass {} ms a turn and at most {LONGEST} turns late, of a thread twice before \
                 the others have had a turn",
                SLICE / 1000
            ),
        }
    }
}

/// When the limits of a thread's waits may pass. All numbers are of turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience {
    /// The last turn of the thread: the wait has begun there.
    last_turn: u64,
    /// The last two turns at which a limit has passed, the later last.
    passed: [u64; 2],
    /// The first turn at which a limit may pass again.
    next: u64,
    /// Number of times that another thread was chosen since a limit has passed.
    declined: u32,
}

impl Thread {
    /// Returns the number of its last turn, or 0.
    pub(super) const fn last_turn(&self) -> u64 {
        self.patience.last_turn
    }
}

impl State {
    /// Returns the number of turns that the limit of a thread's wait lasts at least.
    fn lasts(&self, thread: ThreadIndex) -> u64 {
        let activity = self.threads.get(thread.index()).and_then(|it| it.activities.last());
        let until = activity.and_then(|activity| activity.until).unwrap_or(u64::MAX);
        (until.saturating_sub(self.now) / SLICE).min(LONGEST)
    }

    /// Returns true if the limit of a thread's wait does not pass now, although others can run.
    pub(super) fn is_patient(&self, thread: ThreadIndex, others: &[ThreadIndex]) -> bool {
        let of = |index: ThreadIndex| self.threads.get(index.index()).map(|it| &it.patience);
        let Some(Patience { last_turn, passed: [before, _], next, .. }) = of(thread) else {
            return true;
        };
        let waits_for = |other: &ThreadIndex| of(*other).is_some_and(|it| it.last_turn < *before);
        let first = (last_turn + self.lasts(thread)).max(*next);
        self.turns < first || others.iter().any(waits_for)
    }

    /// Ends the wait of the `offered` thread by its limit, if it is the one that was chosen.
    pub(super) fn decide(&mut self, offered: ThreadIndex, chosen: ThreadIndex) {
        let (turns, lasts) = (self.turns, self.lasts(offered));
        let Some(thread) = self.threads.get_mut(offered.index()) else { return };
        let Patience { passed, next, declined, .. } = &mut thread.patience;
        if offered != chosen {
            *next = turns + (lasts << (*declined).min(32));
            *declined += 1;
            return;
        }
        *passed = [passed[1], turns];
        (*next, *declined) = (0, 0);
        if let Some(activity) = thread.activities.last_mut() {
            self.now = self.now.max(activity.until.unwrap_or_default());
            activity.waiting = None;
            activity.until = None;
            activity.timed_out = true;
        }
    }

    /// Notes that a thread has this turn.
    pub(super) fn has_turn(&mut self, thread: ThreadIndex) {
        let turns = self.turns;
        if let Some(thread) = self.threads.get_mut(thread.index()) {
            thread.patience.last_turn = turns;
        }
    }
}
