//! Compiled rules: the effect of a step, without an instruction left to interpret.

use super::error::{CfiError, CfiProblem, FrameSection};
use super::row::{CfaRule, Column, RegisterRule};
use crate::registers::{Convention, Gpr, RegisterSet};

/// Maximum number of registers that a simple rule restores: the six that callees preserve under
/// System V, and one more.
const MAX_LOADS: usize = 7;

/// A saved register, in the upper 4 bits, and the distance of its slot below the canonical frame
/// address, in units of 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load(u16);

impl Load {
    fn new(register: u8, offset: i32) -> Option<Self> {
        let below = u16::try_from(offset.checked_neg()? / 8).ok()?;
        let fits = offset % 8 == 0 && 0 < below && below < 1 << 12;
        fits.then_some(Self(u16::from(register) << 12 | below))
    }

    #[inline]
    pub(crate) const fn register(self) -> usize {
        (self.0 >> 12) as usize
    }

    /// Returns the distance of the slot below the canonical frame address in bytes.
    #[inline]
    pub(crate) const fn below(self) -> u16 {
        (self.0 & 0xFFF) * 8
    }
}

/// The rule of nearly all code: the canonical frame address is a register plus a constant, the
/// return address lies right below it, and registers are saved further below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) loads: [Load; MAX_LOADS],
    pub(crate) count: u8,
    pub(crate) cfa_register: u8,
    pub(crate) cfa_offset: i32,
    /// Bytes from the lowest saved register to the canonical frame address.
    pub(crate) window: u16,
    /// The registers that are loaded, as bits by encoding.
    pub(crate) found: u16,
}

/// Registers that native code preserves unless a rule says otherwise.
pub(crate) const NONVOLATILE: RegisterSet = Convention::SystemV.nonvolatile();

/// A factor that spreads differences in few bits over many.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The rule for the return address in nearly all code.
pub(super) const USUAL_RETURN_ADDRESS: RegisterRule = RegisterRule::Offset(-8);

impl Rule {
    /// Creates a rule that saves nothing and has no canonical frame address yet.
    pub(super) fn new() -> Self {
        Self { window: 8, ..Self::default() }
    }

    /// Returns the rule with this canonical frame address, or `None` if `cfa` is an expression or
    /// counts from another register than the sixteen.
    #[inline]
    pub(super) fn with_cfa(self, cfa: CfaRule) -> Option<Self> {
        let CfaRule::Register { register, offset } = cfa else { return None };
        let cfa_register = register.gpr()?.number();
        Some(Self { cfa_register, cfa_offset: offset, ..self })
    }

    /// Adds the rule for the register with this encoding; returns `None` if that is not of the
    /// simple form.
    #[inline]
    pub(super) fn with(mut self, register: u8, rule: RegisterRule) -> Option<Self> {
        match rule {
            // For a volatile register this would carry information, but hardly any code uses it.
            RegisterRule::SameValue if NONVOLATILE.contains(Gpr::from_number(register)) => {
                (register != Gpr::Rsp.number()).then_some(self)
            }
            RegisterRule::Offset(offset) if register != Gpr::Rsp.number() => {
                let load = Load::new(register, offset)?;
                *self.loads.get_mut(usize::from(self.count))? = load;
                self.count += 1;
                self.window = self.window.max(load.below());
                self.found |= 1 << (register & 15);
                Some(self)
            }
            _ => None,
        }
    }

    /// Returns the contribution of the saved registers to [`hash`](Self::hash).
    pub(super) fn hash_of_saved(&self) -> u64 {
        let mix = |all: u64, load: &Load| (all ^ u64::from(load.0)).wrapping_mul(FACTOR);
        self.loads.iter().take(usize::from(self.count)).fold(0, mix)
    }

    /// Returns a hash: equal for equal rules, and rarely equal for others.
    #[inline]
    pub(super) fn hash(&self, of_saved: u64) -> u64 {
        let cfa = u64::from(self.cfa_register) << 32 | u64::from(self.cfa_offset.cast_unsigned());
        let mixed = (of_saved ^ cfa).wrapping_mul(FACTOR);
        mixed ^ mixed >> 32
    }

    pub(super) fn cfa(&self) -> CfaRule {
        let register = Column::from(Gpr::from_number(self.cfa_register));
        CfaRule::Register { register, offset: self.cfa_offset }
    }

    /// Returns the saved registers by encoding, with their rules.
    pub(super) fn saved(&self) -> impl Iterator<Item = (usize, RegisterRule)> + '_ {
        let loads = self.loads.iter().take(usize::from(self.count));
        loads.map(|load| (load.register(), RegisterRule::Offset(-i32::from(load.below()))))
    }
}

/// A rule of any other form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GeneralRule {
    pub(crate) cfa: CfaRule,
    pub(crate) return_address: Option<RegisterRule>,
    pub(crate) signal_frame: bool,
    /// The range of this rule among the table's register rules: index of the first, and count.
    pub(crate) registers: (u32, u8),
    /// The entry that this rule comes from.
    pub(crate) place: Place,
}

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) section: FrameSection,
    pub(crate) offset: u32,
}

impl Place {
    pub(crate) const fn error(self, problem: CfiProblem) -> CfiError {
        CfiError { problem, section: self.section, offset: self.offset }
    }
}
