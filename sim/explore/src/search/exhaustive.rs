//! Exhaustive search of all histories, except for the order of independent steps.
//!
//! The search is depth-first, and executes each history from its beginning. A step that was tried
//! at a switch point sleeps in the alternatives tried there next, until another step touches
//! something that it touches (sleep sets: Godefroid 1996): a history in which only sleepers can run
//! is a reordering of another one.
//!
//! With a bound on preemptions nothing sleeps, because the other order might exceed the bound. There a history
//! is given up at a switch point that another one has reached by the same partial order of steps, so in the same state,
//! with no more preemptions (Musuvathi and Qadeer, "Partial-order reduction for context-bounded state exploration",
//! MSR-TR-2007-12).

use super::partial_order::PartialOrder;
use super::{Choice, Coverage, Search};
use crate::ending::Ending;
use crate::footprint::Footprint;
use crate::history::ThreadIndex;
use crate::planted_bug::Bug;
use crate::schedule_string::by_itself;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

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

/// A way in which a state has been reached: the thread that could continue without a preemption, and the number of
/// preemptions.
type Arrival = (Option<ThreadIndex>, u32);

/// The first arrival at a state, and those that left more preemptions than all before. Most states have one.
type Arrivals = (Arrival, Vec<Arrival>);

/// The hasher of keys that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct Known(u64);

impl Hasher for Known {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Explores all histories.
#[derive(Clone, Debug, Default)]
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
    /// With a bound: the steps of the current history so far, and the states that were reached.
    order: PartialOrder,
    reached: HashMap<u64, Arrivals, BuildHasherDefault<Known>>,
    /// Each interleaving is a history.
    all_orders: bool,
}

impl Exhaustive {
    /// Creates the search, with or without a bound on preemptions.
    #[must_use]
    pub fn new(preemptions: Option<u32>) -> Self {
        Self { preemptions, ..Self::default() }
    }

    /// Creates a search of all interleavings, with or without a bound on preemptions, also of those that differ in the
    /// order of independent steps alone: what any other search finds in small programs is checked with it.
    #[must_use]
    pub fn of_all_orders(preemptions: Option<u32>) -> Self {
        Self { all_orders: true, ..Self::new(Some(preemptions.unwrap_or(u32::MAX))) }
    }

    /// Notes that the current state is reached at a node. Returns true if all that can follow has been explored, or is
    /// about to be, from an arrival that left no fewer preemptions.
    fn was_reached(&mut self, node: &Node) -> bool {
        if self.preemptions.is_none() || self.all_orders {
            return false;
        }
        let Node { last, preemptions, .. } = *node;
        // From the other arrival, the first step costs at most one preemption more than from here.
        let covers = |(other, before): &Arrival| {
            let more = u32::from(other.is_some() && *other != last);
            before.saturating_add(more) <= preemptions
        };
        let arrival = (last, preemptions);
        match self.reached.entry(self.order.hash()) {
            Entry::Vacant(place) => {
                place.insert((arrival, Vec::new()));
                false
            }
            Entry::Occupied(mut place) => {
                let (first, later) = place.get_mut();
                let covered = covers(first) || later.iter().any(covers);
                if !covered {
                    later.push(arrival);
                }
                covered
            }
        }
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
        self.order = PartialOrder::default();
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
        if node.all == 0 || self.was_reached(&node) {
            self.cut += 1;
            return None;
        }
        let chosen = node.chosen;
        self.path.push(node);
        Some(chosen)
    }

    fn ran(&mut self, thread: ThreadIndex, footprint: Footprint) {
        if self.preemptions.is_some() {
            self.order.add(thread, footprint);
        }
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
