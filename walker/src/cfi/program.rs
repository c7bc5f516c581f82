//! Call frame programs, run over a whole function at once.

use super::bytes::{Bases, Bytes};
use super::error::{CfiProblem, FrameSection};
use super::row::{CfaRule, Column, Expression, RegisterRule};
use super::rule::{Rule, USUAL_RETURN_ADDRESS};
use crate::registers::Gpr;
use alloc::vec::Vec;
use core::ops::Range;
use gimli::{DwCfa, DwEhPe, constants};

/// Maximum number of remembered states. Compilers use one.
const STATE_LIMIT: usize = 64;

/// Index of the return address among the rules.
const RETURN_ADDRESS: usize = 16;

/// The rules that hold at an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    cfa: CfaRule,
    /// The rules that are set, as bits.
    set: u32,
    /// The rules for the integer registers, by encoding, and for the return address.
    rules: [RegisterRule; 17],
    /// The simple form of the rules, without the canonical frame address.
    saved: Saved,
}

/// The registers' part of a simple rule.
#[derive(Clone, Copy, Debug)]
enum Saved {
    Known {
        rule: Rule,
        hash: u64,
    },
    Other,
    /// Rules have changed since.
    Stale,
}

impl State {
    pub(super) const NEW: Self = Self {
        cfa: CfaRule::NONE,
        set: 0,
        rules: [RegisterRule::Undefined; 17],
        saved: Saved::Stale,
    };

    pub(super) const fn cfa(&self) -> CfaRule {
        self.cfa
    }

    #[inline]
    const fn set_cfa(&mut self, cfa: CfaRule) {
        self.cfa = cfa;
    }

    #[inline]
    fn set_cfa_offset(&mut self, new: i32) -> Result<(), CfiProblem> {
        let CfaRule::Register { offset, .. } = &mut self.cfa else {
            return Err(CfiProblem::Context);
        };
        *offset = new;
        Ok(())
    }

    fn rule(&self, at: usize) -> Option<RegisterRule> {
        if self.set >> at & 1 == 0 {
            return None;
        }
        self.rules.get(at).copied()
    }

    #[inline]
    fn set(&mut self, at: Option<usize>, rule: RegisterRule) {
        let Some((at, slot)) = at.and_then(|at| Some((at, self.rules.get_mut(at)?))) else {
            return;
        };
        *slot = rule;
        self.set |= 1 << at;
        self.saved = Saved::Stale;
    }

    /// Restores the rule that the CIE set, or none. A CIE itself has no earlier rules to restore.
    #[inline]
    fn restore(&mut self, at: Option<usize>, initial: Option<&Self>) -> Result<(), CfiProblem> {
        let initial = initial.ok_or(CfiProblem::Context)?;
        if let Some(at) = at {
            match initial.rule(at) {
                Some(rule) => self.set(Some(at), rule),
                None => self.set &= !(1 << at),
            }
            self.saved = Saved::Stale;
        }
        Ok(())
    }

    pub(super) fn return_address(&self) -> Option<RegisterRule> {
        self.rule(RETURN_ADDRESS)
    }

    /// Returns the integer registers with rules.
    pub(super) fn registers(&self) -> impl Iterator<Item = (Gpr, RegisterRule)> {
        Gpr::ALL.into_iter().filter_map(|gpr| Some((gpr, self.rule(gpr as usize)?)))
    }

    /// Computes the value that [`simple`](Self::simple) needs.
    #[inline]
    fn refresh(&mut self) {
        if let Saved::Stale = self.saved {
            self.saved = self.simple_registers().map_or(Saved::Other, |rule| {
                let hash = rule.hash_of_saved();
                Saved::Known { rule, hash }
            });
        }
    }

    /// Returns the equivalent simple rule and its hash, if there is one; the state must be fresh.
    #[inline]
    pub(super) fn simple(&self) -> Option<(Rule, u64)> {
        match self.saved {
            Saved::Known { rule, hash } => {
                let rule = rule.with_cfa(self.cfa)?;
                Some((rule, rule.hash(hash)))
            }
            Saved::Other | Saved::Stale => None,
        }
    }

    fn simple_registers(&self) -> Option<Rule> {
        if self.return_address() != Some(USUAL_RETURN_ADDRESS) {
            return None;
        }
        let mut rule = Rule::new();
        let mut left = self.set & !(1 << RETURN_ADDRESS);
        while left != 0 {
            let at = left.trailing_zeros();
            rule = rule.with(at as u8, *self.rules.get(at as usize)?)?;
            left &= left - 1;
        }
        Some(rule)
    }
}

/// The parameters that a CIE gives to the programs of its FDEs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) section: FrameSection,
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    pub(super) return_address: Column,
    /// The encoding of addresses.
    pub(super) encoding: DwEhPe,
    pub(super) bases: Bases,
    /// The address that RVAs count from (VA).
    pub(super) preferred_base: u64,
}

impl Terms {
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

    fn expression(&self, bytes: &mut Bytes<'_>) -> Result<Expression, CfiProblem> {
        let len = bytes.uleb()?;
        let offset = bytes.offset() as u32;
        bytes.skip(len)?;
        Ok(Expression { section: self.section, offset, len: len as u32 })
    }
}

/// A fault in a program: the problem, its offset in the section, and the RVA from which on it
/// leaves the rules unknown.
pub(super) struct Fault {
    pub(super) problem: CfiProblem,
    pub(super) offset: usize,
    pub(super) location: u32,
}

/// An interpreter of programs, which reuses its memory.
#[derive(Default)]
pub(super) struct Programs {
    remembered: Vec<State>,
}

impl Programs {
    /// Runs the instructions in `bytes` for code in `range` (RVAs), starting from `initial`. Emits
    /// a state for each row, with the RVA from which on it holds. `initial` is `None` for the
    /// initial instructions of a CIE.
    ///
    /// # Errors
    /// [`Fault`]; the rows before it have been emitted.
    #[inline]
    pub(super) fn run(
        &mut self,
        mut bytes: Bytes<'_>,
        terms: &Terms,
        initial: Option<&State>,
        range: Range<u32>,
        emit: &mut impl FnMut(u32, &State),
    ) -> Result<(), Fault> {
        self.remembered.clear();
        let mut state = initial.copied().unwrap_or(State::NEW);
        let mut location = range.start;
        while !bytes.is_empty() {
            let offset = bytes.offset();
            let fault = |problem| Fault { problem, offset, location };
            let advance = self.execute(&mut bytes, terms, initial, &mut state, location);
            let Some(next) = advance.map_err(fault)? else {
                continue;
            };
            if next > location {
                state.refresh();
                emit(location, &state);
                location = next;
            }
            // Rules for later addresses are not needed.
            if location >= range.end {
                return Ok(());
            }
        }
        state.refresh();
        emit(location, &state);
        Ok(())
    }

    /// Executes an instruction, and returns the next location if the instruction advances.
    #[inline]
    fn execute(
        &mut self,
        bytes: &mut Bytes<'_>,
        terms: &Terms,
        initial: Option<&State>,
        state: &mut State,
        location: u32,
    ) -> Result<Option<u32>, CfiProblem> {
        let instruction = bytes.u8()?;
        let low = u64::from(instruction & 0x3F);
        match DwCfa(instruction & 0xC0) {
            constants::DW_CFA_advance_loc => return Ok(Some(advance(location, low, terms))),
            constants::DW_CFA_offset => {
                let rule = RegisterRule::Offset(terms.unsigned(bytes)?);
                state.set(terms.place(low), rule);
                return Ok(None);
            }
            constants::DW_CFA_restore => {
                state.restore(terms.place(low), initial)?;
                return Ok(None);
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
                return Ok(Some(advance(location, bytes.u8()?.into(), terms)));
            }
            constants::DW_CFA_advance_loc2 => {
                return Ok(Some(advance(location, bytes.u16()?.into(), terms)));
            }
            constants::DW_CFA_advance_loc4 => {
                return Ok(Some(advance(location, bytes.u32()?.into(), terms)));
            }
            constants::DW_CFA_remember_state => {
                if self.remembered.len() >= STATE_LIMIT {
                    return Err(CfiProblem::States);
                }
                self.remembered.push(*state);
            }
            constants::DW_CFA_restore_state => {
                *state = self.remembered.pop().ok_or(CfiProblem::States)?;
            }
            constants::DW_CFA_def_cfa => {
                let register = column(bytes.uleb()?)?;
                let offset = i32::try_from(bytes.uleb()?).map_err(|_| CfiProblem::Offset)?;
                state.set_cfa(CfaRule::Register { register, offset });
            }
            constants::DW_CFA_def_cfa_register => {
                let register = column(bytes.uleb()?)?;
                let CfaRule::Register { offset, .. } = state.cfa else {
                    return Err(CfiProblem::Context);
                };
                state.set_cfa(CfaRule::Register { register, offset });
            }
            other => return rare(other, bytes, terms, initial, state, location),
        }
        Ok(None)
    }
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
    terms: &Terms,
    initial: Option<&State>,
    state: &mut State,
    location: u32,
) -> Result<Option<u32>, CfiProblem> {
    use RegisterRule as R;
    match instruction {
        constants::DW_CFA_set_loc => {
            let address = terms.bases.pointer(bytes, terms.encoding, None)?;
            let rva = address.wrapping_sub(terms.preferred_base);
            let rva = u32::try_from(rva).unwrap_or(u32::MAX);
            return if rva < location { Err(CfiProblem::Context) } else { Ok(Some(rva)) };
        }
        constants::DW_CFA_def_cfa_sf => {
            let register = column(bytes.uleb()?)?;
            state.set_cfa(CfaRule::Register { register, offset: terms.signed(bytes)? });
            return Ok(None);
        }
        constants::DW_CFA_def_cfa_offset_sf => {
            state.set_cfa_offset(terms.signed(bytes)?)?;
            return Ok(None);
        }
        constants::DW_CFA_def_cfa_expression => {
            state.set_cfa(CfaRule::Expression(terms.expression(bytes)?));
            return Ok(None);
        }
        // Only landing pads need it.
        constants::DW_CFA_GNU_args_size => {
            bytes.uleb()?;
            return Ok(None);
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
    let rule = match instruction {
        constants::DW_CFA_restore_extended => {
            state.restore(place, initial)?;
            return Ok(None);
        }
        constants::DW_CFA_undefined => R::Undefined,
        constants::DW_CFA_same_value => R::SameValue,
        constants::DW_CFA_register => R::Register(column(bytes.uleb()?)?),
        constants::DW_CFA_offset_extended => R::Offset(terms.unsigned(bytes)?),
        constants::DW_CFA_offset_extended_sf => R::Offset(terms.signed(bytes)?),
        constants::DW_CFA_val_offset => R::ValOffset(terms.unsigned(bytes)?),
        constants::DW_CFA_val_offset_sf => R::ValOffset(terms.signed(bytes)?),
        constants::DW_CFA_expression => R::Expression(terms.expression(bytes)?),
        _ => R::ValExpression(terms.expression(bytes)?),
    };
    state.set(place, rule);
    Ok(None)
}
