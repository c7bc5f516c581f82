//! Sets of registers, and the registers that calls preserve.

use super::Gpr;
use core::fmt;

/// A set of the registers that a walk restores: the sixteen integer registers, and xmm6 to xmm15.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RegisterSet(u32);

impl RegisterSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// All 26 registers.
    pub const ALL: Self = Self((1 << 26) - 1);

    /// Creates a set from bits of integer registers, by encoding.
    pub(crate) const fn from_gpr_bits(bits: u16) -> Self {
        Self(bits as u32)
    }

    /// Creates a set from its [`bits`](Self::bits).
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the set as bits.
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Creates a set of integer registers.
    pub const fn of(registers: &[Gpr]) -> Self {
        let mut set = Self::EMPTY;
        let mut at = 0;
        while at < registers.len() {
            set = set.with(registers[at]);
            at += 1;
        }
        set
    }

    /// Returns the set with `register` added.
    #[inline]
    #[must_use]
    pub const fn with(self, register: Gpr) -> Self {
        Self(self.0 | 1 << register as u32)
    }

    /// Returns the set with `register` removed.
    #[inline]
    #[must_use]
    pub const fn without(self, register: Gpr) -> Self {
        Self(self.0 & !(1 << register as u32))
    }

    /// Returns the set with xmm*n* added, for n from 6 to 15; for any other n, the set itself.
    #[inline]
    #[must_use]
    pub const fn with_xmm(self, n: u8) -> Self {
        Self(self.0 | Self::xmm_bit(n))
    }

    #[inline]
    const fn xmm_bit(n: u8) -> u32 {
        if 6 <= n && n <= 15 { 1 << (n + 10) } else { 0 }
    }

    /// Returns true if `register` is in the set.
    #[inline]
    pub const fn contains(self, register: Gpr) -> bool {
        self.0 >> register as u32 & 1 != 0
    }

    /// Returns true if xmm*n* is in the set.
    #[inline]
    pub const fn contains_xmm(self, n: u8) -> bool {
        self.0 & Self::xmm_bit(n) != 0
    }

    /// Returns true if all registers of `other` are in the set.
    #[inline]
    pub const fn contains_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns the registers in either set.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the registers in both sets.
    #[inline]
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the registers of this set that are not in `other`.
    #[inline]
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the integer registers in the set, by encoding.
    pub fn gprs(self) -> impl Iterator<Item = Gpr> {
        Gpr::ALL.into_iter().filter(move |register| self.contains(*register))
    }
}

/// Prints the names: `{rbx, rsp, xmm6}`.
impl fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = f.debug_set();
        for register in self.gprs() {
            names.entry(&format_args!("{}", register.name()));
        }
        for n in (6..=15).filter(|n| self.contains_xmm(*n)) {
            names.entry(&format_args!("xmm{n}"));
        }
        names.finish()
    }
}

/// A calling convention: the registers that calls preserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convention {
    /// The convention of Windows x64.
    WindowsX64,
    /// The convention of the System V psABI, also used by managed code on Unix.
    SystemV,
}

impl Convention {
    /// Returns the registers that a callee preserves, including rsp. Of a frame that was not
    /// interrupted, no other register can be known. A seed for `DoStackSnapshot` needs all of them.
    pub const fn nonvolatile(self) -> RegisterSet {
        match self {
            Self::WindowsX64 => {
                let xmm = RegisterSet::ALL.0 & !0xFFFF;
                RegisterSet(xmm | RegisterSet::of(&Gpr::NONVOLATILE).with(Gpr::Rsp).0)
            }
            Self::SystemV => {
                use Gpr::{R12, R13, R14, R15, Rbp, Rbx, Rsp};
                RegisterSet::of(&[Rbx, Rsp, Rbp, R12, R13, R14, R15])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_what_was_put_in() {
        let set = RegisterSet::of(&[Gpr::Rbx, Gpr::R15]).with_xmm(6).with_xmm(15);
        assert_eq!(set.gprs().collect::<Vec<_>>(), [Gpr::Rbx, Gpr::R15]);
        let xmm: Vec<_> = (0..=255).filter(|n| set.contains_xmm(*n)).collect();
        assert_eq!(xmm, [6, 15]);
        assert_eq!(set.with(Gpr::Rbx).with_xmm(6).union(set), set, "once is enough");
        assert_eq!(set.with_xmm(5).with_xmm(16).with_xmm(255), set);
        assert!(!set.without(Gpr::R15).contains(Gpr::R15));
        assert!(RegisterSet::ALL.contains_all(set) && !set.contains_all(RegisterSet::ALL));
        let rbx = RegisterSet::EMPTY.with(Gpr::Rbx);
        assert_eq!(set.intersection(rbx), rbx);
        assert_eq!(set.difference(rbx).union(rbx), set);
        assert_eq!(format!("{set:?}"), "{rbx, r15, xmm6, xmm15}");
    }

    #[test]
    fn all_is_the_sum_of_all() {
        let gprs = RegisterSet::of(&Gpr::ALL);
        assert_eq!(gprs, RegisterSet::from_gpr_bits(u16::MAX));
        assert_eq!((0..=20).fold(gprs, RegisterSet::with_xmm), RegisterSet::ALL);
    }

    #[test]
    fn conventions_preserve_what_their_documents_say() {
        let windows = "{rbx, rsp, rbp, rsi, rdi, r12, r13, r14, r15, xmm6, xmm7, xmm8, xmm9, xmm10, \
                       xmm11, xmm12, xmm13, xmm14, xmm15}";
        assert_eq!(format!("{:?}", Convention::WindowsX64.nonvolatile()), windows);
        let system_v = "{rbx, rsp, rbp, r12, r13, r14, r15}";
        assert_eq!(format!("{:?}", Convention::SystemV.nonvolatile()), system_v);
    }
}
