//! Exhaustive search.
//!
//! Explores every interleaving up to reordering of independent steps. Two steps are independent if neither changes what the other
//! accesses. A step with the same causal past behaves the same in every interleaving, so it is executed once, and its effect
//! is remembered ([`known`](super::known)). The search walks the graph of states with remembered steps, and executes an
//! interleaving only when it reaches a step, or an end, that it has not seen.
//!
//! An example: two threads write a variable of their own, and then take the same lock.
//!
//! ```text
//! a: writes x, takes l        b: writes y, takes l
//!
//! interleaving 1:  a.x  a.l  b.y  b.l     four steps are new; this b.l comes after a.l
//! interleaving 2:  a.x  b.y  b.l  a.l     a.x and b.y are remembered: only the locks in this order are new
//! ```
//!
//! There are six interleavings. The other four only swap `a.x` or `b.y` with steps that are independent of them, so the
//! search walks them by what it remembers and executes none of them.
//!
//! (Steps with their causal pasts are the events of an unfolding: McMillan 1992; Rodríguez, Sousa, Sharma and Kroening,
//! "Unfolding-based partial order reduction", CONCUR 2015.)
//!
//! A state is pruned if the same partial order of steps has led to it before; with a bound on preemptions, if that has
//! left no fewer of them (Musuvathi and Qadeer, "Partial-order reduction for context-bounded state exploration",
//! MSR-TR-2007-12).
//!
//! If all data is declared ([`Setup::keeps`](crate::Setup::keeps)), a state is what it [contains](crate::Contents), and a step
//! depends on the contents that it finds: it is executed once whatever has led to them, as explicit-state model checkers do.
//! Random interleavings at the end check that remembered steps repeat. If a turn depends on time, the search begins again
//! without contents. An interleaving with a new step goes on to its end, so that one without end is noticed.

use super::known::{ByHash, Hashes, Knowledge, Next};
use super::node::{Node, millionths};
use super::rng::Rng;
use super::signature::Signature;
use crate::contents::Contents;
use crate::ending::Ending;
use crate::footprint::Footprint;
use crate::ids::ThreadIndex;
use crate::schedule_string::by_itself;
use crate::search::{Choice, Coverage, Observer, Progress, Search, Step};
use std::collections::hash_map::Entry;

/// Maximum number of states that the search goes through between two interleavings: without an end, it executes the one that
/// it has come to, so that it keeps to its budget.
const STATES: u32 = 4096;
/// Maximum number of states in a search.
const ALL_STATES: usize = 1 << 22;

/// Number of random interleavings that check what is known, if states are compared by their contents: steps that are others
/// than they are known to be show that contents are missing.
const CHECKS: u64 = 4;

/// A way in which a state has been reached: the thread that could continue without a preemption, and the number of
/// preemptions.
type Arrival = (Option<ThreadIndex>, u32);

/// The first arrival at a state, and those that left more preemptions than all before. Most states have one.
type Arrivals = (Arrival, Vec<Arrival>);

/// The threads that can run in a state, by their bits.
type Threads = u128;

/// The interleaving that is being executed.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
struct Current {
    order: Signature,
    /// Number of steps so far.
    depth: usize,
    preemptions: u32,
    /// The interleaving has a step that is new.
    is_new: bool,
    /// A step was another one than it is known to be.
    differs: bool,
    /// The search has given it up.
    is_left: bool,
    /// The search begins again after it.
    is_forgotten: bool,
    /// The choices of an interleaving that checks what is known; `None` in one that explores.
    check: Option<Rng>,
}

/// Explores all interleavings.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Exhaustive {
    preemptions: Option<u32>,
    /// The threads of the first turns, which are not choices.
    prefix: Vec<ThreadIndex>,
    /// Each end is executed.
    each_end: bool,
    path: Vec<Node>,
    known: Knowledge,
    /// The threads that could run in states that were executed.
    runnable: ByHash<Threads>,
    reached: ByHash<Arrivals>,
    /// States in which interleavings have ended.
    ends: Hashes,
    /// Number of threads that were seen, and those that exist from the beginning.
    threads: u32,
    first: Threads,
    /// Number of steps of the longest interleaving.
    longest: usize,
    /// The threads whose turns lead to what is not known.
    plan: Vec<ThreadIndex>,
    current: Current,
    /// The state at the beginning.
    start: Signature,
    /// States are compared by their contents; `None` if that is not decided yet.
    by_content: Option<bool>,
    begun: bool,
    done: bool,
    /// Number of interleavings that have checked what is known.
    checks: u64,
    /// Number of interleavings that were given up.
    cut: u64,
    /// The same choices have led to a different history: the profiler's code depends on other
    /// state.
    strayed: bool,
    /// An interleaving exceeded its limit, or there are too many states.
    beyond: bool,
}

/// Returns the bit of a thread: none if there are too many.
const fn bit(thread: ThreadIndex) -> Threads {
    if thread.0 < Threads::BITS { 1 << thread.0 } else { 0 }
}

impl Exhaustive {
    /// Creates the search, with or without a bound on preemptions.
    #[must_use]
    pub fn new(preemptions: Option<u32>) -> Self {
        Self { preemptions, ..Self::default() }
    }

    /// Makes the search explore the interleavings alone that begin with turns of these threads.
    pub(crate) fn after(mut self, prefix: &[ThreadIndex]) -> Self {
        self.prefix = prefix.to_vec();
        self
    }

    /// Returns the bound on preemptions.
    pub(super) const fn bound(&self) -> Option<u32> {
        self.preemptions
    }

    /// Makes the search execute an interleaving to each end, also if no step of it is new: interleavings that end alike for each
    /// thread by itself, and differ in the combination.
    #[must_use]
    pub const fn to_each_end(mut self) -> Self {
        self.each_end = true;
        self
    }

    /// Makes the search compare states by the steps that have led to them, also if their contents are known.
    #[must_use]
    pub const fn by_steps(mut self) -> Self {
        self.by_content = Some(false);
        self
    }

    /// Forgets all, to begin again and compare states by the steps that have led to them.
    fn begin_by_steps(&mut self) {
        let Self { preemptions, each_end, cut, strayed, .. } = *self;
        let prefix = core::mem::take(&mut self.prefix);
        *self = Self { preemptions, prefix, each_end, cut, strayed, ..Self::default() }.by_steps();
    }

    /// Notes that a state is reached. Returns true if all that can follow has been explored, or is about to be, from an
    /// arrival that left no fewer preemptions.
    fn was_reached(&mut self, state: u64, last: Option<ThreadIndex>, preemptions: u32) -> bool {
        // From the other arrival, the first step costs at most one preemption more than from here.
        let covers = |(other, before): &Arrival| {
            let more = u32::from(other.is_some() && *other != last);
            self.preemptions.is_none() || before.saturating_add(more) <= preemptions
        };
        let arrival = (last, preemptions);
        match self.reached.entry(state) {
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

    /// Returns what a thread does next in a state, or `None` if that is not known.
    fn next(&self, order: &Signature, thread: ThreadIndex) -> Option<Next> {
        // A thread that is started later is in no state before.
        let is_late = self.first & bit(thread) == 0 && !order.has_touched(thread);
        if is_late { Some(Next::Nothing) } else { self.known.next(order, thread) }
    }

    /// Finds out which threads can run in the last state of the path. Returns false if that is not known.
    fn expand(&mut self) -> bool {
        let depth = self.path.len().saturating_sub(1);
        let Some(node) = self.path.last_mut() else { return true };
        if let Some(only) = self.prefix.get(depth) {
            // The state is not noted as reached: a later one that is like it has alternatives.
            node.left = Some(vec![*only]);
            node.all = 1;
            return true;
        }
        let Some(node) = self.path.last() else { return true };
        let (state, last, preemptions) = (node.order.hash(), node.last, node.preemptions);
        let is_bound = self.preemptions.is_some_and(|bound| preemptions >= bound);
        // Whether other threads can run makes no difference then.
        let only = last.filter(|last| {
            is_bound && matches!(self.next(&node.order, *last), Some(Next::Step(_)))
        });
        let mut runnable = Vec::new();
        let threads = (0..self.threads).map(ThreadIndex);
        if self.ends.contains(&state) {
            // Nothing follows.
        } else if only.is_some() {
            runnable.extend(only);
        } else if let Some(known) = self.runnable.get(&state) {
            runnable.extend(threads.filter(|thread| known & bit(*thread) != 0));
        } else {
            let mut waits = false;
            for thread in threads {
                match self.next(&node.order, thread) {
                    Some(Next::Step(_)) => runnable.push(thread),
                    Some(Next::Waits) => waits = true,
                    Some(Next::Nothing) => {}
                    None => return false,
                }
            }
            // If threads wait, the state decides if time passes, or how the interleaving ends.
            let is_end = !waits && !self.each_end && depth <= self.longest;
            if runnable.is_empty() && !is_end {
                return false;
            }
        }
        let last = last.filter(|last| runnable.contains(last));
        if runnable.is_empty() || self.was_reached(state, last, preemptions) {
            runnable.clear();
        }
        let usual = by_itself(&runnable, last);
        runnable.retain(|thread| !is_bound || last.is_none_or(|last| last == *thread));
        // The default choice is tried first.
        runnable.sort_by_key(|thread| (Some(*thread) == usual, core::cmp::Reverse(*thread)));
        if let Some(node) = self.path.last_mut() {
            node.last = last;
            node.all = runnable.len() as u32;
            node.left = Some(runnable);
        }
        true
    }

    /// Goes through the states that are known, up to what is not known, to which it makes the plan. Returns false if all is
    /// known.
    fn advance(&mut self) -> bool {
        let mut states = 0;
        while let Some(node) = self.path.last() {
            let is_new = node.left.is_none();
            if is_new && (states == STATES || !self.expand()) {
                self.make_plan(None);
                return true;
            }
            states += u32::from(is_new);
            let Some(node) = self.path.last_mut() else { break };
            let Some(thread) = node.left.as_ref().and_then(|left| left.last()).copied() else {
                self.path.pop();
                continue;
            };
            let Some(touched) = self.known.step(&node.order, thread) else {
                self.make_plan(Some(thread));
                return true;
            };
            node.left.as_mut().and_then(Vec::pop);
            node.chosen = thread;
            let mut order = node.order.clone();
            order.add(thread, touched, self.known.left(&node.order, thread, touched));
            let more = u32::from(node.last.is_some_and(|last| last != thread));
            let preemptions = node.preemptions + more;
            self.path.push(Node { last: Some(thread), preemptions, ..Node::new(order) });
            if self.reached.len() > ALL_STATES {
                self.beyond = true;
                self.path.clear();
            }
        }
        false
    }

    /// Plans an interleaving to the last state of the path, and a turn of a thread there.
    fn make_plan(&mut self, then: Option<ThreadIndex>) {
        self.plan.clear();
        let before = self.path.len().saturating_sub(1);
        self.plan.extend(self.path.iter().take(before).map(|node| node.chosen));
        self.plan.extend(then);
    }

    /// Learns from a state of the interleaving that is being executed which threads wait, and which do nothing.
    fn learn(&mut self, runnable: &[ThreadIndex], waits: &[(ThreadIndex, Footprint)]) {
        let all = runnable.iter().chain(waits.iter().map(|(thread, _)| thread));
        let mut there = 0;
        for thread in all {
            self.threads = self.threads.max(thread.0 + 1);
            there |= bit(*thread);
            self.beyond |= bit(*thread) == 0;
        }
        let order = &self.current.order;
        if self.current.depth == 0 {
            self.first = there;
        }
        for (thread, decides) in waits {
            self.known.waits(order, *thread, *decides);
        }
        for thread in (0..self.threads).map(ThreadIndex) {
            if there & bit(thread) == 0 {
                self.known.is_over(order, thread);
            }
        }
    }

    /// Chooses a thread whose next step is not known, or the one that is next by itself: none if all that the interleaving was
    /// executed for is known.
    fn explore(&self, runnable: &[ThreadIndex], last: Option<ThreadIndex>) -> Option<ThreadIndex> {
        let usual = by_itself(runnable, last);
        let is_new = |thread: ThreadIndex| self.known.step(&self.current.order, thread).is_none();
        let is_bound = self.preemptions.is_some_and(|bound| self.current.preemptions >= bound);
        if usual.is_some_and(is_new) {
            return usual;
        }
        if is_bound && last.is_some() {
            return usual.filter(|_| self.current.is_new);
        }
        let new = runnable.iter().copied().find(|thread| is_new(*thread));
        new.or(usual.filter(|_| self.current.is_new))
    }

    /// Returns true if states are compared by their contents.
    fn compares_contents(&self) -> bool {
        self.by_content == Some(true)
    }

    /// Returns the share of the search space on the left of the path.
    fn covered(&self) -> Option<Coverage> {
        if self.strayed {
            return None;
        }
        let everything = self.done && !self.beyond;
        Some(Coverage {
            everything,
            millionths: if everything { 1_000_000 } else { millionths(&self.path) },
            cut: self.cut,
            preemptions: self.preemptions,
            limits: None,
        })
    }
}

impl Search for Exhaustive {
    fn begin(&mut self, _: u64) -> bool {
        self.current = Current { order: self.start.clone(), ..Current::default() };
        if !core::mem::replace(&mut self.begun, true) {
            self.path.push(Node::new(self.start.clone()));
            return true;
        }
        if self.advance() {
            return true;
        }
        self.done = true;
        let checks = self.compares_contents() && self.checks < CHECKS;
        if checks {
            self.plan.clear();
            self.current.check = Some(Rng::new(0, self.checks));
            self.checks += 1;
        }
        checks
    }

    fn choose(&mut self, at: &Choice<'_>) -> Option<ThreadIndex> {
        if self.current.is_forgotten {
            return None;
        }
        let state = self.current.order.hash();
        if !self.runnable.contains_key(&state) {
            self.learn(at.runnable, at.waits);
            let all = at.runnable.iter().fold(0, |all, thread| all | bit(*thread));
            self.runnable.insert(state, all);
        }
        let last = at.last.filter(|last| at.runnable.contains(last));
        let depth = self.current.depth;
        let planned = self.plan.get(depth).or_else(|| self.prefix.get(depth)).copied();
        let strays = planned.is_some_and(|thread| !at.runnable.contains(&thread));
        self.strayed |= strays;
        let chosen = match &mut self.current.check {
            Some(rng) if planned.is_none() => {
                let is_bound =
                    self.preemptions.is_some_and(|bound| self.current.preemptions >= bound);
                last.filter(|_| is_bound || rng.below(4) > 0).or_else(|| rng.item(at.runnable))
            }
            _ => planned.or_else(|| self.explore(at.runnable, last)),
        };
        self.current.is_left = strays || chosen.is_none();
        self.current.differs |= strays;
        self.cut += u64::from(self.current.is_left);
        let chosen = chosen.filter(|_| !self.current.is_left)?;
        self.current.preemptions += u32::from(last.is_some_and(|last| last != chosen));
        Some(chosen)
    }

    fn end(&mut self, ending: &Ending) {
        // Beyond the limit, other choices would have given other interleavings.
        self.beyond |= ending.in_turn;
        let depth = self.current.depth;
        if self.current.is_forgotten {
            return;
        }
        if !self.current.is_left {
            self.ends.insert(self.current.order.hash());
        }
        if !ending.in_turn {
            self.longest = self.longest.max(depth);
        }
        if self.current.differs {
            // The plan leads to something else: it is of no use to follow it again.
            self.beyond = true;
            let left = self.path.last_mut().and_then(|node| node.left.as_mut());
            if left.is_none_or(|left| left.pop().is_none()) {
                self.path.pop();
            }
        } else if depth < self.plan.len() {
            // It has ended before.
            self.path.truncate(depth + 1);
            if let Some(node) = self.path.last_mut() {
                node.left = Some(Vec::new());
            }
        }
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn progress(&self) -> Progress {
        Progress { strayed: self.strayed, covered: self.covered() }
    }
}

impl Observer for Exhaustive {
    fn started(&mut self, contents: &dyn Fn() -> Option<Contents>) {
        // Each interleaving begins alike.
        if self.by_content.is_none()
            && let Some(contents) = contents()
        {
            self.by_content = Some(true);
            self.start = Signature::of(&contents);
            self.path = vec![Node::new(self.start.clone())];
            self.current.order = self.start.clone();
        }
    }

    fn stepped(&mut self, step: &Step<'_>) {
        let Step { thread, footprint, contents } = *step;
        let left = if self.compares_contents() { contents() } else { None };
        let left = left.as_ref();
        if left.is_none() && self.compares_contents() {
            // The turn depends on time, which is no content.
            self.cut += 1;
            self.begin_by_steps();
            self.current.is_forgotten = true;
        }
        if self.current.is_forgotten {
            return;
        }
        let Current { order, depth, is_new, differs, check, .. } = &mut self.current;
        let known = self.known.step(order, thread);
        *differs |= known.is_some_and(|known| known != footprint);
        if known.is_none() {
            *is_new = true;
            *differs |= check.is_some();
            self.known.steps(order, thread, footprint, left);
        } else {
            *differs |= self.known.left(order, thread, footprint) != left;
        }
        order.add(thread, footprint, left);
        *depth += 1;
    }

    fn stopped(&mut self, waits: &[(ThreadIndex, Footprint)]) {
        if !self.current.is_forgotten {
            self.learn(&[], waits);
        }
    }
}
