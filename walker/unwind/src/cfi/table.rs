//! Tables of call frame information.

use super::compile::{self, Compiled};
use super::entry::{CodeRanges, Frames};
use super::error::{CfiError, FrameSection};
use super::lazy::{self, Lazy};
use super::row::{Expression, RegisterRule, Row};
use super::rows;
use super::rule::{General, GeneralRule, Rule, USUAL_RETURN_ADDRESS};
use super::scan::Problems;
use crate::image::{CfiSections, Sections};
use crate::registers::Gpr;
use alloc::boxed::Box;
use core::ops::Range;

/// The call frame information of an image: `.eh_frame` and `.debug_frame`.
///
/// Of functions that begin at the same address the first counts, and `.eh_frame` before
/// `.debug_frame`; a function ends where the next one begins. See the [module](super) on the two
/// kinds of tables.
#[derive(Clone, Debug, Default)]
pub struct CfiTable<'a> {
    preferred_base: u64,
    eh_frame: &'a [u8],
    debug_frame: &'a [u8],
    content: Content<'a>,
}

#[derive(Clone, Debug)]
enum Content<'a> {
    Eager(Eager),
    Lazy(Lazy<'a>),
}

impl Default for Content<'_> {
    fn default() -> Self {
        Self::Eager(Eager::default())
    }
}

/// All rows of an image, with each distinct rule once. A look-up reads a bucket of addresses and the
/// few rows in it.
#[derive(Clone, Debug, Default)]
struct Eager {
    rows: rows::Rows,
    functions: Box<[Range<u32>]>,
    simple: Box<[Rule]>,
    general: Box<[GeneralRule]>,
    registers: Box<[(Gpr, RegisterRule)]>,
    faults: Box<[CfiError]>,
    problems: Problems,
}

/// The result of a look-up by address.
pub(crate) enum Found {
    Simple(Rule),
    /// Another rule, which [`CfiTable::general`] returns.
    General,
    Fault(CfiError),
    Nothing,
}

impl<'a> CfiTable<'a> {
    /// Compiles the call frame information of an image whose segments are `code`.
    ///
    /// Malformed entries are left out and counted by [`problems`](Self::problems). If a function's
    /// program is faulty, its rows before the fault are kept, and a step from after the fault is an
    /// error.
    ///
    /// For libc.so.6 of glibc 2.36 (3,713 functions, 150 KiB of `.eh_frame`) there are 28,523 rows of
    /// 399 distinct rules in 357 KiB, made in about 1 ms; for libLLVM, 11 MB in 115 ms.
    pub fn new(sections: &CfiSections<'a>, code: &Sections<'_>) -> Self {
        let Compiled { rows, functions, rules, problems } =
            compile::compile(&Frames::both(sections), &CodeRanges::new(code));
        let content = Content::Eager(Eager {
            rows,
            functions: functions.into(),
            simple: rules.usual.into(),
            general: rules.unusual.into(),
            registers: rules.registers.into(),
            faults: rules.faults.into(),
            problems,
        });
        Self::of(sections, content)
    }

    /// Creates a table that compiles the call frame information of an image whose segments are
    /// `code` when steps first need it. It answers as [`new`](Self::new) does, with these
    /// exceptions:
    ///
    /// * If there is an `.eh_frame_hdr`, its table counts. An entry that it does not list is not
    ///   found, and one that it lists at a wrong address is an error.
    /// * [`problems`](Self::problems) are those of making the index; with an `.eh_frame_hdr`, none.
    /// * A look-up of an address that has no slot takes time in proportion to the length of its
    ///   function's program.
    /// * A rule of unusual form is never one too many ([`CfiProblem::TooManyRules`]).
    /// * A function that a return enters is known by its bytes, and left by its `ret`
    ///   ([`Trust::ReturnInstruction`](crate::Trust::ReturnInstruction)).
    ///
    /// [`CfiProblem::TooManyRules`]: super::CfiProblem::TooManyRules
    pub fn lazy(sections: &CfiSections<'a>, code: &Sections<'_>) -> Self {
        Self::of(sections, Content::Lazy(Lazy::new(sections, code)))
    }

    /// Returns the table with the bytes of its image, of which a lazy one remembers where calls are.
    pub(crate) fn with_bytes(self, bytes: Sections<'a>) -> Self {
        let content = match self.content {
            Content::Lazy(lazy) => Content::Lazy(lazy.with_bytes(bytes)),
            eager @ Content::Eager(_) => eager,
        };
        Self { content, ..self }
    }

    /// Returns true if a step from a return address behind the byte at `rva` was made before, and a call
    /// comes before it. False says nothing.
    #[inline]
    pub(crate) fn is_known_call(&self, rva: u32) -> bool {
        match &self.content {
            Content::Lazy(lazy) => lazy.is_known_call(rva),
            Content::Eager(_) => false,
        }
    }

    fn of(sections: &CfiSections<'a>, content: Content<'a>) -> Self {
        Self {
            preferred_base: sections.preferred_base,
            eh_frame: sections.eh_frame.map_or(&[], |section| section.bytes),
            debug_frame: sections.debug_frame.unwrap_or_default(),
            content,
        }
    }

    /// Returns the address that RVAs count from, in the image's own addresses (VA).
    pub const fn preferred_base(&self) -> u64 {
        self.preferred_base
    }

    /// Returns the functions with call frame information as ranges of RVAs, ascending.
    pub const fn functions(&self) -> Functions<'_, 'a> {
        Functions { table: self, next: 0, end: 0 }
    }

    /// Returns the function that contains `rva`.
    pub fn function(&self, rva: u32) -> Option<Range<u32>> {
        let functions = match &self.content {
            Content::Lazy(lazy) => return lazy.function(rva),
            Content::Eager(eager) => &eager.functions,
        };
        let after = functions.partition_point(|function| function.start <= rva);
        let function = functions.get(after.checked_sub(1)?)?;
        function.contains(&rva).then(|| function.clone())
    }

    /// Returns the number of entries and instructions that could not be used.
    pub const fn problems(&self) -> u32 {
        self.all_problems().count
    }

    /// Returns the first of the [`problems`](Self::problems).
    pub const fn first_problem(&self) -> Option<CfiError> {
        self.all_problems().first
    }

    const fn all_problems(&self) -> Problems {
        match &self.content {
            Content::Eager(eager) => eager.problems,
            Content::Lazy(lazy) => lazy.problems,
        }
    }

    /// Returns the size of the table in bytes, without the sections that it reads.
    pub fn size(&self) -> usize {
        match &self.content {
            Content::Lazy(lazy) => lazy.size(),
            Content::Eager(eager) => {
                eager.rows.size()
                    + size_of_val(&*eager.functions)
                    + size_of_val(&*eager.simple)
                    + size_of_val(&*eager.general)
                    + size_of_val(&*eager.registers)
                    + size_of_val(&*eager.faults)
            }
        }
    }

    /// Returns the number of compiled rows, including gaps between functions, and the number of
    /// distinct rules; zeros for a lazy table.
    pub const fn counts(&self) -> [usize; 2] {
        match &self.content {
            Content::Eager(Eager { rows, simple, general, .. }) => {
                [rows.len(), simple.len() + general.len()]
            }
            Content::Lazy(_) => [0; 2],
        }
    }

    /// Returns the row for the instruction at `rva` in DWARF's terms; `None` if there is none.
    ///
    /// # Errors
    /// [`CfiError`] if the function's program is faulty before it gets to `rva`.
    pub fn row(&self, rva: u32) -> Result<Option<Row>, CfiError> {
        let eager = match &self.content {
            Content::Lazy(lazy) => {
                let mut general = General::new();
                return Ok(lazy.row(rva, &mut general)?.then_some(general.row));
            }
            Content::Eager(eager) => eager,
        };
        let range = eager.rows.range(rva);
        let mut registers = [None; 16];
        Ok(Some(match eager.find(rva) {
            Found::Nothing => return Ok(None),
            Found::Fault(error) => return Err(error),
            Found::Simple(rule) => {
                for (register, saved) in rule.saved() {
                    registers[register & 15] = Some(saved);
                }
                let return_address = Some(RegisterRule::Offset(USUAL_RETURN_ADDRESS));
                Row { range, cfa: rule.cfa(), registers, return_address, signal_frame: false }
            }
            Found::General => {
                let mut general = General::new();
                return Ok(eager.general(rva, &mut general).map(|()| general.row));
            }
        }))
    }

    /// Returns the bytes of an expression; empty if the expression is not from this table.
    pub fn expression(&self, expression: Expression) -> &'a [u8] {
        let section = match expression.section {
            FrameSection::EhFrame => self.eh_frame,
            FrameSection::DebugFrame => self.debug_frame,
        };
        let from = section.get(expression.offset as usize..);
        from.and_then(|bytes| bytes.get(..expression.len as usize)).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn find(&self, rva: u32) -> Found {
        match &self.content {
            Content::Eager(eager) => eager.find(rva),
            Content::Lazy(lazy) => match lazy.find(rva) {
                lazy::Compiled::Simple(rule) => Found::Simple(rule),
                lazy::Compiled::General => Found::General,
                lazy::Compiled::Fault(error) => Found::Fault(error),
                lazy::Compiled::Nothing => Found::Nothing,
            },
        }
    }

    /// Returns the first instruction (RVA) of those that have the same row as the one at `rva`.
    #[cold]
    #[doc(hidden)]
    pub fn row_start(&self, rva: u32) -> Option<u32> {
        match &self.content {
            Content::Eager(eager) => Some(eager.rows.range(rva).start),
            Content::Lazy(lazy) => lazy.row_start(rva),
        }
    }

    /// Finds the row at `rva`, whose rule is a general one. Returns false if there is none.
    #[cold]
    pub(crate) fn general(&self, rva: u32, general: &mut General) -> bool {
        match &self.content {
            Content::Eager(eager) => eager.general(rva, general).is_some(),
            Content::Lazy(lazy) => lazy.row(rva, general).unwrap_or(false),
        }
    }
}

impl Eager {
    #[inline]
    fn find(&self, rva: u32) -> Found {
        let rule = self.rows.find(rva);
        if let Some(rule) = self.simple.get(rule.simple()) {
            return Found::Simple(*rule);
        }
        self.find_other(rule)
    }

    #[cold]
    fn find_other(&self, rule: rows::RuleId) -> Found {
        if rule.general().is_some() {
            return Found::General;
        }
        match rule.fault().and_then(|at| self.faults.get(at)) {
            Some(error) => Found::Fault(*error),
            None => Found::Nothing,
        }
    }

    fn general(&self, rva: u32, general: &mut General) -> Option<()> {
        let rule = self.general.get(self.rows.find(rva).general()?)?;
        let (first, count) = rule.registers;
        let rules = self.registers.get(first as usize..)?.get(..usize::from(count))?;
        let Row { range, cfa, registers, return_address, signal_frame } = &mut general.row;
        *registers = [None; 16];
        for (register, rule) in rules {
            registers[*register as usize & 15] = Some(*rule);
        }
        (*cfa, *return_address, *signal_frame) = (rule.cfa, rule.return_address, rule.signal_frame);
        *range = self.rows.range(rva);
        general.place = rule.place;
        Some(())
    }
}

/// The functions of a table as ranges of RVAs, ascending. See [`CfiTable::functions`].
#[derive(Clone, Debug)]
pub struct Functions<'t, 'a> {
    table: &'t CfiTable<'a>,
    /// Index of the next function.
    next: usize,
    /// End of the last function (RVA).
    end: u32,
}

impl Iterator for Functions<'_, '_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        let count = match &self.table.content {
            Content::Lazy(lazy) => lazy.listed(),
            Content::Eager(eager) => eager.functions.len(),
        };
        while self.next < count {
            let function = match &self.table.content {
                Content::Lazy(lazy) => lazy.function_at(self.next),
                Content::Eager(eager) => eager.functions.get(self.next).cloned(),
            };
            self.next += 1;
            if let Some(function) = function.filter(|function| function.start >= self.end) {
                self.end = function.end;
                return Some(function);
            }
        }
        None
    }
}
