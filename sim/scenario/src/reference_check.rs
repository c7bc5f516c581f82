//! Results that the [reference model](clr_world::reference) predicts for the calls of a program.

use super::run_on_runtime::{RunOnError, ThreadAtStop, label_of};
use super::snapshot::{
    ExpectedSnapshot, SEED_FLAGS, SeedSource, SnapshotCall, SnapshotCaller, SnapshotThread,
};
use super::snapshot_result::{FoundFrameReport, SnapshotResult};
use super::{Scenario, SnapshotReport};
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::HResult;
use clr_walker::registers::{Gpr, Registers};
use clr_world::reference::{
    CallFacts, CallerKind, ExpectedCall, ExpectedReport, ProgramFacts, ThreadFacts, expected,
};
use clr_world::stubs::Identity;
use clr_world::synthetic::FrameReport;
use clr_world::{Activation, ThreadStart, World};

/// The reference model's prediction for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferencePrediction {
    /// Index of the stop in [`Scenario::stops`].
    pub stop: usize,
    /// Index of the call among those of the stop.
    pub snapshot: usize,
    /// Expected callbacks and result.
    pub expected: ExpectedCall,
    /// Label of the ip and registers of the activation, for each callback.
    pub places: Vec<(String, Registers)>,
}

impl Scenario {
    /// Returns the reference model's predictions for the calls of a program on one generation.
    /// Calls that the model does not cover, such as those with a seed of single registers, are
    /// omitted, as are the calls of stops that are not reached.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn reference_predictions(
        &self,
        generation: Generation,
    ) -> Result<Vec<ReferencePrediction>, RunOnError> {
        let starts = self.starts();
        let mut all = Vec::new();
        self.at_stops(generation, |at_stop| {
            let ThreadAtStop { stop, world, thread, .. } = at_stop;
            let facts = ProgramFacts::new(world.expanded(), world.linked());
            let Some(seen) = ThreadFacts::new(&facts, world, thread) else { return };
            let calls = self.stops.get(stop).map_or(&[][..], |stop| &stop.snapshots);
            for (snapshot, call) in calls.iter().enumerate() {
                let question = question(call, &starts, thread, world, &seen);
                let expected = question.and_then(|question| expected(&seen, &question));
                let Some(expected) = expected else { continue };
                let place = |callback: &ExpectedReport| {
                    let activation = seen.activations.get(callback.activation);
                    let label = label_of(world.as_synced(), callback.context.registers.rip);
                    (label, activation.map(|activation| activation.registers).unwrap_or_default())
                };
                let places = expected.callbacks.iter().map(place).collect();
                all.push(ReferencePrediction { stop, snapshot, expected, places });
            }
        })?;
        Ok(all)
    }

    /// Returns the calls whose results differ from the reference model on one generation.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn against_model(&self, generation: Generation) -> Result<Vec<SnapshotReport>, RunOnError> {
        let modelled = self.reference_predictions(generation)?;
        let is_other = |report: &SnapshotReport| {
            let own = |one: &&ReferencePrediction| {
                report.stop == Some(one.stop) && report.snapshot == one.snapshot
            };
            let expected = modelled.iter().find(own);
            expected.is_some_and(|one| !is_as_modelled(&report.found, &one.expected))
        };
        let mut reports = self.run_on(generation)?;
        reports.retain(is_other);
        Ok(reports)
    }

    /// Replaces the expectations of every call by the reference model's prediction on one
    /// generation. Calls that the model does not cover are removed.
    ///
    /// # Errors
    /// Returns [`RunOnError`].
    pub fn expect_predictions(&mut self, generation: Generation) -> Result<(), RunOnError> {
        for call in self.calls_mut() {
            call.expect.clear();
        }
        let modelled = self.reference_predictions(generation)?;
        let reports = self.run_on(generation)?;
        for (index, stop) in self.stops.iter_mut().enumerate() {
            for (snapshot, call) in stop.snapshots.iter_mut().enumerate() {
                let own =
                    |one: &&ReferencePrediction| (one.stop, one.snapshot) == (index, snapshot);
                let made =
                    |one: &&SnapshotReport| (one.stop, one.snapshot) == (Some(index), snapshot);
                if let (Some(one), Some(made)) =
                    (modelled.iter().find(own), reports.iter().find(made))
                {
                    let found = one.as_found(&made.found);
                    let on = Generations::of(&[generation]);
                    call.expect = vec![ExpectedSnapshot::of(on, &found)];
                }
            }
            stop.snapshots.retain(|call| !call.expect.is_empty());
        }
        self.stops.retain(|stop| !stop.snapshots.is_empty());
        Ok(())
    }
}

impl ReferencePrediction {
    /// Converts the prediction to the form of a result, based on an actual one.
    fn as_found(&self, made: &SnapshotResult) -> SnapshotResult {
        let rules = made.rules;
        let pairs = self.expected.callbacks.iter().zip(&self.places).enumerate();
        let start = rules.start.unwrap_or_default();
        let frame_reports = pairs.map(|(index, (callback, (label, true_registers)))| {
            let mut context = callback.context;
            // The rax of a seed is not one of the thread's registers.
            let own = made
                .frame_reports
                .get(index)
                .and_then(|frame_report| frame_report.frame_report.context);
            let rax = own.map_or(start, |own| own.registers).get(Gpr::Rax);
            context.registers.set(Gpr::Rax, rax);
            let frame_report = FrameReport {
                function: callback.function,
                ip: context.registers.rip,
                context_size: rules.size.filter(|_| rules.wanted).unwrap_or_default(),
                context: rules.wanted.then_some(context),
                label: label.clone(),
            };
            FoundFrameReport { frame_report, function: None, true_registers: Some(*true_registers) }
        });
        SnapshotResult {
            frame_reports: frame_reports.collect(),
            outcome: self.expected.outcome,
            nested: Vec::new(),
            rules,
        }
    }
}

/// Converts a call to a question to the reference model; returns `None` if the model does not cover
/// it.
fn question(
    call: &SnapshotCall,
    starts: &[ThreadStart],
    thread: usize,
    world: &World<'_>,
    target: &ThreadFacts,
) -> Option<CallFacts> {
    let is_plain = !call.null_callback && call.in_callback.is_none() && call.nested.is_empty();
    let stops = call.stop_at.is_none_or(|last| last.returns == HResult::FALSE);
    if !is_plain || !stops {
        return None;
    }
    let caller = match call.by {
        SnapshotCaller::Own => CallerKind::Target,
        SnapshotCaller::NativeWalker => CallerKind::Native,
        SnapshotCaller::ManagedWalker => CallerKind::Managed,
        SnapshotCaller::Thread(other) if other as usize == thread => CallerKind::Target,
        SnapshotCaller::Thread(other) => match starts.get(other as usize)? {
            ThreadStart::Managed(_) => CallerKind::Managed,
            ThreadStart::Native(_) | ThreadStart::ServerGc => CallerKind::Native,
        },
    };
    let unnamed = match call.thread {
        SnapshotThread::Own => false,
        // To another thread of the runtime, 0 means itself.
        SnapshotThread::Null if caller != CallerKind::Managed => true,
        SnapshotThread::Thread(other) if other as usize == thread => false,
        _ => return None,
    };
    let seed = match &call.seed {
        None => None,
        Some(seed) => {
            let changed = seed.rip.is_some() || !seed.registers.is_empty() || seed.features != 0;
            if changed || seed.cut.is_some() {
                return None;
            }
            let activation = activation_of(&seed.from, thread, world, target)?;
            Some((activation, seed.flags.unwrap_or(SEED_FLAGS)))
        }
    };
    Some(CallFacts {
        caller,
        unnamed,
        flags: call.flags,
        seed,
        suspended_by_profiler: call.suspended,
        stop_at: call.stop_at.map(|last| last.callback.saturating_sub(1)),
    })
}

/// Returns the index of the activation that a seed is made from.
fn activation_of(
    from: &SeedSource,
    thread: usize,
    world: &World<'_>,
    target: &ThreadFacts,
) -> Option<usize> {
    let expanded = world.expanded();
    let activations = world.activations(thread);
    let find = |is: &dyn Fn(usize) -> bool| {
        let own = |one: &&Activation| one.function.is_some_and(|id| is(id.index()));
        activations.iter().find(own)
    };
    let activation = match from {
        SeedSource::Leaf => activations.first(),
        SeedSource::TopManaged => {
            find(&|id| matches!(expanded.identities.get(id), Some(Identity::Method(_))))
        }
        SeedSource::Function(name) => find(&|id| {
            expanded.program.functions.get(id).is_some_and(|function| function.name == *name)
        }),
        SeedSource::Stale | SeedSource::Bytes(_) => None,
    }?;
    let place = |activation: &clr_world::reference::ReferenceActivation| {
        (activation.registers.rip, activation.registers.rsp())
    };
    let own = (activation.registers.rip, activation.registers.rsp());
    target.activations.iter().position(|activation| place(activation) == own)
}

/// Returns true if the result of a call equals the model's prediction. rax is not compared: in a
/// seed it is [`SEED_RAX`](super::SEED_RAX).
pub(super) fn is_as_modelled(found: &SnapshotResult, expected: &ExpectedCall) -> bool {
    let mut pairs = found.frame_reports.iter().zip(&expected.callbacks);
    let is_same = pairs.all(|(made, callback)| {
        let frame_report = &made.frame_report;
        let context = frame_report.context.is_none_or(|context| {
            let (mut found, mut expected) = (context, callback.context);
            for registers in [&mut found.registers, &mut expected.registers] {
                registers.set(Gpr::Rax, 0);
            }
            found == expected
        });
        frame_report.function == callback.function
            && frame_report.ip == callback.context.registers.rip
            && context
    });
    is_same
        && found.frame_reports.len() == expected.callbacks.len()
        && found.outcome == expected.outcome
}
