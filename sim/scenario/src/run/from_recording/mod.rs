//! Scenarios made from recorded walks: the thread's stack placed by hand, the call, and the recorded
//! result as the expectation.
//!
//! The stack is the one that the runtime found when the walk is replayed. A scenario is
//! accepted only if it gives the recorded result.

mod call;
mod stack;
mod state;

use crate::run::observed::{ObservedActivation, ObservedStack, PlacedObservation};
use crate::{
    Description, ExpectedSnapshot, PlacedStack, Provenance, RunOnError, Scenario, SnapshotResult,
};
use clr_recording::{Recording, RecordingLoadError, RecordingReplay, WalkLine, WalkVerdict};
use clr_runtime::generation::Generations;
use clr_runtime::profiling::HResult;
use clr_runtime::{FrameKind, Outcome};
use clr_unwind::Gpr;
use std::fmt;

/// The reason why a walk cannot be written as a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingRefusal {
    /// The recording itself says that its replay may differ.
    NotReplayable(String),
    /// The replay differs from the recording.
    ReplayDiffers,
    /// The recorded state contradicts itself.
    Load(RecordingLoadError),
    /// The runtime has no Frames of this kind: the recorder could not tell the kind, or the chain is
    /// corrupt.
    FrameKind(FrameKind),
    /// The walk does not go from low addresses to high ones by whole words.
    Descends,
    /// The stack cannot be set up.
    SetUp(RunOnError),
    /// No text can say this of the thread or its process.
    State,
    /// The text would give another result than the recorded one.
    Differs(RecordingDifference),
}

/// The first difference between the result of a text and the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingDifference {
    /// The outcome of the call.
    Outcome(Outcome),
    /// The number of callbacks.
    Count(usize),
    /// The callback with this index, counted from 0.
    Callback(usize, &'static str),
    /// The outcome of the nested call.
    Nested,
    /// The expectation cannot say what was found.
    Expectation,
}

impl fmt::Display for RecordingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReplayable(why) => write!(f, "it cannot be replayed: {why}"),
            Self::ReplayDiffers => f.write_str("its replay differs from the recording"),
            Self::Load(error) => error.fmt(f),
            Self::FrameKind(kind) => write!(f, "this runtime has no {kind}"),
            Self::Descends => {
                f.write_str("its frames do not follow each other from low addresses to high ones")
            }
            Self::SetUp(error) => error.fmt(f),
            Self::State => f.write_str("no scenario can say what state the thread is in"),
            Self::Differs(difference) => write!(f, "the scenario would differ: {difference}"),
        }
    }
}

impl std::error::Error for RecordingRefusal {}

impl fmt::Display for RecordingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outcome(found) => write!(f, "{found}"),
            Self::Count(found) => write!(f, "{found} callbacks"),
            Self::Callback(index, what) => write!(f, "callback {index} has another {what}"),
            Self::Nested => f.write_str("the nested call"),
            Self::Expectation => f.write_str("in what no expectation can say"),
        }
    }
}

impl Scenario {
    /// Converts a recorded walk to a scenario, which gives the recorded result.
    ///
    /// # Errors
    ///
    /// Returns why the walk cannot be written as a scenario.
    pub fn from_recorded(
        recording: &Recording,
        replay: &mut RecordingReplay<'_>,
        walk: &WalkLine,
    ) -> Result<Self, RecordingRefusal> {
        if !walk.replayable {
            let why = walk.why.as_deref().unwrap_or("the recording does not say why");
            return Err(RecordingRefusal::NotReplayable(why.to_owned()));
        }
        if replay.walk(walk, |_| {}) != WalkVerdict::Same {
            return Err(RecordingRefusal::ReplayDiffers);
        }
        let generation = recording.generation;
        let stack = stack::read(recording, replay, walk).map_err(RecordingRefusal::Load)?;
        if let Some(frame) = stack.frames.iter().find(|frame| !frame.kind.exists_in(generation)) {
            return Err(RecordingRefusal::FrameKind(frame.kind));
        }
        if stack.descent().is_some() {
            return Err(RecordingRefusal::Descends);
        }
        let bounds = walk.stack.as_ref().map(stack::bounds);
        let seed = walk.call.seed.iter().map(|seed| seed.registers().rsp());
        let seed: Vec<_> = seed.collect();
        let mut placed = PlacedObservation::new(&stack, generation, bounds, &seed);
        state::set_state(&mut placed, walk);
        let mut text = PlacedStack::of(&placed.thread).ok_or(RecordingRefusal::State)?;
        text.snapshots.push(call::call(walk, &stack, &placed));
        let mut scenario =
            Scenario { about: about(recording, walk), stack: Some(text), ..Scenario::default() };
        let run =
            |scenario: &Scenario| scenario.run_on(generation).map_err(RecordingRefusal::SetUp);
        let reports = run(&scenario)?;
        let found = &reports.first().ok_or(RecordingRefusal::State)?.found;
        compare(recording, walk, &stack, &placed, found).map_err(RecordingRefusal::Differs)?;
        let expected = ExpectedSnapshot {
            from: Provenance::Observed(None),
            ..ExpectedSnapshot::of(Generations::of(&[generation]), found)
        };
        for call in scenario.calls_mut() {
            call.expect = vec![expected.clone()];
        }
        let read = Scenario::parse(&scenario.to_string()).map_err(|_| RecordingRefusal::State)?;
        let is_right = run(&read)?.iter().all(crate::SnapshotReport::is_right);
        if read == scenario && is_right {
            Ok(scenario)
        } else {
            Err(RecordingRefusal::Differs(RecordingDifference::Expectation))
        }
    }
}

/// Returns the description of a walk's text.
fn about(recording: &Recording, walk: &WalkLine) -> Description {
    let workload =
        if walk.workload.is_empty() { String::new() } else { format!(" of {}", walk.workload) };
    let shows = format!(
        "A call recorded in {}: {}{workload}, {}.",
        recording.generation, walk.situation, walk.variant
    );
    Description { shows: Some(shows), tags: vec!["recorded".to_owned()] }
}

/// Compares the result of a text with the recorded one.
fn compare(
    recording: &Recording,
    walk: &WalkLine,
    stack: &ObservedStack,
    placed: &PlacedObservation,
    found: &SnapshotResult,
) -> Result<(), RecordingDifference> {
    let recorded = &walk.result;
    let count = recorded.callback_count.map_or(recorded.callbacks.len(), |count| count as usize);
    let same_outcome = match (recorded.hr, found.outcome) {
        (Some(hr), Outcome::Returned(found)) => hr.0 == u64::from(found.0),
        (None, Outcome::AccessViolation { .. } | Outcome::ProcessKilled { .. }) => true,
        _ => false,
    };
    if !same_outcome {
        return Err(RecordingDifference::Outcome(found.outcome));
    }
    if found.frame_reports.len() != count {
        return Err(RecordingDifference::Count(found.frame_reports.len()));
    }
    for (index, (line, made)) in recorded.callbacks.iter().zip(&found.frame_reports).enumerate() {
        let differs = |what| Err(RecordingDifference::Callback(index, what));
        let sp = line.registers.as_ref().map(|registers| registers[4].0);
        let report = &made.frame_report;
        let is_it = |(_, it): &(usize, &ObservedActivation)| {
            it.ip == line.ip.0 && sp.is_none_or(|sp| it.sp == sp)
        };
        let mut candidates = stack.activations.iter().enumerate().filter(is_it);
        let is_there = candidates.any(|(at, _)| placed.label(at).as_ref() == Some(&report.label));
        if !is_there || report.function.is_some() != line.function.is_some() {
            return differs("frame");
        }
        if report.context_size != line.context_size {
            return differs("size of its context");
        }
        let Some((sp, context)) = sp.zip(report.context) else { continue };
        if context.registers.get(Gpr::Rsp) != placed.small(sp) {
            return differs("rsp");
        }
        if line.context_flags.is_some_and(|flags| flags.0 != u64::from(context.flags)) {
            return differs("ContextFlags");
        }
    }
    let nested = recording.nested(walk).and_then(|nested| nested.hr);
    let is_nested = |outcome: &Outcome| {
        nested.is_none_or(|hr| *outcome == Outcome::Returned(HResult(hr.0 as u32)))
    };
    let mut nested_outcomes = found.nested.iter().flat_map(|nested| &nested.outcomes);
    if nested_outcomes.all(is_nested) { Ok(()) } else { Err(RecordingDifference::Nested) }
}
