//! The beginnings of all interleavings, by which an exhaustive search is divided.

use super::signature::Signature;
use crate::ending::Ending;
use crate::ids::ThreadIndex;
use crate::search::{Choice, Observer, Search, Step};
use std::collections::HashSet;

/// Where preemptions are bound: the thread of the last turn, and their number.
type Bound = Option<(Option<ThreadIndex>, u32)>;

/// A turn on the current path.
#[derive(Clone, Debug)]
struct Turn {
    /// Threads left to be tried.
    left: Vec<ThreadIndex>,
    chosen: ThreadIndex,
    /// Number of preemptions before the turn.
    preemptions: u32,
    /// The thread that can continue without a preemption.
    last: Option<ThreadIndex>,
    /// The turn had more than one alternative.
    is_choice: bool,
}

/// Executes the beginnings of all interleavings, up to a number of choices, and notes which they are. Of those that differ in the order
/// of independent steps alone, it notes one.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    preemptions: Option<u32>,
    /// Number of choices in a beginning.
    choices: usize,
    path: Vec<Turn>,
    depth: usize,
    order: Signature,
    has_begun: bool,
    /// What follows from the beginnings depends on these alone.
    known: HashSet<(u64, Bound)>,
    found: Vec<Vec<ThreadIndex>>,
    is_left: bool,
    /// An interleaving goes on after its beginning.
    goes_on: bool,
}

impl Prefixes {
    /// Creates the search for beginnings with this number of choices.
    pub(crate) fn new(preemptions: Option<u32>, choices: usize) -> Self {
        Self { preemptions, choices, ..Self::default() }
    }

    /// Returns the beginnings: the threads of their turns. Some are whole interleavings.
    pub(crate) fn found(self) -> Vec<Vec<ThreadIndex>> {
        self.found
    }

    /// Returns the number of beginnings so far.
    pub(crate) const fn count(&self) -> usize {
        self.found.len()
    }

    /// Returns true if an interleaving has more choices.
    pub(crate) const fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Returns the number of preemptions on the path, its last turn included.
    fn preempted(&self) -> u32 {
        let preempts = |turn: &Turn| u32::from(turn.last.is_some_and(|last| last != turn.chosen));
        self.path.last().map_or(0, |turn| turn.preemptions + preempts(turn))
    }
}

impl Search for Prefixes {
    fn begin(&mut self, _: u64) -> bool {
        self.depth = 0;
        self.order = Signature::default();
        self.is_left = false;
        if !core::mem::replace(&mut self.has_begun, true) {
            return true;
        }
        while let Some(turn) = self.path.last_mut() {
            if let Some(next) = turn.left.pop() {
                turn.chosen = next;
                return true;
            }
            self.path.pop();
        }
        false
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        self.depth += 1;
        if let Some(turn) = self.path.get(self.depth - 1) {
            return Some(turn.chosen);
        }
        let preemptions = self.preempted();
        let last = at.last.filter(|last| at.runnable.contains(last));
        let is_bound = self.preemptions.is_some_and(|bound| preemptions >= bound);
        let mut left = at.runnable.to_vec();
        left.retain(|thread| !is_bound || last.is_none_or(|last| last == *thread));
        let is_choice = left.len() > 1;
        let before = self.path.iter().filter(|turn| turn.is_choice).count();
        if is_choice && before >= self.choices {
            self.is_left = true;
            return None;
        }
        let chosen = left.pop()?;
        self.path.push(Turn { left, chosen, preemptions, last, is_choice });
        Some(chosen)
    }

    fn end(&mut self, _: &Ending) {
        self.goes_on |= self.is_left;
        // Preemptions are left or not, and by which thread depends on the last one.
        let last = self.path.last().map(|turn| turn.chosen);
        let bound = self.preemptions.map(|_| (last, self.preempted()));
        if self.known.insert((self.order.hash(), bound)) {
            self.found.push(self.path.iter().map(|turn| turn.chosen).collect());
        }
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }
}

impl Observer for Prefixes {
    fn stepped(&mut self, step: &Step<'_>) {
        self.order.add(step.thread, step.footprint, None);
    }
}
