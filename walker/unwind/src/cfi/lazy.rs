//! Tables whose functions are compiled when a step first needs them.

use super::entry::{Cie, CodeRanges, Fde, Frames};
use super::error::{CfiError, CfiProblem, FrameSection};
use super::index::{Header, Index, find};
use super::program::{Fault, Remembered, State};
use super::row::CfaRule;
use super::rule::{General, Place, Rule};
use super::scan::Problems;
use crate::image::{CfiSections, Sections};
use crate::registers::Gpr;
use crate::rule_slots::{CodePlace, RuleSlots};
use crate::x64::ends_in_call;
use core::ops::{ControlFlow, Range};

/// Maximum number of unusable entries that a look-up passes over. Linkers write hardly any.
const PASSED_LIMIT: usize = 16;

/// Limits of the number of [`RuleSlots`]: from 8 KiB to 256 KiB.
const SLOTS: Range<usize> = 256..8192;

/// The sections, the index of their functions, and the rules compiled so far.
#[derive(Clone, Debug)]
pub(super) struct Lazy<'a> {
    sections: [Frames<'a>; 2],
    code: CodeRanges,
    /// The bytes of the image, if they are known.
    bytes: Sections<'a>,
    index: Index<'a>,
    slots: RuleSlots<{ Rule::WORDS }>,
    pub(super) problems: Problems,
}

/// The result of a look-up.
pub(super) enum Compiled {
    Simple(Rule),
    General,
    Fault(CfiError),
    Nothing,
}

/// A function that was found, and its entry.
struct Entry<'a> {
    cie: Cie<'a>,
    fde: Fde<'a>,
    place: Place,
    /// The function's range as far as no other begins (RVAs).
    range: Range<u32>,
}

impl<'a> Lazy<'a> {
    pub(super) fn new(sections: &CfiSections<'a>, code: &Sections<'_>) -> Self {
        let (both, code) = (Frames::both(sections), CodeRanges::new(code));
        let mut problems = Problems::default();
        let index = Index::new(sections, &both, &code, &mut problems);
        let slots = RuleSlots::new((index.len() / 2).clamp(SLOTS.start, SLOTS.end));
        Self { sections: both, code, bytes: Sections::default(), index, slots, problems }
    }

    pub(super) fn with_bytes(self, bytes: Sections<'a>) -> Self {
        Self { bytes, ..self }
    }

    /// Returns the size of what was made, in bytes.
    pub(super) fn size(&self) -> usize {
        self.index.size() + self.slots.size()
    }

    #[inline]
    pub(super) fn find(&self, rva: u32) -> Compiled {
        match self.slots.get(CodePlace::called(rva)) {
            Some(slot) => Compiled::Simple(Rule::from_slot(slot)),
            None => self.compile(rva),
        }
    }

    /// Runs the program of the function at `rva` up to there, and keeps the rule if it is simple.
    #[cold]
    #[inline(never)]
    fn compile(&self, rva: u32) -> Compiled {
        let entry = match self.entry(rva) {
            Ok(Some(entry)) => entry,
            Ok(None) => return Compiled::Nothing,
            Err(error) => return Compiled::Fault(error),
        };
        let mut state = State::NEW;
        if let Err(error) = entry.run_to(rva, &mut state) {
            return Compiled::Fault(error);
        }
        if self.may_be_entered_by_return(&entry) {
            return Compiled::General;
        }
        let saved = state.saved().filter(|_| !entry.cie.signal_frame);
        let root = || (state.is_root() && !entry.cie.signal_frame).then(Rule::root);
        match saved.and_then(|saved| state.with_cfa(saved)).or_else(root) {
            Some(rule) => {
                let rule = if self.is_call(rva) { rule.after_call() } else { rule };
                self.slots.put(CodePlace::called(rva), rule.to_words());
                Compiled::Simple(rule)
            }
            None => Compiled::General,
        }
    }

    /// Returns true if the function may be one that a return enters, with a return address in the word
    /// below the one that its rows name: it begins with `push rax`, which makes room for a word, and at its
    /// last `ret` the rows still count that word. The whole code decides
    /// ([`General::may_be_entered_by_return`]).
    fn may_be_entered_by_return(&self, entry: &Entry<'_>) -> bool {
        const PUSH_RAX: u8 = 0x50;
        const RET: u8 = 0xC3;
        let Range { start, end } = entry.range;
        let last = end.saturating_sub(1);
        let is = |rva, byte| self.bytes.bytes_from(rva).and_then(<[u8]>::first) == Some(&byte);
        if !is(start, PUSH_RAX) || !is(last, RET) {
            return false;
        }
        let mut state = State::NEW;
        let cfa = entry.run_to(last, &mut state).map(|_| state.cfa(&entry.cie.terms));
        cfa == Ok(CfaRule::Register { register: Gpr::Rsp.into(), offset: 16 })
    }

    /// Returns true if the bytes up to the one at `rva` end in a call.
    fn is_call(&self, rva: u32) -> bool {
        let start = rva.checked_sub(6).and_then(|start| self.bytes.bytes_from(start));
        start.and_then(<[u8]>::first_chunk).is_some_and(|bytes| ends_in_call(*bytes))
    }

    /// Returns true if the rule at `rva` is known, and so is that the instruction which ends there is a
    /// call.
    #[inline]
    pub(super) fn is_known_call(&self, rva: u32) -> bool {
        self.slots.get(CodePlace::called(rva)).is_some_and(Rule::is_after_call)
    }

    /// Finds the row at `rva`. Returns false if there is none.
    #[inline(never)]
    pub(super) fn row(&self, rva: u32, general: &mut General) -> Result<bool, CfiError> {
        let Some(entry) = self.entry(rva)? else { return Ok(false) };
        let mut state = State::NEW;
        general.row.range = entry.run_to(rva, &mut state)?;
        let terms = &entry.cie.terms;
        general.row.registers = [None; 16];
        for (register, rule) in state.registers(terms) {
            if let Some(slot) = general.row.registers.get_mut(register as usize) {
                *slot = Some(rule);
            }
        }
        general.row.cfa = state.cfa(terms);
        general.row.return_address = state.return_address(terms);
        general.row.signal_frame = entry.cie.signal_frame;
        general.place = entry.place;
        general.may_be_entered_by_return = self.may_be_entered_by_return(&entry);
        Ok(true)
    }

    /// Returns the first instruction (RVA) of those that have the same row as the one at `rva`.
    pub(super) fn row_start(&self, rva: u32) -> Option<u32> {
        let mut state = State::NEW;
        Some(self.entry(rva).ok()??.run_to(rva, &mut state).ok()?.start)
    }

    /// Returns the function that contains `rva` (RVAs).
    pub(super) fn function(&self, rva: u32) -> Option<Range<u32>> {
        match &self.index {
            Index::Made(functions) => Some(find(functions, rva)?.range.clone()),
            Index::Header(header) => Some(self.entry_by(header, rva).ok()??.range),
        }
    }

    /// Returns the number of functions that the index lists.
    pub(super) const fn listed(&self) -> usize {
        self.index.len()
    }

    /// Returns the function that the index lists at place `at`, if its entry can be used.
    pub(super) fn function_at(&self, at: usize) -> Option<Range<u32>> {
        match &self.index {
            Index::Made(functions) => Some(functions.get(at)?.range.clone()),
            Index::Header(header) => self.function(header.get(at)?.begin),
        }
    }

    /// Reads the entry of the function at `rva`.
    #[inline(never)]
    fn entry(&self, rva: u32) -> Result<Option<Entry<'_>>, CfiError> {
        let functions = match &self.index {
            Index::Header(header) => return self.entry_by(header, rva),
            Index::Made(functions) => functions,
        };
        let Some(function) = find(functions, rva) else { return Ok(None) };
        let [eh_frame, debug_frame] = &self.sections;
        let frames = match function.section {
            FrameSection::EhFrame => eh_frame,
            FrameSection::DebugFrame => debug_frame,
        };
        let offset = function.content as usize;
        let place = frames.place(offset);
        // It could be read when the index was made.
        let read = self.read(frames, offset).map_err(|problem| place.error(problem))?;
        let range = function.range.clone();
        Ok(read.map(|(cie, fde)| Entry { cie, fde, place, range }))
    }

    /// Reads the entry of the function at `rva` by the header.
    fn entry_by(&self, header: &Header<'_>, rva: u32) -> Result<Option<Entry<'_>>, CfiError> {
        let [frames, _] = &self.sections;
        let after = header.after(rva);
        let mut best: Option<(usize, Cie<'_>, Fde<'_>)> = None;
        for at in (after.saturating_sub(PASSED_LIMIT)..after).rev() {
            let Some(entry) = header.get(at) else { break };
            let begins = |fde: &Fde<'_>| fde.range.start;
            if best.as_ref().is_some_and(|(.., fde)| begins(fde) != entry.begin) {
                break;
            }
            // Entries that cannot be used are left out, as if the header did not list them.
            let Ok(Some((cie, fde))) = self.read(frames, entry.offset) else { continue };
            if begins(&fde) != entry.begin {
                return Err(frames.place(entry.offset).error(CfiProblem::Header));
            }
            // Of functions that begin at the same address the first of the section counts.
            if best.as_ref().is_none_or(|(first, ..)| entry.offset < *first) {
                best = Some((entry.offset, cie, fde));
            }
        }
        let Some((offset, cie, fde)) = best.filter(|(.., fde)| fde.range.contains(&rva)) else {
            return Ok(None);
        };
        let is_inside = |begin| rva < begin && begin < fde.range.end;
        let inside = |at| header.get(at).filter(|entry| is_inside(entry.begin));
        let next = (after..).map_while(inside).take(PASSED_LIMIT).find_map(|entry| {
            let (_, fde) = self.read(frames, entry.offset).ok()??;
            Some(fde.range.start)
        });
        let range = fde.range.start..next.unwrap_or(fde.range.end).min(fde.range.end);
        Ok(Some(Entry { cie, fde, place: frames.place(offset), range }))
    }

    /// Reads the FDE at `offset` and its CIE; `None` if it is not of a function in the code.
    #[inline(never)]
    fn read<'s>(
        &'s self,
        frames: &'s Frames<'a>,
        offset: usize,
    ) -> Result<Option<(Cie<'s>, Fde<'s>)>, CfiProblem> {
        let Some(entry) = frames.entry(offset)? else { return Ok(None) };
        let Some(cie) = entry.cie else { return Ok(None) };
        let cie = frames.cie(cie)?;
        Ok(entry.fde(&cie, &mut self.code.search())?.map(|fde| (cie, fde)))
    }
}

impl Entry<'_> {
    /// Runs the program up to `rva`, and returns the range of the row there. Its rules are then in
    /// `state`.
    #[inline(never)]
    fn run_to(&self, rva: u32, state: &mut State) -> Result<Range<u32>, CfiError> {
        let Self { cie, fde, place, range: whole } = self;
        let mut remembered = Remembered::new();
        let initial = cie.initial(&mut remembered).map_err(|problem| place.error(problem))?;
        *state = initial;
        let (program, code) = (fde.program, fde.range.clone());
        let mut range = rva..rva;
        let run = remembered.run_on(state, program, &cie.terms, Some(&initial), code, &mut |row| {
            if row.range.end <= rva {
                return ControlFlow::Continue(());
            }
            range = row.range.start..row.range.end.min(whole.end);
            ControlFlow::Break(())
        });
        run.map_err(|Fault { problem, offset, .. }| CfiError {
            problem,
            section: place.section,
            offset: offset as u32,
        })?;
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfi::{CfiTable, Found};
    use crate::image::Section;
    use alloc::vec;
    use alloc::vec::Vec;

    const CODE: u32 = 0x1000;

    /// Call frame information of a function of 16 bytes at [`CODE`], with these instructions.
    fn eh_frame(instructions: &[u8]) -> Vec<u8> {
        let entry = |content: &[&[u8]]| {
            let content = content.concat();
            let padding = content.len().next_multiple_of(4) - content.len();
            let len = (content.len() + padding) as u32;
            [&len.to_le_bytes()[..], &content, &vec![0; padding]].concat()
        };
        // Version 1, no augmentation, factors 1 and -8, return address in column 16: def_cfa rsp + 8;
        // offset of the return address -8.
        let cie = entry(&[&[0; 4], &[1, 0, 1, 0x78, 16, 0x0C, 7, 8, 0x90, 1]]);
        let back = cie.len() as u32 + 4;
        let begin = u64::from(CODE).to_le_bytes();
        let fde = entry(&[&back.to_le_bytes(), &begin, &16_u64.to_le_bytes(), instructions]);
        [cie, fde, vec![0; 4]].concat()
    }

    /// A function that begins with `call rax; nop`.
    const CALLS: [u8; 16] = {
        let mut code = [0x90; 16];
        (code[6], code[7]) = (0xFF, 0xD0);
        code
    };

    fn with_sections<R>(
        instructions: &[u8],
        check: impl FnOnce(&CfiSections<'_>, Sections<'_>) -> R,
    ) -> R {
        let bytes = eh_frame(instructions);
        let eh_frame = Some(Section { rva: 0x100, bytes: &bytes, executable: false });
        let code = vec![Section { rva: CODE, bytes: &CALLS, executable: true }];
        let code = Sections::new(code).unwrap();
        let sections = CfiSections { eh_frame, ..CfiSections::default() };
        check(&sections, code)
    }

    fn with_lazy<R>(instructions: &[u8], check: impl FnOnce(&Lazy<'_>) -> R) -> R {
        with_sections(instructions, |sections, code| {
            check(&Lazy::new(sections, &code).with_bytes(code.clone()))
        })
    }

    #[test]
    fn places_behind_calls_are_known_once_they_were_looked_up() {
        with_lazy(&[], |lazy| {
            for (at, is_call) in [(7, true), (8, false), (6, false)] {
                assert!(!lazy.is_known_call(CODE + at));
                assert!(matches!(lazy.find(CODE + at), Compiled::Simple(_)));
                assert_eq!(lazy.is_known_call(CODE + at), is_call, "{at}");
                let Compiled::Simple(rule) = lazy.find(CODE + at) else { panic!("{at}") };
                assert_eq!((rule.cfa_register & 15, rule.cfa_offset, rule.count), (4, 8, 0));
            }
        });
    }

    #[test]
    fn a_table_of_rows_made_beforehand_knows_no_calls() {
        let is_known = |table: CfiTable<'_>| {
            assert!(matches!(table.find(CODE + 7), Found::Simple(_)));
            [7, 8].map(|at| table.is_known_call(CODE + at))
        };
        with_sections(&[], |sections, code| {
            let lazy = CfiTable::lazy(sections, &code).with_bytes(code.clone());
            assert_eq!(is_known(lazy), [true, false]);
            let eager = CfiTable::new(sections, &code).with_bytes(code.clone());
            assert_eq!(is_known(eager), [false; 2]);
        });
    }

    #[test]
    fn rules_are_simple_where_registers_are_saved_or_kept() {
        let saved = |instructions: &[u8]| {
            with_lazy(instructions, |lazy| match lazy.find(CODE) {
                Compiled::Simple(rule) => Some(rule.count),
                _ => None,
            })
        };
        assert_eq!(saved(&[]), Some(0));
        // offset of rbx, and of rbx and rbp; same_value of rbx.
        assert_eq!(saved(&[0x83, 2]), Some(1));
        assert_eq!(saved(&[0x83, 2, 0x86, 3]), Some(2));
        assert_eq!(saved(&[0x08, 3]), Some(0));
        // same_value of rax, which calls change, and of rsp; undefined rbx; rbx in rax; val_offset.
        for other in [&[0x08, 0][..], &[0x08, 7], &[0x07, 3], &[0x09, 3, 0], &[0x14, 3, 2]] {
            assert_eq!(saved(other), None, "{other:02x?}");
        }
    }

    #[test]
    fn a_first_function_has_a_simple_rule_if_nothing_is_to_be_read_for_it() {
        let undefined = [0x07, 16];
        let is_root = |lazy: &Lazy<'_>| match lazy.find(CODE + 7) {
            Compiled::Simple(rule) => Some(rule.is_root()),
            _ => None,
        };
        assert_eq!(with_lazy(&[], is_root), Some(false));
        assert_eq!(with_lazy(&undefined, is_root), Some(true));
        // Another register has the rule of its CIE, is undefined, or is saved.
        assert_eq!(with_lazy(&[0x07, 16, 0x07, 3], is_root), Some(true));
        assert_eq!(with_lazy(&[0x07, 16, 0x83, 2], is_root), None);
        // The canonical frame address counts from the return address's column.
        assert_eq!(with_lazy(&[0x07, 16, 0x0C, 16, 8], is_root), None);
        with_lazy(&undefined, |lazy| {
            assert!(matches!(lazy.find(CODE + 7), Compiled::Simple(_)));
            assert!(lazy.is_known_call(CODE + 7), "kept in a slot");
        });
    }
}
