//! Tables whose functions are compiled when a step first needs them.

use super::entry::{Cie, CodeRanges, Fde, Frames};
use super::error::{CfiError, CfiProblem, FrameSection};
use super::index::{Header, Index, find};
use super::program::{Fault, Remembered, State};
use super::rule::{General, Place, Rule};
use super::scan::Problems;
use crate::image::{CfiSections, Sections};
use crate::rule_slots::{CodePlace, RuleSlots};
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
        Self { sections: both, code, index, slots, problems }
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
        let saved = state.saved().filter(|_| !entry.cie.signal_frame);
        match saved.and_then(|saved| state.with_cfa(saved)) {
            Some(rule) => {
                self.slots.put(CodePlace::called(rva), rule.to_words());
                Compiled::Simple(rule)
            }
            None => Compiled::General,
        }
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
            let Ok(Some((cie, fde))) = self.read(frames, entry.offset) else {
                continue;
            };
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
