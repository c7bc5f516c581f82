//! The properties that a smaller text keeps: the same result or difference, for the same reason.

use clr_runtime::Outcome;
use clr_runtime::clause::Clause;
use clr_runtime::explain::deciding;
use clr_runtime::generation::{Generation, Generations};
use clr_scenario::{
    ExplainedSnapshot, MixedDifference, NotReached, Scenario, ShadowStackDifference,
    SnapshotDifference, UnwindDifference,
};
use std::mem::{Discriminant, discriminant};

/// The property that a smaller text must keep.
pub(super) enum Keep {
    /// A snapshot that ends so.
    Ending(Ending),
    /// Differences of these kinds and of no other, one of them in a call with this reason.
    Differences(Vec<Discriminant<SnapshotDifference>>, Reason),
    /// Walks of stops that differ in these ways and in no other, or stops that are not reached.
    Walks(Vec<WalkFault>),
    /// Mixed walks with differences of these kinds and of no other, on this generation.
    MixedWalks(Vec<Discriminant<MixedDifference>>, Generation),
}

/// A way in which a walk of a stop is wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkFault {
    /// A difference from the expectation.
    Unexpected(Discriminant<UnwindDifference>),
    /// A difference from the shadow stack.
    Untrue(Discriminant<ShadowStackDifference>),
    /// The stop is not reached.
    NotReached(Discriminant<NotReached>),
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
        let reason = on.iter().find_map(|on| {
            let wrong = made_on(scenario, on).find(|made| !made.report.is_right())?;
            Some(Reason(on, why(&wrong)))
        });
        if let Some(reason) = reason {
            return Some(Self::Differences(snapshot_kinds(scenario, on), reason));
        }
        let walks = walk_faults(scenario);
        if !walks.is_empty() {
            return Some(Self::Walks(walks));
        }
        on.iter().find_map(|on| {
            let kinds = mixed_kinds(scenario, on);
            (!kinds.is_empty()).then_some(Self::MixedWalks(kinds, on))
        })
    }

    /// Returns true if a text has the property.
    pub(super) fn holds(&self, scenario: &Scenario, on: Generations) -> bool {
        match self {
            Self::Ending(ending) => made_on(scenario, ending.on).any(|made| ending.is_of(&made)),
            // A difference of another kind is another failure.
            Self::Differences(kinds, Reason(generation, clauses)) => {
                let mut made = made_on(scenario, *generation);
                are_same(kinds, &snapshot_kinds(scenario, on))
                    && made.any(|made| !made.report.is_right() && why(&made) == *clauses)
            }
            Self::Walks(faults) => are_same(faults, &walk_faults(scenario)),
            Self::MixedWalks(kinds, on) => are_same(kinds, &mixed_kinds(scenario, *on)),
        }
    }
}

/// Returns true if two lists have the same elements, in whatever order and number.
fn are_same<T: PartialEq>(some: &[T], others: &[T]) -> bool {
    some.iter().all(|one| others.contains(one)) && others.iter().all(|one| some.contains(one))
}

/// Returns the kinds of all differences of snapshots from their expectations.
fn snapshot_kinds(scenario: &Scenario, on: Generations) -> Vec<Discriminant<SnapshotDifference>> {
    let each = on.iter().flat_map(|generation| scenario.each_on(generation));
    let made = each.filter_map(|(_, made)| made.ok());
    made.flat_map(|made| made.differences).map(|difference| discriminant(&difference)).collect()
}

/// Returns the kinds of all differences of mixed walks from their expectations.
fn mixed_kinds(scenario: &Scenario, on: Generation) -> Vec<Discriminant<MixedDifference>> {
    let made = scenario.each_mixed_on(on).into_iter().filter_map(|(_, made)| made.ok());
    made.flat_map(|made| made.differences).map(|difference| discriminant(&difference)).collect()
}

/// Returns the ways in which walks of stops are wrong.
fn walk_faults(scenario: &Scenario) -> Vec<WalkFault> {
    let mut faults = Vec::new();
    for report in scenario.run().unwrap_or_default() {
        let reached = match report.reached {
            Ok(reached) => reached,
            Err(not_reached) => {
                // With a runtime, stops without walks may be reached.
                let has_walks =
                    scenario.stops.get(report.stop).is_some_and(|stop| !stop.expect.is_empty());
                faults.extend(has_walks.then(|| WalkFault::NotReached(discriminant(&not_reached))));
                continue;
            }
        };
        for walk in reached.walks {
            let differences = walk.differences.iter().map(discriminant);
            faults.extend(differences.map(WalkFault::Unexpected));
            let untrue = walk.shadow_stack_difference.as_ref().map(discriminant);
            faults.extend(untrue.map(WalkFault::Untrue));
        }
    }
    faults
}
