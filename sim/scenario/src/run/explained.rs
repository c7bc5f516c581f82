//! Calls of a text with explanations of their results.

use crate::model::SnapshotAt;
use crate::model::SnapshotCall;
use crate::run::error::RunOnError;
use crate::run::stopped_thread::{Site, SnapshotReport};
use crate::{Scenario, SnapshotResult};
use clr_runtime::Runtime;
use clr_runtime::explain::{Event, StoryLine, story};
use clr_runtime::generation::Generation;
use std::collections::BTreeMap;

/// A call of a text, with its explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedSnapshot {
    /// Result of the call.
    pub report: SnapshotReport,
    /// Decisions of the runtime, in order.
    pub events: Vec<Event>,
    /// Explanation of the decisions in sentences.
    pub story: Vec<StoryLine>,
}

impl Scenario {
    /// Makes the calls like [`run_on`](Self::run_on), with the decisions that led to each result.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn explain_on(&self, generation: Generation) -> Result<Vec<ExplainedSnapshot>, RunOnError> {
        self.snapshots_on(generation)
    }
}

/// The record of each call of a text on one generation: a [`SnapshotReport`] or an
/// [`ExplainedSnapshot`].
pub type EachSnapshot<'s, R> = Vec<(SnapshotAt<'s>, Result<R, RunOnError>)>;

impl Scenario {
    /// Makes each call of the text that is for a generation, in order. A stop that is not reached
    /// does not affect the calls at other stops.
    #[must_use]
    pub fn each_on(&self, generation: Generation) -> EachSnapshot<'_, SnapshotReport> {
        self.each(generation)
    }

    /// Makes each call like [`each_on`](Self::each_on), with the decisions that led to its result.
    #[must_use]
    pub fn explain_each_on(&self, generation: Generation) -> EachSnapshot<'_, ExplainedSnapshot> {
        self.each(generation)
    }

    fn each<R: SnapshotRecord>(&self, generation: Generation) -> EachSnapshot<'_, R> {
        let mut errors = BTreeMap::new();
        let mut possible = None;
        let mut made = self.snapshots_on(generation);
        // Each error removes a stop, or a call.
        while let Err(error) = made
            && let Some((stop, snapshot)) = error.place()
            && errors.insert((stop, snapshot), error).is_none()
        {
            let rest = possible.get_or_insert_with(|| self.clone());
            if let Some(stop) = rest.stops.get_mut(stop) {
                let removed = |index: usize| snapshot.is_none_or(|snapshot| snapshot == index);
                let calls = stop.snapshots.iter_mut().enumerate();
                calls.filter(|(index, _)| removed(*index)).for_each(|(_, call)| call.never());
            }
            made = rest.snapshots_on(generation);
        }
        let (mut made, all) = match made {
            Ok(made) => (made.into_iter(), None),
            Err(error) => (Vec::new().into_iter(), Some(error)),
        };
        let calls = self.snapshots().filter(|at| at.call.applies_to(generation));
        let mut result = |at: SnapshotAt<'_>| {
            let of = |snapshot| Some(*errors.get(&(at.stop?, snapshot))?);
            let own = of(None).or_else(|| of(Some(at.snapshot)));
            match own.or(all) {
                Some(error) => Some(Err(error)),
                None => made.next().map(Ok),
            }
        };
        calls.filter_map(|at| Some((at, result(at)?))).collect()
    }
}

/// A record of a call.
pub(crate) trait SnapshotRecord {
    /// Makes a call on a process, compares its result and records it.
    fn make(
        call: &SnapshotCall,
        site: &impl Site,
        runtime: &Runtime<'_>,
        compare: impl FnOnce(SnapshotResult) -> SnapshotReport,
    ) -> Self;
}

impl SnapshotRecord for SnapshotReport {
    fn make(
        call: &SnapshotCall,
        site: &impl Site,
        runtime: &Runtime<'_>,
        compare: impl FnOnce(SnapshotResult) -> SnapshotReport,
    ) -> Self {
        compare(call.make_at(site, runtime))
    }
}

impl SnapshotRecord for ExplainedSnapshot {
    fn make(
        call: &SnapshotCall,
        site: &impl Site,
        runtime: &Runtime<'_>,
        compare: impl FnOnce(SnapshotResult) -> SnapshotReport,
    ) -> Self {
        runtime.log.listen();
        let report = compare(call.make_at(site, runtime));
        let events = runtime.log.take();
        let story = story(runtime, &events);
        Self { report, events, story }
    }
}
