//! Operations on the values of xmm registers, without registers or memory.

pub(super) mod float;
mod fused;
pub(super) mod integer;

use super::flags::low;

/// Applies `f` to each pair of elements of `BITS` bits.
#[inline]
fn elements<const BITS: u32>(a: u128, b: u128, f: impl Fn(u64, u64) -> u64) -> u128 {
    let mut result = 0;
    for n in 0..128 / BITS {
        result |= with_element::<BITS>(n, f(element::<BITS>(a, n), element::<BITS>(b, n)));
    }
    result
}

/// Returns element `n`, counted from the low end.
#[inline]
fn element<const BITS: u32>(value: u128, n: u32) -> u64 {
    low::<BITS>((value >> (n * BITS)) as u64)
}

/// Returns a vector of zeroes except for element `n`.
#[inline]
fn with_element<const BITS: u32>(n: u32, value: u64) -> u128 {
    u128::from(low::<BITS>(value)) << (n * BITS)
}
