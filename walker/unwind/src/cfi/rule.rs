//! Compiled rules: the effect of a step, without an instruction left to interpret.

use super::error::{CfiError, CfiProblem, FrameSection};
use super::row::{CfaRule, Column, RegisterRule, Row};
use crate::registers::{Convention, Gpr, RegisterSet};
use crate::rule_slots::word;
use core::sync::atomic::AtomicU64;

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

/// A bit of a rule's register that marks compact unwind information.
const COMPACT: u8 = 1 << 7;
/// The same for the first function of a thread: there is no caller.
const ROOT: u8 = 1 << 6;
/// The same for the place of a return address: a call comes before it.
const AFTER_CALL: u8 = 1 << 5;

/// A factor that spreads differences in few bits over many.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The rule for the return address in nearly all code.
pub(super) const USUAL_RETURN_ADDRESS: i32 = -8;

impl Rule {
    /// Number of words of a rule.
    pub(super) const WORDS: usize = 3;

    /// Creates a rule that saves nothing and has no canonical frame address yet.
    pub(crate) fn new() -> Self {
        Self { window: 8, ..Self::default() }
    }

    /// Returns the rule with this canonical frame address; `None` if it counts from another register
    /// than the sixteen.
    #[inline]
    pub(crate) fn with_cfa(self, register: Column, offset: i32) -> Option<Self> {
        let cfa_register = register.gpr()?.number();
        Some(Self { cfa_register, cfa_offset: offset, ..self })
    }

    /// Adds that the register with this encoding keeps its value; returns `None` if that is not of
    /// the simple form.
    #[inline]
    pub(super) fn with_same(self, register: u8) -> Option<Self> {
        // For a volatile register this would carry information, but hardly any code uses it.
        let gpr = Gpr::from_number(register);
        (NONVOLATILE.contains(gpr) && gpr != Gpr::Rsp).then_some(self)
    }

    /// Adds that the register with this encoding is saved `offset` bytes from the canonical frame
    /// address; returns `None` if that is not of the simple form.
    #[inline]
    pub(crate) fn with_load(mut self, register: u8, offset: i32) -> Option<Self> {
        if register == Gpr::Rsp.number() {
            return None;
        }
        let load = Load::new(register, offset)?;
        *self.loads.get_mut(usize::from(self.count))? = load;
        self.count += 1;
        self.window = self.window.max(load.below());
        self.found |= 1 << (register & 15);
        Some(self)
    }

    /// Returns the rule marked as one of compact unwind information.
    #[cfg(feature = "macho")]
    pub(crate) const fn of_compact(self) -> Self {
        Self { cfa_register: self.cfa_register | COMPACT, ..self }
    }

    #[inline]
    pub(crate) const fn is_of_compact(&self) -> bool {
        self.cfa_register & COMPACT != 0
    }

    /// Creates the rule of a thread's first function. Its canonical frame address is rsp, above which
    /// callers have theirs, so that steps which have callers need not ask for it.
    pub(super) const fn root() -> Self {
        let cfa_register = Gpr::Rsp.number() | ROOT;
        Self {
            loads: [Load(0); MAX_LOADS],
            count: 0,
            cfa_register,
            cfa_offset: 0,
            window: 8,
            found: 0,
        }
    }

    /// Returns true for the rule of a thread's first function.
    pub(crate) const fn is_root(&self) -> bool {
        self.cfa_register & ROOT != 0
    }

    /// Returns the rule marked as one of a place that a call returns to.
    pub(super) const fn after_call(self) -> Self {
        Self { cfa_register: self.cfa_register | AFTER_CALL, ..self }
    }

    /// Returns true if the rule in a slot is that of a place that a call returns to.
    #[inline]
    pub(super) fn is_after_call([_, second, _]: &[AtomicU64; Self::WORDS]) -> bool {
        (word(second) >> 56) as u8 & AFTER_CALL != 0
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

    /// Returns the rule as words, for [`from_words`](Self::from_words).
    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        let [first @ .., e, f, g] = self.loads;
        let last = Load(u16::from(self.count) | u16::from(self.cfa_register) << 8);
        let pack = |loads: [Load; 4]| {
            loads.iter().rev().fold(0, |word, load| word << 16 | u64::from(load.0))
        };
        let third = u64::from(self.cfa_offset.cast_unsigned())
            | u64::from(self.window) << 32
            | u64::from(self.found) << 48;
        [pack(first), pack([e, f, g, last]), third]
    }

    /// Returns the rule in a slot.
    #[inline]
    pub(super) fn from_slot([first, second, third]: &[AtomicU64; Self::WORDS]) -> Self {
        Self::from_words([word(first), word(second), word(third)])
    }

    #[inline]
    const fn from_words([first, second, third]: [u64; Self::WORDS]) -> Self {
        const fn load(word: u64, at: u32) -> Load {
            Load((word >> (16 * at)) as u16)
        }
        Self {
            loads: [
                load(first, 0),
                load(first, 1),
                load(first, 2),
                load(first, 3),
                load(second, 0),
                load(second, 1),
                load(second, 2),
            ],
            count: (second >> 48) as u8,
            cfa_register: (second >> 56) as u8,
            cfa_offset: (third as u32).cast_signed(),
            window: (third >> 32) as u16,
            found: (third >> 48) as u16,
        }
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

/// A row in DWARF's terms, and the place of its entry. It has 300 bytes, and is filled in place.
#[derive(Clone, Debug)]
pub(crate) struct General {
    pub(crate) row: Row,
    pub(crate) place: Place,
    /// True if the function may be one that a return enters. Only a lazy table with the bytes of its
    /// image knows.
    pub(crate) may_be_entered_by_return: bool,
}

impl General {
    /// Creates a row without a rule.
    pub(crate) const fn new() -> Self {
        Self {
            row: Row {
                range: 0..0,
                cfa: CfaRule::Register { register: Column(u16::MAX), offset: 0 },
                registers: [None; 16],
                return_address: None,
                signal_frame: false,
            },
            place: Place { section: FrameSection::EhFrame, offset: 0 },
            may_be_entered_by_return: false,
        }
    }
}

/// A rule of any other form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeneralRule {
    pub(super) cfa: CfaRule,
    pub(super) return_address: Option<RegisterRule>,
    pub(super) signal_frame: bool,
    /// The range of this rule among the table's register rules: index of the first, and count.
    pub(super) registers: (u32, u8),
    /// The entry that this rule comes from.
    pub(super) place: Place,
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
