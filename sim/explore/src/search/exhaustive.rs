//! Exhaustive search of all histories, except for the order of independent steps.
//!
//! The search is depth-first, and executes each history from its beginning. A step that was tried
//! at a switch point sleeps in the alternatives tried there next, until another step touches
//! something that it touches (sleep sets: Godefroid 1996): a history in which only sleepers can run
//! is a reordering of another one. With a bound on preemptions nothing sleeps, because the other
//! order might exceed the bound.

use super::{Choice, Coverage, Search};
use crate::ending::Ending;
use crate::footprint::Footprint;
use crate::history::ThreadIndex;
use crate::planted_bug::Bug;
use crate::schedule_string::by_itself;

/// A known step: its thread and its access set.
type Step = (ThreadIndex, Footprint);

/// A switch point on the current path.
#[derive(Clone, Debug)]
struct Node {
    /// Threads left to be tried, the next one last.
    left: Vec<ThreadIndex>,
    /// Total number of alternatives.
    all: u32,
    /// Steps that need not be tried, or have been tried.
    sleep: Vec<Step>,
    chosen: ThreadIndex,
    touched: Footprint,
    /// Number of preemptions before this point.
    preemptions: u32,
    /// The thread that can continue without a preemption.
    last: Option<ThreadIndex>,
}

/// Explores all histories.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Exhaustive {
    preemptions: Option<u32>,
    path: Vec<Node>,
    /// Current position on the path.
    depth: usize,
    cut: u64,
    begun: bool,
    done: bool,
    /// The same choices have led to a different history: the profiler's code depends on other
    /// state.
    strayed: bool,
    /// A history exceeded its limit.
    beyond: bool,
}

impl Exhaustive {
    /// Creates the search, with or without a bound on preemptions.
    #[must_use]
    pub const fn new(preemptions: Option<u32>) -> Self {
        let (begun, done, strayed, beyond) = (false, false, false, false);
        Self { preemptions, path: Vec::new(), depth: 0, cut: 0, begun, done, strayed, beyond }
    }

    fn node(&self, at: &Choice<'_, '_>) -> Node {
        let parent = self.path.last();
        let (mut sleep, mut preemptions) = (Vec::new(), 0);
        if let Some(parent) = parent {
            preemptions = parent.preemptions
                + u32::from(parent.last.is_some_and(|last| last != parent.chosen));
            if self.preemptions.is_none() {
                let sleeps =
                    |step: &&Step| !step.1.meets(parent.touched) || Bug::NeverAwake.is_planted();
                sleep.extend(parent.sleep.iter().filter(sleeps).copied());
            }
        }
        let last = at.last.filter(|last| at.runnable.contains(last));
        let is_bound = self.preemptions.is_some_and(|bound| preemptions >= bound);
        let mut left: Vec<_> = at
            .runnable
            .iter()
            .copied()
            .filter(|thread| !sleep.iter().any(|(sleeper, _)| sleeper == thread))
            .filter(|thread| !is_bound || last.is_none_or(|last| last == *thread))
            .collect();
        // The default choice is tried first.
        let usual = by_itself(at.runnable, at.last);
        left.sort_by_key(|thread| (Some(*thread) == usual, core::cmp::Reverse(*thread)));
        let all = left.len() as u32;
        let chosen = left.pop().unwrap_or_default();
        Node { left, all, sleep, chosen, touched: Footprint::default(), preemptions, last }
    }
}

impl Search for Exhaustive {
    fn begin(&mut self, _: u64) -> bool {
        self.depth = 0;
        if !core::mem::replace(&mut self.begun, true) {
            return true;
        }
        while let Some(node) = self.path.last_mut() {
            node.sleep.push((node.chosen, node.touched));
            if let Some(next) = node.left.pop() {
                node.chosen = next;
                return true;
            }
            self.path.pop();
        }
        self.done = true;
        false
    }

    fn choose(&mut self, at: &Choice<'_, '_>) -> Option<ThreadIndex> {
        if let Some(node) = self.path.get(self.depth) {
            self.strayed |= !at.runnable.contains(&node.chosen);
            return Some(node.chosen);
        }
        let node = self.node(at);
        if node.all == 0 {
            self.cut += 1;
            return None;
        }
        let chosen = node.chosen;
        self.path.push(node);
        Some(chosen)
    }

    fn ran(&mut self, _: ThreadIndex, footprint: Footprint) {
        if let Some(node) = self.path.get_mut(self.depth) {
            node.touched = footprint;
        }
        self.depth += 1;
    }

    fn end(&mut self, ending: &Ending) {
        // Beyond the limit, other choices would have given other histories.
        self.beyond |= ending.in_turn;
    }

    fn learns(&self) -> bool {
        true
    }

    fn has_strayed(&self) -> bool {
        self.strayed
    }

    fn covered(&self) -> Option<Coverage> {
        // At each choice on the path, the alternatives tried before count as their share.
        const WHOLE: u64 = 1 << 40;
        let (mut share, mut seen) = (WHOLE, 0);
        for node in &self.path {
            let all = u64::from(node.all.max(1));
            let tried = all - 1 - (node.left.len() as u64).min(all - 1);
            seen += share / all * tried;
            share /= all;
        }
        if self.strayed {
            return None;
        }
        let seen = if self.done && !self.beyond { WHOLE } else { seen.min(WHOLE - 1) };
        Some(Coverage {
            everything: self.done && !self.beyond,
            millionths: (seen * 1_000_000 / WHOLE) as u32,
            cut: self.cut,
            preemptions: self.preemptions,
        })
    }
}
