//! Recordings and sequences of real CLRs, replayed: what came out as it was recorded, and the clauses that apply to it.

use super::{clauses_of, patterns, situations};
use clr_recording::{
    RecordedCode, Recording, RecordingLoadError, RecordingReplay, Sequence, SequenceLine,
    SequenceRuntime, WalkVerdict,
};
use clr_runtime::clause::{Chapter, Clause};
use clr_runtime::explain::Event;
use clr_runtime::generation::Generation;
use clr_scenario::{Scenario, SequenceRunError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A call of a recording that came out as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedCall {
    /// Index of the call in the recording.
    pub index: usize,
    /// The events of the replay.
    pub events: Vec<Event>,
    /// The clauses that hold on the runtime and apply to the call, ascending.
    pub clauses: Vec<Clause>,
}

/// Clauses outside of the chapter of arguments that are about addresses and registers, which walks of sequences lack.
const OF_VALUES: [u16; 6] = [51, 70, 72, 73, 83, 158];

/// Replays the calls of a recording, and returns those with the recorded result. A call that panics has another one.
///
/// # Errors
/// [`RecordingLoadError`] if the recording's code does not fit together.
pub fn replayed(recording: &Recording) -> Result<Vec<ReplayedCall>, RecordingLoadError> {
    let generation = recording.generation;
    let code = RecordedCode::new(recording);
    let mut replay = RecordingReplay::new(recording, &code)?;
    let mut calls = Vec::new();
    for (index, walk) in recording.walks.iter().enumerate() {
        if !walk.replayable {
            continue;
        }
        replay.runtime().log.listen();
        let verdict = catch_unwind(AssertUnwindSafe(|| replay.walk(walk, |_| {})));
        let Ok(verdict) = verdict else {
            replay = RecordingReplay::new(recording, &code)?;
            continue;
        };
        let events = replay.runtime().log.take();
        if verdict == WalkVerdict::Same {
            let shown = situations::shown(generation, &walk.situation, &walk.variant);
            let clauses =
                held(generation, clauses_of(generation, &events).into_iter().chain(shown));
            calls.push(ReplayedCall { index, events, clauses });
        }
    }
    Ok(calls)
}

/// Runs the program of a sequence on one of its runtimes. Returns the clauses that apply to it, ascending, or nothing if
/// the sequence does not come out.
///
/// # Errors
/// [`SequenceRunError`] if the program cannot be run to its end.
pub fn replayed_sequence(
    scenario: &Scenario,
    recorded: &Sequence,
    runtime: &SequenceRuntime,
) -> Result<Option<Vec<Clause>>, SequenceRunError> {
    let Some(generation) = runtime.generation else { return Ok(None) };
    let run = scenario.sequence_on(generation, recorded)?;
    if recorded.compare(&run.lines).is_some() {
        return Ok(None);
    }
    let mut clauses = Vec::new();
    let compared = recorded.filtered(&run.lines);
    for line in &compared {
        if let SequenceLine::Callback(callback) = line {
            let after = callback.arguments.rsplit(' ').next().unwrap_or_default();
            let situation = format!("callback:{}:{after}", callback.name);
            clauses.extend(situations::ordered(generation, &situation));
        }
    }
    for (line, events) in &run.walks {
        let Some(line) = run.lines.get(*line) else { continue };
        if !compared.iter().any(|it| std::ptr::eq(*it, line)) {
            continue;
        }
        let applying = events.iter().flat_map(|event| event.clauses(generation));
        let applying = applying.chain(patterns::shown(events));
        clauses.extend(applying.filter(|clause| !is_of_values(*clause)));
        if let SequenceLine::Callback(callback) = line {
            let situation = format!("callback:{}", callback.name);
            clauses.extend(situations::shown(generation, &situation, ""));
        }
    }
    Ok(Some(held(generation, clauses.into_iter())))
}

/// Returns true if a clause is about addresses, registers or sizes.
fn is_of_values(clause: Clause) -> bool {
    let is_argument = clause.entry().is_some_and(|entry| entry.chapter == Chapter::Arguments);
    is_argument || OF_VALUES.contains(&clause.number())
}

/// Returns the clauses that hold on a runtime, ascending.
fn held(generation: Generation, clauses: impl Iterator<Item = Clause>) -> Vec<Clause> {
    let mut clauses: Vec<_> = clauses.filter(|it| it.holds_on(generation)).collect();
    clauses.sort_unstable();
    clauses.dedup();
    clauses
}
