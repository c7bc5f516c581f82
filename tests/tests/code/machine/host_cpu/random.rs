//! Pseudo-random numbers, and values at which operations may overflow, round or be special.

use clr_machine::SplitMix64;

/// A generator of values.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns true with probability 1/`times`.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub(crate) fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// Returns an integer of `bits` bits, most often at an edge of its range.
    pub(crate) fn integer(&mut self, bits: u32) -> u64 {
        let mask = u64::MAX >> (64 - bits);
        let top = 1 << (bits - 1);
        let half = mask >> (bits / 2);
        let value = match self.below(16) {
            0 | 1 => 0,
            2 => 1,
            3 | 4 => mask,
            5 => mask - 1,
            6 => top,
            7 => top - 1,
            8 => top + 1,
            9 => half,
            10 => half + 1,
            11 => half >> 1,
            12 => self.below(130),
            _ => self.next(),
        };
        value & mask
    }

    /// Returns the bits of a double.
    pub(crate) fn double(&mut self) -> u64 {
        match self.below(8) {
            0 => self.next(),
            // Magnitudes of integers.
            1 => (self.next() >> 1).wrapping_mul(2) % (80 << 52) + (1003 << 52),
            2 => (f64::from((self.next() as u32).cast_signed()) / 2.0).to_bits(),
            _ => {
                let sign = self.next() & 1 << 63;
                self.pick(&DOUBLES) ^ sign
            }
        }
    }

    /// Returns the bits of a single.
    pub(crate) fn single(&mut self) -> u32 {
        match self.below(8) {
            0 => self.next() as u32,
            1 => self.next() as u32 % (80 << 23) + (107 << 23),
            2 => (f32::from((self.next() as u16).cast_signed()) / 2.0).to_bits(),
            _ => {
                let sign = self.next() as u32 & 1 << 31;
                self.pick(&SINGLES) ^ sign
            }
        }
    }

    /// Returns a vector of elements of a kind.
    pub(crate) fn vector(&mut self, elements: Elements) -> u128 {
        let bits = match elements {
            Elements::Random => return self.wide(),
            Elements::Single => 32,
            Elements::Double => 64,
            Elements::Integer(bits) => bits,
        };
        (0..128 / bits).fold(0, |vector, n| {
            let element = match elements {
                Elements::Single => self.single().into(),
                Elements::Double => self.double(),
                _ => self.integer(bits),
            };
            vector | u128::from(element) << (n * bits)
        })
    }
}

/// The kind of a vector's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elements {
    Random,
    Single,
    Double,
    Integer(u32),
}

/// The bits of doubles. Each is used with both signs.
const DOUBLES: [u64; 32] = [
    0,
    1,
    0x000F_FFFF_FFFF_FFFF,
    0x0010_0000_0000_0000,
    0x3FF0_0000_0000_0000,
    0x3FF0_0000_0000_0001,
    // Halves, for rounding.
    0x3FE0_0000_0000_0000,
    0x3FDF_FFFF_FFFF_FFFF,
    0x3FF8_0000_0000_0000,
    0x4004_0000_0000_0000,
    // 2^31 - 1, 2^31 - 0.5, 2^31, 2^31 + 0.5, 2^31 + 1.
    0x41DF_FFFF_FFC0_0000,
    0x41DF_FFFF_FFE0_0000,
    0x41E0_0000_0000_0000,
    0x41E0_0000_0010_0000,
    0x41E0_0000_0020_0000,
    // 2^52 + 0.5, 2^53, 2^63 and its neighbours.
    0x4330_0000_0000_0001,
    0x4340_0000_0000_0000,
    0x43DF_FFFF_FFFF_FFFF,
    0x43E0_0000_0000_0000,
    0x43E0_0000_0000_0001,
    0x7FEF_FFFF_FFFF_FFFF,
    0x7FF0_0000_0000_0000,
    // Quiet and signaling NaNs.
    0x7FF8_0000_0000_0000,
    0x7FFF_FFFF_FFFF_FFFF,
    0x7FF8_0000_2000_0001,
    0x7FF0_0000_0000_0001,
    0x7FF4_0000_6000_0000,
    // As singles: the largest, values beyond it by less and by more than half a unit, half way
    // above 1, and denormal ones.
    0x47EF_FFFF_E000_0000,
    0x47EF_FFFF_EFFF_FFFF,
    0x47EF_FFFF_F000_0000,
    0x3FF0_0000_1000_0000,
    0x3696_A09E_667F_3BCD,
];

/// The bits of singles. Each is used with both signs.
const SINGLES: [u32; 24] = [
    0,
    1,
    0x007F_FFFF,
    0x0080_0000,
    0x3F80_0000,
    0x3F80_0001,
    0x3F00_0000,
    0x3EFF_FFFF,
    0x3FC0_0000,
    0x4020_0000,
    // Below 2^24, 2^24, below 2^31, 2^31, below 2^63, 2^63.
    0x4B7F_FFFF,
    0x4B80_0000,
    0x4EFF_FFFF,
    0x4F00_0000,
    0x5EFF_FFFF,
    0x5F00_0000,
    0x7F7F_FFFF,
    0x7F80_0000,
    // Quiet and signaling NaNs.
    0x7FC0_0000,
    0x7FFF_FFFF,
    0x7FC0_0101,
    0x7F80_0001,
    0x7FA0_0300,
    0x1A00_0000,
];
