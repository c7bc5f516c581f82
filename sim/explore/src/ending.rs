//! The limits of an interleaving, and its end.

use super::history::History;
use super::ids::ThreadIndex;
use super::schedule_string::ScheduleString;
use super::verdict::{ProfilerRule, Verdict};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Verdict, if the interleaving failed.
    pub verdict: Option<Verdict>,
    /// Rule violations without harm, in order.
    pub broken: Vec<(ThreadIndex, ProfilerRule)>,
    /// Number of turns.
    pub turns: u64,
    /// The interleaving exceeded its limit: its last turns were not chosen, but given to the threads
    /// round-robin.
    pub in_turn: bool,
    /// Schedule string of the interleaving.
    pub schedule: ScheduleString,
    /// The interleaving, if it was recorded.
    pub history: Option<History>,
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
