//! What the executed functions say of each instruction of a region.

use crate::bits::Bits;
use crate::extent::Extents;
use crate::finding::{Blame, Cause, Finding, Subject};
use crate::judge::Wrong;
use crate::point::Explored;
use crate::report::{Report, Totals};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// The sum of the executed functions.
pub(crate) struct Sweep<'m, 'a> {
    extents: Extents<'m, 'a>,
    totals: Totals,
    /// The RVAs that are reported.
    wanted: Range<u32>,
    /// Instructions that were counted.
    seen: Bits,
    /// Instructions with a right answer in any function.
    right: Bits,
    /// Instructions that are called directly.
    called: BTreeSet<u32>,
    /// The functions with a wrong answer.
    accused: Vec<u32>,
    /// Wrong answers by function and instruction.
    wrong: BTreeMap<(u32, u32), Wrong>,
    /// The reason, for each executed function without an answer that is right.
    without_right: BTreeMap<u32, Reason>,
}

/// The reason for which nothing is decided in a function.
#[derive(Clone, Copy)]
enum Reason {
    Strange,
    Undecoded,
    NoData,
    Unknown,
}

impl<'m, 'a> Sweep<'m, 'a> {
    pub(crate) fn new(extents: Extents<'m, 'a>, size: u32, wanted: Range<u32>) -> Self {
        let [seen, right] = [(); 2].map(|()| Bits::new(size));
        Self {
            extents,
            totals: Totals::default(),
            wanted,
            seen,
            right,
            called: BTreeSet::new(),
            accused: Vec::new(),
            wrong: BTreeMap::new(),
            without_right: BTreeMap::new(),
        }
    }

    /// Adds a range that does not begin like a function.
    pub(crate) fn add_part(&mut self, rva: u32) {
        self.totals.parts += u64::from(self.wanted.contains(&rva));
    }

    /// Adds a function that is entered by calls alone.
    pub(crate) fn add_inside(
        &mut self,
        entry: u32,
        explored: &Explored,
        called: &mut BTreeSet<u32>,
    ) {
        self.totals.entered_inside += u64::from(self.wanted.contains(&entry));
        self.add(entry, explored, called);
    }

    /// Adds a function, and what it calls to `called`.
    pub(crate) fn add(&mut self, entry: u32, explored: &Explored, called: &mut BTreeSet<u32>) {
        if self.wanted.contains(&entry) {
            let totals = &mut self.totals;
            totals.functions += 1;
            totals.strange += u64::from(explored.is_strange);
            totals.cut += u64::from(explored.is_cut);
            totals.unfollowed += u64::from(explored.unfollowed);
            totals.undecoded += u64::from(explored.undecoded);
            totals.unknown_jumps += u64::from(explored.unknown_jumps);
        }
        called.extend(&explored.called);
        self.called.extend(&explored.called);
        let (mut is_accused, mut has_right) = (false, false);
        for (rva, point) in &explored.points {
            let is_wanted = self.wanted.contains(rva);
            if self.seen.set(*rva) && is_wanted {
                self.totals.instructions += 1;
                self.totals.executed_bytes += u64::from(point.len);
            }
            if point.is_right() {
                has_right = true;
                if self.right.set(*rva) && is_wanted {
                    self.totals.right += 1;
                }
            }
            is_accused |= point.finding().is_some();
        }
        if is_accused && !explored.is_strange {
            self.accused.push(entry);
        }
        if !has_right {
            let reason = match explored {
                _ if explored.is_strange => Reason::Strange,
                _ if explored.points.is_empty() => Reason::Undecoded,
                _ if !self.extents.has_data(entry) => Reason::NoData,
                _ => Reason::Unknown,
            };
            self.without_right.insert(entry, reason);
        }
    }

    /// Returns the RVAs that any function calls directly, ascending.
    pub(crate) fn called(&self) -> Vec<u32> {
        self.called.iter().copied().collect()
    }

    /// Returns the functions with a wrong answer, which have to be executed again with more care before any
    /// of them is reported.
    pub(crate) fn accused(&mut self) -> Vec<u32> {
        let mut accused = core::mem::take(&mut self.accused);
        accused.sort_unstable();
        accused
    }

    /// Adds what is wrong in a function that was executed with care.
    pub(crate) fn accuse(&mut self, entry: u32, explored: &Explored) {
        if explored.is_strange {
            return;
        }
        for (rva, point) in &explored.points {
            if point.is_right() && self.right.set(*rva) && self.wanted.contains(rva) {
                self.totals.right += 1;
            }
            let Some(wrong) = point.finding() else { continue };
            let ignored = match wrong.subject {
                Subject::Register(register) => explored.not_restored.contains(register),
                Subject::Vector(n) => explored.not_restored.contains_xmm(n),
                _ => false,
            };
            // Whether code that does not return, such as a handler that throws, would restore a register is
            // not known.
            let is_open = wrong.cause == Cause::RegisterLost && !explored.returning.contains(rva);
            if !ignored && !is_open {
                let function = self.extents.of(*rva).map_or(entry, |range| range.start);
                self.wrong.insert((function, *rva), *wrong);
            }
        }
    }

    /// Returns what is wrong at an instruction, and the kind of the difference, as far as other functions
    /// and the unwind data decide it.
    fn classify(&self, start: u32, rva: u32, wrong: &Wrong) -> (Blame, Cause) {
        let is_called = wrong.cause == Cause::OwnReturnAddress && self.called.contains(&start);
        match (wrong.blame, wrong.cause) {
            // A leaf's caller may be found by chance.
            (_, Cause::NoData) if !self.extents.has_data(rva) => (Blame::Data, Cause::NoData),
            // A call is the last instruction: Windows looks up the function after it.
            (blame, Cause::NoData) => (blame, Cause::Other),
            // By the rules of ntdll such a function has no epilogue either.
            _ if self.extents.has_handler_alone(rva) => (Blame::Data, Cause::HandlerAlone),
            (Blame::WindowsRules, cause) => (Blame::WindowsRules, cause),
            _ if is_called => (Blame::Data, Cause::FrameGrown),
            (blame, cause) => (blame, cause),
        }
    }

    /// Counts the functions of `ranges`, and those without data, in which nothing is decided.
    fn count_undecided(&mut self, ranges: &[Range<u32>], wrong: &Bits) {
        let is_decided =
            |range: &Range<u32>| self.right.any(range.clone()) || wrong.any(range.clone());
        let undecided = &mut self.totals.undecided;
        let mut count = |reason: Option<Reason>| {
            let counter = match reason {
                None => &mut undecided.unreached,
                Some(Reason::Strange) => &mut undecided.strange,
                Some(Reason::Undecoded) => &mut undecided.undecoded,
                Some(Reason::NoData) => &mut undecided.no_data,
                Some(Reason::Unknown) => &mut undecided.unknown,
            };
            *counter += 1;
        };
        for range in ranges.iter().filter(|range| self.wanted.contains(&range.start)) {
            if is_decided(range) {
                continue;
            }
            let is_reached = self.seen.any(range.clone());
            let reason = self.without_right.get(&range.start).copied();
            count(reason.or_else(|| is_reached.then_some(Reason::Unknown)));
        }
        for (entry, reason) in &self.without_right {
            let is_own = self.wanted.contains(entry) && !self.extents.has_data(*entry);
            if is_own && !is_decided(&(*entry..entry + 1)) {
                count(Some(*reason));
            }
        }
    }

    /// Returns the report, with the figures of `ranges`.
    pub(crate) fn finish(mut self, ranges: &[Range<u32>]) -> Report {
        for range in ranges.iter().filter(|range| self.wanted.contains(&range.start)) {
            self.totals.ranges += 1;
            self.totals.bytes += u64::from(range.end.saturating_sub(range.start));
        }
        let mut wrong = BTreeMap::new();
        for ((start, rva), one) in &self.wrong {
            // Another function may execute the same instruction, and be right.
            if self.wanted.contains(rva) && !self.right.get(*rva) {
                let (blame, cause) = self.classify(*start, *rva, one);
                wrong.insert((blame, cause, *start, *rva), *one);
            }
        }
        let last = wrong.keys().map(|(.., rva)| *rva).max().unwrap_or_default();
        let mut bits = Bits::new(last.saturating_add(1));
        for (.., rva) in wrong.keys() {
            bits.set(*rva);
        }
        self.count_undecided(ranges, &bits);
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
                    // It may be entered after its first instruction.
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
        Report { totals: self.totals, findings, ..Report::default() }
    }
}
