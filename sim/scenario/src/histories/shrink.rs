//! Making the text of a history smaller as long as it still fails so: fewer threads, callbacks, actions,
//! locks, functions and statements, then fewer choices.

use super::{Action, ExpectedEnd, ExpectedHistory, Exploration, Exploring, ProfilerScript, Who};
use crate::Scenario;
use crate::snapshot::Provenance;
use clr_explore::{Budget, Failure, Hazard, Trail};
use clr_generate::minimize;
use clr_runtime::generation::{Generation, Generations};
use std::collections::BTreeSet;

/// A smaller text is searched for so many times as many histories as the failure took, and some more.
const PATIENCE: u64 = 8;
/// At least so many.
const LEAST: u64 = 400;

/// A step towards a smaller profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// Without one of its threads.
    Thread(usize),
    /// Without what is done in one of the callbacks.
    Callback(usize),
    /// Without what is done in hooks.
    Hook,
    /// Without what is done in signals.
    Signal,
    /// Without what is done when the process crashes.
    Crash,
    /// Without an action, by its place in the text.
    Action(usize),
    /// With what stands in the block of an action in place of it.
    Inner(usize),
    /// Without locks and events that nobody uses.
    Names,
}

impl ProfilerScript {
    /// Everything that it does, outermost blocks.
    fn scripts(&mut self) -> impl Iterator<Item = &mut Vec<Action>> {
        let threads = self.threads.iter_mut().map(|thread| &mut thread.actions);
        let callbacks = self.callbacks.iter_mut().map(|(_, actions)| actions);
        let others = [&mut self.hook, &mut self.signal, &mut self.crash];
        threads.chain(callbacks).chain(others.into_iter().flatten())
    }

    pub(crate) fn steps(&self) -> Vec<ScriptStep> {
        let mut steps: Vec<_> = (0..self.threads.len()).map(ScriptStep::Thread).collect();
        steps.extend((0..self.callbacks.len()).map(ScriptStep::Callback));
        steps.extend(self.hook.as_ref().map(|_| ScriptStep::Hook));
        steps.extend(self.signal.as_ref().map(|_| ScriptStep::Signal));
        steps.extend(self.crash.as_ref().map(|_| ScriptStep::Crash));
        let threads = self.threads.iter().flat_map(|thread| &thread.actions);
        let callbacks = self.callbacks.iter().flat_map(|(_, actions)| actions);
        let others = self.hook.iter().chain(&self.signal).chain(&self.crash).flatten();
        let outer = threads.chain(callbacks).chain(others);
        let all: usize = outer.map(count).sum();
        steps.extend((0..all).map(ScriptStep::Action));
        steps.extend((0..all).map(ScriptStep::Inner));
        steps.push(ScriptStep::Names);
        steps
    }

    /// What is behind a step; `apps` threads are the program's.
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

    /// Puts others in place of an action.
    fn edit(&mut self, place: usize, edit: impl Fn(Action) -> Vec<Action>) -> Option<()> {
        let mut left = place;
        self.scripts().find_map(|actions| replace(actions, &mut left, &edit))
    }

    /// A thread is gone: those behind it have other numbers, and what is done to it is not done.
    pub(crate) fn without_thread(&mut self, gone: u32) {
        self.scripts().for_each(|actions| {
            retain(actions, &mut |action| match who_mut(action) {
                Some(Who::Thread(index)) if *index == gone => false,
                Some(Who::Thread(index)) if *index > gone => {
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

/// How many actions it is, with those in its block.
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

/// Keeps the actions that are wanted, and changes them.
fn retain(actions: &mut Vec<Action>, keep: &mut dyn FnMut(&mut Action) -> bool) {
    actions.retain_mut(|action| keep(action));
    for action in actions {
        blocks_mut(action).for_each(|block| retain(block, keep));
    }
}

const fn who_mut(action: &mut Action) -> Option<&mut Who> {
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

/// What must stay of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    ends: ExpectedEnd,
    hazard: Option<Hazard>,
}

impl Kept {
    fn of(failure: &Failure) -> Self {
        let ends = ExpectedEnd::of(Some(&failure.verdict));
        Self { ends, hazard: Hazard::of(&failure.verdict, &failure.history) }
    }

    /// The first failure of a text, if it is this one.
    fn found(self, scenario: &Scenario, on: Generation, budget: &Budget) -> Option<Failure> {
        let exploring = Exploring::new(scenario, on).ok()?;
        let found = exploring.search(budget, |_| true).ok()?;
        found.failure.filter(|failure| Self::of(failure) == self)
    }

    /// A trail with as few choices as still come to this.
    fn shortest(
        self,
        scenario: &Scenario,
        on: Generation,
        budget: &Budget,
        mut trail: Trail,
    ) -> Option<Trail> {
        let exploring = Exploring::new(scenario, on).ok()?;
        let mut place = trail.len();
        while place > 0 {
            place -= 1;
            let shorter = trail.without(place);
            let Some((Some(verdict), history)) = exploring.replay(&shorter, budget).ok()? else {
                continue;
            };
            let ends = ExpectedEnd::of(Some(&verdict));
            if (Self { ends, hazard: Hazard::of(&verdict, &history) }) == self {
                trail = shorter;
                place = trail.len();
            }
        }
        Some(trail)
    }
}

impl Scenario {
    /// The smallest text that still fails so on a generation, with the string of a history that does:
    /// nothing can be taken from it without losing the failure. The verdict's kind and its hazard stay,
    /// whatever else changes. `None` if it does not fail so.
    #[must_use]
    pub fn smallest_that_fails(
        &self,
        on: Generation,
        settings: &Exploration,
        failure: &Failure,
    ) -> Option<Self> {
        let kept = Kept::of(failure);
        let full = settings.budget();
        let schedules = failure.number.saturating_mul(PATIENCE).saturating_add(LEAST);
        let budget = Budget { schedules: schedules.min(full.schedules), ..full };
        let mut bare = self.clone();
        bare.stops.clear();
        bare.explore = vec![Exploration { expect: Vec::new(), ..settings.clone() }];
        // The first one that fails need not have been among those that the text's budget begins with.
        let budget = if kept.found(&bare, on, &budget).is_some() { budget } else { full };
        kept.found(&bare, on, &budget)?;
        let mut small =
            minimize(bare, |scenario: &Self| kept.found(scenario, on, &budget).is_some());
        let failure = kept.found(&small, on, &budget)?;
        let trail = kept.shortest(&small, on, &budget, failure.trail)?;
        let expect = ExpectedHistory {
            on: Generations::of(&[on]),
            from: Provenance::default(),
            ends: kept.ends,
            waits: Vec::new(),
            hazard: kept.hazard,
            clauses: Vec::new(),
            replay: Some(trail),
        };
        small.explore = vec![Exploration { expect: vec![expect], ..settings.clone() }];
        Some(small)
    }
}
