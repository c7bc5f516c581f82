//! All functions of a region: their findings and the figures.

use crate::bits::Bits;
use crate::coverage::{Coverage, after_padding, coverage};
use crate::extent::Extents;
use crate::finding::{Cause, Finding};
use crate::gaps;
use crate::judge::Judge;
use crate::layout::Layout;
use crate::paths::Paths;
use crate::point::Explored;
use crate::sweep::Sweep;
use crate::tables;
use crate::workers::explore_all;
use clr_unwind::{CodeMap, CodeRegion};
use core::num::NonZeroUsize;
use core::ops::Range;
use std::collections::BTreeSet;

/// The figures of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Number of ranges with unwind data: RUNTIME_FUNCTION entries, or functions with call frame
    /// information.
    pub ranges: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of functions that were executed.
    pub functions: u64,
    /// Number of executed functions that are entered by calls alone: within a range, or without data.
    pub entered_inside: u64,
    /// Number of ranges that do not begin like a function: parts of others, which are executed with
    /// these.
    pub parts: u64,
    /// Size in bytes of the instructions that were executed.
    pub executed_bytes: u64,
    /// Number of instructions that were executed.
    pub instructions: u64,
    /// Number of instructions at which the answer is right.
    pub right: u64,
    /// Number of instructions at which nothing could be said: too little is known, or they are reached with
    /// different values of rsp.
    pub not_judged: u64,
    /// Number of instructions in findings.
    pub wrong: u64,
    /// Number of functions that switch stacks or return to other places, whose instructions are not
    /// judged.
    pub strange: u64,
    /// Number of calls that do not return, and of jumps between functions that do not happen.
    pub unfollowed: u64,
    /// Number of paths that end at bytes that are no known instruction: data, or code for extensions that
    /// iced-x86 does not know, such as APX.
    pub undecoded: u64,
    /// Number of jumps within a frame to addresses that are not known, such as those of a table that is
    /// not recognised.
    pub unknown_jumps: u64,
    /// Number of functions that are too large to be followed to the end.
    pub cut: u64,
    /// The functions in which nothing was decided.
    pub undecided: Undecided,
}

/// Numbers of functions in which no instruction is right or wrong, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecided {
    /// No call and no known jump leads to the range: it does not begin as a function, and no other has
    /// come by.
    pub unreached: u64,
    /// The function switches stacks, or returns to another place.
    pub strange: u64,
    /// The bytes at its entry are no known instruction.
    pub undecoded: u64,
    /// The function is a leaf without unwind data, where only call frame information would say how to go on.
    pub no_data: u64,
    /// All values that an answer needs are unknown.
    pub unknown: u64,
}

impl Undecided {
    /// Returns their number.
    pub const fn sum(self) -> u64 {
        self.unreached + self.strange + self.undecoded + self.no_data + self.unknown
    }
}

/// The result for a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The figures.
    pub totals: Totals,
    /// How much of all code has unwind data.
    pub coverage: Coverage,
    /// The findings, by what is wrong, kind and function.
    pub findings: Vec<Finding>,
}

/// Judges the unwind data of a region.
pub struct Linter<'m, 'a> {
    extents: Extents<'m, 'a>,
    map: &'m CodeMap<'a>,
    region: &'m CodeRegion<'a>,
    layout: Layout<'a>,
}

impl<'m, 'a> Linter<'m, 'a> {
    /// Creates a linter of the code of `region`, which is in `map`. Other regions of the map decide the
    /// calling convention, and where tail calls lead.
    pub fn new(map: &'m CodeMap<'a>, region: &'m CodeRegion<'a>) -> Self {
        Self { extents: Extents::new(region), map, region, layout: Layout::default() }
    }

    /// Returns the linter with what the headers of the region's image say of its code.
    #[must_use]
    pub fn with_layout(self, layout: Layout<'a>) -> Self {
        Self { layout, ..self }
    }

    /// Returns the ranges with unwind data (RVAs), as in the image's table.
    pub fn ranges(&self) -> Vec<Range<u32>> {
        self.extents.all()
    }

    /// Executes and judges all functions on `jobs` threads, and reports what concerns the code in `wanted`
    /// (RVAs). The report does not depend on the number of threads, and says of a part what that of the
    /// whole says. `progress` is called with the number of ranges that are done.
    pub fn run(
        &self,
        wanted: &Range<u32>,
        jobs: NonZeroUsize,
        progress: &mut dyn FnMut(usize),
    ) -> Report {
        let ranges = self.ranges();
        let mut ascending = ranges.clone();
        ascending.sort_unstable_by_key(|range| range.start);
        let (coverage, mut gaps) = coverage(self.region, &self.layout.code, &ascending);
        let startup = gaps::without_startup(self.region, &mut gaps);
        let coverage = Coverage { padding: coverage.padding + startup, ..coverage };
        let mut faults = tables::faults(self.region, &self.layout, coverage);
        faults.retain(|fault| overlaps(&fault.function, wanted));
        let mut sweep = Sweep::new(self.extents, self.region.size(), wanted.clone());
        let mut entered = Bits::new(self.region.size());
        let mut called = BTreeSet::new();
        let mut entries: Vec<u32> = ranges.iter().map(|range| range.start).collect();
        entries.dedup();
        let mut done = 0;
        explore_all(
            &entries,
            jobs,
            || self.explorer(true),
            |rva, explored| {
                done += 1;
                progress(done);
                match explored {
                    Some(explored) => {
                        entered.set(rva);
                        sweep.add(rva, &explored, &mut called);
                    }
                    None => sweep.add_part(rva),
                }
            },
        );
        self.enter_called(jobs, &mut called, &mut entered, &mut sweep);
        if !coverage.is_next_to_nothing() {
            self.enter_gaps(&gaps, jobs, &mut entered, &mut sweep);
        }
        let known = sweep.called();
        let mut accused = sweep.accused();
        accused.retain(|rva| !self.is_entry_without_data(*rva));
        explore_all(
            &accused,
            jobs,
            || self.careful_explorer(&known),
            |rva, explored| sweep.accuse(rva, &explored),
        );
        let mut report = sweep.finish(&ranges);
        let is_whole = wanted.start == 0 && wanted.end == u32::MAX;
        report.coverage = if is_whole { coverage } else { self.coverage_of(wanted, &ascending) };
        let is_decided = report.totals.right + report.totals.wrong > 0;
        let has_data = coverage.code > coverage.padding && !coverage.is_next_to_nothing();
        if is_whole && has_data && !is_decided {
            report.findings.push(tables::of_all_code(Cause::NothingJudged, &self.layout, coverage));
        }
        report.findings.extend(faults);
        report.findings.sort_by_key(|one| (one.blame, one.cause, one.function.start));
        report
    }

    /// Returns how much of the code in `wanted` has unwind data, by all ranges, which ascend.
    fn coverage_of(&self, wanted: &Range<u32>, ranges: &[Range<u32>]) -> Coverage {
        let code = self.layout.code.iter();
        let code = code.map(|it| it.start.max(wanted.start)..it.end.min(wanted.end));
        let code: Vec<_> = code.filter(|range| !range.is_empty()).collect();
        coverage(self.region, &code, ranges).0
    }

    /// Returns true if the system enters the image at `rva`, and the unwind data says nothing of it.
    fn is_entry_without_data(&self, rva: u32) -> bool {
        self.layout.entry == Some(rva) && !self.extents.has_data(rva)
    }

    /// Executes functions that no range begins at, and that others call.
    fn enter_called(
        &self,
        jobs: NonZeroUsize,
        called: &mut BTreeSet<u32>,
        entered: &mut Bits,
        sweep: &mut Sweep<'m, 'a>,
    ) {
        loop {
            called.retain(|rva| self.region.is_executable(*rva) && entered.set(*rva));
            let entries: Vec<u32> = core::mem::take(called).into_iter().collect();
            if entries.is_empty() {
                return;
            }
            explore_all(
                &entries,
                jobs,
                || self.explorer(false),
                |rva, explored| {
                    sweep.add_inside(rva, &explored.unwrap_or_default(), called);
                },
            );
        }
    }

    /// Executes the functions in code without unwind data, in one gap after the other: where one ends the next
    /// may begin.
    fn enter_gaps(
        &self,
        gaps: &[Range<u32>],
        jobs: NonZeroUsize,
        entered: &mut Bits,
        sweep: &mut Sweep<'m, 'a>,
    ) {
        let mut entries = gaps::entries(&self.layout, gaps);
        let mut called = BTreeSet::new();
        while !entries.is_empty() {
            let certain: BTreeSet<u32> =
                entries.iter().filter(|(_, is_certain)| *is_certain).map(|(rva, _)| *rva).collect();
            let new: Vec<u32> =
                entries.iter().map(|(rva, _)| *rva).filter(|rva| entered.set(*rva)).collect();
            entries.clear();
            explore_all(
                &new,
                jobs,
                || self.explorer(false),
                |rva, explored| {
                    let explored = explored.unwrap_or_default();
                    if !certain.contains(&rva) && !gaps::is_sound(self.region, rva, &explored) {
                        return;
                    }
                    sweep.add_inside(rva, &explored, &mut called);
                    let end = gaps::end(rva, &explored);
                    let gap = gaps.iter().find(|gap| gap.contains(&end));
                    let next = gap.map(|gap| after_padding(self.region, end..gap.end));
                    entries.extend(next.filter(|next| *next > rva).map(|next| (next, false)));
                },
            );
            let is_in_gap = |rva: &u32| gaps.iter().any(|gap| gap.contains(rva));
            entries.retain(|(rva, _)| is_in_gap(rva));
            self.enter_called(jobs, &mut called, entered, sweep);
        }
    }

    /// Returns a function that executes functions; of ranges of unwind data only those that begin as one.
    fn explorer(&self, of_ranges: bool) -> impl FnMut(u32) -> Option<Explored> {
        let mut explorer = self.paths();
        move |rva| {
            let is_entry = !of_ranges
                || !self.extents.is_chained(rva)
                    && (explorer.begins_like_a_function(rva) || self.extents.has_prologue(rva));
            is_entry.then(|| explorer.explore(rva))
        }
    }

    /// Returns a function that executes functions that were accused.
    fn careful_explorer<'s>(&'s self, called: &'s [u32]) -> impl FnMut(u32) -> Explored + 's {
        let mut explorer = self.paths().with_called(called);
        move |rva| explorer.explore(rva)
    }

    fn paths(&self) -> Paths<'_, 'a> {
        let judge = Judge::new(self.map, self.region);
        Paths::new(self.region, self.extents, &self.layout, judge)
    }
}

/// Returns true if the ranges share a byte.
const fn overlaps(one: &Range<u32>, other: &Range<u32>) -> bool {
    one.start < other.end && other.start < one.end
}
