//! Frames that a walk passes without a callback, because of exceptions.
//!
//! Which frames those are is the runtime's own state. It is deduced here from a walk's result, in the
//! terms of the format: a handler is left out together with all frames up to its method's, and frames
//! that the current exception has unwound are left out one by one (contract §3.9).

use super::walk::{Report, Walk};
use clr_walker::profiling::HResult;
use std::collections::BTreeMap;

/// A managed frame that a walk passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PassedFrame {
    /// Address in its code (VA).
    pub(super) ip: u64,
    /// Stack pointer (VA).
    pub(super) sp: u64,
    /// Stack pointer of the caller (VA).
    pub(super) caller_sp: u64,
    /// Address in its caller's code (VA).
    pub(super) caller_ip: u64,
}

/// The facts about the code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// `handler` or `filter`, in a funclet.
    pub(super) funclet: Option<&'static str>,
    /// True for methods that no walk reports: dynamic ones, stubs, the dispatch of exceptions.
    pub(super) is_silent: bool,
    /// True for the dispatch of exceptions in managed code.
    pub(super) is_dispatch: bool,
}

/// A handler on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handler {
    /// Stack pointer of the caller (VA).
    pub(super) caller_sp: u64,
    /// The caller's stack pointer of the method's own frame (VA); `None` if the handler has a callback
    /// as a method has.
    pub(super) parent_caller_sp: Option<u64>,
}

/// The frames that exceptions hide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) handlers: Vec<Handler>,
    /// The unwound part of the stack: lower bound (exclusive) and upper bound (inclusive).
    pub(super) unwound: Option<(u64, u64)>,
}

impl Hidden {
    /// Deduces what a walk left out.
    pub(super) fn of(walk: &Walk, facts: &BTreeMap<u64, Fact>) -> Self {
        let is_whole = walk.answer.result != HResult::ABORTED;
        Self::deduce(&walk.passed, &walk.answer.reports, facts, walk.stack.base, is_whole)
    }

    /// `base`: of the stack (VA); `is_whole`: the walk went to its end.
    fn deduce(
        frames: &[PassedFrame],
        reports: &[Report],
        facts: &BTreeMap<u64, Fact>,
        base: u64,
        is_whole: bool,
    ) -> Self {
        let is_reported = reported(frames, reports);
        // Nothing is known of frames after the last callback of a walk that was ended.
        let count = match is_reported.iter().rposition(|is_reported| *is_reported) {
            _ if is_whole => frames.len(),
            Some(last) => last + 1,
            None => 0,
        };
        let fact = |ip: u64| facts.get(&ip).copied();
        let mut hidden = Self::default();
        let mut at = 0;
        while let Some(frame) = frames.get(at).filter(|_| at < count) {
            let (reported, Some(own)) = (is_reported[at], fact(frame.ip)) else {
                at += 1;
                continue;
            };
            at += 1;
            let is_handler = own.funclet == Some("handler");
            let caller = fact(frame.caller_ip).filter(|caller| !caller.is_dispatch);
            if own.is_silent || is_handler && caller.is_some() || !is_handler && reported {
                continue;
            }
            // A handler that a later exception has left is unwound, but its native caller is not.
            if is_handler && (reported || !is_marked(frame, frames, reports)) {
                let parent = (at..count).find(|index| is_reported[*index]);
                let parent_sp = parent.and_then(|index| frames.get(index)).map(|f| f.caller_sp);
                hidden.handlers.push(Handler {
                    caller_sp: frame.caller_sp,
                    parent_caller_sp: (!reported).then(|| parent_sp.unwrap_or(base)),
                });
                at = if reported { at } else { parent.unwrap_or(count) };
            } else {
                let (lower, upper) = hidden.unwound.unwrap_or((u64::MAX, 0));
                hidden.unwound = Some((lower.min(frame.caller_sp - 8), upper.max(frame.caller_sp)));
            }
        }
        hidden
    }
}

/// Returns for each frame whether it had a callback. Callbacks come in the order of frames; where only
/// ips tell frames apart, those that were left out are nearer to the leaf.
fn reported(frames: &[PassedFrame], reports: &[Report]) -> Vec<bool> {
    let mut is_reported = vec![false; frames.len()];
    let mut end = frames.len();
    for report in reports.iter().rev().filter(|report| report.function.is_some()) {
        let is_same = |frame: &PassedFrame| report.is_at(frame.ip, frame.sp);
        let rest = frames.get(..end).unwrap_or_default();
        let Some(index) = rest.iter().rposition(is_same) else { continue };
        is_reported[index] = true;
        end = index;
    }
    is_reported
}

/// Returns true if the native caller of a frame had a callback. Where only ips tell callers apart, one
/// right after a frame with the same caller, a filter for example, is that frame's.
fn is_marked(frame: &PassedFrame, frames: &[PassedFrame], reports: &[Report]) -> bool {
    let mut before: Option<&Report> = None;
    reports.iter().any(|report| {
        let callee = before.replace(report).filter(|callee| callee.function.is_some());
        let is_callee_s = report.context.is_none()
            && callee.is_some_and(|callee| {
                let is_called =
                    |frame: &PassedFrame| frame.ip == callee.ip && frame.caller_ip == report.ip;
                frames.iter().any(is_called)
            });
        let is_caller = report.is_at(frame.caller_ip, frame.caller_sp);
        report.function.is_none() && is_caller && !is_callee_s
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_walker::profiling::FunctionId;

    /// Makes frames at ips 1, 2 …, of which those in `shown` have callbacks.
    fn walk(count: u64, shown: &[u64]) -> (Vec<PassedFrame>, Vec<Report>) {
        let frames = (1..=count).map(|ip| PassedFrame {
            ip,
            sp: ip * 0x100 - 0x100,
            caller_sp: ip * 0x100,
            caller_ip: if ip == 2 { 3 } else { 0 },
        });
        let reports = shown.iter().map(|ip| Report {
            function: Some(FunctionId(*ip)),
            ip: *ip,
            has_frame_info: true,
            context_size: 0,
            context: None,
        });
        (frames.collect(), reports.collect())
    }

    fn facts(handlers: &[u64]) -> BTreeMap<u64, Fact> {
        let fact = |ip: u64| Fact {
            funclet: handlers.contains(&ip).then_some("handler"),
            is_silent: false,
            is_dispatch: false,
        };
        (1..10).map(|ip| (ip, fact(ip))).collect()
    }

    #[test]
    fn a_handler_hides_everything_up_to_its_method() {
        let (frames, reports) = walk(4, &[4]);
        let hidden = Hidden::deduce(&frames, &reports, &facts(&[1]), 0x1000, true);
        let handler = Handler { caller_sp: 0x100, parent_caller_sp: Some(0x400) };
        assert_eq!(hidden, Hidden { handlers: vec![handler], unwound: None });
        let (frames, reports) = walk(4, &[1, 2, 3, 4]);
        let hidden = Hidden::deduce(&frames, &reports, &facts(&[1]), 0x1000, true);
        let handler = Handler { caller_sp: 0x100, parent_caller_sp: None };
        assert_eq!(hidden.handlers, [handler], "one that is shown as a method");
        let (frames, reports) = walk(4, &[1, 3, 4]);
        let hidden = Hidden::deduce(&frames, &reports, &facts(&[2]), 0x1000, true);
        assert_eq!(hidden, Hidden::default(), "a method's own call of its finally block");
    }

    #[test]
    fn a_handler_with_a_marker_was_left() {
        let (frames, mut reports) = walk(4, &[0, 4]);
        reports[0].function = None;
        let hidden = Hidden::deduce(&frames, &reports, &facts(&[1]), 0x1000, true);
        assert_eq!(hidden, Hidden { handlers: vec![], unwound: Some((0xF8, 0x300)) });
    }

    #[test]
    fn the_marker_of_a_filter_is_no_marker_of_the_handler_below_it() {
        let (mut frames, mut reports) = walk(4, &[1, 0, 4]);
        reports[1].function = None;
        reports[1].ip = 0x99;
        frames[0].caller_ip = 0x99;
        frames[1].caller_ip = 0x99;
        let mut facts = facts(&[2]);
        facts.get_mut(&1).unwrap().funclet = Some("filter");
        let hidden = Hidden::deduce(&frames, &reports, &facts, 0x1000, true);
        let handler = Handler { caller_sp: 0x200, parent_caller_sp: Some(0x400) };
        assert_eq!(hidden, Hidden { handlers: vec![handler], unwound: None });
        // With registers, the marker is known by its stack pointer.
        let mut registers = clr_unwind::Registers::default();
        registers.set(clr_unwind::Gpr::Rsp, 0x200);
        reports[1].context = Some((registers, 0));
        let hidden = Hidden::deduce(&frames, &reports, &facts, 0x1000, true);
        assert_eq!(hidden.handlers, []);
    }

    #[test]
    fn of_frames_that_look_the_same_those_at_the_root_are_shown() {
        let (mut frames, mut reports) = walk(4, &[3, 4]);
        for frame in &mut frames[..3] {
            frame.ip = 3;
        }
        assert_eq!(reported(&frames, &reports), [false, false, true, true]);
        let registers = |sp| {
            let mut registers = clr_unwind::Registers::default();
            registers.set(clr_unwind::Gpr::Rsp, sp);
            registers
        };
        reports[0].context = Some((registers(0x100), 0));
        assert_eq!(reported(&frames, &reports), [false, true, false, true]);
    }

    #[test]
    fn methods_without_a_callback_were_unwound() {
        let (frames, reports) = walk(5, &[1, 4]);
        let hidden = Hidden::deduce(&frames, &reports, &facts(&[]), 0x1000, false);
        assert_eq!(hidden, Hidden { handlers: vec![], unwound: Some((0x1F8, 0x300)) });
        let hidden = Hidden::deduce(&frames, &reports, &facts(&[]), 0x1000, true);
        assert_eq!(hidden.unwound, Some((0x1F8, 0x500)), "the walk did not end before the last");
    }
}
