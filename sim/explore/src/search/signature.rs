//! The partial order of a history's steps, as a hash: two interleavings have the same one if they differ in the order of
//! independent steps alone.

use super::dice::{STEP, finished};
use crate::footprint::{Footprint, Things};
use crate::history::ThreadIndex;
use crate::planted_bug::Bug;

/// Number of bits of a footprint.
const BITS: usize = Things::BITS as usize;

/// The steps so far. The state of the process after them depends on their partial order alone: on what each of them has
/// found.
#[derive(Clone, Debug)]
pub(super) struct PartialOrder {
    /// For each bit of footprints the hash of the last step that changed it.
    on: [u64; BITS],
    sum: u64,
}

impl Default for PartialOrder {
    fn default() -> Self {
        Self { on: [0; BITS], sum: 0 }
    }
}

/// Returns a word whose bits all depend on all bits of two others.
const fn mix(one: u64, other: u64) -> u64 {
    finished(one.rotate_left(23) ^ other.wrapping_mul(STEP))
}

/// Returns the places of the bits that are set, the lowest first.
fn places(mut bits: Things) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (place < BITS).then_some(place)
    })
}

impl PartialOrder {
    /// Adds a step of a thread: it comes after the last steps that have changed what it accesses. Each step changes its
    /// thread's own state, so that the thread's last one is among these. A step that only reads is found by no other one:
    /// the order of such steps, and of a change that comes after them, follows from what they have found.
    pub(super) fn add(&mut self, thread: ThreadIndex, footprint: Footprint) {
        let step = self.view(thread, footprint);
        let [changed, _] = footprint.bits();
        for bit in places(changed) {
            if let Some(last) = self.on.get_mut(bit) {
                *last = step;
            }
        }
        // The order of independent steps must not matter.
        self.sum = if Bug::OrderIsForgotten.is_planted() {
            self.sum.wrapping_add(mix(u64::from(thread.0), changed as u64))
        } else {
            self.sum.wrapping_add(step)
        };
    }

    /// Returns a hash of what a step of a thread would find in the things that it accesses: of the last steps that have
    /// changed them.
    pub(super) fn view(&self, thread: ThreadIndex, footprint: Footprint) -> u64 {
        let [changed, read] = footprint.bits();
        let word = |set: Things| mix(set as u64, (set >> 64) as u64);
        let own = mix(mix(word(changed), word(read)), u64::from(thread.0));
        let seen = if Bug::ReadsAreForgotten.is_planted() { changed } else { changed | read };
        places(seen).fold(own, |view, bit| mix(view, self.on.get(bit).copied().unwrap_or_default()))
    }

    /// Returns true if a step has changed the state of a thread.
    pub(super) fn has_touched(&self, thread: ThreadIndex) -> bool {
        let [changed, _] = Footprint::thread(thread).bits();
        places(changed).any(|bit| self.on.get(bit).is_some_and(|last| *last != 0))
    }

    /// Returns the hash.
    pub(super) const fn hash(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(steps: &[(u32, Things)]) -> u64 {
        let mut order = PartialOrder::default();
        for (thread, touched) in steps {
            let own = Footprint::thread(ThreadIndex(*thread));
            order.add(ThreadIndex(*thread), own | Footprint::from_bits([*touched << 60, 0]));
        }
        order.hash()
    }

    #[test]
    fn only_the_order_of_dependent_steps_matters() {
        assert_eq!(hash(&[(0, 1), (1, 2)]), hash(&[(1, 2), (0, 1)]));
        assert_eq!(hash(&[(0, 1), (1, 2), (0, 3)]), hash(&[(1, 2), (0, 1), (0, 3)]));
        assert_ne!(hash(&[(0, 1), (1, 1)]), hash(&[(1, 1), (0, 1)]));
        assert_ne!(hash(&[(0, 1), (1, 1), (0, 1)]), hash(&[(0, 1), (0, 1), (1, 1)]));
        assert_ne!(hash(&[(0, 1)]), hash(&[(1, 1)]));
        assert_ne!(hash(&[(0, 1)]), hash(&[(0, 2)]));
        assert_ne!(hash(&[]), hash(&[(0, 0)]));
        let reads = |threads: [u32; 3]| {
            let mut order = PartialOrder::default();
            for thread in threads {
                let changes = Footprint::from_bits([1 << 60, 0]);
                // The thread 2 changes what the others read.
                order.add(ThreadIndex(thread), if thread == 2 { changes } else { changes.read() });
            }
            order.hash()
        };
        assert_eq!(reads([0, 1, 2]), reads([1, 0, 2]));
        assert_ne!(reads([0, 1, 2]), reads([0, 2, 1]));
        // A step between two others orders them.
        let (one, other) = ([(0, 1), (1, 3), (2, 2)], [(2, 2), (1, 3), (0, 1)]);
        assert_ne!(hash(&one), hash(&other));
    }
}
