//! Search of all interleavings.

use crate::ending::Ending;
use crate::ids::ThreadIndex;
use crate::search::{Choice, Coverage, Progress, Search};

/// A switch point on the current path.
#[derive(Clone, Debug)]
struct Node {
    /// Threads left to be tried.
    left: Vec<ThreadIndex>,
    chosen: ThreadIndex,
    /// Number of preemptions before this point.
    preemptions: u32,
    /// The thread that can continue without a preemption.
    last: Option<ThreadIndex>,
}

/// Explores all interleavings, also those that differ in the order of independent steps alone: what any other search
/// finds in small programs is checked with it.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Interleavings {
    preemptions: Option<u32>,
    path: Vec<Node>,
    depth: usize,
    begun: bool,
    done: bool,
    strayed: bool,
    beyond: bool,
}

impl Interleavings {
    /// Creates the search, with or without a bound on preemptions.
    #[must_use]
    pub fn new(preemptions: Option<u32>) -> Self {
        Self { preemptions, ..Self::default() }
    }
}

impl Search for Interleavings {
    fn begin(&mut self, _: u64) -> bool {
        self.depth = 0;
        if !core::mem::replace(&mut self.begun, true) {
            return true;
        }
        while let Some(node) = self.path.last_mut() {
            if let Some(next) = node.left.pop() {
                node.chosen = next;
                return true;
            }
            self.path.pop();
        }
        self.done = true;
        false
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        self.depth += 1;
        if let Some(node) = self.path.get(self.depth - 1) {
            self.strayed |= !at.runnable.contains(&node.chosen);
            return Some(node.chosen);
        }
        let preempts = |node: &Node| u32::from(node.last.is_some_and(|last| last != node.chosen));
        let preemptions =
            self.path.last().map_or(0, |parent| parent.preemptions + preempts(parent));
        let last = at.last.filter(|last| at.runnable.contains(last));
        let is_bound = self.preemptions.is_some_and(|bound| preemptions >= bound);
        let mut left = at.runnable.to_vec();
        left.retain(|thread| !is_bound || last.is_none_or(|last| last == *thread));
        let chosen = left.pop()?;
        self.path.push(Node { left, chosen, preemptions, last });
        Some(chosen)
    }

    fn end(&mut self, ending: &Ending) {
        // Beyond the limit, other choices would have given other interleavings.
        self.beyond |= ending.in_turn;
    }

    fn progress(&self) -> Progress {
        let everything = self.done && !self.beyond;
        let (millionths, cut) = (if everything { 1_000_000 } else { 0 }, 0);
        let covered =
            Coverage { everything, millionths, cut, preemptions: self.preemptions, limits: None };
        Progress { strayed: self.strayed, covered: (!self.strayed).then_some(covered) }
    }
}
