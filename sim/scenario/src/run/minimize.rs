//! Minimisation of a failing text while it still fails in the same way: first fewer nodes, then fewer choices.

use crate::Scenario;
use crate::model::Provenance;
use crate::model::{Action, ExpectedEnd, ExpectedHistory, Exploration, ProfilerScript};
use crate::run::exploration::Exploring;
use clr_explore::{Budget, Failure, History, ScheduleString, Verdict};
use clr_generate::minimize;
use clr_runtime::generation::{Generation, Generations};
use clr_story::Hazard;

/// Factor for the budget of a smaller text, relative to the number of interleavings that the failure
/// took.
const PATIENCE: u64 = 8;
/// Number of interleavings added to that budget.
const LEAST: u64 = 400;

impl ProfilerScript {
    /// Returns the number of actions, including those in blocks.
    #[must_use]
    pub fn action_count(&self) -> usize {
        self.actions().map(count).sum()
    }
}

/// Returns the number of actions, including those in the block.
fn count(action: &Action) -> usize {
    1 + action.inner().map(count).sum::<usize>()
}

/// Properties of a failure that minimisation must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    /// The verdict's fingerprint: another cycle of waits is another bug.
    fingerprint: String,
    ends: ExpectedEnd,
    hazard: Option<Hazard>,
}

impl Kept {
    fn of(verdict: &Verdict, history: &History) -> Self {
        Self {
            fingerprint: verdict.fingerprint(),
            ends: ExpectedEnd::of(Some(verdict)),
            hazard: Hazard::of(verdict, history),
        }
    }

    fn of_failure(failure: &Failure) -> Self {
        Self::of(&failure.verdict, &failure.history)
    }

    /// Returns the first failure of a text if it has these properties.
    fn found(&self, scenario: &Scenario, on: Generation, budget: &Budget) -> Option<Failure> {
        let exploring = Exploring::new(scenario, on).ok()?;
        let found = exploring.search(budget, |_| true).ok()?;
        found.failure.filter(|failure| Self::of_failure(failure) == *self)
    }

    /// Returns a schedule string with as few choices as possible that still leads to this failure.
    fn shortest(
        &self,
        scenario: &Scenario,
        on: Generation,
        budget: &Budget,
        mut schedule: ScheduleString,
    ) -> Option<ScheduleString> {
        let exploring = Exploring::new(scenario, on).ok()?;
        let mut place = schedule.len();
        while place > 0 {
            place -= 1;
            let shorter = schedule.without(place);
            let Some((Some(verdict), history)) = exploring.replay(&shorter, budget).ok()? else {
                continue;
            };
            if Self::of(&verdict, &history) == *self {
                schedule = shorter;
                place = schedule.len();
            }
        }
        Some(schedule)
    }
}

impl Scenario {
    /// Returns the smallest text that still fails in the same way on a generation, with the
    /// schedule string of a failing interleaving. Nothing can be removed from it without losing the
    /// failure: the fingerprint of the verdict and the hazard are kept. Returns `None` if the text
    /// does not fail this way.
    #[must_use]
    pub fn smallest_that_fails(
        &self,
        on: Generation,
        settings: &Exploration,
        failure: &Failure,
    ) -> Option<Self> {
        let kept = Kept::of_failure(failure);
        let full = settings.budget();
        let schedules = failure.number.saturating_mul(PATIENCE).saturating_add(LEAST);
        let budget = Budget { schedules: schedules.min(full.schedules), ..full };
        let mut bare = self.clone();
        bare.stops.clear();
        bare.explore = vec![Exploration { expect: Vec::new(), ..settings.clone() }];
        // The smaller budget may not reach the failure: its first interleavings can differ from those
        // of the text's budget.
        let budget = if kept.found(&bare, on, &budget).is_some() { budget } else { full };
        kept.found(&bare, on, &budget)?;
        let mut small =
            minimize(bare, |scenario: &Self| kept.found(scenario, on, &budget).is_some());
        let failure = kept.found(&small, on, &budget)?;
        let schedule = kept.shortest(&small, on, &budget, failure.schedule)?;
        let expect = ExpectedHistory {
            on: Generations::of(&[on]),
            from: Provenance::default(),
            ends: kept.ends,
            waits: Vec::new(),
            hazard: kept.hazard,
            clauses: Vec::new(),
            replay: Some(schedule),
        };
        small.explore = vec![Exploration { expect: vec![expect], ..settings.clone() }];
        Some(small)
    }
}
