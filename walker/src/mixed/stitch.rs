//! Naming of the frames that were found, after the thread runs again.

use super::WalkBuffer;
use super::buffer::{FrameReport, Named, Place};
use super::cursor::inside;
use super::questions::{Questions, is_padding};
use super::reason::Reason;
use super::stack::{FrameKind, Gap, MixedFrame, MixedStack, Source};
use crate::profiling::{CallError, HResult, ModuleSource, ProfilerInfo};
use alloc::vec::Vec;
use clr_unwind::{CodeMap, Position, RegionKind, UnwindError};

impl<I: ProfilerInfo, M: ModuleSource> Questions<'_, I, M> {
    /// Returns the stack that a walk has left in the buffer.
    pub(super) fn stitch(&self, buffer: &WalkBuffer) -> Result<MixedStack, I::Fatal> {
        let map = self.modules.code_map().clone();
        let mut stitched = Stitched {
            ask: self,
            map: &map,
            stack: MixedStack {
                frames: Vec::with_capacity(buffer.places().len() + buffer.reports().len()),
                gaps: Vec::new(),
                snapshot: buffer.snapshot,
                is_stuck: buffer.is_stuck,
                relies_on_order: buffer.relies_on_order,
                leaf_runs: buffer.leaf_runs,
            },
            reports: buffer.reports(),
            consumed: 0,
            has_only_reports: buffer.places().is_empty(),
        };
        stitched.gap(buffer.before);
        for place in buffer.places() {
            stitched.place(place)?;
        }
        while let Some(report) = stitched.reports.get(stitched.consumed) {
            stitched.only_reported(report)?;
        }
        let ended_early = buffer.snapshot.filter(|result| *result != HResult::OK);
        if buffer.places().is_empty() {
            let reason = ended_early.map(Reason::Snapshot);
            stitched.gap(reason.map(|one| if buffer.is_full { Reason::BufferFull } else { one }));
        }
        stitched.cut(buffer.capacity());
        Ok(stitched.stack)
    }

    /// Returns the kind of code of a frame that the runtime has not named. The id of hidden code is
    /// the one at its address now.
    fn kind(&self, map: &CodeMap<'_>, ip: u64, position: Position) -> Result<FrameKind, I::Fatal> {
        let inside = inside(ip, position);
        let hidden = match self.info.get_function_from_ip3(inside) {
            Ok((function, _)) => Some(function).filter(|_| !is_padding(map, inside)),
            Err(CallError::Failed(_)) => None,
            Err(CallError::Fatal(fatal)) => return Err(fatal),
        };
        if hidden.is_some() {
            return Ok(FrameKind::Hidden(hidden));
        }
        Ok(match map.find(inside) {
            Some((region, _)) if region.kind() == RegionKind::CodeHeap => FrameKind::Hidden(None),
            Some((region, _)) => FrameKind::Native {
                image: region.base(),
                rva: ip.wrapping_sub(region.base()) as u32,
            },
            None => FrameKind::Unknown,
        })
    }
}

/// A stack under construction.
struct Stitched<'b, I, M> {
    ask: &'b Questions<'b, I, M>,
    /// The code map of now.
    map: &'b CodeMap<'b>,
    stack: MixedStack,
    reports: &'b [FrameReport],
    /// Number of callbacks whose frames are in the stack.
    consumed: usize,
    /// True if nothing was unwound.
    has_only_reports: bool,
}

impl<I: ProfilerInfo, M: ModuleSource> Stitched<'_, I, M> {
    fn gap(&mut self, reason: Option<Reason>) {
        let at = self.stack.frames.len();
        self.stack.gaps.extend(reason.map(|reason| Gap { at, reason }));
    }

    /// Truncates the stack to `capacity` frames: each source may have filled its part of the
    /// buffer.
    fn cut(&mut self, capacity: usize) {
        let MixedStack { frames, gaps, .. } = &mut self.stack;
        if frames.len() <= capacity {
            return;
        }
        frames.truncate(capacity);
        gaps.retain(|gap| gap.at <= capacity);
        if gaps.last().is_none_or(|gap| gap.at < capacity) {
            gaps.push(Gap { at: capacity, reason: Reason::BufferFull });
        }
    }

    /// Adds the next frame of the way, and before it the reported frames that the way has missed.
    fn place(&mut self, place: &Place) -> Result<(), I::Fatal> {
        while let Some(report) = self.reports.get(self.consumed)
            && place.report != Some(self.consumed)
            && report.sp() < place.sp
        {
            self.only_reported(report)?;
        }
        if let Some(report) = place.report {
            self.consumed = report + 1;
        }
        let &Place { mut ip, sp, position, source, .. } = place;
        let report = place.report.and_then(|report| self.reports.get(report));
        let kind = match report.and_then(|report| Some((report.ip, report.function?))) {
            Some((reported, function)) => {
                // The call is where the unwinder found it, if that is in the function at all
                // (C-156).
                if reported != ip && place.named != Named::As(Some(function)) {
                    ip = reported;
                    self.gap(Some(Reason::Disagreement { sp }));
                }
                FrameKind::Managed(function)
            }
            None => self.kind(place)?,
        };
        let reported = report.is_some();
        self.stack.frames.push(MixedFrame { kind, ip, sp, position, source, reported });
        let gap = self.unexcused(place, kind);
        self.gap(gap);
        Ok(())
    }

    /// Adds a frame that only the runtime reports.
    fn only_reported(&mut self, report: &FrameReport) -> Result<(), I::Fatal> {
        self.consumed += 1;
        if report.is_none {
            let reason = Reason::NotACall { address: report.ip };
            // A walk that unwinds has recorded this already.
            self.gap(Some(reason).filter(|_| self.has_only_reports));
            return Ok(());
        }
        let (ip, sp, position) = (report.ip, report.sp(), Position::ReturnAddress);
        let kind = match report.function {
            Some(function) => FrameKind::Managed(function),
            None => self.ask.kind(self.map, ip, position)?,
        };
        let (source, reported) = (Source::Snapshot, true);
        self.stack.frames.push(MixedFrame { kind, ip, sp, position, source, reported });
        if report.function.is_none() {
            self.gap(Some(Reason::NotUnwound));
        }
        Ok(())
    }

    /// Returns the kind of a frame's code, if it is known.
    fn kind(&mut self, place: &Place) -> Result<FrameKind, I::Fatal> {
        let mut place = *place;
        if place.named == Named::Later {
            self.ask.name(self.map, &mut place)?;
        }
        match place.named {
            Named::As(Some(function)) => Ok(FrameKind::Managed(function)),
            Named::As(None) | Named::Later => self.ask.kind(self.map, place.ip, place.position),
            Named::Refused(reason) => {
                self.gap(Some(reason));
                Ok(FrameKind::Unknown)
            }
        }
    }

    /// Returns the reason why a frame's caller is missing. There is none for a frame that the
    /// runtime hides in a run that it has reported: the next frame that it reports is the next one
    /// with a name.
    fn unexcused(&mut self, place: &Place, kind: FrameKind) -> Option<Reason> {
        let unknown = matches!(place.gap, Some(Reason::Unwind(UnwindError::UnknownCode { .. })));
        let hidden = matches!(kind, FrameKind::Hidden(_));
        let next = self.reports.get(self.consumed..).unwrap_or_default();
        if unknown && hidden && self.consumed > 0 && next.iter().any(|report| !report.is_none) {
            self.stack.relies_on_order = true;
            return None;
        }
        place.gap
    }
}
