//! The partial order of a history's steps, as a hash: two interleavings have the same one if they differ in the order of
//! independent steps alone.

use super::dice::{STEP, finished};
use crate::footprint::{Footprint, Things};
use crate::history::ThreadIndex;
use crate::planted_bug::Bug;

/// Number of bits of a footprint.
const BITS: usize = Things::BITS as usize;

/// The steps so far. The state of the process after them depends on their partial order alone.
#[derive(Clone, Debug)]
pub(super) struct PartialOrder {
    /// For each bit of footprints the hash of the last step that changed it, and the sum of those that have read it
    /// since.
    on: [[u64; 2]; BITS],
    sum: u64,
}

impl Default for PartialOrder {
    fn default() -> Self {
        Self { on: [[0; 2]; BITS], sum: 0 }
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
    /// Adds a step of a thread: it comes after all that it depends on. Each step changes its
    /// thread's own state, so that the thread's last one is among these.
    pub(super) fn add(&mut self, thread: ThreadIndex, footprint: Footprint) {
        let mut step = mix(u64::from(thread.0) + 1, 0);
        let [changed, read] = footprint.bits();
        for bit in places(changed | read) {
            let [last, readers] = self.on[bit];
            step = if changed >> bit & 1 == 1 {
                mix(step, mix(bit as u64, last.wrapping_add(readers)))
            } else {
                mix(step, mix(!(bit as u64), last))
            };
        }
        for bit in places(changed) {
            self.on[bit] = [step, 0];
        }
        for bit in places(read) {
            let [_, readers] = &mut self.on[bit];
            *readers = readers.wrapping_add(step);
        }
        // The order of independent steps must not matter.
        self.sum = if Bug::OrderIsForgotten.is_planted() {
            self.sum.wrapping_add(mix(u64::from(thread.0), (changed | read) as u64))
        } else {
            self.sum.wrapping_add(step)
        };
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
