//! The results of a walk while the thread is stopped.

use super::cursor::Cursor;
use super::reason::Reason;
use super::stack::Source;
use crate::profiling::{FunctionId, HResult, SnapshotFrame};
use alloc::boxed::Box;
use alloc::vec;
use clr_unwind::{Position, Registers, UnwindError};

/// A callback of `DoStackSnapshot`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameReport {
    /// `None` for a marker.
    pub function: Option<FunctionId>,
    pub ip: u64,
    pub registers: Registers,
    /// True for a marker at an address that no call returns to: it is no frame.
    pub is_none: bool,
}

impl FrameReport {
    pub(super) const fn sp(&self) -> u64 {
        self.registers.rsp()
    }

    /// Returns true if the callback reports the frame at `ip` and `sp`. If the runtime records the
    /// call at another address (C-156), the stack pointer decides.
    const fn is_at(&self, ip: u64, sp: u64) -> bool {
        self.sp() == sp && !self.is_none && (self.ip == ip || self.function.is_some())
    }
}

/// Skips callbacks that report frames leafward of `sp` (VA), which the unwinder has not found.
/// Returns the reason for the first of them.
fn skip(reports: &[FrameReport], met: &mut usize, sp: u64) -> Option<Reason> {
    let mut first = None;
    while let Some(report) = reports.get(*met).filter(|report| report.sp() < sp) {
        if !report.is_none {
            first = first.or(Some(Reason::Disagreement { sp: report.sp() }));
        }
        *met += 1;
    }
    first
}

/// Returns the index of the next callback if it reports the frame at `ip` and `sp`, and counts it
/// as met.
fn meet(reports: &[FrameReport], met: &mut usize, ip: u64, sp: u64) -> Option<usize> {
    let report = reports.get(*met).filter(|report| report.is_at(ip, sp)).map(|_| *met);
    *met += usize::from(report.is_some());
    report
}

/// A frame that has no name yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub ip: u64,
    pub sp: u64,
    pub position: Position,
    pub source: Source,
    /// The answer of `GetFunctionFromIP` while the thread was stopped.
    pub named: Named,
    /// Index of the callback that reports the frame.
    pub report: Option<usize>,
    /// The reason why the frame's caller was not found.
    pub gap: Option<Reason>,
}

/// The runtime's answer about a frame's code. It is asked before the thread runs on: afterwards the
/// method may be gone, and another one may be in its place (H-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A method, or `None` if the runtime names none.
    As(Option<FunctionId>),
    /// The runtime cannot answer.
    Refused(Reason),
    /// The runtime was not asked, and is when the frames are named.
    Later,
}

const EMPTY: Place = Place {
    ip: 0,
    sp: 0,
    position: Position::Interrupted,
    source: Source::Context,
    named: Named::As(None),
    report: None,
    gap: None,
};

/// Room for a walk, made in advance and reused: nothing is allocated while a thread is stopped.
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
#[derive(Debug)]
pub struct WalkBuffer {
    reports: Box<[FrameReport]>,
    report_count: usize,
    /// True if a frame or a callback found no room.
    pub(super) is_full: bool,
    /// Number of callbacks that have been met or skipped.
    met: usize,
    places: Box<[Place]>,
    place_count: usize,
    /// The reason for a gap before the first frame.
    pub(super) before: Option<Reason>,
    /// The result of `DoStackSnapshot`.
    pub(super) snapshot: Option<HResult>,
    /// True if the thread, or the runtime, could not be resumed.
    pub(super) is_stuck: bool,
    /// True if some frame was taken for the next only because the runtime reports it next.
    pub(super) relies_on_order: bool,
    /// True if native code at the leaf runs on during the walk.
    pub(super) leaf_runs: bool,
}

impl WalkBuffer {
    /// Creates room for stacks of `frames` frames, about 400 bytes each.
    pub fn new(frames: usize) -> Self {
        Self {
            reports: vec![FrameReport::default(); frames].into(),
            report_count: 0,
            is_full: false,
            met: 0,
            places: vec![EMPTY; frames].into(),
            place_count: 0,
            before: None,
            snapshot: None,
            is_stuck: false,
            relies_on_order: false,
            leaf_runs: false,
        }
    }

    /// Returns the number of frames that have room.
    pub const fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Returns true if the walk ended because the code map has no code at an address, or no call in
    /// known code returns to it. That may be right, or the map may be late: a thread may execute
    /// a method before the one that has compiled it calls the profiler. A walk of a copy of the
    /// stack succeeds then, once the map has the method.
    pub fn lacks_code(&self) -> bool {
        let last = self.places().last().map_or(self.before, |place| place.gap);
        matches!(
            last,
            Some(Reason::NotACall { .. } | Reason::Unwind(UnwindError::UnknownCode { .. }))
        )
    }

    pub(super) const fn clear(&mut self) {
        self.report_count = 0;
        self.is_full = false;
        self.met = 0;
        self.place_count = 0;
        self.before = None;
        self.snapshot = None;
        self.is_stuck = false;
        self.relies_on_order = false;
        self.leaf_runs = false;
    }

    pub(super) fn reports(&self) -> &[FrameReport] {
        self.reports.get(..self.report_count).unwrap_or_default()
    }

    pub(super) fn places(&self) -> &[Place] {
        self.places.get(..self.place_count).unwrap_or_default()
    }

    /// Copies the arguments of a callback, if there is room.
    pub(super) fn keep(&mut self, frame: &SnapshotFrame<'_>) -> HResult {
        let Some(room) = self.reports.get_mut(self.report_count) else {
            self.is_full = true;
            return HResult::FALSE;
        };
        let registers = Registers::from_context(frame.context).unwrap_or_default();
        *room = FrameReport { function: frame.function, ip: frame.ip, registers, is_none: false };
        self.report_count += 1;
        HResult::OK
    }

    /// Marks callbacks that report native code at an address that no call returns to: the stack was
    /// overwritten there, or the registers were wrong. Later callbacks may be right, because the
    /// runtime continues from its next Frame.
    pub(super) fn believe(&mut self, is_believable: impl Fn(u64) -> bool) {
        for report in self.reports.get_mut(..self.report_count).unwrap_or_default() {
            report.is_none = report.function.is_none() && !is_believable(report.ip);
        }
    }

    /// Skips callbacks that report no frame, and records a gap for each.
    pub(super) fn pass_over(&mut self) {
        while let Some(report) = self.next_shot().filter(|report| report.is_none) {
            self.gap(Reason::NotACall { address: report.ip });
            self.met += 1;
        }
    }

    /// Skips such callbacks leafward of `sp` (VA), where nothing is missing: the frames there were
    /// computed.
    pub(super) fn pass_over_before(&mut self, sp: u64) {
        while self.next_shot().is_some_and(|report| report.is_none && report.sp() < sp) {
            self.met += 1;
        }
    }

    /// Returns the next callback on the way.
    pub(super) fn next_shot(&self) -> Option<&FrameReport> {
        self.reports().get(self.met)
    }

    /// Returns true if the callback before the next one reports managed code.
    pub(super) fn last_shot_is_managed(&self) -> bool {
        let last = self.met.checked_sub(1).and_then(|last| self.reports().get(last));
        last.is_some_and(|report| report.function.is_some())
    }

    /// Records why the caller of the last frame was not found, or that something is missing before
    /// the first frame. Only the first reason is kept.
    pub(super) fn gap(&mut self, reason: Reason) {
        let last = self.place_count.checked_sub(1).and_then(|last| self.places.get_mut(last));
        let gap = match last {
            Some(place) => &mut place.gap,
            None => &mut self.before,
        };
        gap.get_or_insert(reason);
    }

    /// Joins the frames that were found before the runtime was asked with the frames that it
    /// reports, up to one at `next_sp` (VA) if that is known.
    pub(super) fn join(&mut self, next_sp: Option<u64>) {
        let reports = self.reports.get(..self.report_count).unwrap_or_default();
        let places = self.places.get_mut(..self.place_count).unwrap_or_default();
        let mut gap = &mut self.before;
        for place in places {
            if let Some(missed) = skip(reports, &mut self.met, place.sp) {
                gap.get_or_insert(missed);
            }
            place.report = meet(reports, &mut self.met, place.ip, place.sp);
            gap = &mut place.gap;
        }
        if let Some(missed) = next_sp.and_then(|sp| skip(reports, &mut self.met, sp)) {
            gap.get_or_insert(missed);
        }
    }

    /// Adds a frame, joined to the next callback if that reports it. Returns true if there was
    /// room.
    pub(super) fn push(&mut self, frame: &Cursor) -> bool {
        let (ip, sp) = (frame.registers.rip, frame.registers.rsp());
        let Some(room) = self.places.get_mut(self.place_count) else {
            self.is_full = true;
            self.gap(Reason::BufferFull);
            return false;
        };
        let reports = self.reports.get_mut(..self.report_count).unwrap_or_default();
        let report = meet(reports, &mut self.met, ip, sp);
        let (position, source) = (frame.position, frame.source);
        let function =
            report.and_then(|report| reports.get(report)).filter(|report| report.ip == ip);
        let named = Named::As(function.and_then(|report| report.function));
        *room = Place { ip, sp, position, source, named, report, gap: None };
        // A marker there with another ip is the same frame, and one of the two is wrong.
        let other = reports.get_mut(self.met).filter(|_| report.is_none());
        if let Some(other) = other.filter(|other| !other.is_none && other.sp() == sp) {
            other.is_none = true;
            room.gap = Some(Reason::Disagreement { sp });
            self.met += 1;
        }
        self.place_count += 1;
        true
    }

    /// Returns the last frame if no callback names the code at its ip: the runtime may have a name
    /// for it.
    pub(super) fn unnamed(&mut self) -> Option<&mut Place> {
        let last = self.places.get_mut(self.place_count.checked_sub(1)?)?;
        let report = last.report.and_then(|report| self.reports.get(report));
        let is_reported = report.is_some_and(|report| report.ip == last.ip);
        Some(last).filter(|_| !is_reported)
    }

    /// Returns true if a callback reports the last frame.
    pub(super) fn is_reported(&self) -> bool {
        self.places().last().is_some_and(|place| place.report.is_some())
    }

    /// Returns the managed function of the last frame, if a callback reports one.
    pub(super) fn reported_function(&self) -> Option<FunctionId> {
        self.reports().get(self.places().last()?.report?)?.function
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use clr_unwind::Gpr;

    /// A callback at an ip and a stack pointer: of a method with this FunctionID, or a marker for 0.
    fn shot(ip: u64, sp: u64, function: u64) -> FrameReport {
        let mut registers = Registers { rip: ip, ..Registers::default() };
        registers.set(Gpr::Rsp, sp);
        let function = Some(FunctionId(function)).filter(|id| id.0 != 0);
        FrameReport { function, ip, registers, is_none: false }
    }

    /// A marker that is no frame.
    fn none(ip: u64, sp: u64) -> FrameReport {
        FrameReport { is_none: true, ..shot(ip, sp, 0) }
    }

    fn buffer(reports: &[FrameReport]) -> WalkBuffer {
        let mut buffer = WalkBuffer::new(8);
        for (room, report) in buffer.reports.iter_mut().zip(reports) {
            *room = *report;
        }
        buffer.report_count = reports.len();
        buffer
    }

    fn push(buffer: &mut WalkBuffer, ip: u64, sp: u64) -> bool {
        let registers = shot(ip, sp, 0).registers;
        buffer.push(&Cursor { registers, ..Cursor::NOWHERE })
    }

    const fn missed(sp: u64) -> Reason {
        Reason::Disagreement { sp }
    }

    #[test]
    fn a_frame_is_joined_to_the_callback_that_reports_it() {
        let mut buffer =
            buffer(&[shot(0x11, 0x100, 7), shot(0x22, 0x200, 0), shot(0x33, 0x300, 8)]);
        assert!(!buffer.is_reported() && buffer.reported_function().is_none());
        assert!(push(&mut buffer, 0x11, 0x100) && buffer.is_reported());
        assert_eq!(buffer.reported_function(), Some(FunctionId(7)));
        assert!(push(&mut buffer, 0x21, 0x180) && !buffer.is_reported());
        assert!(push(&mut buffer, 0x22, 0x200) && buffer.is_reported());
        assert_eq!(buffer.reported_function(), None, "a marker has no function");
        // Tests C-156: the runtime records the call elsewhere in the method.
        assert!(push(&mut buffer, 0x35, 0x300) && buffer.is_reported());
        let named: Vec<_> =
            buffer.places().iter().map(|place| (place.named, place.report)).collect();
        let nothing = Named::As(None);
        let expected = [
            (Named::As(Some(FunctionId(7))), Some(0)),
            (nothing, None),
            (nothing, Some(1)),
            (nothing, Some(2)),
        ];
        assert_eq!(named, expected);
        assert!(buffer.places().iter().all(|place| place.gap.is_none()));
    }

    #[test]
    fn a_marker_with_another_ip_disagrees_with_the_frame() {
        let mut other = buffer(&[shot(0x11, 0x100, 0), shot(0x22, 0x200, 7)]);
        assert!(push(&mut other, 0x12, 0x100) && !other.is_reported());
        assert_eq!(other.places()[0].gap, Some(missed(0x100)));
        assert!(other.reports()[0].is_none, "it is no frame of its own");
        assert!(push(&mut other, 0x22, 0x200) && other.is_reported(), "the next one is met");
        // One that is known to be no frame, and one of another frame, say nothing.
        for report in [none(0x11, 0x100), shot(0x11, 0x108, 0)] {
            let mut other = buffer(&[report]);
            assert!(push(&mut other, 0x12, 0x100) && !other.is_reported());
            assert_eq!((other.places()[0].gap, other.met), (None, 0));
        }
    }

    #[test]
    fn frames_that_are_found_before_are_joined_afterwards() {
        let mut joined = buffer(&[]);
        for (ip, sp) in [(0x11, 0x100), (0x22, 0x200), (0x44, 0x400)] {
            assert!(push(&mut joined, ip, sp));
        }
        let reports = [
            shot(0x10, 0x80, 0),
            shot(0x11, 0x100, 7),
            none(0x1F, 0x180),
            shot(0x22, 0x200, 0),
            shot(0x33, 0x300, 8),
            shot(0x44, 0x400, 9),
            shot(0x50, 0x480, 0),
            shot(0x55, 0x500, 1),
        ];
        joined.reports[..8].copy_from_slice(&reports);
        joined.report_count = 8;
        joined.join(Some(0x500));
        assert_eq!(joined.before, Some(missed(0x80)), "before the first frame");
        let places: Vec<_> =
            joined.places().iter().map(|place| (place.report, place.gap)).collect();
        assert_eq!(
            places,
            [(Some(1), None), (Some(3), Some(missed(0x300))), (Some(5), Some(missed(0x480)))]
        );
        assert_eq!(joined.next_shot().map(|report| report.ip), Some(0x55), "not leafward of it");
        assert!(!joined.last_shot_is_managed());

        // Without the next frame's place, nothing is missing after the last one.
        let mut open = buffer(&[shot(0x11, 0x100, 7), shot(0x22, 0x200, 0)]);
        open.met = 1;
        assert!(open.last_shot_is_managed());
        open.met = 0;
        open.join(None);
        assert_eq!((open.before, open.met), (None, 0));
    }

    #[test]
    fn callbacks_that_report_no_frame_are_passed_over() {
        let reports = [none(0x11, 0x100), none(0x22, 0x200), shot(0x33, 0x200, 7)];
        let mut before = buffer(&reports);
        before.pass_over_before(0x200);
        assert_eq!((before.met, before.before), (1, None), "nothing is missing");
        before.pass_over_before(0x201);
        before.pass_over_before(0x1000);
        assert_eq!((before.met, before.before), (2, None), "the third one is a frame");

        let mut all = buffer(&reports);
        all.pass_over();
        assert_eq!((all.met, all.before), (2, Some(Reason::NotACall { address: 0x11 })));
    }

    #[test]
    fn a_buffer_without_room_says_so() {
        let mut small = WalkBuffer::new(1);
        assert!(push(&mut small, 0x11, 0x100) && !small.is_full);
        assert!(!push(&mut small, 0x22, 0x200) && small.is_full);
        assert_eq!(small.places()[0].gap, Some(Reason::BufferFull));
    }

    #[test]
    fn code_that_the_map_lacks_ends_a_walk() {
        let address = 0x1234;
        for (reason, expected) in [
            (Reason::NotACall { address }, true),
            (Reason::Unwind(UnwindError::UnknownCode { address }), true),
            (Reason::BufferFull, false),
            (Reason::Unwind(UnwindError::NoFrameInformation { address }), false),
        ] {
            let mut walked = buffer(&[]);
            assert!(!walked.lacks_code());
            walked.gap(reason);
            assert_eq!(walked.lacks_code(), expected, "{reason:?} before the first frame");
            assert!(push(&mut walked, 0x11, 0x100) && !walked.lacks_code(), "the walk goes on");
            walked.gap(reason);
            walked.gap(Reason::FramePointers);
            assert_eq!(walked.lacks_code(), expected, "{reason:?}");
            assert!(push(&mut walked, 0x22, 0x200) && !walked.lacks_code());
        }
    }
}
