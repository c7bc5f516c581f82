//! Call frame programs.

use super::bytes::Bytes;
use super::entry::Frames;
use super::error::CfiProblem;
use super::row::{CfaRule, Column, Expression, RegisterRule};
use super::rule::{Rule, USUAL_RETURN_ADDRESS};
use crate::registers::Gpr;
use core::ops::{ControlFlow, Range};
use gimli::{DwCfa, DwEhPe, constants};

/// Maximum number of remembered states. Compilers use one. gimli has room for four, and 24 million
/// rows of real files came out as its own.
const STATE_LIMIT: usize = 4;

/// Index of the return address among the rules.
const RETURN_ADDRESS: usize = 16;

/// The rules that hold at an address, in 100 bytes: a look-up in a signal handler keeps several.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    cfa: Packed,
    cfa_kind: CfaKind,
    /// The kinds of the rules for the integer registers, by encoding, and for the return address.
    kinds: [Kind; 17],
    rules: [Packed; 17],
}

/// The kind of a rule for a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// There is no rule.
    Unset,
    Undefined,
    SameValue,
    Offset,
    ValOffset,
    Register,
    Expression,
    ValExpression,
}

/// The kind of the rule for the canonical frame address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CfaKind {
    /// A DWARF register.
    Register(u16),
    Expression,
}

/// The parameter of a rule: an offset, a register, or the offset of an expression's length in the
/// section.
type Packed = u32;

impl State {
    pub(super) const NEW: Self = Self {
        cfa: 0,
        cfa_kind: CfaKind::Register(u16::MAX),
        kinds: [Kind::Unset; 17],
        rules: [0; 17],
    };

    pub(super) fn cfa(&self, terms: &Terms<'_>) -> CfaRule {
        match self.cfa_kind {
            CfaKind::Register(register) => {
                CfaRule::Register { register: Column(register), offset: self.cfa.cast_signed() }
            }
            CfaKind::Expression => CfaRule::Expression(terms.expression_at(self.cfa)),
        }
    }

    #[inline]
    const fn set_cfa(&mut self, Column(register): Column, offset: i32) {
        self.cfa = offset.cast_unsigned();
        self.cfa_kind = CfaKind::Register(register);
    }

    #[inline]
    fn set_cfa_offset(&mut self, new: i32) -> Result<(), CfiProblem> {
        let CfaKind::Register(_) = self.cfa_kind else { return Err(CfiProblem::Context) };
        self.cfa = new.cast_unsigned();
        Ok(())
    }

    fn rule(&self, at: usize, terms: &Terms<'_>) -> Option<RegisterRule> {
        use RegisterRule as R;
        let value = *self.rules.get(at)?;
        Some(match self.kinds.get(at)? {
            Kind::Unset => return None,
            Kind::Undefined => R::Undefined,
            Kind::SameValue => R::SameValue,
            Kind::Offset => R::Offset(value.cast_signed()),
            Kind::ValOffset => R::ValOffset(value.cast_signed()),
            Kind::Register => R::Register(Column(value as u16)),
            Kind::Expression => R::Expression(terms.expression_at(value)),
            Kind::ValExpression => R::ValExpression(terms.expression_at(value)),
        })
    }

    #[inline]
    fn set(&mut self, at: Option<usize>, kind: Kind, value: Packed) {
        if let Some(at) = at
            && let Some(slot) = self.kinds.get_mut(at)
            && let Some(rule) = self.rules.get_mut(at)
        {
            (*slot, *rule) = (kind, value);
        }
    }

    /// Restores the rule that the CIE set, or none. A CIE itself has no earlier rules to restore.
    #[inline]
    fn restore(&mut self, at: Option<usize>, initial: Option<&Self>) -> Result<(), CfiProblem> {
        let initial = initial.ok_or(CfiProblem::Context)?;
        if let Some(at) = at
            && let (Some(kind), Some(value)) = (initial.kinds.get(at), initial.rules.get(at))
        {
            self.set(Some(at), *kind, *value);
        }
        Ok(())
    }

    pub(super) fn return_address(&self, terms: &Terms<'_>) -> Option<RegisterRule> {
        self.rule(RETURN_ADDRESS, terms)
    }

    /// Returns the integer registers with rules.
    pub(super) fn registers(&self, terms: &Terms<'_>) -> impl Iterator<Item = (Gpr, RegisterRule)> {
        Gpr::ALL.into_iter().filter_map(|gpr| Some((gpr, self.rule(gpr as usize, terms)?)))
    }

    /// Returns the registers' part of the equivalent simple rule, if there is one.
    pub(super) fn saved(&self) -> Option<Rule> {
        let [kinds @ .., return_kind] = &self.kinds;
        let [values @ .., return_value] = &self.rules;
        if *return_kind != Kind::Offset || return_value.cast_signed() != USUAL_RETURN_ADDRESS {
            return None;
        }
        let mut rule = Rule::new();
        for ((kind, value), register) in kinds.iter().zip(values).zip(0..) {
            rule = match kind {
                Kind::Unset => rule,
                Kind::SameValue => rule.with_same(register)?,
                Kind::Offset => rule.with_load(register, value.cast_signed())?,
                _ => return None,
            };
        }
        Some(rule)
    }

    /// Returns true for the first function of a thread, whose return address is undefined, if nothing
    /// has to be computed or read to know that.
    pub(super) fn is_root(&self) -> bool {
        let [kinds @ .., return_kind] = &self.kinds;
        let has_register = match self.cfa_kind {
            CfaKind::Register(register) => Column(register).gpr().is_some(),
            CfaKind::Expression => false,
        };
        let is_nothing =
            |kind: &Kind| matches!(kind, Kind::Unset | Kind::Undefined | Kind::SameValue);
        *return_kind == Kind::Undefined && has_register && kinds.iter().all(is_nothing)
    }

    /// Adds the rule for the canonical frame address to the registers' part of a simple rule.
    #[inline]
    pub(super) fn with_cfa(&self, saved: Rule) -> Option<Rule> {
        match self.cfa_kind {
            CfaKind::Register(register) => saved.with_cfa(Column(register), self.cfa.cast_signed()),
            CfaKind::Expression => None,
        }
    }
}

/// The parameters that a CIE gives to the programs of its FDEs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    /// The section of the CIE.
    pub(super) frames: &'a Frames<'a>,
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    pub(super) return_address: Column,
    /// The encoding of addresses.
    pub(super) encoding: DwEhPe,
}

impl Terms<'_> {
    /// Returns the index of a register's rule; `None` for a register that no walk restores.
    #[inline]
    fn place(&self, register: u64) -> Option<usize> {
        let column = Column(u16::try_from(register).ok()?);
        if column == self.return_address {
            return Some(RETURN_ADDRESS);
        }
        column.gpr().map(|gpr| gpr as usize)
    }

    #[inline]
    fn factored(&self, offset: i64) -> Result<i32, CfiProblem> {
        let offset = offset.checked_mul(self.data_alignment).ok_or(CfiProblem::Offset)?;
        i32::try_from(offset).map_err(|_| CfiProblem::Offset)
    }

    /// Reads an unsigned offset in units of the data alignment.
    #[inline]
    fn unsigned(&self, bytes: &mut Bytes<'_>) -> Result<i32, CfiProblem> {
        self.factored(i64::try_from(bytes.uleb()?).map_err(|_| CfiProblem::Offset)?)
    }

    /// Reads a signed offset in units of the data alignment.
    fn signed(&self, bytes: &mut Bytes<'_>) -> Result<i32, CfiProblem> {
        self.factored(bytes.sleb()?)
    }

    /// Skips an expression, and returns the offset of its length.
    fn expression(bytes: &mut Bytes<'_>) -> Result<Packed, CfiProblem> {
        let offset = bytes.offset() as u32;
        let len = bytes.uleb()?;
        bytes.skip(len)?;
        Ok(offset)
    }

    /// Returns the expression whose length is at `offset`, where there is one.
    fn expression_at(&self, offset: Packed) -> Expression {
        let &Frames { kind: section, bytes, .. } = self.frames;
        let bytes = Bytes::new(bytes, offset as usize, bytes.len());
        let read = bytes.and_then(|mut bytes| Ok((bytes.uleb()?, bytes.offset())));
        let (len, offset) = read.unwrap_or_default();
        Expression { section, offset: offset as u32, len: len as u32 }
    }
}

/// A fault in a program: the problem, its offset in the section, and the RVA from which on it
/// leaves the rules unknown.
pub(super) struct Fault {
    pub(super) problem: CfiProblem,
    pub(super) offset: usize,
    pub(super) location: u32,
}

/// A row of a program.
pub(super) struct Emitted<'s> {
    /// The RVAs in which the state holds, as far as the program says: the end is `u32::MAX` for the
    /// last row.
    pub(super) range: Range<u32>,
    pub(super) state: &'s State,
    /// True if a register's rule may differ from that of the row before.
    pub(super) has_new_registers: bool,
}

/// The states that a program remembers.
pub(super) struct Remembered {
    states: [State; STATE_LIMIT],
    len: usize,
}

impl Remembered {
    pub(super) const fn new() -> Self {
        Self { states: [State::NEW; STATE_LIMIT], len: 0 }
    }

    fn push(&mut self, state: &State) -> Result<(), CfiProblem> {
        *self.states.get_mut(self.len).ok_or(CfiProblem::States)? = *state;
        self.len += 1;
        Ok(())
    }

    fn pop(&mut self, state: &mut State) -> Result<(), CfiProblem> {
        self.len = self.len.checked_sub(1).ok_or(CfiProblem::States)?;
        *state = *self.states.get(self.len).ok_or(CfiProblem::States)?;
        Ok(())
    }

    /// Runs the instructions in `bytes` for code in `range` (RVAs), starting from `initial`. Emits
    /// a state for each row, until `emit` breaks. `initial` is `None` for the initial instructions
    /// of a CIE.
    ///
    /// # Errors
    /// [`Fault`]; the rows before it have been emitted.
    #[inline]
    pub(super) fn run(
        &mut self,
        bytes: Bytes<'_>,
        terms: &Terms<'_>,
        initial: Option<&State>,
        range: Range<u32>,
        emit: &mut impl FnMut(Emitted<'_>) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let mut state = initial.copied().unwrap_or(State::NEW);
        self.run_on(&mut state, bytes, terms, initial, range, emit)
    }

    /// Runs the instructions as [`run`](Self::run) does, on `state`, which is `initial` at first.
    #[inline]
    pub(super) fn run_on(
        &mut self,
        state: &mut State,
        mut bytes: Bytes<'_>,
        terms: &Terms<'_>,
        initial: Option<&State>,
        range: Range<u32>,
        emit: &mut impl FnMut(Emitted<'_>) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        self.len = 0;
        let mut location = range.start;
        let mut has_new_registers = true;
        while !bytes.is_empty() {
            let offset = bytes.offset();
            let fault = |problem| Fault { problem, offset, location };
            let does = self.execute(&mut bytes, terms, initial, state, location);
            match does.map_err(fault)? {
                Effect::Cfa => {}
                Effect::Registers => has_new_registers = true,
                Effect::Advance(next) => {
                    if next > location {
                        let range = location..next;
                        if emit(Emitted { range, state, has_new_registers }).is_break() {
                            return Ok(());
                        }
                        has_new_registers = false;
                        location = next;
                    }
                    // Rules for later addresses are not needed.
                    if location >= range.end {
                        return Ok(());
                    }
                }
            }
        }
        let range = location..u32::MAX;
        let _ = emit(Emitted { range, state, has_new_registers });
        Ok(())
    }

    /// Executes an instruction, and returns its effect.
    #[inline]
    fn execute(
        &mut self,
        bytes: &mut Bytes<'_>,
        terms: &Terms<'_>,
        initial: Option<&State>,
        state: &mut State,
        location: u32,
    ) -> Result<Effect, CfiProblem> {
        let instruction = bytes.u8()?;
        let low = u64::from(instruction & 0x3F);
        match DwCfa(instruction & 0xC0) {
            constants::DW_CFA_advance_loc => {
                return Ok(Effect::Advance(advance(location, low, terms)));
            }
            constants::DW_CFA_offset => {
                let offset = terms.unsigned(bytes)?;
                state.set(terms.place(low), Kind::Offset, offset.cast_unsigned());
                return Ok(Effect::Registers);
            }
            constants::DW_CFA_restore => {
                state.restore(terms.place(low), initial)?;
                return Ok(Effect::Registers);
            }
            _ => {}
        }
        match DwCfa(instruction) {
            constants::DW_CFA_def_cfa_offset => {
                let new = i32::try_from(bytes.uleb()?).map_err(|_| CfiProblem::Offset)?;
                state.set_cfa_offset(new)?;
            }
            constants::DW_CFA_nop => {}
            constants::DW_CFA_advance_loc1 => {
                let delta = bytes.u8()?.into();
                return Ok(Effect::Advance(advance(location, delta, terms)));
            }
            constants::DW_CFA_advance_loc2 => {
                let delta = bytes.u16()?.into();
                return Ok(Effect::Advance(advance(location, delta, terms)));
            }
            constants::DW_CFA_advance_loc4 => {
                let delta = bytes.u32()?.into();
                return Ok(Effect::Advance(advance(location, delta, terms)));
            }
            constants::DW_CFA_remember_state => {
                self.push(state)?;
            }
            constants::DW_CFA_restore_state => {
                self.pop(state)?;
                return Ok(Effect::Registers);
            }
            constants::DW_CFA_def_cfa => {
                let register = column(bytes.uleb()?)?;
                let offset = i32::try_from(bytes.uleb()?).map_err(|_| CfiProblem::Offset)?;
                state.set_cfa(register, offset);
            }
            constants::DW_CFA_def_cfa_register => {
                let register = column(bytes.uleb()?)?;
                let CfaKind::Register(_) = state.cfa_kind else { return Err(CfiProblem::Context) };
                state.set_cfa(register, state.cfa.cast_signed());
            }
            other => return rare(other, bytes, terms, initial, state, location),
        }
        Ok(Effect::Cfa)
    }
}

/// The effect of an instruction.
enum Effect {
    /// The rule for the canonical frame address may have changed.
    Cfa,
    /// Any rule may have changed.
    Registers,
    /// The row ends; the next one begins at this location (RVA).
    Advance(u32),
}

#[inline]
fn advance(location: u32, delta: u64, terms: &Terms) -> u32 {
    let bytes = delta.saturating_mul(terms.code_alignment);
    u32::try_from(u64::from(location).saturating_add(bytes)).unwrap_or(u32::MAX)
}

fn column(register: u64) -> Result<Column, CfiProblem> {
    u16::try_from(register).map(Column).map_err(|_| CfiProblem::Register(u16::MAX))
}

/// Executes one of the rarer instructions.
#[inline(never)]
fn rare(
    instruction: DwCfa,
    bytes: &mut Bytes<'_>,
    terms: &Terms<'_>,
    initial: Option<&State>,
    state: &mut State,
    location: u32,
) -> Result<Effect, CfiProblem> {
    match instruction {
        constants::DW_CFA_set_loc => {
            let address = terms.frames.bases.pointer(bytes, terms.encoding)?;
            let rva = address.wrapping_sub(terms.frames.preferred_base);
            let rva = u32::try_from(rva).unwrap_or(u32::MAX);
            return if rva < location {
                Err(CfiProblem::Context)
            } else {
                Ok(Effect::Advance(rva))
            };
        }
        constants::DW_CFA_def_cfa_sf => {
            let register = column(bytes.uleb()?)?;
            state.set_cfa(register, terms.signed(bytes)?);
            return Ok(Effect::Cfa);
        }
        constants::DW_CFA_def_cfa_offset_sf => {
            state.set_cfa_offset(terms.signed(bytes)?)?;
            return Ok(Effect::Cfa);
        }
        constants::DW_CFA_def_cfa_expression => {
            (state.cfa, state.cfa_kind) = (Terms::expression(bytes)?, CfaKind::Expression);
            return Ok(Effect::Cfa);
        }
        // Only landing pads need it.
        constants::DW_CFA_GNU_args_size => {
            bytes.uleb()?;
            return Ok(Effect::Cfa);
        }
        constants::DW_CFA_offset_extended
        | constants::DW_CFA_restore_extended
        | constants::DW_CFA_undefined
        | constants::DW_CFA_same_value
        | constants::DW_CFA_register
        | constants::DW_CFA_offset_extended_sf
        | constants::DW_CFA_val_offset
        | constants::DW_CFA_val_offset_sf
        | constants::DW_CFA_expression
        | constants::DW_CFA_val_expression => {}
        DwCfa(unknown) => return Err(CfiProblem::Instruction(unknown)),
    }
    let place = terms.place(bytes.uleb()?);
    let (kind, value) = match instruction {
        constants::DW_CFA_restore_extended => {
            state.restore(place, initial)?;
            return Ok(Effect::Registers);
        }
        constants::DW_CFA_undefined => (Kind::Undefined, 0),
        constants::DW_CFA_same_value => (Kind::SameValue, 0),
        constants::DW_CFA_register => (Kind::Register, column(bytes.uleb()?)?.0.into()),
        constants::DW_CFA_offset_extended => (Kind::Offset, terms.unsigned(bytes)?.cast_unsigned()),
        constants::DW_CFA_offset_extended_sf => {
            (Kind::Offset, terms.signed(bytes)?.cast_unsigned())
        }
        constants::DW_CFA_val_offset => (Kind::ValOffset, terms.unsigned(bytes)?.cast_unsigned()),
        constants::DW_CFA_val_offset_sf => (Kind::ValOffset, terms.signed(bytes)?.cast_unsigned()),
        constants::DW_CFA_expression => (Kind::Expression, Terms::expression(bytes)?),
        _ => (Kind::ValExpression, Terms::expression(bytes)?),
    };
    state.set(place, kind, value);
    Ok(Effect::Registers)
}
