//! A pass over all entries of a section.

use super::entry::{Cie, Code, CodeRanges, Entry, Fde, Frames};
use super::error::{CfiError, CfiProblem, FrameSection};
use super::program::{Remembered, State};
use super::rule::Place;
use alloc::vec::Vec;
use core::ops::Range;

/// The entries and instructions that could not be used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Problems {
    pub(super) count: u32,
    pub(super) first: Option<CfiError>,
}

impl Problems {
    pub(super) fn add(&mut self, error: CfiError) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert(error);
    }
}

/// An FDE that a pass has come to.
pub(super) struct Visited<'v, 'a> {
    pub(super) fde: Fde<'a>,
    pub(super) cie: &'v Cie<'a>,
    /// The rules that the CIE sets.
    pub(super) initial: &'v State,
    pub(super) place: Place,
    /// Memory for running its program.
    pub(super) remembered: &'v mut Remembered,
    pub(super) problems: &'v mut Problems,
}

/// Calls `visit` with each well-formed FDE of a function in `code`, in the order of the section.
pub(super) fn scan<'a>(
    frames: &'a Frames<'a>,
    code: &CodeRanges,
    problems: &mut Problems,
    visit: &mut impl FnMut(Visited<'_, 'a>),
) {
    let mut remembered = Remembered::new();
    let mut cies = Cies::new(frames);
    let mut code = code.search();
    let mut offset = 0;
    while offset < frames.bytes.len() {
        let place = frames.place(offset);
        match frames.entry(offset) {
            Ok(Some(entry)) => {
                match read(&entry, offset, &mut cies, &mut code, &mut remembered) {
                    Ok(Some((fde, (cie, initial)))) => {
                        let remembered = &mut remembered;
                        visit(Visited { fde, cie, initial, place, remembered, problems });
                    }
                    Ok(None) => {}
                    Err(problem) => problems.add(place.error(problem)),
                }
                offset = entry.end;
            }
            // Old assemblers leave lengths of 0 in .debug_frame.
            Ok(None) if frames.kind == FrameSection::DebugFrame => offset += 4,
            Ok(None) => break,
            // The length is unusable, so the next entry cannot be found.
            Err(problem) => {
                problems.add(place.error(problem));
                break;
            }
        }
    }
}

/// Reads the entry if it is an FDE of a function in `code`, or keeps it for its FDEs if it is a CIE.
#[inline]
fn read<'c, 'a>(
    entry: &Entry<'a>,
    offset: usize,
    cies: &'c mut Cies<'a>,
    code: &mut Code<'_>,
    remembered: &mut Remembered,
) -> Result<Option<(Fde<'a>, &'c Known<'a>)>, CfiProblem> {
    let Some(cie) = entry.cie else {
        cies.add(offset, remembered);
        return Ok(None);
    };
    let known = cies.get(cie, remembered)?;
    Ok(entry.fde(&known.0, code)?.map(|fde| (fde, known)))
}

/// A CIE and the rules that it sets.
type Known<'a> = (Cie<'a>, State);

/// The CIEs of a section that were found so far.
struct Cies<'a> {
    frames: &'a Frames<'a>,
    /// Ascending by offset.
    known: Vec<(usize, Result<Known<'a>, CfiProblem>)>,
    /// Index of the CIE that was used last.
    last: usize,
    /// A CIE that comes after its FDE, or is at no entry.
    stray: Option<(usize, Known<'a>)>,
    /// Number of bytes of stray CIEs that may still be read: a hostile section could have as many
    /// as it has FDEs.
    stray_bytes: usize,
}

impl<'a> Cies<'a> {
    const fn new(frames: &'a Frames<'a>) -> Self {
        Self { frames, known: Vec::new(), last: 0, stray: None, stray_bytes: frames.bytes.len() }
    }

    /// Adds the CIE at `offset`, which is after all others, for its FDEs. If it is malformed, they
    /// report it.
    fn add(&mut self, offset: usize, remembered: &mut Remembered) {
        self.known.push((offset, self.read(offset, remembered)));
    }

    #[inline]
    fn get(
        &mut self,
        offset: usize,
        remembered: &mut Remembered,
    ) -> Result<&Known<'a>, CfiProblem> {
        if self.known.get(self.last).is_none_or(|(known, _)| *known != offset) {
            match self.known.binary_search_by_key(&offset, |(known, _)| *known) {
                Ok(at) => self.last = at,
                Err(_) => return self.stray(offset, remembered),
            }
        }
        match self.known.get(self.last) {
            Some((_, Ok(cie))) => Ok(cie),
            Some((_, Err(problem))) => Err(*problem),
            None => Err(CfiProblem::Cie),
        }
    }

    fn read(&self, offset: usize, remembered: &mut Remembered) -> Result<Known<'a>, CfiProblem> {
        let cie = self.frames.cie(offset)?;
        let initial = cie.initial(remembered)?;
        Ok((cie, initial))
    }

    #[cold]
    fn stray(
        &mut self,
        offset: usize,
        remembered: &mut Remembered,
    ) -> Result<&Known<'a>, CfiProblem> {
        if self.stray.as_ref().is_none_or(|(known, _)| *known != offset) {
            let entry = self.frames.entry(offset).ok().flatten().ok_or(CfiProblem::Cie)?;
            let left = self.stray_bytes.checked_sub(entry.end - offset);
            self.stray_bytes = left.ok_or(CfiProblem::Cie)?;
            self.stray = Some((offset, self.read(offset, remembered)?));
        }
        self.stray.as_ref().map(|(_, cie)| cie).ok_or(CfiProblem::Cie)
    }
}

/// A function, and what a pass has kept of it.
#[derive(Clone, Debug)]
pub(super) struct Function<T> {
    /// RVAs.
    pub(super) range: Range<u32>,
    pub(super) section: FrameSection,
    pub(super) content: T,
}

/// Sorts functions, those of `.eh_frame` before those of `.debug_frame`, by address and removes overlaps.
///
/// Of functions that begin at the same address the first counts. A function ends where the next one
/// begins.
pub(super) fn select<T>(mut functions: Vec<Function<T>>) -> Vec<Function<T>> {
    if !functions.is_sorted_by_key(|function| function.range.start) {
        functions.sort_by_key(|function| function.range.start);
    }
    let mut kept: Vec<Function<T>> = Vec::with_capacity(functions.len());
    for function in functions {
        let (begin, section) = (function.range.start, function.section);
        match kept.last_mut() {
            Some(last) if last.range.start == begin => {}
            Some(last) if last.range.end > begin && section == FrameSection::DebugFrame => {}
            Some(last) => {
                last.range.end = last.range.end.min(begin);
                kept.push(function);
            }
            None => kept.push(function),
        }
    }
    kept
}
