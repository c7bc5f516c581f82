//! All histories, but for the order of steps that have nothing to do with each other.
//!
//! Depth first, by running each history from its begin. A step that was tried at a switch point sleeps
//! in what is tried there next, until somebody touches what it touches (sleep sets: Godefroid 1996):
//! a history in which only sleepers can go on is another one in another order. With a bound on
//! preemptions nothing sleeps: the other order might not keep to the bound.

use super::{Choice, Covered, Search};
use crate::bug::Bug;
use crate::footprint::Footprint;
use crate::history::ThreadIndex;
use crate::replay::by_itself;
use crate::run::Ending;

/// A step that is known: whose, and what it touched.
type Step = (ThreadIndex, Footprint);

/// A switch point on the way.
#[derive(Clone, Debug)]
struct Node {
    /// What is left to be tried, the next one last.
    left: Vec<ThreadIndex>,
    /// How many there were in all.
    all: u32,
    /// What need not be tried, or was.
    sleep: Vec<Step>,
    chosen: ThreadIndex,
    touched: Footprint,
    /// Preemptions before it.
    preemptions: u32,
    /// Who can go on without one.
    last: Option<ThreadIndex>,
}

/// Goes through all histories.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Exhaustive {
    preemptions: Option<u32>,
    path: Vec<Node>,
    /// How far the current history has come.
    depth: usize,
    cut: u64,
    begun: bool,
    done: bool,
    /// The same choices have led elsewhere: what the profiler's code does depends on something else.
    strayed: bool,
    /// Some history was longer than its limit.
    beyond: bool,
}

impl Exhaustive {
    /// The search, with a bound on preemptions or without.
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
        // What comes by itself is tried first.
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
        // Other turns behind the limit would have been other histories.
        self.beyond |= ending.in_turn;
    }

    fn covered(&self) -> Option<Covered> {
        // Of each choice on the way, what was tried before counts as its share.
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
        Some(Covered {
            everything: self.done && !self.beyond,
            millionths: (seen * 1_000_000 / WHOLE) as u32,
            cut: self.cut,
            preemptions: self.preemptions,
        })
    }
}
