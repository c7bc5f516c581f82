//! Coverage of clauses: which are exercised, on which generations, and by what.
//!
//! A clause is exercised if it applies to a call that has the expected result: a replayed call of a
//! real CLR (the feature `recording`), or a call of a scenario (the feature `scenario`). Clauses
//! that no single call demonstrates are exercised by a test that names them ([`TESTED`]). All
//! others are holes, which must have a reason ([`HOLES`]).

mod declared;
mod doors;
mod patterns;
mod replays;
mod situations;
mod unwinds;

pub use declared::{HOLES, Hole, TESTED, Tested};
pub use replays::{ReplayedCall, replayed, replayed_sequence};
pub use unwinds::UnwindsError;

use crate::shape::shape;
use clr_recording::{Recording, RecordingLoadError, Sequence};
use clr_runtime::Outcome;
use clr_runtime::clause::{self, Clause};
use clr_runtime::explain::Event;
use clr_runtime::generation::Generation;
use clr_scenario::{ExplainedSnapshot, RunOnError, Scenario, SequenceRunError};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of evidence that exercises clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// Calls of a real CLR, replayed with the same result, sequences of its callbacks, traces, and
    /// recorded unwinds.
    Recording,
    /// Calls of scenarios, with the result that the rules require.
    Scenario,
    /// A test that names the clause.
    Test,
}

/// Coverage of a clause on a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The clause does not hold on the generation.
    DoesNotHold,
    /// The clause is exercised: by which kinds of evidence, and how often. Tests count as 1.
    Exercised(Vec<(By, u64)>),
    /// The clause is not exercised, for a reason.
    Excused(&'static str),
    /// The clause is not exercised.
    Missing,
}

/// The coverage found so far.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    calls: BTreeMap<(Clause, Generation, By), u64>,
    /// The first recording or sequence of whose calls a clause applies to some.
    witnesses: BTreeMap<(Clause, Generation), String>,
    recorded: BTreeSet<RecordedCall>,
}

/// Outcome of calls that ended the process before they were written down in full.
pub const DIED: &str = "the process dies";

/// Calls of a real CLR that came out alike, and were replayed or ended the process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedCall {
    /// The runtime.
    pub generation: Generation,
    /// The situation, as it is recorded.
    pub situation: String,
    /// The outcome, without the address of an access violation; [`DIED`] if the call was not
    /// replayed.
    pub outcome: String,
    /// Order of the callbacks ([`shape`]).
    pub shape: String,
    /// The clauses that apply, ascending.
    pub clauses: Vec<Clause>,
}

/// Returns the word for an outcome: the name of a HRESULT, or the way in which the process ended.
#[must_use]
pub fn outcome_word(outcome: Outcome) -> String {
    match outcome {
        Outcome::AccessViolation { .. } => "access violation".to_owned(),
        outcome => outcome.to_string(),
    }
}

/// Returns the clauses that the events of a call show, ascending.
fn clauses_of(generation: Generation, events: &[Event]) -> Vec<Clause> {
    let shown = events.iter().flat_map(|event| event.clauses(generation));
    let mut clauses: Vec<_> = shown.chain(patterns::shown(events)).collect();
    clauses.sort_unstable();
    clauses.dedup();
    clauses
}

impl Coverage {
    /// Creates an empty coverage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a call that had the expected result.
    pub fn add_call(&mut self, by: By, generation: Generation, events: &[Event]) {
        for clause in clauses_of(generation, events) {
            self.add(by, generation, clause);
        }
    }

    /// Replays the calls of a recording of this name, and adds those with the recorded result.
    ///
    /// # Errors
    /// [`RecordingLoadError`] if the recording's code does not fit together.
    pub fn add_recording(
        &mut self,
        name: &str,
        recording: &Recording,
    ) -> Result<(), RecordingLoadError> {
        for walk in &recording.walks {
            if walk.result.hr.is_none() && !walk.replayable {
                let shown = situations::shown(recording.generation, &walk.situation, &walk.variant);
                self.recorded.insert(RecordedCall {
                    generation: recording.generation,
                    situation: walk.situation.clone(),
                    outcome: DIED.to_owned(),
                    shape: shape([]),
                    clauses: shown.chain(situations::of_death(&walk.variant)).collect(),
                });
            }
        }
        for ReplayedCall { index, events, clauses } in replayed(recording)? {
            self.add_witness(name, recording.generation, &clauses);
            if let Some(walk) = recording.walks.get(index) {
                self.add_recorded(recording.generation, &walk.situation, &events, clauses);
            }
        }
        Ok(())
    }

    /// Runs the program of a recorded sequence of this name on the sequence's runtimes, and adds those on which it comes
    /// out.
    ///
    /// # Errors
    /// [`SequenceRunError`] if the program cannot be run to its end.
    pub fn add_sequence(
        &mut self,
        name: &str,
        scenario: &Scenario,
        recorded: &Sequence,
    ) -> Result<(), SequenceRunError> {
        for runtime in &recorded.runtimes {
            let clauses = replayed_sequence(scenario, recorded, runtime)?;
            if let (Some(generation), Some(clauses)) = (runtime.generation, clauses) {
                self.add_witness(name, generation, &clauses);
            }
        }
        Ok(())
    }

    /// Adds the answers of a trace of this name, which the recorder has taken in a CLR.
    pub fn add_trace(&mut self, name: &str, generation: Generation, trace: &str) {
        let clauses: Vec<_> = doors::shown(generation, trace).collect();
        self.add_witness(name, generation, &clauses);
    }

    /// Replays the recorded unwinds of an image in a file of this name, and adds those with the recorded answer.
    ///
    /// # Errors
    /// [`UnwindsError`] if they cannot be replayed.
    pub fn add_unwinds(
        &mut self,
        name: &str,
        image: &[u8],
        vectors: &[u8],
    ) -> Result<(), UnwindsError> {
        for clauses in unwinds::replayed(image, vectors)? {
            self.add_witness(name, unwinds::RUNTIME, &clauses);
        }
        Ok(())
    }

    /// Adds the clauses that apply to something recorded.
    fn add_witness(&mut self, name: &str, generation: Generation, clauses: &[Clause]) {
        for clause in clauses {
            self.add(By::Recording, generation, *clause);
            self.witnesses.entry((*clause, generation)).or_insert_with(|| name.to_owned());
        }
    }

    /// Returns the first recording or sequence of whose calls a clause applies to some.
    #[must_use]
    pub fn witness(&self, clause: Clause, generation: Generation) -> Option<&str> {
        self.witnesses.get(&(clause, generation)).map(String::as_str)
    }

    /// Makes the calls of a scenario on all generations, and adds those with the expected result.
    /// These calls also exercise the clauses that their expectations name.
    ///
    /// # Errors
    /// [`RunOnError`] if they cannot be made on one of them.
    pub fn add_scenario(&mut self, scenario: &Scenario) -> Result<(), RunOnError> {
        for generation in Generation::ALL {
            for ExplainedSnapshot { report, events, .. } in scenario.explain_on(generation)? {
                let call = scenario.call(report.stop, report.snapshot);
                let expected = call.and_then(|call| call.expected_on(generation));
                let (Some(call), Some((_, expected)), true) = (call, expected, report.is_right())
                else {
                    continue;
                };
                self.add_call(By::Scenario, generation, &events);
                if let Some(kind) = scenario.callback_of(report.stop, call) {
                    let situation = format!("callback:{}", kind.name());
                    for clause in situations::shown(generation, &situation, "") {
                        self.add(By::Scenario, generation, clause);
                    }
                }
                for clause in &expected.clauses {
                    self.add(By::Scenario, generation, *clause);
                }
            }
        }
        Ok(())
    }

    /// Adds a call of which no more than this is known.
    pub fn add_outcome(&mut self, generation: Generation, situation: &str, ended: [&str; 2]) {
        let [outcome, shape] = ended.map(str::to_owned);
        let clauses = situations::shown(generation, situation, "").collect();
        let situation = situation.to_owned();
        self.recorded.insert(RecordedCall { generation, situation, outcome, shape, clauses });
    }

    /// Adds what a replayed call shows as a whole.
    fn add_recorded(
        &mut self,
        generation: Generation,
        situation: &str,
        events: &[Event],
        clauses: Vec<Clause>,
    ) {
        let ended = events.iter().rev().find_map(|event| match event {
            Event::Ended(outcome) => Some(*outcome),
            _ => None,
        });
        let are_managed = events.iter().filter_map(|event| match event {
            Event::ReportedManaged { .. } => Some(true),
            Event::ReportedMarker { .. } => Some(false),
            _ => None,
        });
        if let Some(outcome) = ended.map(outcome_word) {
            let (shape, situation) = (shape(are_managed), situation.to_owned());
            self.recorded.insert(RecordedCall { generation, situation, outcome, shape, clauses });
        }
    }

    /// Returns what the recorded calls show, each combination once.
    pub fn recorded(&self) -> impl Iterator<Item = &RecordedCall> {
        self.recorded.iter()
    }

    fn add(&mut self, by: By, generation: Generation, clause: Clause) {
        if clause.entry().is_some_and(|entry| entry.generations.contains(generation)) {
            *self.calls.entry((clause, generation, by)).or_default() += 1;
        }
    }

    /// Returns the coverage of a clause on a generation.
    #[must_use]
    pub fn cover(&self, clause: Clause, generation: Generation) -> Cover {
        if !clause.entry().is_some_and(|entry| entry.generations.contains(generation)) {
            return Cover::DoesNotHold;
        }
        let called = [By::Recording, By::Scenario].into_iter().filter_map(|by| {
            let count = self.calls.get(&(clause, generation, by))?;
            Some((by, *count))
        });
        let tested = TESTED.iter().filter(|tested| {
            tested.clauses.contains(&clause.number()) && tested.generations.contains(generation)
        });
        let tested = tested.take(1).map(|_| (By::Test, 1));
        let exercised: Vec<_> = called.chain(tested).collect();
        if !exercised.is_empty() {
            return Cover::Exercised(exercised);
        }
        let hole = HOLES.iter().find(|hole| {
            hole.clauses.contains(&clause.number()) && hole.generations.contains(generation)
        });
        hole.map_or(Cover::Missing, |hole| Cover::Excused(hole.reason))
    }

    /// Returns every clause on every generation where it holds, in order.
    pub fn cells(&self) -> impl Iterator<Item = (Clause, Generation, Cover)> {
        clause::entries().flat_map(move |entry| {
            entry.generations.iter().map(move |generation| {
                (entry.clause, generation, self.cover(entry.clause, generation))
            })
        })
    }
}
