//! Pseudo-random numbers, the same on every system.

use clr_machine::SplitMix64;

/// The random numbers of one interleaving.
#[derive(Clone, Debug)]
pub(super) struct Rng(SplitMix64);

impl Rng {
    /// Creates the generator for interleaving `number` of a seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let base = SplitMix64(seed).draw();
        Self(SplitMix64(base ^ number.wrapping_mul(0xA076_1D64_78BD_642F)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a random item.
    pub(super) fn item<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len() as u64) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn numbers_are_below_the_end_and_reach_it() {
        let mut rng = Rng::new(1, 2);
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        let mut counts = [0_u32; 3];
        for _ in 0..3_000 {
            counts[rng.below(3) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        assert_eq!(rng.item::<u8>(&[]), None);
        let drawn: std::collections::BTreeSet<_> = (0..50).map(|_| rng.item(&[4, 5])).collect();
        assert_eq!(drawn, [Some(4), Some(5)].into());
    }

    #[test]
    fn each_history_of_each_seed_has_its_own_numbers() {
        let mut first = std::collections::BTreeSet::new();
        for seed in 0..20 {
            for number in 0..20 {
                assert!(first.insert(Rng::new(seed, number).next()), "{seed} {number}");
            }
        }
        assert_eq!(Rng::new(3, 4).next(), Rng::new(3, 4).next());
    }
}
