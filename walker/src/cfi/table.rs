//! Compiled tables: what holds where, found without interpreting an instruction.

use super::error::{CfiError, FrameSection};
use super::row::{CfaRule, Expression, RegisterRule, Row};
use super::rule::{GeneralRule, Rule, USUAL_RETURN_ADDRESS};
use super::{compile, rows};
use crate::image::{CfiSections, Sections};
use crate::registers::Gpr;
use alloc::boxed::Box;
use core::ops::Range;

/// The call frame information of an image, compiled.
///
/// Every function's program of `.eh_frame` and `.debug_frame` has been run when the table was made;
/// the rules that they came to are kept once each. A look-up takes a bucket of addresses and the few
/// rows in it, a step the loads that its rule lists.
///
/// For libc.so.6 of glibc 2.36 (3,713 functions, 150 KiB of `.eh_frame`) there are 28,523 rows of 399
/// different rules in 357 KiB, made in about 1 ms; a step takes from a tenth to a seventeenth of what
/// it takes framehop with a new cache (`cargo bench -p clr-walker --bench dwarf`, on a busy machine).
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

/// What is known of an address.
pub(crate) enum Found<'t> {
    Simple(&'t Rule),
    General(&'t GeneralRule),
    Fault(CfiError),
    Nothing,
}

impl<'a> CfiTable<'a> {
    /// Compiles the call frame information of an image whose segments are `code`.
    ///
    /// What is malformed is left out, and counted by [`problems`](Self::problems); where a function's
    /// program is faulty, its rows up to there are kept, and a step from behind them is an error.
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

    /// The address that RVAs count from in the image's own addresses (VA).
    #[must_use]
    pub const fn preferred_base(&self) -> u64 {
        self.preferred_base
    }

    /// The functions that call frame information was found for, as ranges of RVAs, ascending.
    #[must_use]
    pub const fn functions(&self) -> &[Range<u32>] {
        &self.functions
    }

    /// The function that has a byte at `rva`.
    #[must_use]
    pub fn function(&self, rva: u32) -> Option<Range<u32>> {
        let after = self.functions.partition_point(|function| function.start <= rva);
        let function = self.functions.get(after.checked_sub(1)?)?;
        function.contains(&rva).then(|| function.clone())
    }

    /// How many entries and instructions could not be used.
    #[must_use]
    pub const fn problems(&self) -> u32 {
        self.problems
    }

    /// The first of them.
    #[must_use]
    pub const fn first_problem(&self) -> Option<CfiError> {
        self.first_problem
    }

    /// How many bytes the table takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.rows.size()
            + size_of_val(&*self.functions)
            + size_of_val(&*self.simple)
            + size_of_val(&*self.general)
            + size_of_val(&*self.registers)
            + size_of_val(&*self.faults)
    }

    /// How many rows there are, gaps between functions among them, and how many different rules.
    #[must_use]
    pub const fn counts(&self) -> [usize; 2] {
        [self.rows.len(), self.simple.len() + self.general.len()]
    }

    /// What is said of the instruction at `rva`, in DWARF's terms; `None` if nothing is.
    ///
    /// # Errors
    /// [`CfiError`] if the program of its function is faulty before it gets there.
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

    /// The bytes of an expression, none if it is not of this table.
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

    /// The register rules of a general rule.
    pub(crate) fn register_rules(&self, (first, count): (u32, u8)) -> &[(Gpr, RegisterRule)] {
        let from = self.registers.get(first as usize..);
        from.and_then(|rules| rules.get(..usize::from(count))).unwrap_or_default()
    }
}

impl CfaRule {
    /// Before anything is said.
    pub(super) const NONE: Self =
        Self::Register { register: super::row::Column(u16::MAX), offset: 0 };
}
