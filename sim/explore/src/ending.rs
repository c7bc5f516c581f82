//! The limits of an interleaving, and its end.

use super::history::History;
use super::ids::{LockName, ThreadIndex};
use super::kernel::Kernel;
use super::patience::LimitBound;
use super::schedule_string::ScheduleString;
use super::state::{Thread, Waiting};
use super::verdict::{ProfilerRule, Verdict};
use clr_runtime::Wait;
use clr_runtime::clause::Clause;
use core::fmt;

/// Limits of an interleaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of turns: a longer interleaving counts as making no progress.
    pub turns: u64,
    /// Maximum number of instructions in a turn.
    pub instructions: u32,
    /// Every instruction ends a turn.
    pub every_instruction: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: 20_000, instructions: 2_000, every_instruction: false }
    }
}

/// End of an interleaving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Verdict, if the interleaving failed.
    pub verdict: Option<Verdict>,
    /// Rule violations without harm, in order.
    pub broken: Vec<(ThreadIndex, ProfilerRule)>,
    /// Number of times that each coverage point was passed.
    pub points: Vec<u32>,
    /// The clauses that have decided calls, in ascending order, if they were [noted](crate::Setup::note_clauses).
    pub clauses: Vec<Clause>,
    /// The bound on limits of waits that pass, if a thread has waited with one while another one could run.
    pub limits: Option<LimitBound>,
    /// What became of each thread, by its index.
    pub threads: Vec<ThreadEnd>,
    /// Number of turns.
    pub turns: u64,
    /// The interleaving exceeded its limit: its last turns were not chosen, but given to the threads
    /// round-robin.
    pub in_turn: bool,
    /// The search has given the interleaving up: it knows what can follow.
    pub given_up: bool,
    /// Schedule string of the interleaving.
    pub schedule: ScheduleString,
    /// The interleaving, if it was recorded.
    pub history: Option<History>,
}

/// The end of a thread in an interleaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadEnd {
    /// The place of the thread at the end.
    pub at: LastPlace,
    /// Number of waits in which the thread was blocked: for a lock, an event, a notification, a thread, the runtime, or
    /// for time to pass. What the program's own code waits for is not counted.
    pub waits: u64,
    /// Number of these waits that are over.
    pub went_on: u64,
}

impl ThreadEnd {
    /// Returns true if the thread never ran on after its first wait.
    #[must_use]
    pub const fn is_stuck_at_once(&self) -> bool {
        self.waits > 0 && self.went_on == 0
    }
}

/// The place of a thread at the end of an interleaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastPlace {
    /// The thread has ended.
    Ended,
    /// The thread could go on.
    CanGoOn,
    /// The thread sleeps, or its wait has a limit.
    Sleeps,
    /// The thread is suspended.
    Suspended,
    /// The thread waits for ever.
    Waits(WaitedFor),
}

/// The thing that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitedFor {
    /// A lock.
    Lock(LockName),
    /// The event of this number.
    Event(u32),
    /// A notification of the condition variable of this number.
    Condition(u32),
    /// The end of this thread.
    Thread(ThreadIndex),
    /// A condition of the runtime.
    Runtime(Wait),
}

impl fmt::Display for WaitedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(lock) => write!(f, "{lock}"),
            Self::Event(event) => write!(f, "event {event}"),
            Self::Condition(condition) => write!(f, "a notification of condition {condition}"),
            Self::Thread(thread) => write!(f, "the end of thread {}", thread.0),
            Self::Runtime(_) => f.write_str("the runtime"),
        }
    }
}

impl WaitedFor {
    /// Returns what ends a wait, unless it is time alone.
    const fn of(waiting: Waiting) -> Option<Self> {
        Some(match waiting {
            Waiting::Lock(lock) | Waiting::Shared(lock) => Self::Lock(LockName::Profiler(lock)),
            Waiting::Condition(condition, _) => Self::Condition(condition),
            Waiting::Event(event) => Self::Event(event),
            Waiting::Join(thread) => Self::Thread(thread),
            Waiting::Runtime(wait) => Self::of_runtime(wait),
            Waiting::Time => return None,
        })
    }

    const fn of_runtime(wait: Wait) -> Self {
        match wait {
            Wait::Lock(lock) => Self::Lock(LockName::Runtime(lock)),
            wait => Self::Runtime(wait),
        }
    }
}

impl Kernel<'_> {
    /// Returns what became of each thread.
    pub(super) fn ends(&self) -> Vec<ThreadEnd> {
        let state = self.state.borrow();
        let ends = state.threads.iter().enumerate().map(|(index, thread)| ThreadEnd {
            at: self.last_place(ThreadIndex(index as u32), thread),
            waits: thread.waits,
            went_on: thread.went_on,
        });
        ends.collect()
    }

    fn last_place(&self, index: ThreadIndex, thread: &Thread) -> LastPlace {
        // The end of the process has ended threads in the middle of their code.
        let Some(activity) =
            thread.activities.last().filter(|_| !thread.kind.is_app() || !thread.ended)
        else {
            return match self
                .world
                .borrow()
                .waits_for(index.index())
                .filter(|_| thread.kind.is_app())
            {
                _ if thread.ended => LastPlace::Ended,
                Some(wait) => LastPlace::Waits(WaitedFor::of_runtime(wait)),
                None => LastPlace::CanGoOn,
            };
        };
        match activity.waiting {
            _ if self.suspensions(index) > 0 => LastPlace::Suspended,
            None => LastPlace::CanGoOn,
            Some(waiting) if self.has_come(waiting, thread.os) => LastPlace::CanGoOn,
            Some(_) if activity.until.is_some() => LastPlace::Sleeps,
            Some(waiting) => WaitedFor::of(waiting).map_or(LastPlace::CanGoOn, LastPlace::Waits),
        }
    }
}

impl Ending {
    /// Returns true if `other` is the end of the same interleaving, recorded or not.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (&self.verdict, &self.broken, self.turns, &self.schedule)
            == (&other.verdict, &other.broken, other.turns, &other.schedule)
    }
}

/// Level of detail at which an interleaving is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryDetail {
    /// Nothing is recorded.
    #[default]
    Nothing,
    /// The turn events are recorded.
    Events,
    /// The turn events, and the status of each thread after each turn, are recorded.
    Statuses,
}
