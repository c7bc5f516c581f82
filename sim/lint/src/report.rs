//! All functions of a region: their findings and the figures.

use crate::extent::Extents;
use crate::finding::{Blame, Cause, Finding, Subject};
use crate::judge::{Judge, Wrong};
use crate::paths::Paths;
use crate::point::Explored;
use crate::workers::explore_all;
use clr_unwind::{CodeMap, CodeRegion};
use core::num::NonZeroUsize;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

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
}

/// The result for a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The figures.
    pub totals: Totals,
    /// The findings, by what is wrong, kind and function.
    pub findings: Vec<Finding>,
}

/// A bit for each byte of a region.
struct Bits(Vec<u64>);

impl Bits {
    fn new(size: u32) -> Self {
        Self(vec![0; size as usize / 64 + 1])
    }

    /// Sets a bit; returns true if it was not set before.
    fn set(&mut self, at: u32) -> bool {
        let Some(word) = self.0.get_mut(at as usize / 64) else { return false };
        let bit = 1 << (at % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn get(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }
}

/// Judges the unwind data of a region.
pub struct Linter<'m, 'a> {
    extents: Extents<'m, 'a>,
    map: &'m CodeMap<'a>,
    region: &'m CodeRegion<'a>,
}

impl<'m, 'a> Linter<'m, 'a> {
    /// Creates a linter of the code of `region`, which is in `map`. Other regions of the map decide the
    /// calling convention, and where tail calls lead.
    pub const fn new(map: &'m CodeMap<'a>, region: &'m CodeRegion<'a>) -> Self {
        Self { extents: Extents::new(region), map, region }
    }

    /// Returns the ranges with unwind data (RVAs), as in the image's table.
    pub fn ranges(&self) -> Vec<Range<u32>> {
        self.extents.all()
    }

    /// Executes and judges the functions that begin in `wanted` (RVAs), and the functions there that they
    /// call, on `jobs` threads; the report does not depend on their number. `progress` is called with the
    /// number of ranges that are done.
    pub fn run(
        &self,
        wanted: &Range<u32>,
        jobs: NonZeroUsize,
        progress: &mut dyn FnMut(usize),
    ) -> Report {
        let mut sweep = Sweep::new(self.extents, self.region.size());
        let mut entered = Bits::new(self.region.size());
        let mut called = BTreeSet::new();
        let mut ranges = self.ranges();
        ranges.retain(|range| wanted.contains(&range.start));
        for range in &ranges {
            sweep.totals.ranges += 1;
            sweep.totals.bytes += u64::from(range.end.saturating_sub(range.start));
        }
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
                    None => sweep.totals.parts += 1,
                }
            },
        );
        // Functions that no range begins at.
        loop {
            called.retain(|rva| {
                wanted.contains(rva) && self.region.is_executable(*rva) && entered.set(*rva)
            });
            let entries: Vec<u32> = core::mem::take(&mut called).into_iter().collect();
            if entries.is_empty() {
                return sweep.finish();
            }
            explore_all(
                &entries,
                jobs,
                || self.explorer(false),
                |rva, explored| {
                    sweep.totals.entered_inside += 1;
                    sweep.add(rva, &explored.unwrap_or_default(), &mut called);
                },
            );
        }
    }

    /// Returns a function that executes functions; of ranges of unwind data only those that begin as one.
    fn explorer(&self, of_ranges: bool) -> impl FnMut(u32) -> Option<Explored> {
        let judge = Judge::new(self.map, self.region);
        let mut explorer = Paths::new(self.region, self.extents, judge);
        move |rva| {
            let is_entry = !of_ranges
                || !self.extents.is_chained(rva)
                    && (explorer.begins_like_a_function(rva) || self.extents.has_prologue(rva));
            is_entry.then(|| explorer.explore(rva))
        }
    }
}

/// The sum of the executed functions.
struct Sweep<'m, 'a> {
    extents: Extents<'m, 'a>,
    totals: Totals,
    /// Instructions that were counted.
    seen: Bits,
    /// Instructions with a right answer in any function.
    right: Bits,
    /// Instructions that are called directly.
    called: Bits,
    /// Wrong answers by function and instruction.
    wrong: BTreeMap<(u32, u32), Wrong>,
}

impl<'m, 'a> Sweep<'m, 'a> {
    fn new(extents: Extents<'m, 'a>, size: u32) -> Self {
        let [seen, right, called] = [(); 3].map(|()| Bits::new(size));
        Self { extents, totals: Totals::default(), seen, right, called, wrong: BTreeMap::new() }
    }

    fn add(&mut self, entry: u32, explored: &Explored, called: &mut BTreeSet<u32>) {
        let totals = &mut self.totals;
        totals.functions += 1;
        totals.strange += u64::from(explored.is_strange);
        totals.cut += u64::from(explored.is_cut);
        totals.unfollowed += u64::from(explored.unfollowed);
        totals.undecoded += u64::from(explored.undecoded);
        totals.unknown_jumps += u64::from(explored.unknown_jumps);
        called.extend(&explored.called);
        for rva in &explored.called {
            self.called.set(*rva);
        }
        for (rva, point) in &explored.points {
            if self.seen.set(*rva) {
                self.totals.instructions += 1;
                self.totals.executed_bytes += u64::from(point.len);
            }
            if point.is_right() && self.right.set(*rva) {
                self.totals.right += 1;
            }
            let Some(wrong) = point.finding() else { continue };
            let ignored = match wrong.subject {
                Subject::Register(register) => explored.not_restored.contains(register),
                Subject::Vector(n) => explored.not_restored.contains_xmm(n),
                _ => false,
            };
            // Whether a function that does not return would restore a register is not known.
            let is_open = wrong.cause == Cause::RegisterLost && !explored.returns;
            if explored.is_strange || ignored || is_open {
                continue;
            }
            let function = self.extents.of(*rva).map_or(entry, |range| range.start);
            self.wrong.insert((function, *rva), *wrong);
        }
    }

    /// Returns what is wrong at an instruction, and the kind of the difference, as far as other functions
    /// and the unwind data decide it.
    fn classify(&self, start: u32, rva: u32, wrong: &Wrong) -> (Blame, Cause) {
        let is_called = wrong.cause == Cause::OwnReturnAddress && self.called.get(start);
        match (wrong.blame, wrong.cause) {
            // A leaf's caller may be found by chance.
            (_, Cause::NoData) if !self.extents.has_data(rva) => (Blame::Data, Cause::NoData),
            // A call is the last instruction: Windows looks up the function behind it.
            (blame, Cause::NoData) => (blame, Cause::Other),
            // By the rules of ntdll such a function has no epilogue either.
            _ if self.extents.has_handler_alone(rva) => (Blame::Data, Cause::HandlerAlone),
            (Blame::WindowsRules, cause) => (Blame::WindowsRules, cause),
            _ if is_called => (Blame::Data, Cause::FrameGrown),
            (blame, cause) => (blame, cause),
        }
    }

    fn finish(mut self) -> Report {
        let mut wrong = BTreeMap::new();
        for ((start, rva), one) in &self.wrong {
            // Another function may execute the same instruction, and be right.
            if !self.right.get(*rva) {
                let (blame, cause) = self.classify(*start, *rva, one);
                wrong.insert((blame, cause, *start, *rva), *one);
            }
        }
        self.totals.wrong = wrong.len() as u64;
        let judged = self.totals.right + self.totals.wrong;
        self.totals.not_judged = self.totals.instructions.saturating_sub(judged);
        let mut findings: Vec<Finding> = Vec::new();
        let mut last = None;
        for ((blame, cause, start, rva), wrong) in wrong {
            let calls = u32::from(wrong.at_return_address);
            match findings.last_mut() {
                Some(finding) if last == Some((blame, cause, start)) => {
                    finding.instructions.push(rva);
                    finding.calls += calls;
                    // Code without data ends where nothing more was executed.
                    finding.function.end = finding.function.end.max(rva + 1);
                }
                _ => {
                    // It may be entered behind its first instruction.
                    let entered = start.min(rva)..start.max(rva) + 1;
                    findings.push(Finding {
                        function: self.extents.of(rva).unwrap_or(entered),
                        cause,
                        blame,
                        subject: wrong.subject,
                        instructions: vec![rva],
                        calls,
                        found: wrong.found,
                    });
                    last = Some((blame, cause, start));
                }
            }
        }
        for finding in &mut findings {
            // Code with a return address of its own keeps it for longer than a late row would.
            if finding.cause == Cause::OwnReturnAddress && finding.instructions.len() < 3 {
                (finding.blame, finding.cause) = (Blame::Data, Cause::FrameGrown);
            }
        }
        findings.sort_by_key(|one| (one.blame, one.cause, one.function.start));
        Report { totals: self.totals, findings }
    }
}
