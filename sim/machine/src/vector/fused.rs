//! The fused multiply-add: `a · b + c`, rounded once.
//!
//! The implementation uses integers: the function of the host's C library, which `mul_add` calls on
//! processors without such an instruction, rounds twice on some systems.

/// A format of floating-point numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// Number of bits of a significand, including the implicit one.
    pub(super) precision: u32,
    /// The exponent of the lowest bit of denormal numbers.
    pub(super) least: i32,
    /// The bits of infinity.
    pub(super) infinity: u64,
}

impl Format {
    /// Returns the sign bit, which is next to the exponent.
    pub(super) const fn sign(self) -> u64 {
        self.infinity + (1 << (self.precision - 1))
    }
}

/// The number `(-1)^negative · significand · 2^exponent`.
#[derive(Clone, Copy, Debug)]
struct Number {
    negative: bool,
    significand: u128,
    exponent: i32,
}

/// The bit that significands are shifted up to. There is one bit above it for the carry of a sum,
/// and more bits below the 106 bits of a product than rounding needs.
const TOP: u32 = 125;

impl Number {
    /// Decodes the bits of a finite number other than 0.
    const fn unpack(bits: u64, format: Format) -> Self {
        let fraction = bits & ((1 << (format.precision - 1)) - 1);
        let exponent = ((bits & format.infinity) >> (format.precision - 1)) as i32;
        let negative = bits & format.sign() != 0;
        let (significand, above_least) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << (format.precision - 1), exponent - 1),
        };
        let significand = significand as u128;
        Self { negative, significand, exponent: format.least + above_least }
    }

    /// Returns the same number with its highest bit at [`TOP`].
    const fn normal(self) -> Self {
        let shift = self.significand.leading_zeros() + TOP - 127;
        Self {
            significand: self.significand << shift,
            exponent: self.exponent - shift.cast_signed(),
            ..self
        }
    }

    /// Returns the significand for this exponent, which is not less than the present one. Lost bits
    /// set the lowest bit.
    fn with_exponent(self, exponent: i32) -> u128 {
        let shift = self.exponent.abs_diff(exponent);
        let kept = self.significand.checked_shr(shift).unwrap_or(0);
        let lost = kept.checked_shl(shift).unwrap_or(0) != self.significand;
        kept | u128::from(lost)
    }

    /// Returns the bits of the nearest number of the format; of two equally near ones, the one
    /// whose lowest bit is 0.
    fn pack(self, format: Format) -> u64 {
        let sign = if self.negative { format.sign() } else { 0 };
        let digits = 128 - self.significand.leading_zeros();
        let lowest = self.exponent + digits.cast_signed() - format.precision.cast_signed();
        let lowest = lowest.max(format.least);
        let shift = lowest.abs_diff(self.exponent);
        let significand = if lowest <= self.exponent {
            self.significand << shift
        } else {
            let kept = self.significand.checked_shr(shift).unwrap_or(0);
            let rest = self.significand - kept.checked_shl(shift).unwrap_or(0);
            let half = 1_u128.checked_shl(shift - 1).unwrap_or(u128::MAX);
            kept + u128::from(rest > half || rest == half && kept & 1 == 1)
        };
        // A denormal number has no implicit bit, and an exponent field of 0 instead of 1. The sum
        // accounts for both, and lets a carry propagate into the exponent.
        let exponent = u64::from(lowest.abs_diff(format.least)) << (format.precision - 1);
        sign | exponent.saturating_add(significand as u64).min(format.infinity)
    }
}

/// Computes `a · b + c` from the bits of finite numbers other than 0.
pub(super) fn multiply_add(a: u64, b: u64, c: u64, format: Format) -> u64 {
    let [a, b, c] = [a, b, c].map(|bits| Number::unpack(bits, format));
    let product = Number {
        negative: a.negative != b.negative,
        significand: a.significand * b.significand,
        exponent: a.exponent + b.exponent,
    };
    let (product, c) = (product.normal(), c.normal());
    let exponent = product.exponent.max(c.exponent);
    let (of_product, of_c) = (product.with_exponent(exponent), c.with_exponent(exponent));
    let (negative, significand) = if product.negative == c.negative {
        (c.negative, of_product + of_c)
    } else if of_product > of_c {
        (product.negative, of_product - of_c)
    } else {
        (c.negative && of_product != of_c, of_c - of_product)
    };
    if significand == 0 { 0 } else { Number { negative, significand, exponent }.pack(format) }
}

#[cfg(test)]
mod tests {
    use super::super::float::{DOUBLE, SINGLE};
    use super::*;

    fn double(a: f64, b: f64, c: f64) -> f64 {
        f64::from_bits(multiply_add(a.to_bits(), b.to_bits(), c.to_bits(), DOUBLE))
    }

    fn single(a: f32, b: f32, c: f32) -> f32 {
        let [a, b, c] = [a, b, c].map(|value| u64::from(value.to_bits()));
        f32::from_bits(multiply_add(a, b, c, SINGLE) as u32)
    }

    #[test]
    fn exact_results_are_exact() {
        let small = [-7.0, -2.5, -1.0, -0.125, 0.375, 1.0, 3.0, 1024.5];
        for (a, b) in small.into_iter().flat_map(|a| small.map(|b| (a, b))) {
            for c in small {
                let (sum, narrow) = (a * b + c, (a as f32, b as f32, c as f32));
                assert_eq!(double(a, b, c).to_bits(), sum.to_bits(), "{a} {b} {c}");
                let found = single(narrow.0, narrow.1, narrow.2);
                assert_eq!(found.to_bits(), (sum as f32).to_bits(), "{a} {b} {c}");
            }
        }
    }

    #[test]
    fn there_is_one_rounding() {
        let e = f64::EPSILON;
        // 1 + 2e + e², minus the rounded value of the product alone.
        assert_eq!(double(1.0 + e, 1.0 + e, -(1.0 + 2.0 * e)).to_bits(), (e * e).to_bits());
        // Half way between two numbers except for the product.
        let tiny = f64::from_bits(1);
        assert_eq!(double(tiny, 0.5, 1.0 + e).to_bits(), (1.0 + e).to_bits());
        let half = 2.0_f64.powi(53) + 4.0;
        assert_eq!(double(1.0, 1.0, half).to_bits(), half.to_bits(), "to even, down");
        assert_eq!(double(1.0 + e, 1.0, half).to_bits(), (half + 2.0).to_bits());
        assert_eq!(double(1.0 - e, 1.0, half).to_bits(), half.to_bits());
        // In singles, a sum of doubles would be half way, and rounded to even.
        let (a, b) = (f32::from_bits(0x3F80_0001), f32::from_bits(0x3F00_0000));
        let found = single(a, b, 16_777_216.0);
        assert_eq!(found.to_bits(), 16_777_216.0_f32.to_bits());
        let found = single(f32::from_bits(0x3F80_0001), 1.0, 16_777_216.0);
        assert_eq!(found.to_bits(), 16_777_218.0_f32.to_bits());
    }

    #[test]
    fn ranges_end_in_zero_and_infinity() {
        let (tiny, normal) = (f64::from_bits(1), f64::MIN_POSITIVE);
        assert_eq!(double(tiny, 0.5, tiny).to_bits(), 2, "to even");
        assert_eq!(double(tiny, -0.5, tiny).to_bits(), 0);
        assert_eq!(double(tiny, -tiny, tiny).to_bits(), 1);
        assert_eq!(double(normal, 0.5, -tiny).to_bits(), normal.to_bits() / 2 - 1);
        assert_eq!(double(normal, -1.0, tiny).to_bits(), 1 << 63 | (normal.to_bits() - 1));
        assert_eq!(double(3.0, -2.0, 6.0).to_bits(), 0, "not -0");
        assert_eq!(double(f64::MAX, 2.0, -f64::MAX).to_bits(), f64::MAX.to_bits());
        assert_eq!(double(f64::MAX, -2.0, 1.0).to_bits(), f64::NEG_INFINITY.to_bits());
        assert_eq!(single(f32::MAX, 2.0, 1.0).to_bits(), f32::INFINITY.to_bits());
        assert_eq!(single(-f32::MAX, 1.0, f32::from_bits(1)).to_bits(), (-f32::MAX).to_bits());
    }
}
