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

#[cfg(test)]
mod tests {
    use super::Dice;

    /// The first numbers of `SplitMix64` from 0 and from 1234567, as other implementations have them.
    #[test]
    fn the_generator_is_split_mix() {
        let mut from = Dice(0);
        let first = [from.next(), from.next(), from.next()];
        assert_eq!(first, [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]);
        let mut from = Dice(1_234_567);
        let first = [from.next(), from.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn numbers_are_below_the_end_and_reach_it() {
        let mut dice = Dice::new(1, 2);
        assert_eq!((dice.below(0), dice.below(1)), (0, 0));
        let mut counts = [0_u32; 3];
        for _ in 0..3_000 {
            counts[dice.below(3) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        assert_eq!(dice.one::<u8>(&[]), None);
        let drawn: std::collections::BTreeSet<_> = (0..50).map(|_| dice.one(&[4, 5])).collect();
        assert_eq!(drawn, [Some(4), Some(5)].into());
    }

    #[test]
    fn each_history_of_each_seed_has_its_own_numbers() {
        let mut first = std::collections::BTreeSet::new();
        for seed in 0..20 {
            for number in 0..20 {
                assert!(first.insert(Dice::new(seed, number).next()), "{seed} {number}");
            }
        }
        assert_eq!(Dice::new(3, 4).next(), Dice::new(3, 4).next());
    }
}
