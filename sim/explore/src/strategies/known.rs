//! Knowledge of what threads do next, from the interleavings that were executed.
//!
//! The next step of a thread depends only on the last writers of what the step reads. It is the same in each state that
//! has these writers, whatever else other threads have done.

use super::signature::Signature;
use crate::contents::Contents;
use crate::footprint::Footprint;
use crate::ids::ThreadIndex;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// The hasher of keys that are hashes already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
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

/// A map whose keys are hashes.
pub(super) type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsIs>>;

/// A set of hashes.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<AsIs>>;

/// The next step of a thread, or the reason why it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A step that accesses this.
    Step(Footprint),
    /// The thread waits.
    Waits,
    /// The thread has ended, or was not started yet.
    Nothing,
}

/// The kinds of [`Next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Step,
    Waits,
    Nothing,
}

/// The next steps of threads in the states of executed interleavings.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// For each state of a thread the access sets of what it has done next.
    sets: ByHash<Vec<Footprint>>,
    /// The kind of the next step, for each view of these sets.
    seen: ByHash<Kind>,
    /// The contents that a step has left, for its view, if they are known.
    left: ByHash<Contents>,
}

impl Knowledge {
    /// Notes a thread's next step, or another one if `step` is false: that the thread waits, and what decides about that.
    fn note(&mut self, order: &Signature, thread: ThreadIndex, set: Footprint, kind: Kind) {
        let own = order.view(thread, Footprint::thread(thread));
        let view = order.view(thread, set);
        match self.seen.entry(view) {
            Entry::Occupied(mut known) => {
                if kind == Kind::Step {
                    known.insert(kind);
                }
            }
            Entry::Vacant(new) => {
                new.insert(kind);
                let sets = self.sets.entry(own).or_default();
                if !sets.contains(&set) {
                    sets.push(set);
                }
            }
        }
    }

    /// Notes the next step of a thread, and the contents that it has left, if they are known.
    pub(super) fn steps(
        &mut self,
        order: &Signature,
        thread: ThreadIndex,
        touched: Footprint,
        left: Option<&Contents>,
    ) {
        self.note(order, thread, touched, Kind::Step);
        if let Some(left) = left {
            self.left.insert(order.view(thread, touched), left.clone());
        }
    }

    /// Returns the contents that a known step leaves, if they are known.
    pub(super) fn left(
        &self,
        order: &Signature,
        thread: ThreadIndex,
        touched: Footprint,
    ) -> Option<&Contents> {
        if self.left.is_empty() { None } else { self.left.get(&order.view(thread, touched)) }
    }

    /// Notes that a thread waits, and what decides about that.
    pub(super) fn waits(&mut self, order: &Signature, thread: ThreadIndex, decides: Footprint) {
        self.note(order, thread, decides | Footprint::thread(thread).read(), Kind::Waits);
    }

    /// Notes that a thread has ended, or was not started yet.
    pub(super) fn is_over(&mut self, order: &Signature, thread: ThreadIndex) {
        self.note(order, thread, Footprint::thread(thread).read(), Kind::Nothing);
    }

    /// Returns what a thread does next, or `None` if that is not known.
    pub(super) fn next(&self, order: &Signature, thread: ThreadIndex) -> Option<Next> {
        let sets = self.sets.get(&order.view(thread, Footprint::thread(thread)))?;
        let mut next = None;
        for set in sets {
            match self.seen.get(&order.view(thread, *set)) {
                // A wait that has run out goes on.
                Some(Kind::Step) => return Some(Next::Step(*set)),
                Some(Kind::Waits) => next = Some(Next::Waits),
                Some(Kind::Nothing) => next = Some(Next::Nothing),
                None => {}
            }
        }
        next
    }

    /// Returns the access set of a thread's next step, if it is known.
    pub(super) fn step(&self, order: &Signature, thread: ThreadIndex) -> Option<Footprint> {
        match self.next(order, thread)? {
            Next::Step(touched) => Some(touched),
            Next::Waits | Next::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LockName;

    const MINE: ThreadIndex = ThreadIndex(0);
    const OTHER: ThreadIndex = ThreadIndex(1);

    #[test]
    fn a_step_is_known_until_another_one_changes_what_it_finds() {
        let lock = Footprint::lock(LockName::Profiler(0));
        let (mine, other) = (Footprint::thread(MINE), Footprint::thread(OTHER));
        let (mut known, mut order) = (Knowledge::default(), Signature::default());
        assert_eq!(known.next(&order, MINE), None);
        known.steps(&order, MINE, mine | lock.read(), None);
        // What the other thread does by itself, or only reads, makes no difference.
        order.add(OTHER, other, None);
        order.add(OTHER, other | lock.read(), None);
        assert_eq!(known.step(&order, MINE), Some(mine | lock.read()));
        order.add(OTHER, other | lock, None);
        assert_eq!(known.next(&order, MINE), None);
        known.waits(&order, MINE, lock.read());
        assert_eq!(known.next(&order, MINE), Some(Next::Waits));
        assert_eq!(known.step(&order, MINE), None);
        order.add(OTHER, other | lock, None);
        assert_eq!(known.next(&order, MINE), None, "it may have been released");
        order.add(OTHER, other | mine, None);
        known.is_over(&order, MINE);
        order.add(OTHER, other | lock, None);
        assert_eq!(known.next(&order, MINE), Some(Next::Nothing));
    }

    #[test]
    fn a_wait_that_has_run_out_is_a_step() {
        let lock = Footprint::lock(LockName::Profiler(0));
        let (mut known, order) = (Knowledge::default(), Signature::default());
        known.waits(&order, MINE, lock.read());
        known.steps(&order, MINE, Footprint::ALL, None);
        assert_eq!(known.next(&order, MINE), Some(Next::Step(Footprint::ALL)));
    }

    #[test]
    fn a_step_stays_a_step_when_the_thread_waits_in_the_same_state() {
        let lock = Footprint::lock(LockName::Profiler(0));
        let (mut known, order) = (Knowledge::default(), Signature::default());
        let set = lock.read() | Footprint::thread(MINE).read();
        known.steps(&order, MINE, set, None);
        known.waits(&order, MINE, lock.read());
        assert_eq!(known.next(&order, MINE), Some(Next::Step(set)));
    }

    #[test]
    fn keys_that_are_hashes_are_not_hashed_again() {
        let mut hasher = AsIs::default();
        hasher.write_u64(5);
        assert_eq!(hasher.finish(), 5);
        let mut hasher = AsIs::default();
        hasher.write(&[1, 3, 0xFF]);
        assert_eq!(hasher.finish(), 0x0001_03FF);
        hasher.write(&[0x0F]);
        assert_eq!(hasher.finish(), 0x0103_FF0F);
    }
}
