//! Operations on floating-point elements.
//!
//! x64, not the host, decides which NaN results: the first operand that is a NaN, made quiet;
//! otherwise the default NaN. All rounding is to nearest. Exceptions are not recorded.

use super::fused::{Format, multiply_add};
use super::integer::all_ones;
use super::{element, elements, with_element};
use crate::flags::{low, sign_extend};
use crate::op::Simd;

/// The arithmetic of one precision, on bit patterns.
trait Precision {
    type Float: Copy + PartialOrd;
    const BITS: u32;
    /// The bit that makes a NaN quiet.
    const QUIET: u64;
    /// The result of an invalid operation.
    const DEFAULT_NAN: u64;
    const ADD: fn(Self::Float, Self::Float) -> Self::Float;
    const SUB: fn(Self::Float, Self::Float) -> Self::Float;
    const MUL: fn(Self::Float, Self::Float) -> Self::Float;
    const DIV: fn(Self::Float, Self::Float) -> Self::Float;
    const SQRT: fn(Self::Float) -> Self::Float;
    const FORMAT: Format;
    fn from_bits(bits: u64) -> Self::Float;
    fn to_bits(value: Self::Float) -> u64;
    fn is_nan(value: Self::Float) -> bool;
}

struct Single;
struct Double;

pub(super) const SINGLE: Format = Format { precision: 24, least: -149, infinity: 0x7F80_0000 };
pub(super) const DOUBLE: Format = Format { precision: 53, least: -1074, infinity: 0x7FF << 52 };

impl Precision for Single {
    type Float = f32;
    const BITS: u32 = 32;
    const QUIET: u64 = 1 << 22;
    const DEFAULT_NAN: u64 = 0xFFC0_0000;
    const ADD: fn(f32, f32) -> f32 = |a, b| a + b;
    const SUB: fn(f32, f32) -> f32 = |a, b| a - b;
    const MUL: fn(f32, f32) -> f32 = |a, b| a * b;
    const DIV: fn(f32, f32) -> f32 = |a, b| a / b;
    const SQRT: fn(f32) -> f32 = f32::sqrt;
    const FORMAT: Format = SINGLE;
    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    fn to_bits(value: f32) -> u64 {
        value.to_bits().into()
    }
    fn is_nan(value: f32) -> bool {
        value.is_nan()
    }
}

impl Precision for Double {
    type Float = f64;
    const BITS: u32 = 64;
    const QUIET: u64 = 1 << 51;
    const DEFAULT_NAN: u64 = 0xFFF8_0000_0000_0000;
    const ADD: fn(f64, f64) -> f64 = |a, b| a + b;
    const SUB: fn(f64, f64) -> f64 = |a, b| a - b;
    const MUL: fn(f64, f64) -> f64 = |a, b| a * b;
    const DIV: fn(f64, f64) -> f64 = |a, b| a / b;
    const SQRT: fn(f64) -> f64 = f64::sqrt;
    const FORMAT: Format = DOUBLE;
    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    fn to_bits(value: f64) -> u64 {
        value.to_bits()
    }
    fn is_nan(value: f64) -> bool {
        value.is_nan()
    }
}

/// Returns the first of the operands that is a NaN, made quiet.
fn nan_among<P: Precision>(operands: &[u64]) -> Option<u64> {
    let nan = operands.iter().find(|&&bits| P::is_nan(P::from_bits(bits)));
    nan.map(|bits| bits | P::QUIET)
}

/// Returns the bits of a result, or the default NaN if the result is a NaN.
fn result<P: Precision>(value: P::Float) -> u64 {
    if P::is_nan(value) { P::DEFAULT_NAN } else { P::to_bits(value) }
}

fn binary<P: Precision>(f: fn(P::Float, P::Float) -> P::Float) -> impl Fn(u64, u64) -> u64 {
    move |a, b| {
        nan_among::<P>(&[a, b]).unwrap_or_else(|| result::<P>(f(P::from_bits(a), P::from_bits(b))))
    }
}

fn sqrt<P: Precision>(_: u64, b: u64) -> u64 {
    nan_among::<P>(&[b]).unwrap_or_else(|| result::<P>(P::SQRT(P::from_bits(b))))
}

/// Returns the second operand unless the first is less. This handles NaNs and zeroes of both signs
/// too.
fn min<P: Precision>(a: u64, b: u64) -> u64 {
    if P::from_bits(a) < P::from_bits(b) { a } else { b }
}

fn max<P: Precision>(a: u64, b: u64) -> u64 {
    if P::from_bits(a) > P::from_bits(b) { a } else { b }
}

/// Computes `a · b + c`, rounded once.
fn fma<P: Precision>(a: u64, b: u64, c: u64) -> u64 {
    if let Some(nan) = nan_among::<P>(&[a, b, c]) {
        return nan;
    }
    let magnitude = |bits: u64| bits & (P::FORMAT.sign() - 1);
    let infinite = |bits| magnitude(bits) == P::FORMAT.infinity;
    let product = || P::MUL(P::from_bits(a), P::from_bits(b));
    if infinite(a) || infinite(b) || magnitude(a) == 0 || magnitude(b) == 0 {
        // The product is exact.
        result::<P>(P::ADD(product(), P::from_bits(c)))
    } else if infinite(c) {
        c
    } else if magnitude(c) == 0 {
        // A product that underflows to 0 keeps its sign.
        result::<P>(product())
    } else {
        multiply_add(a, b, c, P::FORMAT)
    }
}

fn compare<P: Precision>(predicate: u8) -> impl Fn(u64, u64) -> u64 {
    move |a, b| {
        let order = P::from_bits(a).partial_cmp(&P::from_bits(b));
        let holds = match predicate & 3 {
            0 => order.is_some_and(core::cmp::Ordering::is_eq),
            1 => order.is_some_and(core::cmp::Ordering::is_lt),
            2 => order.is_some_and(core::cmp::Ordering::is_le),
            _ => order.is_none(),
        };
        all_ones(holds == (predicate & 4 == 0))
    }
}

/// Replaces the lowest element of `a`.
fn scalar<const BITS: u32>(a: u128, value: u64) -> u128 {
    a & !with_element::<BITS>(0, u64::MAX) | with_element::<BITS>(0, value)
}

/// Applies `f` to the lowest elements.
fn lowest<P: Precision>(a: u128, b: u128, f: impl Fn(u64, u64) -> u64) -> u128 {
    let value = match P::BITS {
        32 => f(element::<32>(a, 0), element::<32>(b, 0)),
        _ => f(a as u64, b as u64),
    };
    if P::BITS == 32 { scalar::<32>(a, value) } else { scalar::<64>(a, value) }
}

/// Converts to an integer, or to the "integer indefinite" if the value does not fit. The fraction
/// is cut off.
pub(crate) fn to_integer<const BITS: u32>(value: f64) -> u64 {
    let limit = f64::from_bits(u64::from(1023 + BITS - 1) << 52);
    let whole = value.trunc();
    if whole >= -limit && whole < limit { (whole as i64).cast_unsigned() } else { 1 << (BITS - 1) }
}

fn widen(bits: u64) -> u64 {
    let value = f32::from_bits(bits as u32);
    if value.is_nan() {
        // Sign and payload are kept.
        let sign = low::<32>(bits) >> 31;
        sign << 63 | 0x7FF8 << 48 | low::<22>(bits) << 29
    } else {
        f64::from(value).to_bits()
    }
}

fn narrow(bits: u64) -> u64 {
    let value = f64::from_bits(bits);
    if value.is_nan() {
        bits >> 63 << 31 | 0x7FC0_0000 | low::<22>(bits >> 29)
    } else {
        u64::from((value as f32).to_bits())
    }
}

/// Converts a 32-bit integer.
fn int_to_double(value: u64) -> u64 {
    f64::from((value as u32).cast_signed()).to_bits()
}

#[expect(clippy::cast_precision_loss, reason = "the instruction rounds")]
fn int_to_single(value: i64) -> u64 {
    (value as f32).to_bits().into()
}

/// Returns the result for the old value of the destination, the first source `a` and the source
/// `b`.
#[expect(clippy::cast_precision_loss, reason = "the instructions round")]
pub(crate) fn apply(simd: Simd, old: u128, a: u128, b: u128, imm: u8) -> u128 {
    type S = Single;
    type D = Double;
    match simd {
        Simd::AddS => lowest::<S>(a, b, binary::<S>(S::ADD)),
        Simd::AddD => lowest::<D>(a, b, binary::<D>(D::ADD)),
        Simd::AddPs => elements::<32>(a, b, binary::<S>(S::ADD)),
        Simd::AddPd => elements::<64>(a, b, binary::<D>(D::ADD)),
        Simd::SubS => lowest::<S>(a, b, binary::<S>(S::SUB)),
        Simd::SubD => lowest::<D>(a, b, binary::<D>(D::SUB)),
        Simd::SubPs => elements::<32>(a, b, binary::<S>(S::SUB)),
        Simd::SubPd => elements::<64>(a, b, binary::<D>(D::SUB)),
        Simd::MulS => lowest::<S>(a, b, binary::<S>(S::MUL)),
        Simd::MulD => lowest::<D>(a, b, binary::<D>(D::MUL)),
        Simd::MulPs => elements::<32>(a, b, binary::<S>(S::MUL)),
        Simd::MulPd => elements::<64>(a, b, binary::<D>(D::MUL)),
        Simd::DivS => lowest::<S>(a, b, binary::<S>(S::DIV)),
        Simd::DivD => lowest::<D>(a, b, binary::<D>(D::DIV)),
        Simd::DivPs => elements::<32>(a, b, binary::<S>(S::DIV)),
        Simd::DivPd => elements::<64>(a, b, binary::<D>(D::DIV)),
        Simd::MinS => lowest::<S>(a, b, min::<S>),
        Simd::MinD => lowest::<D>(a, b, min::<D>),
        Simd::MinPs => elements::<32>(a, b, min::<S>),
        Simd::MinPd => elements::<64>(a, b, min::<D>),
        Simd::MaxS => lowest::<S>(a, b, max::<S>),
        Simd::MaxD => lowest::<D>(a, b, max::<D>),
        Simd::MaxPs => elements::<32>(a, b, max::<S>),
        Simd::MaxPd => elements::<64>(a, b, max::<D>),
        Simd::SqrtS => lowest::<S>(a, b, sqrt::<S>),
        Simd::SqrtD => lowest::<D>(a, b, sqrt::<D>),
        Simd::SqrtPs => elements::<32>(a, b, sqrt::<S>),
        Simd::SqrtPd => elements::<64>(a, b, sqrt::<D>),
        Simd::CompareS => lowest::<S>(a, b, compare::<S>(imm)),
        Simd::CompareD => lowest::<D>(a, b, compare::<D>(imm)),
        Simd::ComparePs => elements::<32>(a, b, compare::<S>(imm)),
        Simd::ComparePd => elements::<64>(a, b, compare::<D>(imm)),
        Simd::Int32ToS => scalar::<32>(a, int_to_single(sign_extend::<32>(b as u64).cast_signed())),
        Simd::Int64ToS => scalar::<32>(a, int_to_single((b as u64).cast_signed())),
        Simd::Int32ToD => scalar::<64>(a, int_to_double(b as u64)),
        Simd::Int64ToD => scalar::<64>(a, ((b as u64).cast_signed() as f64).to_bits()),
        Simd::SToD => scalar::<64>(a, widen(b as u64)),
        Simd::DToS => scalar::<32>(a, narrow(b as u64)),
        _ => fused(simd, old, a, b).unwrap_or_else(|| packed_conversion(simd, b)),
    }
}

/// Computes a fused multiply-add. The rest of the destination does not change.
fn fused(simd: Simd, old: u128, a: u128, b: u128) -> Option<u128> {
    let single = |value| element::<32>(value, 0);
    let double = |value| element::<64>(value, 0);
    let (s_old, s_a, s_b) = (single(old), single(a), single(b));
    let (d_old, d_a, d_b) = (double(old), double(a), double(b));
    Some(match simd {
        Simd::Fma132S => scalar::<32>(old, fma::<Single>(s_old, s_b, s_a)),
        Simd::Fma213S => scalar::<32>(old, fma::<Single>(s_a, s_old, s_b)),
        Simd::Fma231S => scalar::<32>(old, fma::<Single>(s_a, s_b, s_old)),
        Simd::Fma132D => scalar::<64>(old, fma::<Double>(d_old, d_b, d_a)),
        Simd::Fma213D => scalar::<64>(old, fma::<Double>(d_a, d_old, d_b)),
        Simd::Fma231D => scalar::<64>(old, fma::<Double>(d_a, d_b, d_old)),
        _ => return None,
    })
}

fn packed_conversion(simd: Simd, b: u128) -> u128 {
    // Two elements: the low half of the source or of the result.
    let wider = |f: fn(u64) -> u64| {
        (0..2).fold(0, |result, n| result | with_element::<64>(n, f(element::<32>(b, n))))
    };
    let narrower = |f: fn(u64) -> u64| {
        (0..2).fold(0, |result, n| result | with_element::<32>(n, f(element::<64>(b, n))))
    };
    let same = |f: fn(u64) -> u64| elements::<32>(b, 0, |b, _| f(b));
    match simd {
        Simd::Int32ToPd => wider(int_to_double),
        Simd::PsToPd => wider(widen),
        Simd::PdToPs => narrower(narrow),
        Simd::PdToInt32 => narrower(|b| to_integer::<32>(f64::from_bits(b).round_ties_even())),
        Simd::PdTruncateInt32 => narrower(|b| to_integer::<32>(f64::from_bits(b))),
        Simd::Int32ToPs => same(|b| int_to_single(sign_extend::<32>(b).cast_signed())),
        Simd::PsToInt32 => {
            same(|b| to_integer::<32>(f64::from(f32::from_bits(b as u32)).round_ties_even()))
        }
        // PsTruncateInt32; all other operations have been handled.
        _ => same(|b| to_integer::<32>(f32::from_bits(b as u32).into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAN: u64 = 0x7FF0_0000_0000_0001;
    const QNAN: u64 = 0xFFF8_0000_0000_0002;

    fn double(simd: Simd, a: u64, b: u64) -> u64 {
        apply(simd, 0, a.into(), b.into(), 0) as u64
    }

    #[test]
    fn nans_are_those_of_x64() {
        let (zero, inf) = (0, f64::INFINITY.to_bits());
        assert_eq!(double(Simd::AddD, SNAN, QNAN), SNAN | 1 << 51);
        assert_eq!(double(Simd::AddD, QNAN, SNAN), QNAN);
        assert_eq!(double(Simd::MulD, 1, QNAN), QNAN);
        assert_eq!(double(Simd::MulD, zero, inf), 0xFFF8_0000_0000_0000);
        assert_eq!(double(Simd::SubD, inf, inf), 0xFFF8_0000_0000_0000);
        assert_eq!(double(Simd::SqrtD, 5, (-1.0_f64).to_bits()), 0xFFF8_0000_0000_0000);
        assert_eq!(double(Simd::MinD, SNAN, 7), 7);
        assert_eq!(double(Simd::MaxD, 7, SNAN), SNAN, "the second operand as it is");
        assert_eq!(double(Simd::MinD, zero, 1 << 63), 1 << 63);
        assert_eq!(double(Simd::DToS, 0, SNAN) as u32, 0x7FC0_0000);
        assert_eq!(double(Simd::SToD, 0, 0xFF80_0001), 0xFFF8_0000_2000_0000);
    }

    #[test]
    fn integers_that_do_not_fit_are_indefinite() {
        assert_eq!(to_integer::<32>(2_147_483_647.9), 0x7FFF_FFFF);
        assert_eq!(to_integer::<32>(2_147_483_648.0), 1 << 31);
        assert_eq!(to_integer::<32>(-2_147_483_648.9) as u32, 1 << 31);
        assert_eq!(to_integer::<64>(-2.9), (-2_i64).cast_unsigned());
        assert_eq!(to_integer::<64>(f64::NAN), 1 << 63);
        assert_eq!(to_integer::<64>(1e19), 1 << 63);
    }
}
