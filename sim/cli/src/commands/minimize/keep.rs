//! The properties that a smaller text keeps: the same result or difference, for the same reason.

use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::explain::deciding;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{ExplainedSnapshot, Scenario, SnapshotDifference};
use std::mem::discriminant;

/// The property that a smaller text must keep.
pub(super) enum Keep {
    /// A snapshot that ends so.
    Ending(Ending),
    /// Differences of these kinds and of no other, one of them in a call with this reason.
    Differences(Vec<SnapshotDifference>, Reason),
    /// A walk of a stop that is not as expected, or a stop that is not reached.
    Walk,
    /// A call whose result differs from the model's, on this generation.
    Model(Generation),
}

/// The end of a call.
pub(super) struct Ending {
    /// The runtime.
    pub(super) on: Generation,
    result: Option<String>,
    /// A clause anywhere in the call's story.
    clause: Option<Clause>,
    why: Vec<Clause>,
}

/// The clauses that decided how a call ended, on a runtime: another reason for the same result
/// would be another bug.
pub(super) struct Reason(Generation, Vec<Clause>);

fn why(made: &ExplainedSnapshot) -> Vec<Clause> {
    deciding(&made.story).map(|line| line.clauses.clone()).unwrap_or_default()
}

fn made_on(
    scenario: &Scenario,
    on: Generation,
) -> impl Iterator<Item = ExplainedSnapshot> + use<'_> {
    scenario.explain_each_on(on).into_iter().filter_map(|(_, made)| made.ok())
}

impl Ending {
    /// Returns true if a call ends so, for whatever reason.
    fn fits(&self, made: &ExplainedSnapshot) -> bool {
        let mut clauses = made.story.iter().flat_map(|line| &line.clauses);
        self.result.as_ref().is_none_or(|result| ending(made.report.found.outcome) == *result)
            && self.clause.is_none_or(|clause| clauses.any(|named| *named == clause))
    }

    /// Returns true if a call ends so, for the same reason.
    pub(super) fn is_of(&self, made: &ExplainedSnapshot) -> bool {
        self.fits(made) && why(made) == self.why
    }
}

/// Returns the result of a call without numbers.
fn ending(outcome: Outcome) -> String {
    match outcome {
        Outcome::Returned(result) => result.to_string(),
        Outcome::ProcessKilled { .. } => "killed".to_owned(),
        Outcome::AccessViolation { .. } => "access-violation".to_owned(),
        Outcome::Blocked => "blocked".to_owned(),
        Outcome::Endless => "endless".to_owned(),
    }
}

impl Keep {
    /// Returns the first call's end with this result, and this clause in its story.
    pub(super) fn ending(
        scenario: &Scenario,
        on: Generations,
        result: Option<&str>,
        clause: Option<Clause>,
    ) -> Option<Self> {
        on.iter().find_map(|on| {
            let any = Ending { on, result: result.map(str::to_owned), clause, why: Vec::new() };
            let found = made_on(scenario, on).find(|made| any.fits(made))?;
            Some(Self::Ending(Ending { why: why(&found), ..any }))
        })
    }

    /// Returns the failure of a text, if it has one.
    pub(super) fn failure(scenario: &Scenario, on: Generations) -> Option<Self> {
        let mut kinds: Vec<SnapshotDifference> = Vec::new();
        for difference in differences(scenario, on) {
            if kinds.iter().all(|kind| discriminant(kind) != discriminant(&difference)) {
                kinds.push(difference);
            }
        }
        let reason = on.iter().find_map(|on| {
            let wrong = made_on(scenario, on).find(|made| !made.report.is_right())?;
            Some(Reason(on, why(&wrong)))
        });
        if let Some(reason) = reason {
            return Some(Self::Differences(kinds, reason));
        }
        Self::Walk.holds(scenario, on).then_some(Self::Walk)
    }

    /// Returns the result of the only call of a fuzzer's input.
    pub(super) fn outcome(scenario: &Scenario, on: Generation) -> Option<Self> {
        let made = made_on(scenario, on).next()?;
        let result = ending(made.report.found.outcome);
        Self::ending(scenario, Generations::of(&[on]), Some(&result), None)
    }

    /// Returns true if a text has the property.
    pub(super) fn holds(&self, scenario: &Scenario, on: Generations) -> bool {
        match self {
            Self::Ending(ending) => made_on(scenario, ending.on).any(|made| ending.is_of(&made)),
            Self::Differences(kinds, Reason(generation, clauses)) => {
                // A difference of another kind is another failure.
                let found = differences(scenario, on);
                let are_in = |these: &[SnapshotDifference], those: &[SnapshotDifference]| {
                    let is_in = |one| those.iter().any(|other| discriminant(other) == one);
                    these.iter().map(discriminant).all(is_in)
                };
                let mut made = made_on(scenario, *generation);
                are_in(kinds, &found)
                    && are_in(&found, kinds)
                    && made.any(|made| !made.report.is_right() && why(&made) == *clauses)
            }
            Self::Model(generation) => {
                scenario.against_model(*generation).is_ok_and(|wrong| !wrong.is_empty())
            }
            Self::Walk => scenario.run().is_ok_and(|reports| {
                let mut walks = reports.iter().filter_map(|report| report.reached.as_ref().ok());
                walks.any(|reached| reached.walks.iter().any(|walk| !walk.is_right()))
            }),
        }
    }
}

/// Returns all differences from the expectations.
fn differences(scenario: &Scenario, on: Generations) -> Vec<SnapshotDifference> {
    let each = on.iter().flat_map(|generation| scenario.each_on(generation));
    let made = each.filter_map(|(_, made)| made.ok());
    made.flat_map(|made| made.differences).collect()
}
