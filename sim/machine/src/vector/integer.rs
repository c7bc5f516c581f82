//! Operations on integer elements, and moves.

use super::{element, elements, with_element};
use crate::flags::{low, sign_extend};
use crate::op::Simd;

const LOW: u128 = u64::MAX as u128;

/// Returns the result for the first source `a` and the source `b`, or `None` if the operation is
/// not one on integers.
pub(crate) fn apply(simd: Simd, a: u128, b: u128, imm: u8) -> Option<u128> {
    Some(match simd {
        Simd::Mov => b,
        Simd::MovLow32 => a & !u128::from(u32::MAX) | b & u128::from(u32::MAX),
        Simd::MovLow64 => a & !LOW | b & LOW,
        Simd::MovZero64 => b & LOW,
        Simd::MovHigh64 | Simd::UnpackLow64 => a & LOW | b << 64,
        Simd::MovHighToLow => a & !LOW | b >> 64,
        Simd::And => a & b,
        Simd::AndNot => !a & b,
        Simd::Or => a | b,
        Simd::Xor => a ^ b,
        Simd::Add8 => elements::<8>(a, b, u64::wrapping_add),
        Simd::Add16 => elements::<16>(a, b, u64::wrapping_add),
        Simd::Add32 => elements::<32>(a, b, u64::wrapping_add),
        Simd::Add64 => elements::<64>(a, b, u64::wrapping_add),
        Simd::Sub8 => elements::<8>(a, b, u64::wrapping_sub),
        Simd::Sub16 => elements::<16>(a, b, u64::wrapping_sub),
        Simd::Sub32 => elements::<32>(a, b, u64::wrapping_sub),
        Simd::Sub64 => elements::<64>(a, b, u64::wrapping_sub),
        Simd::AddSigned8 => {
            elements::<8>(a, b, |a, b| saturated::<8>(signed::<8>(a) + signed::<8>(b)))
        }
        Simd::AddSigned16 => {
            elements::<16>(a, b, |a, b| saturated::<16>(signed::<16>(a) + signed::<16>(b)))
        }
        Simd::SubSigned8 => {
            elements::<8>(a, b, |a, b| saturated::<8>(signed::<8>(a) - signed::<8>(b)))
        }
        Simd::SubSigned16 => {
            elements::<16>(a, b, |a, b| saturated::<16>(signed::<16>(a) - signed::<16>(b)))
        }
        Simd::AddUnsigned8 => elements::<8>(a, b, |a, b| (a + b).min(0xFF)),
        Simd::AddUnsigned16 => elements::<16>(a, b, |a, b| (a + b).min(0xFFFF)),
        Simd::SubUnsigned8 => elements::<8>(a, b, u64::saturating_sub),
        Simd::SubUnsigned16 => elements::<16>(a, b, u64::saturating_sub),
        Simd::MulLow16 => elements::<16>(a, b, u64::wrapping_mul),
        Simd::MulHigh16 => {
            elements::<16>(a, b, |a, b| ((signed::<16>(a) * signed::<16>(b)) >> 16).cast_unsigned())
        }
        Simd::MulHighUnsigned16 => elements::<16>(a, b, |a, b| (a * b) >> 16),
        Simd::MulUnsigned32 => elements::<64>(a, b, |a, b| low::<32>(a) * low::<32>(b)),
        Simd::MulAdd16 => elements::<32>(a, b, |a, b| {
            let product = |shift| signed::<16>(a >> shift) * signed::<16>(b >> shift);
            (product(0) + product(16)).cast_unsigned()
        }),
        Simd::Average8 => elements::<8>(a, b, |a, b| (a + b + 1) >> 1),
        Simd::Average16 => elements::<16>(a, b, |a, b| (a + b + 1) >> 1),
        Simd::MinUnsigned8 => elements::<8>(a, b, Ord::min),
        Simd::MaxUnsigned8 => elements::<8>(a, b, Ord::max),
        Simd::MinSigned16 => {
            elements::<16>(a, b, |a, b| signed::<16>(a).min(signed::<16>(b)).cast_unsigned())
        }
        Simd::MaxSigned16 => {
            elements::<16>(a, b, |a, b| signed::<16>(a).max(signed::<16>(b)).cast_unsigned())
        }
        Simd::SumAbsolute8 => elements::<64>(a, b, |a, b| {
            a.to_le_bytes().iter().zip(b.to_le_bytes()).map(|(a, b)| u64::from(a.abs_diff(b))).sum()
        }),
        Simd::Equal8 => elements::<8>(a, b, |a, b| all_ones(a == b)),
        Simd::Equal16 => elements::<16>(a, b, |a, b| all_ones(a == b)),
        Simd::Equal32 => elements::<32>(a, b, |a, b| all_ones(a == b)),
        Simd::Greater8 => elements::<8>(a, b, |a, b| all_ones(signed::<8>(a) > signed::<8>(b))),
        Simd::Greater16 => elements::<16>(a, b, |a, b| all_ones(signed::<16>(a) > signed::<16>(b))),
        Simd::Greater32 => elements::<32>(a, b, |a, b| all_ones(signed::<32>(a) > signed::<32>(b))),
        _ => return shift(simd, a, b).or_else(|| shuffle(simd, a, b, imm)),
    })
}

const fn signed<const BITS: u32>(value: u64) -> i64 {
    sign_extend::<BITS>(value).cast_signed()
}

/// Clamps a value to the range of signed elements.
fn saturated<const BITS: u32>(value: i64) -> u64 {
    let half = 1 << (BITS - 1);
    value.clamp(-half, half - 1).cast_unsigned()
}

pub(super) const fn all_ones(holds: bool) -> u64 {
    if holds { u64::MAX } else { 0 }
}

/// Shifts all elements by the low quadword of `b`.
fn shift(simd: Simd, a: u128, b: u128) -> Option<u128> {
    // Larger counts have the same effect as 255.
    let count = (b as u64).min(255) as u32;
    let left = |value: u64| value.checked_shl(count).unwrap_or(0);
    let right = |value: u64| value.checked_shr(count).unwrap_or(0);
    let arithmetic = |value: i64| (value >> count.min(63)).cast_unsigned();
    // Byte shifts are by an immediate, at most 16.
    let bits = 8 * (b as u64).min(16) as u32;
    Some(match simd {
        Simd::ShiftLeft16 => elements::<16>(a, 0, |a, _| left(a)),
        Simd::ShiftLeft32 => elements::<32>(a, 0, |a, _| left(a)),
        Simd::ShiftLeft64 => elements::<64>(a, 0, |a, _| left(a)),
        Simd::ShiftRight16 => elements::<16>(a, 0, |a, _| right(a)),
        Simd::ShiftRight32 => elements::<32>(a, 0, |a, _| right(a)),
        Simd::ShiftRight64 => elements::<64>(a, 0, |a, _| right(a)),
        Simd::ShiftArithmetic16 => elements::<16>(a, 0, |a, _| arithmetic(signed::<16>(a))),
        Simd::ShiftArithmetic32 => elements::<32>(a, 0, |a, _| arithmetic(signed::<32>(a))),
        Simd::ShiftLeftBytes => a.checked_shl(bits).unwrap_or(0),
        Simd::ShiftRightBytes => a.checked_shr(bits).unwrap_or(0),
        _ => return None,
    })
}

fn shuffle(simd: Simd, a: u128, b: u128, imm: u8) -> Option<u128> {
    // The field of the immediate for element `n`, of two bits or one.
    let two = |n: u32| u32::from(imm >> (2 * n) & 3);
    let one = |n: u32| u32::from(imm >> n & 1);
    Some(match simd {
        Simd::UnpackLow8 => unpack::<8>(a, b),
        Simd::UnpackLow16 => unpack::<16>(a, b),
        Simd::UnpackLow32 => unpack::<32>(a, b),
        Simd::UnpackHigh8 => unpack::<8>(a >> 64, b >> 64),
        Simd::UnpackHigh16 => unpack::<16>(a >> 64, b >> 64),
        Simd::UnpackHigh32 => unpack::<32>(a >> 64, b >> 64),
        Simd::UnpackHigh64 => a >> 64 | b & !LOW,
        Simd::PackSigned16 => pack::<16, 8>(a, b, saturated::<8>),
        Simd::PackSigned32 => pack::<32, 16>(a, b, saturated::<16>),
        Simd::PackUnsigned16 => pack::<16, 8>(a, b, |value| value.clamp(0, 0xFF).cast_unsigned()),
        Simd::Shuffle32 => gather::<32>(|n| element::<32>(b, two(n))),
        Simd::ShuffleLow16 => {
            b & !LOW | gather::<16>(|n| if n < 4 { element::<16>(b, two(n)) } else { 0 })
        }
        Simd::ShuffleHigh16 => {
            let from_high = |n: u32| n.checked_sub(4).map_or(0, |n| element::<16>(b, 4 + two(n)));
            b & LOW | gather::<16>(from_high)
        }
        Simd::ShufflePs => gather::<32>(|n| element::<32>(if n < 2 { a } else { b }, two(n))),
        Simd::ShufflePd => gather::<64>(|n| element::<64>(if n < 1 { a } else { b }, one(n))),
        Simd::Insert16 => {
            let n = u32::from(imm & 7);
            a & !with_element::<16>(n, u64::MAX) | with_element::<16>(n, b as u64)
        }
        _ => return None,
    })
}

/// Returns the vector of the elements that `f` returns.
fn gather<const BITS: u32>(f: impl Fn(u32) -> u64) -> u128 {
    (0..128 / BITS).fold(0, |result, n| result | with_element::<BITS>(n, f(n)))
}

/// Returns the elements of the low halves of both, alternating.
fn unpack<const BITS: u32>(a: u128, b: u128) -> u128 {
    gather::<BITS>(|n| element::<BITS>(if n % 2 == 0 { a } else { b }, n / 2))
}

/// Returns the elements of both vectors, half as wide.
fn pack<const FROM: u32, const TO: u32>(a: u128, b: u128, f: impl Fn(i64) -> u64) -> u128 {
    let half = 128 / FROM;
    gather::<TO>(|n| {
        let from = if n < half { a } else { b };
        f(signed::<FROM>(element::<FROM>(from, n % half)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u128 = 0x0F0E_0D0C_0B0A_0908_0706_0504_0302_0100;
    const B: u128 = 0x1F1E_1D1C_1B1A_1918_1716_1514_1312_1110;
    /// Extreme values of every width.
    const E: u128 = 0x8000_7FFF_FFFF_0001_80FF_7F01_0000_8000;

    fn check(cases: &[(Simd, u128, u128, u8, u128)]) {
        for &(simd, a, b, imm, expected) in cases {
            let result = apply(simd, a, b, imm).unwrap();
            assert_eq!(result, expected, "{simd:?}: {result:#x}, not {expected:#x}");
        }
    }

    #[test]
    fn elements_are_clamped_at_their_width() {
        check(&[
            (Simd::PackSigned16, E, A, 0, 0x7F7F_7F7F_7F7F_7F7F_807F_FF01_807F_0080),
            (Simd::PackUnsigned16, E, 0, 0, 0x0000_0000_0000_0000_00FF_0001_00FF_0000),
            (Simd::PackSigned32, E, 0, 0, 0x0000_0000_0000_0000_8000_8000_8000_7FFF),
            (Simd::AddSigned16, E, E, 0, 0x8000_7FFF_FFFE_0002_8000_7FFF_0000_8000),
            (Simd::SubSigned8, E, B, 0, { 0x80E2_62E3_E4E5_E7E9_80E9_6AED_EDEE_80F0 }),
            (Simd::AddUnsigned8, E, E, 0, 0xFF00_FEFF_FFFF_0002_FFFF_FE02_0000_FF00),
            (Simd::SubUnsigned16, E, B, 0, 0x60E2_62E3_E4E5_0000_69E9_69ED_0000_6EF0),
        ]);
    }

    #[test]
    fn elements_multiply_and_compare() {
        check(&[
            (Simd::MulLow16, E, B, 0, {
                let mut result = 0;
                for n in 0..8 {
                    let product = (E >> (16 * n)) as u16;
                    let product = product.wrapping_mul((B >> (16 * n)) as u16);
                    result |= u128::from(product) << (16 * n);
                }
                result
            }),
            (Simd::MulHigh16, E, E, 0, 0x4000_3FFF_0000_0000_3F01_3F01_0000_4000),
            (Simd::MulHighUnsigned16, E, E, 0, 0x4000_3FFF_FFFE_0000_40FF_3F01_0000_4000),
            (Simd::MulUnsigned32, E, E, 0, {
                (0xFFFF_0001_u128 * 0xFFFF_0001) << 64 | (0x8000 * 0x8000)
            }),
            (Simd::MulAdd16, E, E, 0, 0x7FFF_0001_0000_0002_7E03_FC02_4000_0000),
            (Simd::Average8, E, 0, 0, 0x4000_4080_8080_0001_4080_4001_0000_4000),
            (Simd::SumAbsolute8, A, B, 0, 0x80 << 64 | 0x80),
            (Simd::Greater16, E, 0, 0, 0x0000_FFFF_0000_FFFF_0000_FFFF_0000_0000),
            (Simd::Equal32, A, A ^ 1 << 40, 0, !(0xFFFF_FFFF << 32)),
            (Simd::MinSigned16, E, 0, 0, 0x8000_0000_FFFF_0000_80FF_0000_0000_8000),
            (Simd::ShiftArithmetic16, E, 99, 0, 0xFFFF_0000_FFFF_0000_FFFF_0000_0000_FFFF),
            (Simd::ShiftLeft32, E, 31, 0, 0x8000_0000_8000_0000_8000_0000_0000_0000),
            (Simd::ShiftRight64, E, 64, 0, 0),
            (Simd::Sub64, 0, 1, 0, u128::from(u64::MAX)),
        ]);
    }
}
