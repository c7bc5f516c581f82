//! Sections of call frame information → rows: one pass over the entries.

use super::bytes::{Bases, Bytes};
use super::error::{CfiError, CfiProblem, FrameSection};
use super::program::{Fault, Programs, State, Terms};
use super::row::Column;
use super::rows::{Rows, RowsBuilder, RuleId};
use super::rule::Place;
use super::rules::Rules;
use crate::image::{CfiSections, Section, Sections};
use alloc::vec::Vec;
use core::ops::Range;
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian, UnwindSection as _, constants};

const ADDRESS_SIZE: u8 = 8;

/// The result of compilation.
pub(super) struct Compiled {
    pub(super) rows: Rows,
    pub(super) functions: Vec<Range<u32>>,
    pub(super) rules: Rules,
    pub(super) problems: u32,
    pub(super) first_problem: Option<CfiError>,
}

/// The rows of one FDE.
struct Function {
    begin: u32,
    end: u32,
    /// Index of the first row, in the order of the entries.
    first: u32,
    count: u32,
    section: FrameSection,
}

pub(super) fn compile(sections: &CfiSections<'_>, code: &Sections<'_>) -> Compiled {
    let len = sections.eh_frame.map_or(0, |section| section.bytes.len())
        + sections.debug_frame.map_or(0, <[u8]>::len);
    let mut compiler = Compiler {
        base: sections.preferred_base,
        code,
        last_code: 0..0,
        rows: RowsBuilder::with_capacity(len / 4),
        functions: Vec::with_capacity(len / 32),
        rules: Rules::new(len),
        problems: 0,
        first_problem: None,
    };
    let address = |rva: u32| sections.preferred_base.wrapping_add(u64::from(rva));
    let bases =
        Bases { section: None, text: sections.text.map(address), data: sections.got.map(address) };
    if let Some(Section { rva, bytes, .. }) = sections.eh_frame {
        let bases = Bases { section: Some(address(rva)), ..bases };
        compiler.section(bytes, FrameSection::EhFrame, bases);
    }
    if let Some(bytes) = sections.debug_frame {
        compiler.section(bytes, FrameSection::DebugFrame, bases);
    }
    compiler.finish()
}

struct Compiler<'c, 'd> {
    base: u64,
    code: &'c Sections<'d>,
    /// The executable range of the last function.
    last_code: Range<u32>,
    /// Rows in the order of the entries.
    rows: RowsBuilder,
    functions: Vec<Function>,
    rules: Rules,
    problems: u32,
    first_problem: Option<CfiError>,
}

/// An offset at which there is no CIE.
const NOWHERE: usize = usize::MAX;

/// An entry of a section, with its content unread.
struct Entry<'a> {
    /// The bytes after the entry's id.
    content: Bytes<'a>,
    end: usize,
    /// Offset of the CIE of an FDE; `None` for a CIE.
    cie: Option<usize>,
}

impl<'a> Entry<'a> {
    /// Reads the entry at `offset`; `None` if its length is 0.
    #[inline]
    fn read(
        section: &'a [u8],
        offset: usize,
        kind: FrameSection,
    ) -> Result<Option<Self>, CfiProblem> {
        let mut bytes = Bytes::new(section, offset, section.len())?;
        let short = bytes.u32()?;
        let length = match short {
            0 => return Ok(None),
            u32::MAX => bytes.u64()?,
            length => length.into(),
        };
        let start = bytes.offset();
        let length = usize::try_from(length).map_err(|_| CfiProblem::CutOff)?;
        let end = start.checked_add(length).ok_or(CfiProblem::CutOff)?;
        let mut content = Bytes::new(section, start, end)?;
        let cie = match kind {
            FrameSection::EhFrame => match content.u32()? {
                0 => None,
                back => Some(start.checked_sub(back as usize).unwrap_or(NOWHERE)),
            },
            FrameSection::DebugFrame => {
                let long = short == u32::MAX;
                let id = if long { content.u64()? } else { content.u32()?.into() };
                let cie = if long { u64::MAX } else { u32::MAX.into() };
                (id != cie).then_some(usize::try_from(id).unwrap_or(NOWHERE))
            }
        };
        Ok(Some(Self { content, end, cie }))
    }
}

impl Compiler<'_, '_> {
    fn problem(&mut self, error: CfiError) {
        self.problems = self.problems.saturating_add(1);
        self.first_problem.get_or_insert(error);
    }

    fn section(&mut self, bytes: &[u8], kind: FrameSection, bases: Bases) {
        // Offsets are kept in 32 bits.
        let bytes = bytes.get(..u32::MAX as usize).unwrap_or(bytes);
        let mut programs = Programs::default();
        let mut cies = Cies {
            bytes,
            kind,
            bases,
            base: self.base,
            known: Vec::new(),
            last: 0,
            stray: None,
            stray_bytes: bytes.len(),
        };
        let mut offset = 0;
        while offset < bytes.len() {
            let place = Place { section: kind, offset: offset as u32 };
            match Entry::read(bytes, offset, kind) {
                Ok(Some(entry)) => {
                    let compiled = self.entry(&entry, place, &mut cies, &mut programs);
                    if let Err(problem) = compiled {
                        self.problem(place.error(problem));
                    }
                    offset = entry.end;
                }
                // Old assemblers leave lengths of 0 in .debug_frame.
                Ok(None) if kind == FrameSection::DebugFrame => offset += 4,
                Ok(None) => break,
                // The length is unusable, so the next entry cannot be found.
                Err(problem) => {
                    self.problem(place.error(problem));
                    break;
                }
            }
        }
    }

    /// Compiles the entry at `place` if it is an FDE, or keeps it for its FDEs if it is a CIE.
    #[inline]
    fn entry(
        &mut self,
        entry: &Entry<'_>,
        place: Place,
        cies: &mut Cies<'_>,
        programs: &mut Programs,
    ) -> Result<(), CfiProblem> {
        let Some(cie) = entry.cie else {
            cies.add(place.offset as usize, programs);
            return Ok(());
        };
        let cie = cies.get(cie, programs)?;
        let mut bytes = entry.content;
        let encoding = cie.terms.encoding;
        let address = cie.terms.bases.pointer(&mut bytes, encoding, None)?;
        let len = bytes.encoded_value(encoding)?;
        if cie.has_augmentation_data {
            let len = bytes.uleb()?;
            bytes.skip(len)?;
        }
        let Some((begin, end)) = self.code_range(address, len) else {
            // The function's section was dropped by the linker.
            return Ok(());
        };
        let first = self.rows.len();
        let Self { rows, rules, .. } = self;
        let mut emit = |start: u32, state: &State| {
            rows.push(start, rules.intern(state, cie.signal_frame, place), first);
        };
        let run = programs.run(bytes, &cie.terms, Some(&cie.initial), begin..end, &mut emit);
        if let Err(Fault { problem, offset, location }) = run {
            let error = CfiError { problem, section: place.section, offset: offset as u32 };
            rows.push(location, rules.fault(error), first);
            self.problem(error);
        }
        self.functions.push(Function {
            begin,
            end,
            first: first as u32,
            count: (self.rows.len() - first) as u32,
            section: place.section,
        });
        Ok(())
    }

    /// Returns the RVAs of a function, if it is in code of the image.
    fn code_range(&mut self, address: u64, len: u64) -> Option<(u32, u32)> {
        let begin = u32::try_from(address.checked_sub(self.base)?).ok()?;
        if !self.last_code.contains(&begin) {
            let section = self.code.find(begin).filter(|section| section.executable)?;
            let end = u64::from(section.rva) + section.bytes.len() as u64;
            self.last_code = section.rva..u32::try_from(end).unwrap_or(u32::MAX);
        }
        let end = u64::from(begin).saturating_add(len).min(self.last_code.end.into());
        (u64::from(begin) < end).then_some((begin, end as u32))
    }

    /// Sorts the functions by address and removes overlaps.
    fn finish(mut self) -> Compiled {
        let ascending = self.functions.is_sorted_by_key(|function| function.begin);
        if !ascending {
            self.functions.sort_by_key(|function| function.begin);
        }
        // Of functions that begin at the same address the first counts, and .eh_frame before
        // .debug_frame.
        let mut kept: Vec<Function> = Vec::with_capacity(self.functions.len());
        for function in self.functions {
            let Function { begin, section, .. } = function;
            match kept.last_mut() {
                Some(last) if last.begin == begin => {
                    if last.section == FrameSection::DebugFrame && section == FrameSection::EhFrame
                    {
                        *last = function;
                    }
                }
                Some(last) if last.end > begin && section == FrameSection::DebugFrame => {}
                Some(last) => {
                    last.end = last.end.min(begin);
                    kept.push(function);
                }
                None => kept.push(function),
            }
        }
        let mut rows = RowsBuilder::with_capacity(self.rows.len() + kept.len() + 2);
        let mut end = 0;
        for function in &kept {
            if function.begin != end {
                rows.push(end, RuleId::NOTHING, 0);
            }
            end = function.end;
            let first = function.first as usize;
            for row in self.rows.get(first..first + function.count as usize) {
                if row.start < end {
                    rows.push(row.start, row.rule, 0);
                }
            }
        }
        rows.push(end, RuleId::NOTHING, 0);
        Compiled {
            rows: rows.finish(),
            functions: kept.iter().map(|function| function.begin..function.end).collect(),
            rules: self.rules,
            problems: self.problems,
            first_problem: self.first_problem,
        }
    }
}

/// The part of a CIE that its FDEs need.
struct Cie {
    terms: Terms,
    signal_frame: bool,
    has_augmentation_data: bool,
    initial: State,
}

/// The CIEs of a section that were found so far.
struct Cies<'a> {
    bytes: &'a [u8],
    kind: FrameSection,
    bases: Bases,
    base: u64,
    /// Ascending by offset.
    known: Vec<(usize, Result<Cie, CfiProblem>)>,
    /// Index of the CIE that was used last.
    last: usize,
    /// A CIE that comes after its FDE, or is at no entry.
    stray: Option<(usize, Cie)>,
    /// Number of bytes of stray CIEs that may still be read: a hostile section could have as many
    /// as it has FDEs.
    stray_bytes: usize,
}

impl Cies<'_> {
    /// Adds the CIE at `offset`, which is after all others, for its FDEs. If it is malformed, they
    /// report it.
    fn add(&mut self, offset: usize, programs: &mut Programs) {
        let cie = self.read(offset, programs);
        self.known.push((offset, cie));
    }

    #[inline]
    fn get(&mut self, offset: usize, programs: &mut Programs) -> Result<&Cie, CfiProblem> {
        if self.known.get(self.last).is_none_or(|(known, _)| *known != offset) {
            match self.known.binary_search_by_key(&offset, |(known, _)| *known) {
                Ok(at) => self.last = at,
                Err(_) => return self.stray(offset, programs),
            }
        }
        match self.known.get(self.last) {
            Some((_, Ok(cie))) => Ok(cie),
            Some((_, Err(problem))) => Err(*problem),
            None => Err(CfiProblem::Cie),
        }
    }

    #[cold]
    fn stray(&mut self, offset: usize, programs: &mut Programs) -> Result<&Cie, CfiProblem> {
        if self.stray.as_ref().is_none_or(|(known, _)| *known != offset) {
            let entry = Entry::read(self.bytes, offset, self.kind).ok().flatten();
            let entry = entry.ok_or(CfiProblem::Cie)?;
            let left = self.stray_bytes.checked_sub(entry.end - offset);
            self.stray_bytes = left.ok_or(CfiProblem::Cie)?;
            self.stray = Some((offset, self.read(offset, programs)?));
        }
        self.stray.as_ref().map(|(_, cie)| cie).ok_or(CfiProblem::Cie)
    }

    /// Reads the CIE at `offset` and runs its instructions.
    fn read(&self, offset: usize, programs: &mut Programs) -> Result<Cie, CfiProblem> {
        let bases = self.bases;
        let mut gimli_bases = BaseAddresses::default();
        if let Some(section) = bases.section {
            gimli_bases = gimli_bases.set_eh_frame(section);
        }
        // A personality may be relative to these; it is not needed here.
        gimli_bases =
            gimli_bases.set_text(bases.text.unwrap_or(0)).set_got(bases.data.unwrap_or(0));
        let parsed = match self.kind {
            FrameSection::EhFrame => {
                let mut section = EhFrame::new(self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE);
                section.cie_from_offset(&gimli_bases, offset.into())
            }
            FrameSection::DebugFrame => {
                let mut section = DebugFrame::new(self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE);
                section.cie_from_offset(&gimli_bases, offset.into())
            }
        };
        let parsed = parsed.map_err(|_| CfiProblem::Cie)?;
        if parsed.address_size() != ADDRESS_SIZE {
            return Err(CfiProblem::Cie);
        }
        let terms = Terms {
            section: self.kind,
            code_alignment: parsed.code_alignment_factor(),
            data_alignment: parsed.data_alignment_factor(),
            return_address: Column(parsed.return_address_register().0),
            encoding: parsed.fde_address_encoding().unwrap_or(constants::DW_EH_PE_absptr),
            bases,
            preferred_base: self.base,
        };
        let entry = Entry::read(self.bytes, offset, self.kind)?.ok_or(CfiProblem::Cie)?;
        let (has_augmentation_data, instructions) =
            instructions(entry.content, self.kind, parsed.version())?;
        let mut initial = State::NEW;
        let mut emit = |_: u32, state: &State| initial = *state;
        let run = programs.run(instructions, &terms, None, 0..1, &mut emit);
        run.map_err(|fault| fault.problem)?;
        let signal_frame = parsed.is_signal_trampoline();
        Ok(Cie { terms, signal_frame, has_augmentation_data, initial })
    }
}

/// Returns true if the FDEs of a well-formed CIE have augmentation data, together with
/// the CIE's instructions.
fn instructions(
    mut cie: Bytes<'_>,
    kind: FrameSection,
    version: u8,
) -> Result<(bool, Bytes<'_>), CfiProblem> {
    cie.u8()?;
    let has_augmentation_data = cie.peek() == Some(b'z');
    cie.skip_string()?;
    if version >= 4 && kind == FrameSection::DebugFrame {
        // Sizes of addresses and segment selectors.
        cie.skip(2)?;
    }
    cie.uleb()?;
    cie.sleb()?;
    if version == 1 {
        cie.u8()?;
    } else {
        cie.uleb()?;
    }
    if has_augmentation_data {
        let len = cie.uleb()?;
        cie.skip(len)?;
    }
    Ok((has_augmentation_data, cie))
}
