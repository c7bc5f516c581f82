//! Whole stacks of recorded threads, compared with the recorded calls.

use clr_recording::{
    CALLER, ReachedFrame, Recording, RecordingLoadError, RecordingReplay, SeedLine, SeedOrigin,
    SyntheticNative, WalkLine,
};
use clr_runtime::Outcome;
use clr_runtime::profiling::{Policy, PolicyWalker};
use clr_unwind::{CodeMapError, Registers};
use clr_walker::mixed::{Completeness, FrameKind, MixedFrame, MixedStack, SeenBy, WalkBuffer};
use clr_walker::profiling::HResult;
use core::fmt::{self, Write as _};
use std::collections::BTreeMap;
use thiserror::Error;

/// Pretended return address of a recorded thread's first function on Unix (VA).
const ROOT: u64 = 0x5A5E_0000_0000;

/// Returns the policies that fit a recorded call: the target's situation and the recorded data.
#[must_use]
pub fn policies(walk: &WalkLine) -> &'static [Policy] {
    let seed = walk.call.seed.as_ref().map(SeedLine::origin);
    let seeded = matches!(seed, Some(SeedOrigin::Context | SeedOrigin::Hook | SeedOrigin::Unwound));
    match walk.relation.as_str() {
        "self" if walk.situation.starts_with("signal") && seeded => &[Policy::SignalSnapshot],
        "self" if walk.is_called_by_runtime() && seeded => {
            &[Policy::Synchronous, Policy::SignalSnapshot]
        }
        "self" if seeded => &[Policy::SignalSnapshot],
        "self" if walk.is_called_by_runtime() => &[Policy::Synchronous],
        "self" => &[Policy::Unseeded],
        _ if walk.state.runtime_suspended_by_profiler => &[Policy::RuntimeSuspended],
        _ if walk.leaf.is_some() => &[Policy::Unseeded, Policy::Seeded],
        _ => &[Policy::Unseeded],
    }
}

/// Returns true if a recorded thread can be walked again: it was alive, its walk could be replayed,
/// and the walk did not start from a bad seed.
#[must_use]
pub fn is_fit(walk: &WalkLine) -> bool {
    walk.replayable && walk.state.target.is_none() && !is_misled(walk)
}

/// Returns true if a recorded walk started from a bad seed: one that was wrong on purpose, or
/// outdated.
#[must_use]
fn is_misled(walk: &WalkLine) -> bool {
    let seed = walk.call.seed.as_ref().map(SeedLine::origin);
    let is_other = matches!(seed, Some(SeedOrigin::Other));
    is_other && walk.state.mode.as_deref() != Some("preemptive")
}

/// A recorded thread, set up again with a walk of it.
pub struct Recorded<'w> {
    /// The recorded call.
    pub walk: &'w WalkLine,
    /// The stops of the runtime's walk in that call.
    pub stops: Vec<ReachedFrame>,
    /// Native code, if it is pretended.
    pub native: SyntheticNative,
    /// Policy of the new walk.
    pub policy: Policy,
    /// Result of the new walk.
    pub stack: MixedStack,
    /// True if the new walk made the same call as the recorded one.
    pub same_call: bool,
}

/// A reason why a recorded thread cannot be walked.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum Unwalked {
    /// The thread's state cannot be set up.
    #[error(transparent)]
    Load(#[from] RecordingLoadError),
    /// The recorded code is inconsistent.
    #[error(transparent)]
    Map(#[from] CodeMapError),
    /// The runtime does not know the thread.
    #[error("no thread of the runtime")]
    NoThread,
    /// The runtime reads memory that is not recorded.
    #[error("the memory at {0:#x} is not recorded")]
    NotRecorded(u64),
    /// Without its seed, a walk reads words that were not read in the recorded call. Some of these
    /// words were zeroed because they looked like text.
    #[error("without its seed: {0}")]
    Zeroed(Outcome),
    /// The call ended the process.
    #[error("{0}")]
    Fatal(Outcome),
}

/// Walks the thread of a recorded call by a policy, with native code that is pretended or entirely
/// unknown.
///
/// # Errors
/// [`Unwalked`].
pub fn walk<'w>(
    recording: &Recording,
    replay: &mut RecordingReplay<'_>,
    walk: &'w WalkLine,
    policy: Policy,
    pretend: bool,
) -> Result<Recorded<'w>, Unwalked> {
    let stops = replay.stops(walk)?;
    replay.prepare(walk)?;
    let root = if recording.generation.is_unix() { ROOT } else { 0 };
    let native = replay.synthetic_native(walk, &stops, root);
    let native = if pretend { native } else { native.without_unwind_data() };
    let mut map = replay.runtime().profilers_code_map()?;
    native.add_to(&mut map)?;
    let registers = walk.target_registers();
    let target = replay.target(walk, registers, root, &native).ok_or(Unwalked::NoThread)?;
    let info = replay.runtime().on(CALLER);
    let mut buffer = WalkBuffer::new(4096);
    let stack = PolicyWalker::new(&info, &map, policy).walk(&target, &mut buffer);
    if let Some(address) = replay.missing() {
        return Err(Unwalked::NotRecorded(address));
    }
    let needs_seed = walk.call.seed.is_some() && walk.state.mode.as_deref() == Some("coop");
    let stack = stack.map_err(if needs_seed { Unwalked::Zeroed } else { Unwalked::Fatal })?;
    let mut recorded = Recorded { walk, stops, native, policy, stack, same_call: false };
    recorded.same_call = recorded.is_same_call();
    Ok(recorded)
}

/// An error in a walk of a recorded thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// The result differs from the recorded one.
    #[error("DoStackSnapshot returned {0:?}")]
    Result(Option<HResult>),
    /// A recorded callback has no frame, or its frame is out of order.
    #[error("callback {0} is missing")]
    Missing(usize),
    /// A frame is marked as reported, but was not reported.
    #[error("frame {0} was not reported")]
    Unreported(usize),
    /// A frame occurs twice.
    #[error("frame {0} occurs twice")]
    Twice(usize),
    /// A frame matches nothing in the recording.
    #[error("frame {0} was not on the stack")]
    Invented(usize),
    /// The walk claims to be whole, but the unwinder has not found the frame of a callback.
    #[error("the unwinder has not found frame {0}")]
    NotUnwound(usize),
    /// The walk claims to have native code that cannot be unwound.
    #[error("{0:?} claimed, but not all native code is known")]
    Unknowable(Completeness),
    /// The walk claims to have a frame that it does not have.
    #[error("{0:?} claimed, but stop {1} is missing")]
    Claim(Completeness, usize),
}

/// A callback: its FunctionID (`None` for a marker), its ip and its stack pointer.
type Told = (Option<u64>, u64, u64);

impl Recorded<'_> {
    /// Returns true if the new walk made the same call as the recorded one.
    fn is_same_call(&self) -> bool {
        if self.walk.state.mode.as_deref() == Some("preemptive") {
            return true;
        }
        let seeds = matches!(self.policy, Policy::Seeded | Policy::SignalSnapshot);
        let mut first = self.stack.frames.iter();
        let first = first.position(|frame| matches!(frame.kind, FrameKind::Managed(_)));
        let first = first.filter(|at| seeds && !self.stack.gaps.iter().any(|gap| gap.at <= *at));
        let seed = first.and_then(|at| self.stack.frames.get(at)).map(|frame| (frame.ip, frame.sp));
        let recorded = self.walk.call.seed.as_ref().map(SeedLine::registers);
        let own = self.walk.target_registers().filter(|_| self.walk.relation != "self");
        let recorded = recorded.or(own).map(|seed| (seed.rip, seed.rsp()));
        if self.walk.call.seed.is_some() {
            seed == recorded
        } else {
            seed.is_none() || seed == recorded
        }
    }

    /// Returns the recorded callbacks. If no context was recorded, the stack pointer is that of the
    /// stop: of a recursive method those at the leaf may have no callback.
    fn told(&self, recording: &Recording) -> Vec<Told> {
        let mut places = places(&self.stops, |stop| stop.reported);
        let told = self.walk.result.callbacks.iter().map(|callback| {
            let function = callback.function.and_then(|id| recording.function(id));
            let function = function.map(|function| function.function_id.0);
            let ip = callback.ip.0;
            let stop = places.find(|place| place.0 == ip);
            let sp = callback.registers.as_ref().map(|registers| registers[4].0);
            (function, ip, sp.or(stop.map(|(_, sp)| sp)).unwrap_or(0))
        });
        told.collect()
    }

    /// Compares the walk with the recording.
    ///
    /// # Errors
    /// The first error in the walk.
    pub fn judge(&self, recording: &Recording) -> Result<(), Wrong> {
        self.result()?;
        self.reported(recording)?;
        self.others()?;
        self.claims(&self.told(recording))
    }

    /// Returns true if the recorded call was ended by its callback.
    fn was_aborted(&self) -> bool {
        let policy = self.walk.call.policy.as_ref();
        policy.is_some_and(|policy| policy.stop_at.is_some()) || self.walk.call.callback.is_some()
    }

    fn result(&self) -> Result<(), Wrong> {
        let recorded = self.walk.result.hr.map(|hr| HResult(hr.0 as u32));
        let refused = self.walk.call.flags.0 & !1 != 0 || self.was_aborted();
        let called = self.stack.snapshot.is_some();
        if self.same_call && called && !refused && self.stack.snapshot != recorded {
            return Err(Wrong::Result(self.stack.snapshot));
        }
        Ok(())
    }

    /// Checks that every callback has its frame, once and in order, and that no other frame is
    /// marked as reported.
    fn reported(&self, recording: &Recording) -> Result<(), Wrong> {
        let frames = &self.stack.frames;
        let mut at = 0;
        let called = self.stack.snapshot.is_some() && self.same_call;
        let told = self.told(recording);
        for (index, callback) in told.iter().enumerate() {
            let is = |frame: &MixedFrame| is_callback(frame, *callback);
            let found = frames.iter().skip(at).position(is);
            match found {
                Some(found) => at += found + 1,
                None if called => return Err(Wrong::Missing(index)),
                None => {}
            }
        }
        for (index, frame) in frames.iter().enumerate() {
            let same = |other: &MixedFrame| other.ip == frame.ip && other.sp == frame.sp;
            if frames.iter().skip(index + 1).any(same) {
                return Err(Wrong::Twice(index));
            }
        }
        let complete = self.walk.result.callback_count.is_none() && !self.was_aborted();
        if called && complete {
            let mut reported = frames.iter().enumerate().filter(|(_, frame)| frame.reported);
            if let Some((index, _)) = reported.nth(told.len()) {
                return Err(Wrong::Unreported(index));
            }
        }
        Ok(())
    }

    /// Returns the number of recorded callbacks with a frame that is marked as reported.
    #[must_use]
    pub fn callbacks_found(&self, recording: &Recording) -> usize {
        let told = self.told(recording);
        let is_found = |told: &&Told| {
            let frames = self.stack.frames.iter();
            frames.filter(|frame| frame.reported).any(|frame| is_callback(frame, **told))
        };
        told.iter().filter(is_found).count()
    }

    /// Checks that the frames without a callback are hidden managed ones, or native ones.
    fn others(&self) -> Result<(), Wrong> {
        let first = self.stops.first().map_or(u64::MAX, |stop| stop.registers.rsp());
        let last = self.stops.last().map_or(u64::MAX, |stop| match stop.native_caller {
            None => stop.registers.rsp(),
            Some(_) => u64::MAX,
        });
        let leaf = self.walk.target_registers();
        let leaf = leaf.map(|leaf| (leaf.rip, leaf.rsp()));
        for (index, frame) in self.stack.frames.iter().enumerate() {
            let place = (frame.ip, frame.sp);
            let known = frame.reported
                || leaf == Some(place)
                || SyntheticNative::is_synthetic(frame.ip)
                || places(&self.stops, |_| true).any(|known| known == place)
                || self.stops.iter().any(|stop| is_stop(frame, stop))
                // Frames before the first stop, where the operating system was; or after the last
                // one, where the recorded walk was ended.
                || (frame.sp < first || frame.sp > last)
                    && !matches!(frame.kind, FrameKind::Native { .. });
            if !known {
                return Err(Wrong::Invented(index));
            }
        }
        Ok(())
    }

    /// Checks that no frame is missing that the walk claims to have.
    fn claims(&self, told: &[Told]) -> Result<(), Wrong> {
        let claim = self.stack.completeness();
        if matches!(claim, Completeness::Partial(_)) {
            return Ok(());
        }
        if claim == Completeness::Whole {
            let by_both = |frame: &MixedFrame| !frame.reported || frame.seen_by() == SeenBy::Both;
            if let Some(frame) = self.stack.frames.iter().position(|frame| !by_both(frame)) {
                return Err(Wrong::NotUnwound(frame));
            }
        }
        // A thread without managed frames has one native run, which is its leaf.
        let only_leaf = claim == Completeness::WithoutLeaf && self.stops.is_empty();
        let is_told = |place| told.iter().any(|(_, ip, sp)| (*ip, *sp) == place);
        // A run that the runtime does not report, because an exception has skipped it, is not
        // claimed.
        let calls = |stop: &ReachedFrame| stop.native_caller.map(|at| (at.rip, at.rsp()));
        let is_skipped = |place: &(u64, u64)| {
            claim != Completeness::Whole
                && !is_told(*place)
                && self.stops.iter().any(|stop| calls(stop) == Some(*place))
        };
        let left_out = self.native.left_out.iter().any(|place| !is_skipped(place));
        if left_out || self.native.runs == 0 && !only_leaf {
            return Err(Wrong::Unknowable(claim));
        }
        for (index, stop) in self.stops.iter().enumerate() {
            let place = (stop.registers.rip, stop.registers.rsp());
            let has = |(ip, sp): (u64, u64)| {
                // The runtime may report another return address (C-156).
                let same = |frame: &MixedFrame| {
                    frame.sp == sp && (frame.ip == ip || frame.reported || is_stop(frame, stop))
                };
                self.stack.frames.iter().any(same)
            };
            // Frames that the runtime hides may be missing if the walk claims only the reportable
            // ones.
            let wanted = |place| claim == Completeness::Whole || is_told(place);
            let caller = stop.native_caller.map(|caller| (caller.rip, caller.rsp()));
            let mut places = [Some(place), caller].into_iter().flatten();
            if places.any(|place| wanted(place) && !has(place)) {
                return Err(Wrong::Claim(claim, index));
            }
        }
        Ok(())
    }
}

/// Returns the ip and the stack pointer of each stop that is wanted, and of all native functions that have called one.
fn places(
    stops: &[ReachedFrame],
    is_wanted: impl Fn(&ReachedFrame) -> bool,
) -> impl Iterator<Item = (u64, u64)> {
    let place = |registers: Registers| (registers.rip, registers.rsp());
    stops.iter().flat_map(move |stop| {
        let own = is_wanted(stop).then(|| place(stop.registers));
        [own, stop.native_caller.map(place)].into_iter().flatten()
    })
}

/// Returns true if a frame is a stop of the runtime, which may have another return address (C-156).
fn is_stop(frame: &MixedFrame, stop: &ReachedFrame) -> bool {
    let kind = match frame.kind {
        FrameKind::Managed(function) => function == stop.function,
        FrameKind::Hidden(function) => function.is_none_or(|function| function == stop.function),
        _ => false,
    };
    kind && frame.sp == stop.registers.rsp()
}

/// Returns true if a frame is that of a callback.
fn is_callback(frame: &MixedFrame, (function, ip, sp): Told) -> bool {
    let kind = match (function, frame.kind) {
        (Some(function), FrameKind::Managed(id)) => function == id.0,
        (None, FrameKind::Managed(_) | FrameKind::Hidden(_)) => false,
        (None, _) => true,
        _ => false,
    };
    // The runtime may report another return address (C-156).
    kind && sp == frame.sp && (frame.ip == ip || function.is_some())
}

/// Counts of walks by name.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The counts.
    pub counts: BTreeMap<String, u64>,
}

impl Counts {
    /// Adds one.
    pub fn add(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Adds N.
    pub fn add_many(&mut self, what: String, count: u64) {
        *self.counts.entry(what).or_default() += count;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.iter().try_for_each(|(what, count)| writeln!(f, "{what}: {count}"))
    }
}

/// Returns the completeness that a stack claims, without addresses.
#[must_use]
pub fn claim(stack: &MixedStack) -> String {
    match stack.completeness() {
        Completeness::Partial(reason) => {
            let words = format!("{reason:?}");
            let words = words.split(" { ").next().unwrap_or_default();
            // The closing parentheses may have been cut off.
            let open = words.matches('(').count() - words.matches(')').count();
            format!("partial, {words}{}", ")".repeat(open))
        }
        complete => format!("{complete:?}").to_lowercase(),
    }
}

/// Formats the recording and the walk, one after the other.
#[must_use]
pub fn table(recorded: &Recorded<'_>) -> String {
    let Recorded { walk, stops, stack, .. } = recorded;
    let mut table = format!("{} {}: {:x?}\n", walk.situation, walk.variant, walk.result.hr);
    for callback in &walk.result.callbacks {
        let sp = callback.registers.as_ref().map(|registers| registers[4].0);
        let _ = writeln!(table, "  {:#x} {sp:x?} {:?}", callback.ip.0, callback.function);
    }
    table.push_str("stops:\n");
    for ReachedFrame { registers, kind, interrupted, native_caller, .. } in stops {
        let (rip, rsp) = (registers.rip, registers.rsp());
        let caller = native_caller.map(|caller| (caller.rip, caller.rsp()));
        let interrupted = if *interrupted { ", interrupted" } else { "" };
        let _ = writeln!(table, "  {rip:#x} {rsp:#x} {kind:?}{interrupted} {caller:x?}");
    }
    let _ = writeln!(table, "walk: {:?}, {:?}", stack.snapshot, stack.completeness());
    for at in 0..=stack.frames.len() {
        for gap in stack.gaps.iter().filter(|gap| gap.at == at) {
            let _ = writeln!(table, "  gap: {}", gap.reason);
        }
        let Some(frame) = stack.frames.get(at) else { break };
        let MixedFrame { ip, sp, kind, source, .. } = frame;
        let _ = writeln!(table, "  {ip:#x} {sp:#x} {kind:x?} {source:?} {:?}", frame.seen_by());
    }
    table
}
