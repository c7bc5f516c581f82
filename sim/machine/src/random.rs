//! Numbers that look random and are the same on every system.

/// The generator `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014), with its state. Every state is good.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The distance of two states.
    pub const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Returns the next number.
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        Self::mixed(self.0)
    }

    /// Returns a word whose bits all depend on all bits of another one: the number of a state.
    #[inline]
    pub const fn mixed(word: u64) -> u64 {
        let mut mixed = word;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// The hash function FNV-1a with 64 bits.
#[derive(Clone, Debug)]
pub struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Fnv1a {
    /// Adds a value: a byte; whole words make a hash function of its own.
    pub const fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01B3);
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(u64::from(*byte));
        }
    }

    /// Returns the hash of what was added.
    pub const fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Fnv1a, SplitMix64};

    /// The first numbers from 0 and from 1234567, as other implementations have them.
    #[test]
    fn the_generator_is_split_mix() {
        let first = |state| {
            let mut from = SplitMix64(state);
            [from.draw(), from.draw()]
        };
        assert_eq!(first(0), [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
        assert_eq!(first(1_234_567), [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    /// The hash of a string as its authors publish it.
    #[test]
    fn the_hash_is_fnv() {
        let mut hash = Fnv1a::default();
        hash.write(b"foobar");
        assert_eq!(hash.finish(), 0x8594_4171_F739_67E8);
    }
}
