//! Calls of a text with explanations of their results.

use super::run_on_runtime::RunOnError;
use super::snapshot::SnapshotCall;
use super::source_map::SnapshotAt;
use super::stopped_thread::{Site, SnapshotReport};
use super::{Scenario, SnapshotResult};
use clr_runtime::Runtime;
use clr_runtime::explain::{Event, StoryLine, StoryWriter, frame_chain};
use clr_runtime::generation::Generation;

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
        self.snapshots_on(generation, true)
    }
}

/// The result of each call of a text on one generation.
pub type EachSnapshot<'s> = Vec<(SnapshotAt<'s>, Result<ExplainedSnapshot, RunOnError>)>;

impl Scenario {
    /// Makes each call of the text that is for a generation, in order. A stop that is not reached
    /// does not affect the calls at other stops. Without `told`, events and stories are empty,
    /// which is faster.
    #[must_use]
    pub fn each_on(&self, generation: Generation, told: bool) -> EachSnapshot<'_> {
        let mut errors = vec![None; self.stops.len()];
        let mut reachable = None;
        let mut made = self.snapshots_on(generation, told);
        // Each error removes a stop.
        while let Err(RunOnError::World { stop, .. } | RunOnError::NotReached { stop, .. }) = made
            && let Some(error) = errors.get_mut(stop)
            && error.is_none()
        {
            *error = made.err();
            let rest = reachable.get_or_insert_with(|| self.clone());
            if let Some(stop) = rest.stops.get_mut(stop) {
                stop.snapshots.clear();
            }
            made = rest.snapshots_on(generation, told);
        }
        let (mut made, all) = match made {
            Ok(made) => (made.into_iter(), None),
            Err(error) => (Vec::new().into_iter(), Some(error)),
        };
        let calls = self.snapshots().filter(|at| at.call.applies_to(generation));
        let mut result = |at: SnapshotAt<'_>| {
            let own = at.stop.and_then(|stop| *errors.get(stop)?);
            match own.or(all) {
                Some(error) => Some(Err(error)),
                None => made.next().map(Ok),
            }
        };
        calls.filter_map(|at| Some((at, result(at)?))).collect()
    }
}

/// Makes a call on a process, and records the events if an explanation is wanted.
pub(super) fn explained(
    call: &SnapshotCall,
    site: &impl Site,
    runtime: &Runtime<'_>,
    told: bool,
) -> (SnapshotResult, Vec<Event>, Vec<StoryLine>) {
    if !told {
        return (call.make_at(site, runtime), Vec::new(), Vec::new());
    }
    runtime.log.listen();
    let found = call.make_at(site, runtime);
    let events = runtime.log.take();
    let target = events.iter().find_map(|event| match event {
        Event::Target { object, .. } => Some(*object),
        _ => None,
    });
    let chain = target.map_or_else(Vec::new, |target| frame_chain(runtime, target));
    let teller = StoryWriter { generation: site.generation(), names: runtime, chain: &chain };
    let story = teller.write(&events);
    (found, events, story)
}
