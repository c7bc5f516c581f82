//! Second opinions on each walk, inside the process.
//!
//! The stack is copied with the walk. Afterwards another walk is made from the same registers over the
//! copy: native frames by libunwind or RtlVirtualUnwind, frames of methods by a reader of UNWIND_INFO
//! of its own. The runtime says which frame is which. The two walks have to agree frame by frame, the calls between
//! frames have to lead to them, and the claim of the first walk has to be true.

mod calls;
#[cfg(target_os = "linux")]
mod execute;
mod frame;
mod leaves;
mod managed;
mod mode;
#[cfg(target_os = "linux")]
mod native;
#[cfg(windows)]
mod rtl;
mod second;
#[cfg(target_os = "linux")]
mod shared_memory;
mod suspended;

use crate::settings::Settings;
use calls::Calls;
use clr_sampler::{Missed, Process, Report, Sample, allocations, os};
use clr_unwind::{Gpr, Position, UnwindError};
use clr_walker::mixed::{Completeness, FrameKind, MixedFrame, MixedStack, Policy, Reason, Source};
use clr_walker::profiling::{FunctionId, HResult};
use frame::{Frame, Pages, StackCopy};
use leaves::Leaves;
pub(crate) use mode::Checking;
use second::{Native, Second, Stepped};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of frames of the second walk.
const MOST: usize = 1024;
/// Number of troubles that are written in full.
const SHOWN: u64 = 20;

/// The end of the second walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The thread's first function.
    Root,
    /// No unwind data, or none that makes sense.
    Lost,
}

/// A frame of the second walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    ip: u64,
    sp: u64,
    method: Option<FunctionId>,
    /// True for a method that the runtime does not report: a dynamic one, or an IL stub.
    is_hidden: bool,
}

/// The judgement of one walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Judgement {
    /// Number of frames that are not where the second walk found them.
    wrong_frames: u64,
    /// True if it claims more than the second walk confirms.
    is_false_claim: bool,
    /// True if it has every managed frame of the second walk, to the root.
    has_all_managed: bool,
    /// True if the second walk was lost before the first one ended.
    is_unjudged: bool,
}

/// The judgements so far.
#[derive(Debug, Default)]
pub(super) struct Check {
    settings: Settings,
    native: Option<Native>,
    images: Vec<os::Image>,
    pages: Pages,
    loads: (u64, u64),
    walks: u64,
    missed: BTreeMap<&'static str, u64>,
    frames: u64,
    wrong_frames: u64,
    false_whole: u64,
    unjudged: u64,
    /// Number of times that the second walk was lost, and went on from a frame of the first one.
    bridged: u64,
    complete: u64,
    /// Number of walks that were made again, when the code map had more.
    late: u64,
    snapshots: u64,
    /// Number of frames of snapshots that the walk does not have, or has elsewhere.
    snapshot_frames_missing: u64,
    leaves: Leaves,
    calls: Calls,
    troubles: u64,
    claims: BTreeMap<String, u64>,
    /// Durations of walks.
    nanoseconds: Vec<u32>,
    /// Durations for 20 frames, by those of walks of 10 to 40 frames.
    for_twenty: Vec<u32>,
    /// The same of walks that were made again at once.
    for_twenty_again: Vec<u32>,
}

impl Check {
    fn new(settings: Settings) -> Self {
        Self { settings, native: Native::load(), ..Self::default() }
    }

    /// Counts a request that led to no sample.
    fn missed(&mut self, why: Missed) {
        *self.missed.entry(why.name()).or_default() += 1;
    }

    /// Judges a walk. `caller` returns the true caller of its leaf, if it is known; it is given the caller's rsp that the walk
    /// claims.
    fn add(
        &mut self,
        process: &Process,
        sample: &Sample,
        stack: &MixedStack,
        caller: impl FnOnce(&mut Leaves, Option<u64>) -> Option<Frame>,
    ) {
        self.walks += 1;
        self.late += u64::from(sample.is_late);
        self.frames += stack.frames.len() as u64;
        let claim = claim(stack.completeness());
        *self.claims.entry(claim).or_default() += 1;
        let nanoseconds = u32::try_from(sample.nanoseconds).unwrap_or(u32::MAX);
        self.nanoseconds.push(nanoseconds);
        let frames = stack.frames.len() as u32;
        if (10..=40).contains(&frames) {
            let for_twenty = |nanoseconds: u64| (nanoseconds * 20 / u64::from(frames)) as u32;
            self.for_twenty.push(for_twenty(nanoseconds.into()));
            self.for_twenty_again.extend(sample.nanoseconds_again.map(for_twenty));
        }
        if sample.copy.is_empty() || !self.settings.judge {
            // The thread was on another stack than its own, or on a huge one.
            self.unjudged += 1;
            self.complete += u64::from(!matches!(stack.completeness(), Completeness::Partial(_)));
            return;
        }
        let missing = missing_reports(sample, stack);
        self.snapshots += u64::from(sample.snapshot == Some(HResult::OK));
        self.snapshot_frames_missing += missing;
        let caller = caller(&mut self.leaves, stack.frames.get(1).map(|frame| frame.sp));
        let wrong_calls = self.calls.judge(stack, &Pages::default());
        let (seen, end) = self.second(process, sample, stack, caller);
        let mut judgement = match self.settings.policy {
            Policy::RuntimeSuspended => {
                let claims = !matches!(stack.completeness(), Completeness::Partial(_));
                suspended::judge(&stack.frames, claims, &seen, end, sample.has_thrown)
            }
            _ => judge(stack, &seen, end),
        };
        // Nobody knows the caller of a leaf that could not be executed: both may be wrong.
        let is_same = |seen: &Seen, frame: &MixedFrame| (seen.ip, seen.sp) == (frame.ip, frame.sp);
        let callers = seen.get(1).zip(stack.frames.get(1));
        let differ = callers.is_some_and(|(seen, frame)| !is_same(seen, frame));
        let is_disputed = self.settings.policy == Policy::Signal && caller.is_none() && differ;
        if is_disputed {
            self.leaves.disputed += 1;
            judgement.wrong_frames = 0;
            judgement.is_false_claim = false;
            judgement.is_unjudged = true;
        }
        self.wrong_frames += judgement.wrong_frames;
        self.false_whole += u64::from(judgement.is_false_claim);
        self.complete += u64::from(judgement.has_all_managed);
        self.unjudged += u64::from(judgement.is_unjudged);
        let is_trouble = missing > 0
            || wrong_calls > 0
            || is_disputed
            || judgement.wrong_frames > 0
            || judgement.is_false_claim
            || !judgement.has_all_managed
            // A thread without methods is refused.
            || matches!(stack.completeness(), Completeness::Partial(_)) && !stack.frames.is_empty();
        if is_trouble && self.settings.log && self.troubles < SHOWN {
            self.troubles += 1;
            eprint!("{}", describe(process, sample, stack, &seen, end, judgement));
            eprint!("{}", leaves::describe(sample, caller));
        }
    }

    /// Makes the second walk, which begins with the true `caller` of the leaf, if it is known. Where it is lost, it goes on from the next frame of the first walk, whose
    /// other frames have to agree then: no wrong place on a stack leads to the thread's first function.
    fn second(
        &mut self,
        process: &Process,
        sample: &Sample,
        first: &MixedStack,
        caller: Option<Frame>,
    ) -> (Vec<Seen>, End) {
        let loads = os::loads();
        if std::mem::replace(&mut self.loads, loads) != loads {
            self.images = os::images();
            self.pages.clear();
            if let Some(native) = &self.native {
                native.forget();
            }
        }
        let now = Pages::default();
        let walk = Second {
            native: self.native,
            images: &self.images,
            pages: &self.pages,
            now: &now,
            info: &process.info,
            stack: StackCopy { from: sample.copy_from, bytes: &sample.copy },
            base: sample.stack.base,
        };
        let mut frame = Frame {
            rip: sample.registers.rip,
            registers: std::array::from_fn(|number| {
                sample.registers.get(Gpr::from_number(number as u8))
            }),
        };
        let is_suspended = self.settings.policy == Policy::RuntimeSuspended;
        let mut is_interrupted = true;
        let mut seen: Vec<Seen> = Vec::new();
        while seen.len() < MOST {
            let method = walk.method(&frame, is_interrupted);
            let is_hidden = is_suspended && walk.is_hidden(&frame, is_interrupted);
            seen.push(Seen { ip: frame.rip, sp: frame.rsp(), method, is_hidden });
            let mut stepped = walk.step(&mut frame, method, is_interrupted);
            if let Some(caller) = caller.filter(|_| seen.len() == 1) {
                // A hijacked return leads to the runtime: the true address is not on the stack.
                let is_hijacked = !walk.follows_call(caller.rip);
                self.leaves.opinions_wrong += u64::from(
                    !is_hijacked && (frame.rip, frame.rsp()) != (caller.rip, caller.rsp()),
                );
                frame = caller;
                stepped = Stepped::Caller { interrupted: false };
                if is_hijacked && let Some(next) = first.frames.get(1) {
                    frame.rip = next.ip;
                }
            }
            match stepped {
                Stepped::Caller { interrupted } => is_interrupted = interrupted,
                Stepped::Root => return (seen, End::Root),
                Stepped::Lost => {
                    let agreed = first.frames.iter().position(|frame| {
                        seen.last().is_some_and(|seen| (frame.ip, frame.sp) == (seen.ip, seen.sp))
                    });
                    let agreed = agreed.filter(|at| is_suspended || at + 1 == seen.len());
                    let next = agreed.and_then(|at| first.frames.get(at + 1));
                    let Some(next) = next else { return (seen, End::Lost) };
                    self.bridged += 1;
                    frame.rip = next.ip;
                    frame.registers[4] = next.sp;
                    is_interrupted = next.position == Position::Interrupted;
                }
            }
        }
        (seen, End::Lost)
    }

    /// Returns the result: one JSON object.
    fn text(&self, version: [u16; 3], hangs: u32) -> String {
        let [median, p95] = [50, 95].map(|percent| percentile(&self.nanoseconds, percent));
        let [twenty, twenty_p95] = [50, 95].map(|percent| percentile(&self.for_twenty, percent));
        let [major, minor, build] = version;
        let result = json!({
            "runtime": format!("{major}.{minor}.{build}"),
            "workload": self.settings.label,
            "policy": self.settings.policy.name(),
            "walks": self.walks,
            "missed": self.missed,
            "frames": self.frames,
            "hangs": hangs,
            "wrong_frames": self.wrong_frames,
            "allocations": allocations::made(),
            "false_whole": self.false_whole,
            "unjudged": self.unjudged,
            "bridged": self.bridged,
            "leaves_executed": self.leaves.executed,
            "leaves_unjudged": self.leaves.unjudged,
            "opinions_wrong": self.leaves.opinions_wrong,
            "disputed": self.leaves.disputed,
            "calls_proved": self.calls.proved,
            "calls_open": self.calls.open,
            "wrong_calls": self.calls.wrong,
            "complete": self.complete,
            "late": self.late,
            "snapshots": self.snapshots,
            "snapshot_frames_missing": self.snapshot_frames_missing,
            "median_ns": median,
            "p95_ns": p95,
            "twenty_frames_ns": twenty,
            "twenty_frames_p95_ns": twenty_p95,
            "twenty_frames_again_ns": percentile(&self.for_twenty_again, 50),
            "second_opinion": self.native.is_some(),
            "claims": self.claims,
        });
        format!("{result}\n")
    }
}

/// Returns the value below which this part of the values lies, in percent.
fn percentile(values: &[u32], percent: usize) -> u32 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() * percent / 100).copied().unwrap_or_default()
}

/// Returns the name of a claim: `Whole`, or the variant of the reason.
fn claim(completeness: Completeness) -> String {
    let text = match completeness {
        Completeness::Partial(reason) => format!("{reason:?}"),
        other => format!("{other:?}"),
    };
    text.replace("Unwind(", "").chars().take_while(char::is_ascii_alphabetic).collect()
}

/// Compares the frames (ip and sp, VA) of a walk, of which the first ones are contiguous, with those of
/// the second walk. Returns how many agree from the leaf on, and how many are wrong.
fn compare(
    ours: &[(u64, u64)],
    contiguous: usize,
    theirs: &[(u64, u64)],
    end: End,
) -> (usize, u64) {
    let (first, rest) = ours.split_at(contiguous.min(ours.len()));
    let agreed = ours.iter().zip(theirs).take_while(|(one, other)| one == other).count();
    if agreed < first.len().min(theirs.len()) {
        return (agreed, (ours.len() - agreed) as u64);
    }
    let reach = match end {
        End::Root => u64::MAX,
        End::Lost => theirs.last().map_or(0, |(_, sp)| *sp),
    };
    let beyond = first.iter().skip(theirs.len());
    let wrong = beyond.chain(rest).filter(|(_, sp)| *sp <= reach);
    (agreed, wrong.filter(|frame| !theirs.contains(frame)).count() as u64)
}

/// Judges a walk by another one of the same stack.
fn judge(stack: &MixedStack, seen: &[Seen], end: End) -> Judgement {
    let ours: Vec<(u64, u64)> = stack.frames.iter().map(|frame| (frame.ip, frame.sp)).collect();
    let theirs: Vec<(u64, u64)> = seen.iter().map(|frame| (frame.ip, frame.sp)).collect();
    // The frames before the first gap are contiguous. What only the runtime has found, and what comes
    // after that, is anywhere further on.
    let found = stack.frames.iter().position(|frame| frame.source == Source::Snapshot);
    let gap = stack.gaps.iter().map(|gap| gap.at).min();
    let contiguous = found.into_iter().chain(gap).min().unwrap_or(ours.len());
    let (agreed, wrong_frames) = compare(&ours, contiguous, &theirs, end);
    let is_whole = stack.completeness() == Completeness::Whole;
    let is_same = agreed == ours.len() && agreed == theirs.len();
    let has_all_managed = seen.iter().filter(|frame| frame.method.is_some()).all(|frame| {
        stack.frames.iter().any(|ours| {
            let is_managed =
                matches!(ours.kind, FrameKind::Managed(_) | FrameKind::Hidden(Some(_)));
            is_managed && (ours.ip, ours.sp) == (frame.ip, frame.sp)
        })
    });
    Judgement {
        wrong_frames,
        is_false_claim: is_whole && end == End::Root && !is_same,
        has_all_managed: has_all_managed && (end == End::Root || is_whole),
        is_unjudged: end == End::Lost && (ours.len() > theirs.len() || is_whole),
    }
}

/// Returns the number of frames that DoStackSnapshot reports and the walk does not have. The ip of a
/// method with an inlined P/Invoke may be another one on the same frame (C-156).
fn missing_reports(sample: &Sample, stack: &MixedStack) -> u64 {
    if sample.snapshot != Some(HResult::OK) {
        return 0;
    }
    let has = |report: &&Report| {
        stack
            .frames
            .iter()
            .any(|frame| frame.kind == FrameKind::Managed(report.function) && frame.sp == report.sp)
    };
    sample.reports.iter().filter(|report| !has(report)).count() as u64
}

/// Returns a text for people about a walk.
fn describe(
    process: &Process,
    sample: &Sample,
    stack: &MixedStack,
    seen: &[Seen],
    end: End,
    judgement: Judgement,
) -> String {
    let mut text = format!("clr-recorder: {judgement:?}\n  {:?}\n", stack.completeness());
    let place = |ip: u64| process.code.describe(ip);
    for frame in &stack.frames {
        let (ip, sp, place) = (frame.ip, frame.sp, place(frame.ip));
        let _ =
            writeln!(text, "  ours {ip:#x} {sp:#x} {:?} {:?} {place}", frame.kind, frame.source);
    }
    for frame in seen {
        let (ip, sp, place) = (frame.ip, frame.sp, place(frame.ip));
        let _ = writeln!(text, "  second {ip:#x} {sp:#x} {:?} {place}", frame.method);
    }
    if sample.snapshot.is_some() {
        for report in &sample.reports {
            let Report { function, ip, sp } = report;
            let _ = writeln!(text, "  snapshot {ip:#x} {sp:#x} {function:x?}");
        }
    }
    let copy = StackCopy { from: sample.copy_from, bytes: &sample.copy };
    let last = stack.frames.last().map_or(sample.copy_from, |frame| frame.sp);
    let words = (0..20).map(|at| copy.read(last + at * 8).unwrap_or_default());
    let words: Vec<String> = words.map(|word| format!("{word:x}")).collect();
    let _ = writeln!(text, "  second: {end:?}; stack at {last:#x}: {}", words.join(" "));
    // Code that was jitted during the walk is in the map by now.
    if let Completeness::Partial(
        Reason::NotACall { address } | Reason::Unwind(UnwindError::UnknownCode { address }),
    ) = stack.completeness()
    {
        let _ = writeln!(
            text,
            "  {address:#x} is now {}in the code map",
            if process.code.knows(address) { "" } else { "not " }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_sorted_values() {
        assert_eq!(percentile(&[], 50), 0);
        assert_eq!(percentile(&[9, 1, 5], 50), 5);
        assert_eq!(percentile(&[9, 1, 5], 95), 9);
    }

    #[test]
    fn a_result_is_json_whatever_the_label() {
        let label = "a\"b\\c".to_owned();
        let settings = Settings { label, policy: Policy::Unseeded, ..Settings::default() };
        let mut check = Check::new(settings);
        check.missed(Missed::NoRoom);
        let text = check.text([9, 0, 7], 1);
        assert_eq!((text.lines().count(), text.ends_with('\n')), (1, true));
        let result: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(result["workload"], "a\"b\\c");
        assert_eq!((&result["runtime"], &result["policy"]), (&json!("9.0.7"), &json!("unseeded")));
        assert_eq!((&result["missed"], &result["hangs"]), (&json!({"no room": 1}), &json!(1)));
    }

    #[test]
    fn frames_after_a_gap_may_lie_anywhere_further_on() {
        let theirs = [(1, 10), (2, 20), (3, 30), (4, 40)];
        let compare = |ours: &[_], contiguous, end| compare(ours, contiguous, &theirs, end);
        assert_eq!(compare(&theirs, 4, End::Root), (4, 0));
        let ours = [(1, 10), (3, 30), (4, 40)];
        assert_eq!(compare(&ours, 1, End::Root), (1, 0));
        assert_eq!(compare(&ours, 3, End::Root), (1, 2), "without a gap");
        let ours = [(1, 10), (5, 30), (6, 60)];
        assert_eq!(compare(&ours, 1, End::Root), (1, 2));
        assert_eq!(compare(&ours, 1, End::Lost), (1, 1), "as far as the other walk goes");
        let ours = [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)];
        assert_eq!(compare(&ours, 5, End::Root), (4, 1), "after the root");
        assert_eq!(compare(&ours, 5, End::Lost), (4, 0));
    }

    #[test]
    fn claims_have_short_names() {
        let reason = clr_walker::mixed::Reason::NotACall { address: 5 };
        assert_eq!(claim(Completeness::Partial(reason)), "NotACall");
        assert_eq!(claim(Completeness::Whole), "Whole");
    }
}
