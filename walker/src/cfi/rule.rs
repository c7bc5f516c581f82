//! Rules in the compiled form: what a step does, without an instruction left to interpret.

use super::error::{CfiError, CfiProblem, FrameSection};
use super::row::{CfaRule, Column, RegisterRule};
use crate::registers::{Convention, Gpr, RegisterSet};

/// Registers that a simple rule restores at most: the six that System V has callees preserve, and
/// one more.
const MAX_LOADS: usize = 7;

/// A register in the upper 4 bits, and how many 8-byte units below the canonical frame address it
/// is saved.
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

    /// Distance below the canonical frame address in bytes.
    #[inline]
    pub(crate) const fn below(self) -> u16 {
        (self.0 & 0xFFF) * 8
    }
}

/// The rule of nearly all code: the canonical frame address is a register plus a constant, the return
/// address lies right below it, and registers are saved further below.
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

/// What native code preserves unless more is said.
pub(crate) const NONVOLATILE: RegisterSet = Convention::SystemV.nonvolatile();

/// Multiplied by it, numbers that differ in few bits differ in many.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Where the return address is in nearly all code.
pub(super) const USUAL_RETURN_ADDRESS: RegisterRule = RegisterRule::Offset(-8);

impl Rule {
    /// The rule that saves nothing, as yet without a canonical frame address.
    pub(super) fn new() -> Self {
        Self { window: 8, ..Self::default() }
    }

    /// The same rule with this canonical frame address.
    #[inline]
    pub(super) fn with_cfa(self, cfa: CfaRule) -> Option<Self> {
        let CfaRule::Register { register, offset } = cfa else { return None };
        let cfa_register = register.gpr()?.number();
        Some(Self { cfa_register, cfa_offset: offset, ..self })
    }

    /// Adds what is said of the register with this encoding; `None` if that is of another form.
    #[inline]
    pub(super) fn with(mut self, register: u8, rule: RegisterRule) -> Option<Self> {
        match rule {
            // Of a volatile register that is worth saying, but hardly anyone does.
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

    /// What the saved registers have to do with [`hash`](Self::hash).
    pub(super) fn hash_of_saved(&self) -> u64 {
        let mix = |all: u64, load: &Load| (all ^ u64::from(load.0)).wrapping_mul(FACTOR);
        self.loads.iter().take(usize::from(self.count)).fold(0, mix)
    }

    /// A number that is the same for the same rules and rarely for others.
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

    /// Registers by encoding, and where they are saved.
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
    /// Which of the table's register rules are its own: the first, and how many.
    pub(crate) registers: (u32, u8),
    /// Where the entry is that it comes from.
    pub(crate) place: Place,
}

/// Where an entry is.
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
