//! Judgements of walks that were made while the runtime was suspended.
//!
//! The runtime reports methods, and the walk joins them: it begins at the first one, and frames that
//! the runtime hides next to methods may be missing. The second walk begins at the thread's registers
//! and has all frames.

use super::{End, Judgement, Seen};
use clr_walker::mixed::{FrameKind, MixedFrame};

/// Returns true if a walk has the frame. The runtime may record the call of a method at another
/// address of it (C-156).
fn has(frames: &[MixedFrame], seen: &Seen) -> bool {
    frames.iter().any(|frame| is_same(frame, seen))
}

fn is_same(frame: &MixedFrame, seen: &Seen) -> bool {
    let is_method =
        || frame.reported && seen.method.is_some_and(|id| frame.kind == FrameKind::Managed(id));
    frame.sp == seen.sp && (frame.ip == seen.ip || is_method())
}

/// Compares the frames of a walk with those of the second one. `claims`: it claims to have all that the
/// runtime reports. `has_thrown`: the thread has thrown an exception. While one is on its way, the
/// runtime hides the frames that it has left, and no callback says when that ends.
pub(super) fn judge(
    frames: &[MixedFrame],
    claims: bool,
    seen: &[Seen],
    end: End,
    has_thrown: bool,
) -> Judgement {
    let last = if end == End::Root { u64::MAX } else { seen.last().map_or(0, |seen| seen.sp) };
    let is_wrong =
        |frame: &&MixedFrame| frame.sp <= last && !seen.iter().any(|seen| is_same(frame, seen));
    let mut claim_fails = false;
    let mut has_all_managed = true;
    let mut start = 0_usize;
    for run in seen.chunk_by(|one, other| has(frames, one) == has(frames, other)) {
        let before = start.checked_sub(1).and_then(|before| seen.get(before));
        start += run.len();
        let after = seen.get(start);
        if has(frames, &run[0]) {
            continue;
        }
        let has_method = run.iter().any(|seen| seen.method.is_some() && !seen.is_hidden);
        match before {
            // The leaf, whose native code is not examined.
            None => {
                has_all_managed &= !has_method;
                claim_fails |= has_method && !has_thrown;
            }
            Some(before) => {
                let borders = [before.method, after.and_then(|after| after.method)];
                // A handler of an exception is a funclet of the method that the runtime goes on with.
                let is_skipped = borders[0].is_some() && borders[0] == borders[1];
                let is_hidden = after.is_some() && borders.iter().any(Option::is_some);
                has_all_managed &= !has_method || is_skipped;
                claim_fails |= has_method && !is_skipped || !is_hidden;
            }
        }
    }
    Judgement {
        wrong_frames: frames.iter().filter(is_wrong).count() as u64,
        is_false_claim: claims && end == End::Root && claim_fails,
        has_all_managed,
        is_unjudged: end == End::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_unwind::Position;
    use clr_walker::mixed::Source;
    use clr_walker::profiling::FunctionId;

    const NATIVE: Option<u64> = None;

    /// A frame of the second walk, whose address says where it is.
    fn seen(sp: u64, method: Option<u64>) -> Seen {
        Seen { ip: sp * 16, sp, method: method.map(FunctionId), is_hidden: false }
    }

    /// The same frames, of the first walk.
    fn found(seen: &[Seen]) -> Vec<MixedFrame> {
        let frame = |seen: &Seen| MixedFrame {
            kind: seen.method.map_or(FrameKind::Unknown, FrameKind::Managed),
            ip: seen.ip,
            sp: seen.sp,
            position: Position::ReturnAddress,
            source: Source::Snapshot,
            reported: seen.method.is_some(),
        };
        seen.iter().map(frame).collect()
    }

    fn judged(frames: &[MixedFrame], seen: &[Seen], has_thrown: bool) -> (u64, bool, bool) {
        let judgement = judge(frames, true, seen, End::Root, has_thrown);
        (judgement.wrong_frames, judgement.is_false_claim, judgement.has_all_managed)
    }

    #[test]
    fn the_native_leaf_is_not_examined() {
        let all = [seen(1, NATIVE), seen(2, Some(8)), seen(3, Some(9)), seen(4, NATIVE)];
        assert_eq!(judged(&found(&all[1..]), &all, false), (0, false, true));
        assert_eq!(judged(&[], &[seen(1, NATIVE)], false), (0, false, true));
    }

    #[test]
    fn each_method_of_the_leaf_is_expected_unless_an_exception_has_left_it() {
        let all = [seen(1, NATIVE), seen(2, Some(8)), seen(3, Some(9)), seen(4, NATIVE)];
        assert_eq!(judged(&found(&all[2..]), &all, false), (0, true, false));
        assert_eq!(judged(&found(&all[2..]), &all, true), (0, false, false));
        let mut stub = all;
        stub[1].is_hidden = true;
        assert_eq!(judged(&found(&all[2..]), &stub, false), (0, false, true));
    }

    #[test]
    fn frames_between_a_handler_and_its_method_were_left() {
        let left = [seen(1, Some(8)), seen(2, NATIVE), seen(3, Some(9)), seen(4, Some(8))];
        let frames = found(&[left[0], left[3]]);
        assert_eq!(judged(&frames, &left, false), (0, false, true));
        let mut lost = left;
        lost[3].method = Some(FunctionId(7));
        let frames = found(&[lost[0], lost[3]]);
        assert_eq!(judged(&frames, &lost, false), (0, true, false));
        let hidden = [seen(1, Some(8)), seen(2, NATIVE), seen(4, Some(7))];
        assert_eq!(judged(&found(&[hidden[0], hidden[2]]), &hidden, false), (0, false, true));
    }

    #[test]
    fn native_frames_at_the_root_are_expected() {
        let all = [seen(1, Some(8)), seen(2, NATIVE), seen(3, NATIVE), seen(4, NATIVE)];
        assert_eq!(judged(&found(&all[..3]), &all, false), (0, true, true));
        assert_eq!(judged(&found(&[all[0], all[1], all[3]]), &all, false), (0, true, true));
    }

    #[test]
    fn a_frame_that_only_the_first_walk_has_is_wrong() {
        let all = [seen(1, Some(8)), seen(2, NATIVE)];
        let mut frames = found(&all);
        frames[1].ip += 1;
        assert_eq!(judged(&frames, &all, false).0, 1);
        // The runtime records another call of the same method.
        frames = found(&all);
        frames[0].ip += 1;
        assert_eq!(judged(&frames, &all, false), (0, false, true));
        frames[0].reported = false;
        assert_eq!(judged(&frames, &all, false).0, 1);
    }
}
