//! Execution of the mixed walks of a text, on a stack placed by hand or at the stops of a program.

use crate::Scenario;
use crate::model::MixedAt;
use crate::model::MixedWalk;
use crate::model::SnapshotCaller;
use crate::run::error::RunOnError;
use crate::run::mixed::{FoundMixed, MixedDifference};
use crate::run::snapshot_result::DecidingClauses;
use crate::run::stopped_thread::Site;
use clr_codegen::execution::BASE;
use clr_runtime::Runtime;
use clr_runtime::generation::Generation;
use clr_runtime::profiling::{Caller, Policy, PolicyWalker, SimulatedThread};
use clr_walker::mixed::WalkBuffer;
use clr_world::synthetic::SyntheticProcess;
use clr_world::{Build, BuildError};

/// The result of a mixed walk of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MixedReport {
    /// Index of the stop in [`Scenario::stops`]; `None` for a stack placed by hand.
    pub stop: Option<usize>,
    /// Index of the walk among those there.
    pub walk: usize,
    /// Index of the relevant expectation among those of the walk.
    pub expected: Option<usize>,
    /// Result of the walk.
    pub found: FoundMixed,
    /// Differences from the expectation.
    pub differences: Vec<MixedDifference>,
}

impl MixedReport {
    /// Returns true if the result is as expected.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        self.differences.is_empty()
    }
}

/// The process and the thread that a walk works on.
pub(crate) struct WalkedThread<'g, 'b> {
    pub(crate) site: &'g dyn Site,
    runtime: &'g Runtime<'b>,
    /// Return address of the thread's first function (VA).
    root: u64,
}

impl WalkedThread<'_, '_> {
    /// Makes a walk.
    pub(crate) fn walk(&self, walk: &MixedWalk) -> Result<FoundMixed, RunOnError> {
        let expected = walk.expected_on(self.runtime.generation);
        let named = expected.map_or(&[][..], |(_, expected)| &expected.clauses);
        let (found, decided_by) =
            DecidingClauses::of(self.runtime, named, || self.walk_unjudged(walk));
        Ok(FoundMixed { decided_by, ..found? })
    }

    fn walk_unjudged(&self, walk: &MixedWalk) -> Result<FoundMixed, RunOnError> {
        let own = self.site.os(SnapshotCaller::Own);
        let Some(target) = SimulatedThread::new(self.runtime, own, self.root) else {
            return Err(RunOnError::UnknownThread);
        };
        let mut buffer = WalkBuffer::new(walk.capacity as usize);
        let map = self.runtime.code_map_for(walk.policy).map_err(BuildError::from)?;
        let calling_thread = self.site.os(walk.walker());
        let (target, walker) = (target.called_by(calling_thread), self.runtime.on(calling_thread));
        // A handler that asks nothing leaves the names to another thread.
        let namer = self.runtime.on(self.site.os(SnapshotCaller::NativeWalker));
        let mut make = |info: &Caller<'_, '_, _>| {
            let walker = PolicyWalker::new(info, &map, walk.policy);
            walker.take(&target, &mut buffer)?;
            match walk.policy {
                Policy::Signal => PolicyWalker::new(&namer, &map, walk.policy).stitch(&buffer),
                _ => walker.stitch(&buffer),
            }
        };
        let stack = match walk.in_callback {
            Some(kind) => walker.in_callback(kind, |info| make(info)),
            None => make(&walker),
        };
        Ok(match stack {
            Ok(stack) => FoundMixed::new(stack, |ip| self.site.label_of(ip)),
            Err(outcome) => FoundMixed::fatal(outcome),
        })
    }
}

impl MixedReport {
    fn new(at: &MixedAt<'_>, generation: Generation, found: FoundMixed) -> Self {
        let expected = at.says.expected_on(generation);
        let differences = expected.map(|(_, expected)| expected.differences(&found));
        Self {
            stop: at.stop,
            walk: at.walk,
            expected: expected.map(|(index, _)| index),
            found,
            differences: differences.unwrap_or_default(),
        }
    }
}

impl Scenario {
    /// Makes the mixed walks of the text on one generation. A walk that is not for the generation
    /// has no report.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn mixed_on(&self, generation: Generation) -> Result<Vec<MixedReport>, RunOnError> {
        self.each_mixed_on(generation).into_iter().map(|(_, made)| made).collect()
    }

    /// Makes the mixed walks of the text one by one: a stop that is not reached does not affect the
    /// walks at other stops.
    #[must_use]
    pub fn each_mixed_on(&self, generation: Generation) -> EachMixed<'_> {
        let wanted = |at: &MixedAt<'_>| at.says.applies_to(generation);
        let all: Vec<_> = self.mixed_walks().filter(wanted).collect();
        let mut each = Vec::with_capacity(all.len());
        let mut rest = all.as_slice();
        let mut ready = None;
        while let Some(stop) = rest.first().map(|first| first.stop) {
            let (here, others) = rest.split_at(rest.partition_point(|at| at.stop == stop));
            rest = others;
            let ready = ready.get_or_insert_with(|| Ready::new(self, generation));
            let found = match ready {
                Ok(ready) => ready.look(self, stop, here, |thread, at| thread.walk(at.says)),
                Err(error) => Err(*error),
            };
            match found {
                Ok(found) => each.extend(
                    here.iter()
                        .zip(found)
                        .map(|(at, it)| (*at, Ok(MixedReport::new(at, generation, it)))),
                ),
                Err(error) => each.extend(here.iter().map(|at| (*at, Err(error)))),
            }
        }
        each
    }
}

/// The result of each mixed walk of a text on one generation.
pub type EachMixed<'s> = Vec<(MixedAt<'s>, Result<MixedReport, RunOnError>)>;

/// A text prepared for one generation.
pub(crate) enum Ready {
    Set(Box<SyntheticProcess>),
    Build(Box<Build>),
}

impl Ready {
    pub(crate) fn new(scenario: &Scenario, generation: Generation) -> Result<Self, RunOnError> {
        if let Some(stack) = &scenario.stack {
            return Ok(Self::Set(stack.synthetic_thread(generation).build()?.into()));
        }
        Ok(Self::Build(scenario.build_on(generation)?.into()))
    }

    /// Calls `look` for each item on the thread of a stop, or of a stack placed by hand, each time
    /// with the same state.
    pub(crate) fn look<I, T>(
        &self,
        scenario: &Scenario,
        stop: Option<usize>,
        items: impl IntoIterator<Item = I>,
        look: impl Fn(&WalkedThread<'_, '_>, I) -> Result<T, RunOnError>,
    ) -> Result<Vec<T>, RunOnError> {
        let look = |site: &dyn Site, runtime: &Runtime<'_>, root: u64, item: I| {
            look(&WalkedThread { site, runtime, root }, item)
        };
        match self {
            Self::Set(set) => {
                items.into_iter().map(|item| look(&**set, &set.runtime(), 0, item)).collect()
            }
            Self::Build(build) => {
                let stop = stop.and_then(|index| Some((index, scenario.stops.get(index)?)));
                let Some(stop) = stop else { return Ok(Vec::new()) };
                let seen = scenario.inspect(build, stop, items, |stopped, item| {
                    look(stopped, stopped.runtime(), BASE, item)
                })?;
                seen.into_iter().collect()
            }
        }
    }
}
