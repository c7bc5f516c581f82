//! Addresses of a real process, made small.

use clr_world::synthetic::STACK;

/// Distance in bytes from the stack's bounds at which addresses keep their distance.
const NEAR: u64 = 16 << 20;
/// Lower bound of a stack that does not fit the usual bounds (VA).
const LARGE: u64 = 2 * NEAR;
/// Addresses below belong to no memory in any process (VA).
const NEVER_MAPPED: u64 = 0x1_0000;
/// Start of the addresses that stand for those elsewhere (VA).
const ELSEWHERE: u64 = 0x4000_0000;
/// Limit of the distance in bytes between two addresses elsewhere that keep their distance.
const REACH: u64 = 0x1000_0000;

/// A stack of a real process and its place in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// Bounds of the real stack (VA), if it is known.
    real: Option<(u64, u64)>,
    /// Bounds in the text (VA).
    pub(super) bounds: (u64, u64),
}

impl Space {
    /// Chooses the usual bounds if all of `used`, the addresses (VA) that a walk depends on, lie in
    /// them or far away.
    pub(super) fn new(real: Option<(u64, u64)>, used: impl Iterator<Item = u64>) -> Self {
        let Some((limit, base)) = real else {
            return Self { real: None, bounds: STACK };
        };
        let usual = base.saturating_sub(STACK.1 - STACK.0);
        let mut used = used;
        let fits = used.all(|at| at >= usual || at < limit.saturating_sub(NEAR)) && limit <= usual;
        let bounds =
            if fits { STACK } else { (LARGE, LARGE.saturating_add(base.saturating_sub(limit))) };
        Self { real: Some((limit, base)), bounds }
    }

    /// Returns the small address of a real one (VA). Addresses on the stack and near it keep
    /// their distance from its base.
    pub(super) fn small(&self, address: u64) -> u64 {
        let canonical = address < 1 << 47;
        if address < NEVER_MAPPED || !canonical {
            return address;
        }
        if let Some((limit, base)) = self.real
            && address >= limit.saturating_sub(NEAR)
            && address < base.saturating_add(NEAR)
        {
            let at = self.bounds.1.wrapping_add(address.wrapping_sub(base));
            if (NEVER_MAPPED..ELSEWHERE).contains(&at) {
                return at;
            }
        }
        ELSEWHERE + address % REACH
    }
}
