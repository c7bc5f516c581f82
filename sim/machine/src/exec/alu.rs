//! Integer operations on values: compute result and flags, without registers or memory.

use crate::flags::{Flags, low, sign_extend};
use crate::op::{Alu, Compare, Shift};

/// Returns the result, of which only the low `BITS` bits are valid, and the flags.
#[inline(always)]
pub(super) fn alu<const BITS: u32>(alu: Alu, a: u64, b: u64, flags: Flags) -> (u64, Flags) {
    match alu {
        Alu::Add => add::<BITS>(a, b, 0, flags),
        Alu::Adc => add::<BITS>(a, b, flags.carry().into(), flags),
        Alu::Sub => sub::<BITS>(a, b, 0, flags),
        Alu::Sbb => sub::<BITS>(a, b, flags.carry().into(), flags),
        Alu::And => (a & b, flags.after::<BITS>(a & b, 0)),
        Alu::Or => (a | b, flags.after::<BITS>(a | b, 0)),
        Alu::Xor => (a ^ b, flags.after::<BITS>(a ^ b, 0)),
    }
}

#[inline(always)]
pub(super) fn add<const BITS: u32>(a: u64, b: u64, carry: u64, flags: Flags) -> (u64, Flags) {
    let result = a.wrapping_add(b).wrapping_add(carry);
    (result, flags.after::<BITS>(result, a & b | (a | b) & !result))
}

#[inline(always)]
pub(super) fn sub<const BITS: u32>(a: u64, b: u64, borrow: u64, flags: Flags) -> (u64, Flags) {
    let result = a.wrapping_sub(b).wrapping_sub(borrow);
    (result, flags.after::<BITS>(result, !a & b | (!a | b) & result))
}

#[inline(always)]
pub(super) fn compare<const BITS: u32>(compare: Compare, a: u64, b: u64, flags: Flags) -> Flags {
    match compare {
        Compare::Cmp => sub::<BITS>(a, b, 0, flags).1,
        Compare::Test => flags.after::<BITS>(a & b, 0),
    }
}

/// Increments or decrements. inc and dec do not change CF.
pub(super) fn step<const BITS: u32>(up: bool, a: u64, flags: Flags) -> (u64, Flags) {
    let (result, after) =
        if up { add::<BITS>(a, 1, 0, flags) } else { sub::<BITS>(a, 1, 0, flags) };
    (result, after.with_carry(flags.carry()))
}

/// Shifts or rotates the `BITS` bits of `a`.
///
/// OF is undefined in the manuals for counts above 1; it is computed as for 1. AF is 0 after
/// shifts.
#[inline(always)]
pub(super) fn shift<const BITS: u32>(
    shift: Shift,
    a: u64,
    count: u64,
    flags: Flags,
) -> (u64, Flags) {
    let count = count as u32 & if BITS == 64 { 63 } else { 31 };
    if count == 0 {
        return (a, flags);
    }
    let wide = u128::from(a);
    let top = |value: u64| value >> (BITS - 1) & 1 != 0;
    let second = |value: u64| value >> (BITS - 2) & 1 != 0;
    // Shifts set all flags, rotates only CF and OF.
    let shifted = |result: u64, carry, overflow| {
        (result, flags.after::<BITS>(result, 0).with_carry_overflow(carry, overflow))
    };
    let rotated = |result: u64, carry, overflow| {
        (low::<BITS>(result), flags.with_carry_overflow(carry, overflow))
    };
    match shift {
        Shift::Shl => {
            let result = wide << count;
            let carry = result >> BITS & 1 != 0;
            shifted(result as u64, carry, top(result as u64) != carry)
        }
        Shift::Shr => {
            let result = (wide >> count) as u64;
            shifted(result, wide >> (count - 1) & 1 != 0, top(result) != second(result))
        }
        Shift::Sar => {
            let signed = sign_extend::<BITS>(a).cast_signed();
            let carry = signed >> (count - 1).min(63) & 1 != 0;
            shifted((signed >> count.min(63)).cast_unsigned(), carry, false)
        }
        Shift::Rol => {
            let result = rotate_left(wide, BITS, count) as u64;
            rotated(result, result & 1 != 0, top(result) != (result & 1 != 0))
        }
        Shift::Ror => {
            let result = rotate_left(wide, BITS, BITS - count % BITS) as u64;
            rotated(result, top(result), top(result) != second(result))
        }
        Shift::Rcl | Shift::Rcr => {
            // CF is the bit above the top bit.
            let with_carry = wide | u128::from(flags.carry()) << BITS;
            let width = BITS + 1;
            // The count exceeds the width only with 8 and 16 bits; a full turn does not change even
            // the flags.
            let count = count % width;
            if count == 0 {
                return (a, flags);
            }
            let left = shift == Shift::Rcl;
            let by = if left { count } else { width - count };
            let result = rotate_left(with_carry, width, by);
            let carry = result >> BITS & 1 != 0;
            let result = result as u64;
            let other = if left { carry } else { second(result) };
            rotated(result, carry, top(result) != other)
        }
    }
}

/// Rotates the low `width` bits of a value that has no others; `width` is at most 65.
fn rotate_left(value: u128, width: u32, count: u32) -> u128 {
    let count = count % width;
    let mask = u128::MAX >> (128 - width);
    // 65 + 64 bits do not fit, but the bits shifted out at the top are masked off.
    (value << count | value >> (width - count)) & mask
}

/// Shifts bits of `b` in from below (shld) or from above (shrd).
///
/// A 16-bit shift by more than 16 is undefined: here, bits of `a` follow those of `b`. OF is
/// computed as for a count of 1.
pub(super) fn double_shift<const BITS: u32>(
    left: bool,
    a: u64,
    b: u64,
    count: u64,
    flags: Flags,
) -> (u64, Flags) {
    let count = count as u32 & if BITS == 64 { 63 } else { 31 };
    if count == 0 {
        return (a, flags);
    }
    let (wide_a, wide_b) = (u128::from(a), u128::from(b));
    let (result, carry) = if left {
        let wide = rotate_left(wide_a << BITS | wide_b, 2 * BITS, count);
        (low::<BITS>((wide >> BITS) as u64), rotate_left(wide_a, BITS, count) & 1 != 0)
    } else {
        let wide = wide_b << BITS | wide_a;
        let wide = rotate_left(wide, 2 * BITS, 2 * BITS - count);
        (low::<BITS>(wide as u64), wide_a >> ((count - 1) % BITS) & 1 != 0)
    };
    let overflow = (result ^ a) >> (BITS - 1) & 1 != 0;
    (result, flags.after::<BITS>(result, 0).with_carry_overflow(carry, overflow))
}

/// Returns the bits of `a` that are set in `mask`, packed at the bottom.
pub(super) fn extract_bits(a: u64, mask: u64) -> u64 {
    let (mut result, mut place, mut left) = (0, 0, mask);
    while left != 0 {
        result |= (a >> left.trailing_zeros() & 1) << place;
        place += 1;
        left &= left - 1;
    }
    result
}

/// Returns the low bits of `a`, spread to the bits that are set in `mask`.
pub(super) fn deposit_bits(a: u64, mask: u64) -> u64 {
    let (mut result, mut place, mut left) = (0, 0, mask);
    while left != 0 {
        result |= (a >> place & 1) << left.trailing_zeros();
        place += 1;
        left &= left - 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{AF, CF, OF, PF, SF, ZF};

    const ALL: u64 = CF | PF | AF | ZF | SF | OF;

    /// Checks that all 8-bit additions and subtractions agree with the manual.
    #[test]
    fn eight_bit_sums_and_differences_are_exact() {
        for (n, carry) in (0..0x1_0000_u32).flat_map(|n| [(n, 0), (n, 1)]) {
            let [a, b, ..] = n.to_le_bytes();
            let flags = Flags::START.with_carry(carry == 1);
            let check = |alu_op, wide: i32, signed: i32, nibble: i32| {
                let (result, flags) = alu::<8>(alu_op, a.into(), b.into(), flags);
                let byte = result as u8;
                assert_eq!(byte, wide.to_le_bytes()[0]);
                let bit = |holds, flag| if holds { flag } else { 0 };
                let expected = bit(!(0..256).contains(&wide), CF)
                    | bit(byte.count_ones().is_multiple_of(2), PF)
                    | bit(!(0..16).contains(&nibble), AF)
                    | bit(byte == 0, ZF)
                    | bit(byte >= 128, SF)
                    | bit(!(-128..128).contains(&signed), OF);
                assert_eq!(flags.to_bits() & ALL, expected, "{alu_op:?} {a} {b} {carry}");
            };
            let (wa, wb) = (i32::from(a), i32::from(b));
            let (sa, sb) = (i32::from(a.cast_signed()), i32::from(b.cast_signed()));
            let (na, nb) = (wa & 15, wb & 15);
            check(Alu::Adc, wa + wb + carry, sa + sb + carry, na + nb + carry);
            check(Alu::Sbb, wa - wb - carry, sa - sb - carry, na - nb - carry);
            check(Alu::Add, wa + wb, sa + sb, na + nb);
            check(Alu::Sub, wa - wb, sa - sb, na - nb);
        }
    }

    #[test]
    fn wider_sums_carry_at_their_width() {
        let flags = |(_, flags): (u64, Flags)| flags.to_bits() & ALL;
        let start = Flags::START;
        assert_eq!(flags(add::<64>(u64::MAX, 1, 0, start)), CF | PF | AF | ZF);
        assert_eq!(flags(add::<64>(i64::MAX as u64, 1, 0, start)), PF | AF | SF | OF);
        assert_eq!(flags(add::<32>(0xFFFF_FFFF, 1, 0, start)), CF | PF | AF | ZF);
        assert_eq!(flags(add::<32>(0x7FFF_FFFF, 1, 0, start)), PF | AF | SF | OF);
        assert_eq!(flags(sub::<16>(0x8000, 1, 0, start)), PF | AF | OF);
        assert_eq!(flags(sub::<16>(0, 1, 0, start)), CF | PF | AF | SF);
        assert_eq!(flags(step::<8>(true, 0xFF, start.with_carry(true))), CF | PF | AF | ZF);
        assert_eq!(flags(step::<8>(true, 0xFF, start)), PF | AF | ZF);
        assert_eq!(flags(step::<8>(false, 0x80, start.with_carry(true))), CF | AF | OF);
    }

    /// Shifts bit by bit, like the manual's pseudocode.
    fn slow_shift(kind: Shift, a: u8, count: u32, mut carry: bool) -> (u8, bool) {
        let mut a = a;
        for _ in 0..count & 31 {
            let (top, bottom, before) = (a & 0x80 != 0, a & 1 != 0, carry);
            let bit = |set, value| if set { value } else { 0 };
            (a, carry) = match kind {
                Shift::Shl => (a << 1, top),
                Shift::Shr => (a >> 1, bottom),
                Shift::Sar => (a >> 1 | a & 0x80, bottom),
                Shift::Rol => (a << 1 | bit(top, 1), top),
                Shift::Ror => (a >> 1 | bit(bottom, 0x80), bottom),
                Shift::Rcl => (a << 1 | bit(before, 1), top),
                Shift::Rcr => (a >> 1 | bit(before, 0x80), bottom),
            };
        }
        (a, carry)
    }

    #[test]
    fn shifts_go_bit_by_bit() {
        let kinds =
            [Shift::Shl, Shift::Shr, Shift::Sar, Shift::Rol, Shift::Ror, Shift::Rcl, Shift::Rcr];
        for kind in kinds {
            for n in 0..0x1_0000_u32 {
                let (a, count, carry) = (n as u8, n >> 8 & 0x7F, n >> 15 != 0);
                let before = Flags::from_bits(AF | ZF).with_carry(carry);
                let (result, after) = shift::<8>(kind, a.into(), count.into(), before);
                let (expected, expected_carry) = slow_shift(kind, a, count, carry);
                let what = format!("{kind:?} {a:#x} by {count}, carry {carry}");
                assert_eq!(result as u8, expected, "{what}");
                assert_eq!(after.carry(), expected_carry, "{what}");
                let rotate = !matches!(kind, Shift::Shl | Shift::Shr | Shift::Sar);
                if count % 32 == 0 {
                    assert_eq!(after.to_bits(), before.to_bits(), "{what}");
                } else if rotate {
                    assert_eq!(after.to_bits() & (AF | ZF | SF | PF), AF | ZF, "{what}");
                } else {
                    assert_eq!(after.zero(), expected == 0, "{what}");
                }
                if count % 32 == 1 {
                    let sign = a & 0x80 != 0;
                    let overflow =
                        if kind == Shift::Sar { false } else { sign != (result & 0x80 != 0) };
                    assert_eq!(after.overflow(), overflow, "{what}");
                }
            }
        }
    }

    #[test]
    fn wide_shifts_keep_their_width() {
        let start = Flags::START;
        let (result, flags) = shift::<64>(Shift::Sar, 1 << 63, 63, start);
        assert_eq!((result, flags.carry()), (u64::MAX, false));
        let (result, flags) = shift::<32>(Shift::Shl, 0x8000_0001, 1, start);
        assert_eq!((low::<32>(result), flags.carry(), flags.overflow()), (2, true, true));
        let (result, flags) = shift::<64>(Shift::Rcr, 2, 2, start.with_carry(true));
        assert_eq!((result, flags.carry()), (1 << 62, true));
        assert_eq!(shift::<64>(Shift::Rol, 1 << 63 | 1, 4, start).0, 0x18);
        let (result, flags) = double_shift::<64>(true, 1, 1 << 63, 1, start);
        assert_eq!((result, flags.carry()), (3, false));
        let (result, flags) = double_shift::<32>(false, 5, 2, 3, start);
        assert_eq!((result, flags.carry()), (0x4000_0000, true));
        let (result, flags) = double_shift::<16>(true, 0x8001, 0xC000, 1, start);
        assert_eq!((result, flags.carry(), flags.overflow()), (3, true, true));
    }

    #[test]
    fn bits_are_gathered_and_scattered() {
        assert_eq!(extract_bits(0xABCD, 0xF0F0), 0xAC);
        assert_eq!(deposit_bits(0xAC, 0xF0F0), 0xA0C0);
        assert_eq!(extract_bits(u64::MAX, 1 << 63 | 1), 3);
        assert_eq!(deposit_bits(3, 1 << 63 | 1), 1 << 63 | 1);
    }
}
