//! Naming of the frames that the second walker has found.

use super::{Frame, Item, Walk};
use crate::mixed::Found;
use clr_runtime::Outcome;
use clr_runtime::TargetMemory;
use clr_unwind::{RegionKind, Trust};
use clr_walker::mixed::{Completeness, FrameKind, Gap, MixedFrame, Reason, Source};
use clr_walker::profiling::{CallError, HResult, ProfilerInfo as _};

impl<M: TargetMemory> Walk<'_, '_, M> {
    /// Names the frames, and returns the result of the walk.
    pub(super) fn name(self) -> Result<Found, Outcome> {
        let (mut frames, mut gaps) = (Vec::new(), Vec::new());
        for item in &self.out {
            let at = frames.len();
            match item {
                Item::Gap(reason) => gaps.push(Gap { at, reason: *reason }),
                Item::Frame(frame) => {
                    let (kind, ip, lookup) = self.kind(frame)?;
                    gaps.extend(lookup.map(|result| Gap { at, reason: Reason::Lookup(result) }));
                    frames.push(MixedFrame {
                        kind,
                        ip,
                        sp: frame.sp(),
                        position: frame.position,
                        source: frame.source,
                        reported: frame.report.is_some(),
                    });
                }
            }
        }
        let completeness = match gaps.first() {
            Some(gap) => Completeness::Partial(gap.reason),
            // The runtime's report confirms a guess.
            None if frames.iter().any(|frame| {
                frame.source == Source::Unwound(Trust::StackTop) && !frame.reported
            }) =>
            {
                Completeness::Guessed(Trust::StackTop)
            }
            None if self.leaf_runs => Completeness::WithoutLeaf,
            None if self.relies_on_order => Completeness::Reportable,
            None => Completeness::Whole,
        };
        Ok(Found { frames, gaps, snapshot: self.snapshot, completeness })
    }

    /// Returns the kind of a frame's code, its ip, and the result of a failed look-up.
    fn kind(&self, frame: &Frame) -> Result<(FrameKind, u64, Option<HResult>), Outcome> {
        let ip = frame.registers.rip;
        let own = match self.function(frame) {
            Ok(own) => own,
            Err(CallError::Fatal(fatal)) => return Err(fatal),
            Err(CallError::Failed(result)) if frame.report.is_none_or(|s| s.function.is_none()) => {
                return Ok((FrameKind::Unknown, ip, Some(result)));
            }
            Err(CallError::Failed(_)) => None,
        };
        if let Some((report, function)) =
            frame.report.and_then(|report| Some((report, report.function?)))
        {
            // For calls out of ready-to-run code, the runtime may report another address (C-156).
            let ip = if own == Some(function) { ip } else { report.registers.rip };
            return Ok((FrameKind::Managed(function), ip, None));
        }
        if let Some(function) = own {
            return Ok((FrameKind::Managed(function), ip, None));
        }
        let inside = frame.inside();
        let hidden = match self.info.get_function_from_ip3(inside) {
            Ok((function, _)) if !self.is_padding(inside) => Some(function),
            Err(CallError::Fatal(fatal)) => return Err(fatal),
            _ => None,
        };
        let kind = match (hidden, self.map.find(inside)) {
            (Some(_), _) => FrameKind::Hidden(hidden),
            (None, Some((region, _))) if region.kind() == RegionKind::CodeHeap => {
                FrameKind::Hidden(None)
            }
            (None, Some((region, _))) => {
                let image = region.base();
                FrameKind::Native { image, rva: (ip - image) as u32 }
            }
            (None, None) => FrameKind::Unknown,
        };
        Ok((kind, ip, None))
    }
}
