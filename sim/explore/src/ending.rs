//! The limits of a history, and its end.

use super::history::History;
use super::ids::ThreadIndex;
use super::schedule_string::ScheduleString;
use super::verdict::{ProfilerRule, Verdict};

/// Limits of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of turns: a longer history counts as making no progress.
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

/// End of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Verdict, if the history failed.
    pub verdict: Option<Verdict>,
    /// Rule violations without harm, in order.
    pub broken: Vec<(ThreadIndex, ProfilerRule)>,
    /// Number of turns.
    pub turns: u64,
    /// The history exceeded its limit: its last turns were not chosen, but given to the threads
    /// round-robin.
    pub in_turn: bool,
    /// Schedule string of the history.
    pub schedule: ScheduleString,
    /// The history, if it was recorded.
    pub history: Option<History>,
}

impl Ending {
    /// Returns true if `other` is the end of the same history, recorded or not.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (&self.verdict, &self.broken, self.turns, &self.schedule)
            == (&other.verdict, &other.broken, other.turns, &other.schedule)
    }
}

/// Level of detail at which a history is recorded.
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
