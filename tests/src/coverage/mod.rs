//! Which clauses are exercised, on which generations, and by what.
//!
//! A clause is exercised where a call shows it at work and comes out as it should: a call of a real
//! CLR made again (the feature `recording`), or one of a scenario (the feature `scenario`). What no
//! call shows by itself is exercised by a test that names it ([`TESTED`]). What is left is a hole, which must have
//! a reason ([`HOLES`]).

mod declared;
mod patterns;
mod situations;

pub use declared::{HOLES, Hole, TESTED, Tested};

use clr_recording::{LoadError, RecordedCode, Recording, Replay, Verdict};
use clr_runtime::clause::{self, Clause};
use clr_runtime::explain::Event;
use clr_runtime::generation::Generation;
use clr_scenario::{RunOnError, Scenario, ToldSnapshot};
use std::collections::BTreeMap;

/// What exercises clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// Calls of a real CLR, made again with the same result.
    Recording,
    /// Calls of scenarios, with the result that the rules ask for.
    Scenario,
    /// A test that names the clause.
    Test,
}

/// How well a clause is covered on a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The clause does not hold there.
    DoesNotHold,
    /// It is exercised: by what, and how often; of tests, there is only whether.
    Exercised(Vec<(By, u64)>),
    /// It is not, for a reason.
    Excused(&'static str),
    /// It is not.
    Missing,
}

/// What has been exercised so far.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    calls: BTreeMap<(Clause, Generation, By), u64>,
}

impl Coverage {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a call that came out as it should.
    pub fn add_call(&mut self, by: By, generation: Generation, events: &[Event]) {
        let shown = events.iter().flat_map(|event| event.clauses(generation));
        let mut clauses: Vec<_> = shown.chain(patterns::shown(events)).collect();
        clauses.sort_unstable();
        clauses.dedup();
        for clause in clauses {
            self.add(by, generation, clause);
        }
    }

    /// Makes the calls of a recording again, and adds those that come out as recorded.
    ///
    /// # Errors
    /// [`LoadError`] if the recording's code does not fit together.
    pub fn add_recording(&mut self, recording: &Recording) -> Result<(), LoadError> {
        let code = RecordedCode::new(recording);
        let mut replay = Replay::new(recording, &code)?;
        for walk in &recording.walks {
            replay.runtime().log.listen();
            let verdict = replay.walk(walk, |_| {});
            let events = replay.runtime().log.take();
            if walk.replayable && verdict == Verdict::Same {
                self.add_call(By::Recording, recording.generation, &events);
                let shown = situations::shown(recording.generation, &walk.situation, &walk.variant);
                for clause in shown {
                    self.add(By::Recording, recording.generation, clause);
                }
            }
        }
        Ok(())
    }

    /// Makes the calls of a scenario on all generations, and adds those that give what they must.
    /// They exercise the clauses that their expectations name, too.
    ///
    /// # Errors
    /// [`RunOnError`] if they cannot be made on one of them.
    pub fn add_scenario(&mut self, scenario: &Scenario) -> Result<(), RunOnError> {
        for generation in Generation::ALL {
            for ToldSnapshot { report, events, .. } in scenario.tell_on(generation)? {
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

    fn add(&mut self, by: By, generation: Generation, clause: Clause) {
        if clause.entry().is_some_and(|entry| entry.generations.contains(generation)) {
            *self.calls.entry((clause, generation, by)).or_default() += 1;
        }
    }

    /// How well a clause is covered on a generation.
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

    /// Every clause on every generation where it holds, in order.
    pub fn cells(&self) -> impl Iterator<Item = (Clause, Generation, Cover)> {
        clause::entries().flat_map(move |entry| {
            entry.generations.iter().map(move |generation| {
                (entry.clause, generation, self.cover(entry.clause, generation))
            })
        })
    }
}
