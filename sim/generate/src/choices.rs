//! Sources of a generator's decisions: a seed, or the bytes of a fuzzer.

use clr_machine::SplitMix64;

/// A source of decisions.
///
/// The answer 0 leads to the smallest and plainest value: a source without entropy always answers
/// 0, and generators then terminate.
pub trait Choices {
    /// Returns a number below `n`, uniformly distributed; 0 if `n` is 0.
    fn below(&mut self, n: u32) -> u32;

    /// Returns true in `yes` of `of` cases; false from an exhausted source.
    fn chance(&mut self, yes: u32, of: u32) -> bool {
        self.below(of) >= of.saturating_sub(yes)
    }

    /// Returns a number from `least` to `most`; `least` if the range is empty.
    fn between(&mut self, least: u32, most: u32) -> u32 {
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    /// Returns one of the items, or `None` if there are none.
    fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.below(items.len() as u32) as usize).copied()
    }

    /// Returns one of the items.
    fn one<T: Copy, const N: usize>(&mut self, items: [T; N]) -> T {
        const { assert!(N > 0, "there must be an item") };
        self.pick(&items).unwrap_or(items[0])
    }

    /// Returns an index with a probability according to its weight; 0 if all weights are 0.
    fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        0
    }

    /// Returns some of the items in their order, each taken in `yes` of `of` cases.
    fn subset<T: Copy>(&mut self, items: &[T], yes: u32, of: u32) -> Vec<T> {
        items.iter().copied().filter(|_| self.chance(yes, of)).collect()
    }
}

/// Decisions from a seed, the same on every platform.
#[derive(Clone, Debug)]
pub struct Seeded(SplitMix64);

impl Seeded {
    /// Creates the decisions for a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0.draw()
    }
}

impl Choices for Seeded {
    fn below(&mut self, n: u32) -> u32 {
        // Scales 32 bits: the bias of any number is at most n in 2^32.
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }
}
