//! Compiled rules: the effect of a step from a given place as a list of loads, so that the unwind
//! codes and the code are read only once.

use super::effects::{Draft, Effects, Sources};
use super::{Handler, NONVOLATILE, Position, Step, Trust, UnwindError, new_step};
use crate::memory::Memory;
use crate::registers::{Gpr, RegisterSet, Registers};
use crate::rule_slots::word;
use core::sync::atomic::AtomicU64;

/// Maximum number of registers that a rule restores.
pub(super) const MAX_LOADS: usize = 14;

/// Maximum number of loads of integer registers in a usual rule. It makes half of them or all, with
/// padding: the end of a loop would differ from function to function, and processors mispredict it.
const USUAL_LOADS: usize = 8;

/// The same for vector registers: a usual rule makes none of these loads, half of them or all. They
/// come behind the others, though they are made first.
const USUAL_XMM_LOADS: usize = 4;

/// Size of the window of such a rule, in words of 8 bytes: a fixed one needs no check for each load.
const USUAL_WORDS: usize = 16;

/// A register to load, in the upper 5 bits (16 and up: xmm), and the distance of its slot from the
/// start of the window, in units of 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load(u16);

impl Load {
    pub(super) const XMM: u8 = 16;

    /// A load that a rule does not need: it reads the start of the window into rsp, which is set last.
    pub(super) const PADDING: Self = Self((Gpr::Rsp as u16) << 11);

    /// Creates a load from `distance` bytes after the start of the window; `None` if that is not of
    /// this form.
    pub(super) fn new(register: u8, distance: u16) -> Option<Self> {
        let units = distance / 8;
        let fits = distance.is_multiple_of(8) && units < 1 << 11;
        fits.then_some(Self(u16::from(register) << 11 | units))
    }

    #[inline]
    const fn register(self) -> u8 {
        (self.0 >> 11) as u8
    }

    /// Returns the index of the register among xmm6 to xmm15.
    #[inline]
    const fn xmm(self) -> Option<usize> {
        match self.register() {
            22..=31 => Some(self.register() as usize - 22),
            _ => None,
        }
    }

    /// Returns the distance from the start of the window in bytes.
    #[inline]
    const fn at(self) -> usize {
        (self.0 & 0x7FF) as usize * 8
    }
}

/// The effect of a step: the registers that are loaded, in the order of the unwind codes, and where
/// from. All lie in a window of the stack at a constant distance from rsp or the frame register.
///
/// The fields are packed, so that a rule is kept in a [slot](crate::rule_slots), and a look-up touches
/// one line of the processor's cache:
///
/// | word | bits from the lowest |
/// |---|---|
/// | 0–3 | 16 for each load |
/// | 3 | 32: distance of the return address from the start of the window, its size (bytes) |
/// | 4 | 32: distance of the window from its base (bytes); 32: the registers that are found |
/// | 5 | RVAs of the handler and its data |
/// | 6 | 16: distance of the establisher frame from its base (bytes); 8: number of loads; 8: number of the frame register; 8: [`Trust`]; 8: flags; 8: number of a usual rule's loads of vector registers; 1: true behind a call |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule([u64; Rule::WORDS]);

/// The contents of a rule.
pub(super) struct Parts {
    /// Padded with loads that change nothing.
    pub(super) loads: [Load; MAX_LOADS],
    pub(super) count: u8,
    /// Distance of the return address from the start of the window in bytes.
    pub(super) return_address: u16,
    /// Size of the window in bytes.
    pub(super) len: u16,
    /// Distance of the window from its base in bytes.
    pub(super) start: i32,
    pub(super) found: RegisterSet,
    pub(super) handler: Option<Handler>,
    /// Distance of the establisher frame from its base in bytes.
    pub(super) establisher_frame: i16,
    pub(super) frame_register: u8,
    pub(super) trust: Trust,
    pub(super) flags: u8,
}

impl Parts {
    /// Returns the loads in the places that they have in a usual rule, and the numbers of those of integer
    /// and of vector registers; `None` if the rule is not a usual one.
    fn usual_loads(&self) -> Option<([Load; MAX_LOADS], [u8; 2])> {
        let made = self.loads.get(..usize::from(self.count))?;
        let xmm_count = made.iter().take_while(|load| load.register() >= Load::XMM).count();
        let (of_xmm, of_gpr) = made.split_at_checked(xmm_count)?;
        let is_usual = |load: &Load| load.register() < Load::XMM || load.xmm().is_some();
        if !of_xmm.iter().all(is_usual) || of_gpr.iter().any(|load| load.register() >= Load::XMM) {
            return None;
        }
        let mut loads = [Load::PADDING; MAX_LOADS];
        loads.get_mut(..USUAL_LOADS)?.get_mut(..of_gpr.len())?.copy_from_slice(of_gpr);
        // To make the last one again changes nothing.
        if let Some(last) = of_xmm.last() {
            loads.get_mut(USUAL_LOADS..)?.get_mut(..USUAL_XMM_LOADS)?.fill(*last);
        }
        let places = loads.get_mut(USUAL_LOADS..)?.get_mut(..USUAL_XMM_LOADS)?;
        places.get_mut(..of_xmm.len())?.copy_from_slice(of_xmm);
        Some((loads, [of_gpr.len() as u8, of_xmm.len() as u8]))
    }
}

impl Rule {
    /// Number of words of a rule.
    pub(crate) const WORDS: usize = 7;

    /// The base of the window is the frame register, else rsp.
    pub(super) const FROM_FRAME_REGISTER: u8 = 1;
    /// The base of the establisher frame is the frame register, else rsp.
    pub(super) const ESTABLISHED_BY_FRAME_REGISTER: u8 = 2;
    /// The step needs the frame register.
    pub(super) const NEEDS_FRAME_REGISTER: u8 = 4;
    /// The rule is for interrupted code.
    pub(super) const INTERRUPTED: u8 = 8;
    const HAS_HANDLER: u8 = 16;
    /// At most [`USUAL_XMM_LOADS`], and behind them at most [`USUAL_LOADS`], are made from
    /// [`USUAL_WORDS`] words, and the return address is one of these.
    const USUAL: u8 = 32;
    /// This is a rule, not the lack of one.
    const EXISTS: u8 = 64;

    /// Packs a rule.
    pub(super) fn new(parts: &Parts) -> Self {
        let Parts { return_address, len, start, found, handler, .. } = parts;
        let Parts { establisher_frame, frame_register, trust, flags, .. } = parts;
        let mut flags = flags | Self::EXISTS;
        // An allocation may be of any size, and move the return address out of the words of the window.
        let in_words = usize::from(*len) <= USUAL_WORDS * 8 && return_address.is_multiple_of(8);
        let usual = if in_words { parts.usual_loads() } else { None };
        if usual.is_some() {
            flags |= Self::USUAL;
        }
        let (loads, [count, xmm_count]) = usual.unwrap_or((parts.loads, [parts.count, 0]));
        if handler.is_some() {
            flags |= Self::HAS_HANDLER;
        }
        let handler = handler.unwrap_or(Handler { rva: 0, data_rva: 0 });
        let pack = |at: usize| {
            let four = loads.iter().skip(at).take(4).rev();
            four.fold(0, |word, load| word << 16 | u64::from(load.0))
        };
        let trust: u64 = match trust {
            Trust::Body => 0,
            Trust::Prologue => 1,
            Trust::EpilogueCodes => 2,
            Trust::EpilogueInstructions => 3,
            // Rules have no others.
            _ => 4,
        };
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Self([
            pack(0),
            pack(4),
            pack(8),
            pack(12) | u64::from(*return_address) << 32 | u64::from(*len) << 48,
            pair(start.cast_unsigned(), found.bits()),
            pair(handler.rva, handler.data_rva),
            u64::from(establisher_frame.cast_unsigned())
                | u64::from(count) << 16
                | u64::from(*frame_register) << 24
                | trust << 32
                | u64::from(flags) << 40
                | u64::from(xmm_count) << 48,
        ])
    }

    /// Returns the rule, or the lack of one, marked as one of a place that a call returns to.
    pub(in crate::unwinder) const fn after_call(mut self) -> Self {
        self.0[6] |= 1 << 56;
        self
    }

    /// Returns true if the rule in a slot is that of a place that a call returns to.
    #[inline]
    pub(crate) fn is_after_call([.., rest]: &[AtomicU64; Self::WORDS]) -> bool {
        word(rest) >> 56 & 1 != 0
    }

    /// Returns the rule as words, for a slot.
    pub(in crate::unwinder) const fn to_words(self) -> [u64; Self::WORDS] {
        self.0
    }

    /// Returns the rule in a slot; `None` if it is the default, which is no rule.
    #[inline]
    pub(in crate::unwinder) fn from_slot(slot: &[AtomicU64; Self::WORDS]) -> Option<Self> {
        let [first, second, third, fourth, place, handler, rest] = slot;
        // Not `map`, which is not always inlined.
        let rule = Self([
            word(first),
            word(second),
            word(third),
            word(fourth),
            word(place),
            word(handler),
            word(rest),
        ]);
        rule.has(Self::EXISTS).then_some(rule)
    }

    #[inline]
    const fn has(&self, flag: u8) -> bool {
        (self.0[6] >> 40) as u8 & flag != 0
    }

    #[inline]
    const fn load(&self, at: usize) -> Load {
        Load((self.0[(at / 4) & 3] >> (16 * (at % 4))) as u16)
    }

    #[inline]
    const fn count(&self) -> usize {
        (self.0[6] >> 16) as u8 as usize
    }

    #[inline]
    const fn xmm_count(&self) -> usize {
        (self.0[6] >> 48) as u8 as usize
    }

    /// Returns the loads that are made, in the order of the unwind codes.
    fn loads(&self) -> impl Iterator<Item = Load> + '_ {
        let of_xmm = USUAL_LOADS..USUAL_LOADS + self.xmm_count();
        of_xmm.chain(0..self.count()).map(|at| self.load(at))
    }

    #[inline]
    const fn return_address(&self) -> u16 {
        (self.0[3] >> 32) as u16
    }

    const fn len(&self) -> u16 {
        (self.0[3] >> 48) as u16
    }

    #[inline]
    const fn trust(&self) -> Trust {
        match self.0[6] >> 32 & 7 {
            0 => Trust::Body,
            1 => Trust::Prologue,
            2 => Trust::EpilogueCodes,
            3 => Trust::EpilogueInstructions,
            _ => Trust::Leaf,
        }
    }

    #[inline]
    const fn handler(&self) -> Option<Handler> {
        let word = self.0[5];
        let handler = Handler { rva: word as u32, data_rva: (word >> 32) as u32 };
        if self.has(Self::HAS_HANDLER) { Some(handler) } else { None }
    }

    /// Returns the position that the rule is for.
    #[inline]
    pub(in crate::unwinder) const fn position(&self) -> Position {
        Position::below(self.has(Self::INTERRUPTED))
    }

    /// Makes the step.
    #[expect(clippy::inline_always, reason = "measured: a Step in memory costs 2 ns")]
    #[inline(always)]
    pub(in crate::unwinder) fn apply<M: Memory + ?Sized>(
        self,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, UnwindError> {
        let [.., distances, _, rest] = self.0;
        let frame_register = Gpr::from_number((rest >> 24) as u8);
        let (rsp, frame) = (registers.rsp(), registers.get(frame_register));
        let base = |flag| if self.has(flag) { frame } else { rsp };
        let establisher_frame = base(Self::ESTABLISHED_BY_FRAME_REGISTER)
            .wrapping_add_signed(i64::from((rest as u16).cast_signed()));
        let start = base(Self::FROM_FRAME_REGISTER)
            .wrapping_add_signed(i64::from((distances as u32).cast_signed()));
        let words = if self.has(Self::USUAL) { usual_window(memory, start) } else { None };
        if let Some(words) = words {
            self.load_usual(words, registers);
        } else {
            // A copy, so that the words stay in the processor's registers elsewhere.
            let rule = self;
            rule.load_any(start, registers, memory)?;
        }
        registers.set(Gpr::Rsp, start.wrapping_add(u64::from(self.return_address()) + 8));
        let mut needed = Sources::RSP.needed;
        if self.has(Self::NEEDS_FRAME_REGISTER) {
            needed = needed.with(frame_register);
        }
        let found = RegisterSet::from_bits((distances >> 32) as u32);
        let sources = Sources { found, needed };
        let (trust, caller) = (self.trust(), Position::ReturnAddress);
        Ok(new_step(trust, establisher_frame, self.handler(), caller, NONVOLATILE, sources))
    }

    /// Loads all registers except rsp from the words of a usual window. This cannot fail.
    #[expect(clippy::inline_always, reason = "measured: a Step in memory costs 2 ns")]
    #[inline(always)]
    fn load_usual(self, words: &[[u8; 8]; USUAL_WORDS], registers: &mut Registers) {
        let word = |at: usize| u64::from_le_bytes(words[at / 8 % USUAL_WORDS]);
        let mut load = |at| {
            let load = self.load(at);
            registers.gpr[usize::from(load.register() & 15)] = word(load.at());
        };
        for at in 0..USUAL_LOADS / 2 {
            load(at);
        }
        if self.count() > USUAL_LOADS / 2 {
            for at in USUAL_LOADS / 2..USUAL_LOADS {
                load(at);
            }
        }
        if self.xmm_count() > 0 {
            let mut load = |at| {
                let load = self.load(at);
                if let Some(xmm) = load.xmm().and_then(|n| registers.xmm.get_mut(n)) {
                    let (low, high) = (word(load.at()), word(load.at() + 8));
                    *xmm = u128::from(low) | u128::from(high) << 64;
                }
            };
            for at in 0..USUAL_XMM_LOADS / 2 {
                load(USUAL_LOADS + at);
            }
            if self.xmm_count() > USUAL_XMM_LOADS / 2 {
                for at in USUAL_XMM_LOADS / 2..USUAL_XMM_LOADS {
                    load(USUAL_LOADS + at);
                }
            }
        }
        registers.rip = word(usize::from(self.return_address()));
    }

    /// Loads all registers except rsp. After an error they are as they were.
    #[inline(never)]
    fn load_any<M: Memory + ?Sized>(
        &self,
        start: u64,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<(), UnwindError> {
        match memory.window(start, usize::from(self.len())) {
            Some(window) => self.load_all(window, registers),
            None => self.read(start, registers, memory)?,
        }
        Ok(())
    }

    /// Loads all registers except rsp from the bytes of the window. This cannot fail.
    fn load_all(&self, window: &[u8], registers: &mut Registers) {
        for load in self.loads() {
            let low = word_at(window, load.at());
            match load.register().checked_sub(Load::XMM) {
                None => registers.gpr[usize::from(load.register() & 15)] = low,
                Some(n) => {
                    let high = word_at(window, load.at() + 8);
                    let n = usize::from(n).checked_sub(6);
                    if let Some(xmm) = n.and_then(|n| registers.xmm.get_mut(n)) {
                        *xmm = u128::from(low) | u128::from(high) << 64;
                    }
                }
            }
        }
        registers.rip = word_at(window, usize::from(self.return_address()));
    }

    /// Loads all registers from memory that has no window, where each read may fail; then they are as
    /// they were.
    fn read<M: Memory + ?Sized>(
        &self,
        start: u64,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<(), UnwindError> {
        let mut draft = Draft::new(registers, memory);
        let loaded = self.read_all(start, &mut draft);
        draft.finish(loaded)?;
        Ok(())
    }

    fn read_all<E: Effects<Address = u64>>(
        &self,
        start: u64,
        effects: &mut E,
    ) -> Result<(), UnwindError> {
        for load in self.loads() {
            let address = start.wrapping_add(load.at() as u64);
            match load.register().checked_sub(Load::XMM) {
                Some(n) => effects.load_xmm(n, address)?,
                None => effects.load(Gpr::from_number(load.register()), address)?,
            }
        }
        effects.load_rip(start.wrapping_add(self.return_address().into()))
    }
}

/// Returns the words from `start` (VA), if the memory holds a usual window there, which may be longer
/// than a rule needs.
#[inline]
fn usual_window<M: Memory + ?Sized>(memory: &M, start: u64) -> Option<&[[u8; 8]; USUAL_WORDS]> {
    memory.window(start, USUAL_WORDS * 8)?.as_chunks().0.first_chunk()
}

/// Returns the word at a place in a window that was measured for it.
#[inline]
fn word_at(window: &[u8], at: usize) -> u64 {
    let bytes = window.get(at..at + 8).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
