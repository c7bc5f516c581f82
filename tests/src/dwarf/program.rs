//! Execution of CFI instructions, from a CIE's and an FDE's to the row of an address.

use super::image::Fde;
use super::reader::Reader;
use super::{Bug, Error};
use std::collections::BTreeMap;

/// Location of the CFA.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cfa<'a> {
    /// A register plus an offset in bytes.
    Above(u64, i64),
    /// The result of an expression.
    Expression(Reader<'a>),
}

/// Location of a register of the caller.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule<'a> {
    /// The register itself.
    Same,
    /// No location: the value is unknown.
    Undefined,
    /// Memory at the CFA plus an offset in bytes.
    At(i64),
    /// No memory: the value is the CFA plus an offset in bytes.
    Value(i64),
    /// Another register.
    In(u64),
    /// Memory at the result of an expression.
    AtExpression(Reader<'a>),
    /// No memory: the value is the result of an expression.
    ValueExpression(Reader<'a>),
}

/// A row of the unwind table: the CFA and the registers' rules.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    pub(super) cfa: Cfa<'a>,
    pub(super) rules: BTreeMap<u64, Rule<'a>>,
}

/// Returns the row of an address (VA) in the range of an FDE.
pub(super) fn row<'a>(fde: &Fde<'a>, address: u64, bug: Option<Bug>) -> Result<Row<'a>, Error> {
    let cfa = Cfa::Above(u64::MAX, 0);
    let row = Row { cfa, rules: BTreeMap::new() };
    let mut state = State {
        fde,
        bug,
        initial: row.clone(),
        row,
        late: None,
        remembered: Vec::new(),
        location: fde.begin,
        address,
    };
    state.run(fde.cie.program)?;
    // The rules of a CIE have no locations.
    if state.location != fde.begin {
        return Err(Error::BadTable);
    }
    state.initial = state.row.clone();
    state.run(fde.program)?;
    Ok(state.row)
}

struct State<'f, 'a> {
    fde: &'f Fde<'a>,
    bug: Option<Bug>,
    row: Row<'a>,
    initial: Row<'a>,
    /// A CFA that takes effect only at the next row.
    late: Option<Cfa<'a>>,
    remembered: Vec<Row<'a>>,
    /// Address at which the row begins (VA).
    location: u64,
    address: u64,
}

impl<'a> State<'_, 'a> {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn run(&mut self, mut program: Reader<'a>) -> Result<(), Error> {
        while !program.is_empty() {
            if !self.instruction(&mut program)? {
                break;
            }
        }
        Ok(())
    }

    /// Advances the location. Returns true if the row of interest is not complete yet.
    fn advance(&mut self, delta: u64) -> bool {
        let bytes = delta.saturating_mul(self.fde.cie.code_factor);
        self.location = self.location.saturating_add(bytes);
        let late = u64::from(self.has(Bug::AdvanceLocOffByOne));
        let reached = self.location.wrapping_add(late) <= self.address;
        if reached && let Some(cfa) = self.late.take() {
            self.row.cfa = cfa;
        }
        reached
    }

    fn factored(&self, offset: i64) -> i64 {
        let factor = self.fde.cie.data_factor;
        let factor = if self.has(Bug::OffsetsAreAboveCfa) { factor.wrapping_abs() } else { factor };
        offset.wrapping_mul(factor)
    }

    fn set_offset(&mut self, offset: i64) -> Result<(), Error> {
        // Of two pending changes, the later one counts.
        let Cfa::Above(register, _) = self.late.unwrap_or(self.row.cfa) else {
            return Err(Error::BadTable);
        };
        let cfa = Cfa::Above(register, offset);
        if self.has(Bug::CfaAfterPush) && self.location > self.fde.begin {
            self.late = Some(cfa);
        } else {
            self.row.cfa = cfa;
        }
        Ok(())
    }

    fn rule(&mut self, register: u64, rule: Rule<'a>) {
        self.row.rules.insert(register, rule);
    }

    fn initial_rule(&mut self, register: u64) {
        match self.initial.rules.get(&register) {
            Some(rule) => self.row.rules.insert(register, *rule),
            None => self.row.rules.remove(&register),
        };
    }

    fn restore(&mut self) -> Result<(), Error> {
        if self.has(Bug::RestoreWithoutRemember) {
            self.row = self.initial.clone();
            return Ok(());
        }
        let cfa = self.row.cfa;
        self.row = self.remembered.pop().ok_or(Error::BadTable)?;
        if self.has(Bug::RestoreKeepsCfa) {
            self.row.cfa = cfa;
        }
        Ok(())
    }

    /// Executes an instruction. Returns false if the row of interest is complete.
    fn instruction(&mut self, program: &mut Reader<'a>) -> Result<bool, Error> {
        let opcode = program.u8()?;
        let low = u64::from(opcode & 0x3F);
        match opcode {
            // DW_CFA_advance_loc and its long forms
            0x40..=0x7F => return Ok(self.advance(low)),
            0x02 => return Ok(self.advance(program.u8()?.into())),
            0x03 => return Ok(self.advance(program.u16()?.into())),
            0x04 => return Ok(self.advance(program.u32()?.into())),
            // DW_CFA_offset, _extended, _extended_sf
            0x80..=0xBF => {
                let offset = self.factored(program.unsigned()?.cast_signed());
                self.rule(low, Rule::At(offset));
            }
            0x05 => {
                let register = program.unsigned()?;
                let offset = self.factored(program.unsigned()?.cast_signed());
                self.rule(register, Rule::At(offset));
            }
            0x11 => {
                let register = program.unsigned()?;
                let offset = self.factored(program.signed()?);
                self.rule(register, Rule::At(offset));
            }
            // DW_CFA_restore, _extended
            0xC0.. => self.initial_rule(low),
            0x06 => {
                let register = program.unsigned()?;
                self.initial_rule(register);
            }
            // DW_CFA_nop
            0x00 => {}
            // DW_CFA_undefined, same_value, register
            0x07 => {
                let register = program.unsigned()?;
                self.rule(register, Rule::Undefined);
            }
            0x08 => {
                let register = program.unsigned()?;
                self.rule(register, Rule::Same);
            }
            0x09 => {
                let register = program.unsigned()?;
                let other = program.unsigned()?;
                self.rule(register, Rule::In(other));
            }
            // DW_CFA_remember_state, restore_state
            0x0A => self.remembered.push(self.row.clone()),
            0x0B => self.restore()?,
            // DW_CFA_def_cfa, _register, _offset, and _sf
            0x0C => {
                let register = program.unsigned()?;
                self.row.cfa = Cfa::Above(register, program.unsigned()?.cast_signed());
            }
            0x12 => {
                let register = program.unsigned()?;
                // No planted bug affects this factored offset.
                let factor = self.fde.cie.data_factor;
                self.row.cfa = Cfa::Above(register, program.signed()?.wrapping_mul(factor));
            }
            0x0D => {
                let Cfa::Above(_, offset) = self.row.cfa else { return Err(Error::BadTable) };
                self.row.cfa = Cfa::Above(program.unsigned()?, offset);
            }
            0x0E => {
                let offset = program.unsigned()?.cast_signed();
                self.set_offset(offset)?;
            }
            0x13 => {
                let factor = self.fde.cie.data_factor;
                let offset = program.signed()?.wrapping_mul(factor);
                self.set_offset(offset)?;
            }
            // DW_CFA_def_cfa_expression, expression, val_expression
            0x0F => self.row.cfa = Cfa::Expression(block(program)?),
            0x10 => {
                let register = program.unsigned()?;
                let expression = block(program)?;
                self.rule(register, Rule::AtExpression(expression));
            }
            0x16 => {
                let register = program.unsigned()?;
                let expression = block(program)?;
                self.rule(register, Rule::ValueExpression(expression));
            }
            // DW_CFA_val_offset, _sf
            0x14 => {
                let register = program.unsigned()?;
                let offset = self.factored(program.unsigned()?.cast_signed());
                self.rule(register, Rule::Value(offset));
            }
            0x15 => {
                let register = program.unsigned()?;
                let offset = self.factored(program.signed()?);
                self.rule(register, Rule::Value(offset));
            }
            // DW_CFA_GNU_args_size
            0x2E => {
                let size = program.unsigned()?.cast_signed();
                if self.has(Bug::ArgumentsMoveCfa)
                    && let Cfa::Above(register, offset) = self.row.cfa
                {
                    self.row.cfa = Cfa::Above(register, offset.wrapping_add(size));
                }
            }
            _ => return Err(Error::BadTable),
        }
        Ok(true)
    }
}

fn block<'a>(program: &mut Reader<'a>) -> Result<Reader<'a>, Error> {
    let length = program.unsigned()?;
    program.part(length)
}
