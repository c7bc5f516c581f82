//! Compiled tables, in which rules are found without interpreting an instruction.

use super::error::{CfiError, FrameSection};
use super::row::{CfaRule, Expression, RegisterRule, Row};
use super::rule::{GeneralRule, Rule, USUAL_RETURN_ADDRESS};
use super::{compile, rows};
use crate::image::{CfiSections, Sections};
use crate::registers::Gpr;
use alloc::boxed::Box;
use core::ops::Range;

/// The compiled call frame information of an image.
///
/// Making the table runs every function's program of `.eh_frame` and `.debug_frame`, and keeps each
/// distinct rule once. A look-up reads a bucket of addresses and the few rows in it; a step makes
/// the loads that its rule lists.
///
/// For libc.so.6 of glibc 2.36 (3,713 functions, 150 KiB of `.eh_frame`) there are 28,523 rows of
/// 399 distinct rules in 357 KiB, made in about 1 ms. A step takes between a tenth and a
/// seventeenth of the time that framehop takes with a new cache (`cargo bench -p clr-walker --bench
/// dwarf`, on a busy machine).
#[derive(Clone, Debug, Default)]
pub struct CfiTable<'a> {
    preferred_base: u64,
    eh_frame: &'a [u8],
    debug_frame: &'a [u8],
    rows: rows::Rows,
    functions: Box<[Range<u32>]>,
    simple: Box<[Rule]>,
    general: Box<[GeneralRule]>,
    registers: Box<[(Gpr, RegisterRule)]>,
    faults: Box<[CfiError]>,
    problems: u32,
    first_problem: Option<CfiError>,
}

/// The result of a look-up by address.
pub(crate) enum Found<'t> {
    Simple(&'t Rule),
    General(&'t GeneralRule),
    Fault(CfiError),
    Nothing,
}

impl<'a> CfiTable<'a> {
    /// Compiles the call frame information of an image whose segments are `code`.
    ///
    /// Malformed entries are left out and counted by [`problems`](Self::problems). If a function's
    /// program is faulty, its rows before the fault are kept, and a step from after the fault is an
    /// error.
    #[must_use]
    pub fn new(sections: &CfiSections<'a>, code: &Sections<'_>) -> Self {
        let eh_frame = sections.eh_frame.map_or(&[][..], |section| section.bytes);
        let debug_frame = sections.debug_frame.unwrap_or_default();
        let compiled = compile::compile(sections, code);
        Self {
            preferred_base: sections.preferred_base,
            eh_frame,
            debug_frame,
            rows: compiled.rows,
            functions: compiled.functions.into(),
            simple: compiled.rules.simple.into(),
            general: compiled.rules.general.into(),
            registers: compiled.rules.registers.into(),
            faults: compiled.rules.faults.into(),
            problems: compiled.problems,
            first_problem: compiled.first_problem,
        }
    }

    /// Returns the address that RVAs count from, in the image's own addresses (VA).
    #[must_use]
    pub const fn preferred_base(&self) -> u64 {
        self.preferred_base
    }

    /// Returns the functions with call frame information as ranges of RVAs, ascending.
    #[must_use]
    pub const fn functions(&self) -> &[Range<u32>] {
        &self.functions
    }

    /// Returns the function that contains `rva`.
    #[must_use]
    pub fn function(&self, rva: u32) -> Option<Range<u32>> {
        let after = self.functions.partition_point(|function| function.start <= rva);
        let function = self.functions.get(after.checked_sub(1)?)?;
        function.contains(&rva).then(|| function.clone())
    }

    /// Returns the number of entries and instructions that could not be used.
    #[must_use]
    pub const fn problems(&self) -> u32 {
        self.problems
    }

    /// Returns the first of the [`problems`](Self::problems).
    #[must_use]
    pub const fn first_problem(&self) -> Option<CfiError> {
        self.first_problem
    }

    /// Returns the size of the table in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.rows.size()
            + size_of_val(&*self.functions)
            + size_of_val(&*self.simple)
            + size_of_val(&*self.general)
            + size_of_val(&*self.registers)
            + size_of_val(&*self.faults)
    }

    /// Returns the number of rows, including gaps between functions, and the number of distinct
    /// rules.
    #[must_use]
    pub const fn counts(&self) -> [usize; 2] {
        [self.rows.len(), self.simple.len() + self.general.len()]
    }

    /// Returns the row for the instruction at `rva` in DWARF's terms; `None` if there is none.
    ///
    /// # Errors
    /// [`CfiError`] if the function's program is faulty before it gets to `rva`.
    pub fn row(&self, rva: u32) -> Result<Option<Row>, CfiError> {
        let range = self.rows.range(rva);
        let mut registers = [None; 16];
        Ok(Some(match self.find(rva) {
            Found::Nothing => return Ok(None),
            Found::Fault(error) => return Err(error),
            Found::Simple(rule) => {
                for (register, saved) in rule.saved() {
                    registers[register & 15] = Some(saved);
                }
                let return_address = Some(USUAL_RETURN_ADDRESS);
                Row { range, cfa: rule.cfa(), registers, return_address, signal_frame: false }
            }
            Found::General(rule) => {
                for (register, rule) in self.register_rules(rule.registers) {
                    registers[*register as usize] = Some(*rule);
                }
                let GeneralRule { cfa, return_address, signal_frame, .. } = *rule;
                Row { range, cfa, registers, return_address, signal_frame }
            }
        }))
    }

    /// Returns the bytes of an expression; empty if the expression is not from this table.
    #[must_use]
    pub fn expression(&self, expression: Expression) -> &'a [u8] {
        let section = match expression.section {
            FrameSection::EhFrame => self.eh_frame,
            FrameSection::DebugFrame => self.debug_frame,
        };
        let from = section.get(expression.offset as usize..);
        from.and_then(|bytes| bytes.get(..expression.len as usize)).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn find(&self, rva: u32) -> Found<'_> {
        let rule = self.rows.find(rva);
        if let Some(rule) = self.simple.get(rule.simple()) {
            return Found::Simple(rule);
        }
        self.find_other(rule)
    }

    #[cold]
    fn find_other(&self, rule: rows::RuleId) -> Found<'_> {
        if let Some(rule) = rule.general().and_then(|at| self.general.get(at)) {
            return Found::General(rule);
        }
        match rule.fault().and_then(|at| self.faults.get(at)) {
            Some(error) => Found::Fault(*error),
            None => Found::Nothing,
        }
    }

    /// Returns the register rules of a general rule.
    pub(crate) fn register_rules(&self, (first, count): (u32, u8)) -> &[(Gpr, RegisterRule)] {
        let from = self.registers.get(first as usize..);
        from.and_then(|rules| rules.get(..usize::from(count))).unwrap_or_default()
    }
}

impl CfaRule {
    /// The state before any instruction.
    pub(super) const NONE: Self =
        Self::Register { register: super::row::Column(u16::MAX), offset: 0 };
}
