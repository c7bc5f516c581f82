//! Pseudo-random numbers, the same on every system.

/// The distance of the generator's states.
pub(super) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns a word whose bits all depend on all bits of another one: the end of a step of `SplitMix64`.
pub(super) const fn finished(word: u64) -> u64 {
    let mut mixed = word;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Creates the generator for history `number` of a seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut mixed = Self(seed);
        let base = mixed.next();
        Self(base ^ number.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        finished(self.0)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a random item.
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len() as u64) as usize).copied()
    }
}
