//! Where a generator's decisions come from: a seed, or the bytes of a fuzzer.

/// A source of decisions.
///
/// 0 is the answer that leads to the smallest and plainest value: what runs out of entropy answers
/// 0 for ever, and generators end on it.
pub trait Choices {
    /// A number below `n`, all of them alike; 0 if `n` is 0.
    fn below(&mut self, n: u32) -> u32;

    /// Yes in `yes` of `of` cases; no from a source that is exhausted.
    fn chance(&mut self, yes: u32, of: u32) -> bool {
        self.below(of) >= of.saturating_sub(yes)
    }

    /// A number from `least` to `most`; `least` if there is none.
    fn between(&mut self, least: u32, most: u32) -> u32 {
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    /// One of some items, or nothing of nothing.
    fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.below(items.len() as u32) as usize).copied()
    }

    /// One of some items.
    fn one<T: Copy, const N: usize>(&mut self, items: [T; N]) -> T {
        const { assert!(N > 0, "there must be an item") };
        self.pick(&items).unwrap_or(items[0])
    }

    /// An index, as often as its weight says; 0 if all weights are 0.
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

    /// Some items in their order, each taken in `yes` of `of` cases.
    fn subset<T: Copy>(&mut self, items: &[T], yes: u32, of: u32) -> Vec<T> {
        items.iter().copied().filter(|_| self.chance(yes, of)).collect()
    }
}

/// Decisions from a seed: the same on every platform. The generator is SplitMix64, whose every
/// state is a good one.
#[derive(Clone, Debug)]
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// The decisions that belong to a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Choices for Seeded {
    fn below(&mut self, n: u32) -> u32 {
        // Scales 32 bits: no number is preferred by more than n in 2^32.
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }
}
