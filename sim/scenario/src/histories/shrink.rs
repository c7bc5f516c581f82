//! Minimisation of a failing text while it still fails in the same way: first fewer threads,
//! callbacks, actions, locks, functions and statements, then fewer choices.

use super::{
    Action, ExpectedEnd, ExpectedHistory, Exploration, Exploring, ProfilerScript, ThreadName,
};
use crate::Scenario;
use crate::snapshot::Provenance;
use clr_explore::{Budget, Failure, Hazard, History, ScheduleString, Verdict};
use clr_generate::minimize;
use clr_runtime::generation::{Generation, Generations};
use std::collections::BTreeSet;

/// Factor for the budget of a smaller text, relative to the number of histories that the failure
/// took.
const PATIENCE: u64 = 8;
/// Number of histories added to that budget.
const LEAST: u64 = 400;

/// A step towards a smaller profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// Removes a thread.
    Thread(usize),
    /// Removes the actions of a callback.
    Callback(usize),
    /// Removes the actions in hooks.
    Hook,
    /// Removes the actions in signal handlers.
    Signal,
    /// Removes the actions in a crash.
    Crash,
    /// Removes an action, by its index in the text.
    Action(usize),
    /// Replaces an action by the actions in its block.
    Inner(usize),
    /// Removes unused locks and events.
    Names,
}

impl ProfilerScript {
    /// Returns the outermost action lists.
    fn scripts(&mut self) -> impl Iterator<Item = &mut Vec<Action>> {
        let threads = self.threads.iter_mut().map(|thread| &mut thread.actions);
        let callbacks = self.callbacks.iter_mut().map(|(_, actions)| actions);
        let others = [&mut self.hook, &mut self.signal, &mut self.crash];
        threads.chain(callbacks).chain(others.into_iter().flatten())
    }

    /// Returns the number of actions, including those in blocks.
    #[must_use]
    pub fn action_count(&self) -> usize {
        let threads = self.threads.iter().flat_map(|thread| &thread.actions);
        let callbacks = self.callbacks.iter().flat_map(|(_, actions)| actions);
        let others = self.hook.iter().chain(&self.signal).chain(&self.crash).flatten();
        threads.chain(callbacks).chain(others).map(count).sum()
    }

    pub(crate) fn steps(&self) -> Vec<ScriptStep> {
        let all = self.action_count();
        let mut steps: Vec<_> = (0..self.threads.len()).map(ScriptStep::Thread).collect();
        steps.extend((0..self.callbacks.len()).map(ScriptStep::Callback));
        steps.extend(self.hook.as_ref().map(|_| ScriptStep::Hook));
        steps.extend(self.signal.as_ref().map(|_| ScriptStep::Signal));
        steps.extend(self.crash.as_ref().map(|_| ScriptStep::Crash));
        steps.extend((0..all).map(ScriptStep::Action));
        steps.extend((0..all).map(ScriptStep::Inner));
        steps.push(ScriptStep::Names);
        steps
    }

    /// Returns the script after a step, or `None` if the step changes nothing; the first `apps`
    /// threads are the program's.
    pub(crate) fn take(&self, step: ScriptStep, apps: u32) -> Option<Self> {
        let mut simpler = self.clone();
        match step {
            ScriptStep::Thread(index) => {
                simpler.threads.remove(index);
                simpler.without_thread(apps + index as u32);
            }
            ScriptStep::Callback(index) => drop(simpler.callbacks.remove(index)),
            ScriptStep::Hook => simpler.hook = None,
            ScriptStep::Signal => simpler.signal = None,
            ScriptStep::Crash => simpler.crash = None,
            ScriptStep::Action(place) => simpler.edit(place, |_| Vec::new())?,
            ScriptStep::Inner(place) => simpler.edit(place, into_inner)?,
            ScriptStep::Names => simpler.without_names(),
        }
        (simpler != *self).then_some(simpler)
    }

    /// Replaces an action by others.
    fn edit(&mut self, place: usize, edit: impl Fn(Action) -> Vec<Action>) -> Option<()> {
        let mut left = place;
        self.scripts().find_map(|actions| replace(actions, &mut left, &edit))
    }

    /// Removes the actions on a thread that is gone, and renumbers the threads after it.
    pub(crate) fn without_thread(&mut self, gone: u32) {
        self.scripts().for_each(|actions| {
            retain(actions, &mut |action| match thread_name_mut(action) {
                Some(ThreadName::Thread(index)) if *index == gone => false,
                Some(ThreadName::Thread(index)) if *index > gone => {
                    *index -= 1;
                    true
                }
                _ => true,
            });
        });
    }

    fn without_names(&mut self) {
        let (mut locks, mut events) = (BTreeSet::new(), BTreeSet::new());
        self.scripts().for_each(|actions| {
            retain(actions, &mut |action| {
                locks.extend(lock_mut(action).copied());
                events.extend(event_mut(action).copied());
                true
            });
        });
        let new = |used: &BTreeSet<u32>, old: u32| used.range(..old).count() as u32;
        self.scripts().for_each(|actions| {
            retain(actions, &mut |action| {
                if let Some(lock) = lock_mut(action) {
                    *lock = new(&locks, *lock);
                }
                if let Some(event) = event_mut(action) {
                    *event = new(&events, *event);
                }
                true
            });
        });
        let keep = |names: &mut Vec<String>, used: &BTreeSet<u32>| {
            let mut place = 0..;
            names.retain(|_| place.next().is_some_and(|place| used.contains(&place)));
        };
        keep(&mut self.locks, &locks);
        keep(&mut self.events, &events);
    }
}

/// Returns the number of actions, including those in the block.
fn count(action: &Action) -> usize {
    1 + action.inner().map(count).sum::<usize>()
}

fn blocks_mut(action: &mut Action) -> impl Iterator<Item = &mut Vec<Action>> {
    let (block, otherwise) = match action {
        Action::Suspended(_, block)
        | Action::Snapshot { callback: block, .. }
        | Action::Since { then: block, .. }
        | Action::Lock(_, block)
        | Action::RuntimeSuspended(block)
        | Action::Repeat(_, block) => (Some(block), None),
        Action::TryLock { then, otherwise, .. } | Action::Wait { then, otherwise, .. } => {
            (Some(then), Some(otherwise))
        }
        _ => (None, None),
    };
    block.into_iter().chain(otherwise)
}

fn into_inner(mut action: Action) -> Vec<Action> {
    blocks_mut(&mut action).flat_map(core::mem::take).collect()
}

fn replace(
    actions: &mut Vec<Action>,
    left: &mut usize,
    edit: &impl Fn(Action) -> Vec<Action>,
) -> Option<()> {
    for place in 0..actions.len() {
        if *left == 0 {
            let action = actions.remove(place);
            actions.splice(place..place, edit(action));
            return Some(());
        }
        *left -= 1;
        let mut blocks = blocks_mut(actions.get_mut(place)?);
        if blocks.find_map(|block| replace(block, left, edit)).is_some() {
            return Some(());
        }
    }
    None
}

/// Keeps the actions for which `keep` returns true; `keep` may change them.
fn retain(actions: &mut Vec<Action>, keep: &mut dyn FnMut(&mut Action) -> bool) {
    actions.retain_mut(|action| keep(action));
    for action in actions {
        blocks_mut(action).for_each(|block| retain(block, keep));
    }
}

const fn thread_name_mut(action: &mut Action) -> Option<&mut ThreadName> {
    match action {
        Action::Suspend(who)
        | Action::Suspended(who, _)
        | Action::Resume(who)
        | Action::Context(who)
        | Action::SetContext(who)
        | Action::Snapshot { of: who, .. }
        | Action::Walk { of: who, .. }
        | Action::Call { of: who, .. }
        | Action::Signal(who)
        | Action::Join(who) => Some(who),
        _ => None,
    }
}

const fn lock_mut(action: &mut Action) -> Option<&mut u32> {
    match action {
        Action::Lock(lock, _)
        | Action::Acquire(lock)
        | Action::Release(lock)
        | Action::TryLock { lock, .. } => Some(lock),
        _ => None,
    }
}

const fn event_mut(action: &mut Action) -> Option<&mut u32> {
    match action {
        Action::Set(event)
        | Action::Reset(event)
        | Action::Wait { event, .. }
        | Action::Since { event, .. } => Some(event),
        _ => None,
    }
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
    /// schedule string of a failing history. Nothing can be removed from it without losing the
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
        // The smaller budget may not reach the failure: its first histories can differ from those
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
