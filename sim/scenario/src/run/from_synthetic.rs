//! Texts of stacks that were generated at random or by a fuzzer.

use crate::Scenario;
use crate::model::{
    ExpectedSnapshot, LastCallback, SeedAddress, SeedSource, SnapshotCall, SnapshotCaller,
    SnapshotSeed, SnapshotThread,
};
use crate::model::{PlacedItem, PlacedStack, PlacedThread, StackNode, SuspensionState, ThreadMode};
use crate::run::bless::blessed;
use crate::run::explained::ExplainedSnapshot;
use clr_generate::SyntheticCall;
use clr_generate::synthetic::SyntheticSeed;
use clr_runtime::generation::{Generation, Generations};
use clr_runtime::profiling::HResult;
use clr_runtime::{MethodKind, OsThreadId, Process, Suspension};
use clr_unwind::Gpr;
use clr_walker::profiling::ThreadId;
use clr_world::synthetic::{CodeLocation, SELF_OBJECT, SyntheticThread};

impl PlacedThread {
    /// Returns the thread with the given id; `None` if no text can name it.
    #[must_use]
    pub fn of(os: OsThreadId) -> Option<Self> {
        let all = [Self::Own, Self::NativeWalker, Self::ManagedWalker, Self::Other];
        all.into_iter().find(|thread| thread.os() == os)
    }
}

impl PlacedStack {
    /// Converts a synthetic thread to a stack for all generations, which [`synthetic_thread`](Self::synthetic_thread)
    /// converts back. Returns `None` if no text can express the state, for instance a process that
    /// a thread without a name is suspending.
    #[must_use]
    pub fn of(target: &SyntheticThread) -> Option<Self> {
        let mut nodes = Vec::new();
        if target.cooperative {
            nodes.push(StackNode::Mode(ThreadMode::Cooperative));
        }
        let activations = target.activations.iter().cloned();
        nodes.extend(
            activations.map(|activation| StackNode::Activation { activation, saves_all: false }),
        );
        nodes.extend(target.frames.iter().cloned().map(StackNode::Frame));
        nodes.extend(target.exceptions.trackers.iter().copied().map(StackNode::Exception));
        thread(target, &mut nodes);
        nodes.extend(target.stubs.iter().map(|(name, kind)| StackNode::Stub(name.clone(), *kind)));
        nodes.extend(
            target.blocks.iter().map(|(at, size)| StackNode::Block { at: *at, size: *size }),
        );
        let words = target.overwritten.iter();
        nodes.extend(words.map(|(at, value)| StackNode::Word { at: *at, value: *value, count: 1 }));
        process(&target.process, &mut nodes)?;
        let item = |node| PlacedItem { on: Generations::ALL, node };
        let items = nodes.into_iter().map(item).collect();
        let stack = Self { items, ..Self::default() };
        (stack.synthetic_thread(target.generation) == *target).then_some(stack)
    }
}

/// Adds the state of the thread that differs from the default.
fn thread(target: &SyntheticThread, nodes: &mut Vec<StackNode>) {
    let usual = SyntheticThread::new(target.generation);
    let mut push = |is_usual: bool, node: StackNode| {
        if !is_usual {
            nodes.push(node);
        }
    };
    let (limit, base) = target.stack;
    push(target.stack == usual.stack, StackNode::Bounds { limit, base });
    push(target.safety == usual.safety, StackNode::Safety(target.safety));
    push(!target.exceptions.inconsistent, StackNode::InconsistentExceptions);
    push(target.life == usual.life, StackNode::Life(target.life));
    push(target.forbid_suspend == 0, StackNode::ForbidSuspend(target.forbid_suspend));
    push(!target.hijack_locked, StackNode::HijackLocked);
    push(!target.gc_special, StackNode::GcSpecial);
    push(!target.resists_suspension, StackNode::ResistsSuspension);
    push(!target.leaves_cooperative_mode, StackNode::LeavesCooperativeMode);
    push(!target.debugger_context, StackNode::DebuggerContext);
    nodes.extend(target.hijacked.clone().map(StackNode::Hijacked));
}

/// Adds the state of the process that differs from the default.
fn process(process: &Process, nodes: &mut Vec<StackNode>) -> Option<()> {
    let usual = Process::default();
    let mut push = |is_usual: bool, node: StackNode| {
        if !is_usual {
            nodes.push(node);
        }
    };
    push(process.profiler == usual.profiler, StackNode::Profiler(process.profiler));
    push(!process.attached, StackNode::Attached);
    let mask = process.event_mask;
    push(mask == usual.event_mask, StackNode::EventMask(mask.0));
    push(process.started, StackNode::NotStarted);
    push(process.gc_initialized, StackNode::NoGc);
    let suspension = match process.suspension {
        Suspension::None => None,
        Suspension::Suspending(by) => Some((SuspensionState::Suspending, by)),
        Suspension::Suspended(by) => Some((SuspensionState::Suspended, by)),
    };
    if let Some((state, by)) = suspension {
        nodes.push(StackNode::Suspension(state, PlacedThread::of(by)?));
    }
    if process.suspended_by_profiler {
        nodes.push(StackNode::SuspendedByProfiler);
    }
    if let Some(thread) = process.code_manager_writer {
        nodes.push(StackNode::CodeManagerWriter(PlacedThread::of(thread)?));
    }
    nodes.extend(process.gs_cookie.map(StackNode::GsCookie));
    Some(())
}

impl SnapshotCall {
    /// Converts a call on a synthetic thread; returns `None` if no text can express it.
    #[must_use]
    pub fn of(call: &SyntheticCall) -> Option<Self> {
        let by = match PlacedThread::of(call.caller)? {
            PlacedThread::Own => SnapshotCaller::Own,
            PlacedThread::NativeWalker => SnapshotCaller::NativeWalker,
            PlacedThread::ManagedWalker => SnapshotCaller::ManagedWalker,
            PlacedThread::Other => return None,
        };
        let seed = match &call.seed {
            Some(seed) => Some(seed_of(seed, &call.target)?),
            None => None,
        };
        Some(Self {
            by,
            thread: match call.thread {
                SELF_OBJECT => SnapshotThread::Own,
                ThreadId(0) => SnapshotThread::Null,
                ThreadId(value) => SnapshotThread::Value(value),
            },
            flags: call.flags,
            seed,
            null_callback: call.null_callback,
            stop_at: call.stop_at.map(|before| LastCallback {
                callback: before.saturating_add(1),
                returns: HResult::FALSE,
            }),
            ..Self::default()
        })
    }
}

/// Converts a seed. If its activation is not the first one of its function, the registers are
/// listed individually.
fn seed_of(seed: &SyntheticSeed, target: &SyntheticThread) -> Option<SnapshotSeed> {
    let activation = seed.activation.map(|activation| activation as usize);
    let name = activation
        .and_then(|activation| target.activations.get(activation))
        .map(|activation| &activation.function);
    let first = target.activations.iter().position(|activation| Some(&activation.function) == name);
    let whole = SyntheticSeed::of_activation(0);
    let mut found = match name.filter(|_| first == activation) {
        Some(name) => SnapshotSeed::new(SeedSource::Function(name.clone())),
        None => SnapshotSeed::new(SeedSource::Bytes(0)),
    };
    let from_bytes = matches!(found.from, SeedSource::Bytes(_));
    let mut registers = Vec::new();
    if let Some(activation) = activation.filter(|_| from_bytes)
        && let Some(leaf) = target.build().ok()?.registers(activation)
    {
        found.rip = Some(SeedAddress::Address(leaf.rip));
        registers.extend(Gpr::ALL.map(|register| (register, leaf.get(register))));
    }
    for (register, value) in [(Gpr::Rsp, seed.rsp), (Gpr::Rbp, seed.rbp)] {
        let Some(value) = value else { continue };
        registers.retain(|(other, _)| *other != register);
        registers.push((register, value));
    }
    registers.retain(|(_, value)| *value != 0 || !from_bytes);
    registers.sort_by_key(|(register, _)| *register as u8);
    found.registers = registers;
    found.rip = seed.rip.map(SeedAddress::Address).or(found.rip);
    found.flags = (seed.flags != whole.flags || from_bytes).then_some(seed.flags);
    found.features = seed.features;
    found.cut = (seed.len < whole.len).then_some(seed.len);
    Some(found)
}

impl Scenario {
    /// Converts a call on a synthetic thread to a text without expectations; returns `None` if no
    /// text can express it. Methods of kinds that texts support in one place only are moved there.
    #[must_use]
    pub fn from_call(call: &SyntheticCall) -> Option<Self> {
        let mut call = call.clone();
        for activation in &mut call.target.activations {
            activation.place = match (activation.place, activation.kind) {
                (CodeLocation::ReadyToRun, MethodKind::IlStub | MethodKind::Dynamic) => {
                    CodeLocation::Heap
                }
                (CodeLocation::Heap, MethodKind::ExceptionHandling) => CodeLocation::ReadyToRun,
                (place, _) => place,
            };
        }
        let mut stack = PlacedStack::of(&call.target)?;
        stack.snapshots.push(SnapshotCall::of(&call)?);
        Some(Self { stack: Some(stack), ..Self::default() })
    }

    /// Replaces the expectations of every snapshot by its results on the given generations. A call
    /// that cannot be made on a generation gets no expectation for it.
    pub fn expect_results(&mut self, on: Generations) {
        for call in self.calls_mut() {
            call.expect.clear();
        }
        let before = self.clone();
        let each: Vec<(Generation, _)> =
            on.iter().map(|generation| (generation, before.each_on(generation))).collect();
        for (index, call) in self.calls_mut().enumerate() {
            let mut found = Vec::new();
            for (generation, each) in &each {
                let made = each.get(index).and_then(|(_, made)| made.as_ref().ok());
                found.extend(made.map(|made| (*generation, false, &made.found)));
            }
            call.expect = blessed(&[], &found).into_iter().flatten().collect();
        }
    }

    /// Takes those expectations of snapshots back that do not hold any more.
    pub fn expect_what_holds(&mut self) {
        let before = self.clone();
        let mut calls: Vec<_> = self.calls_mut().collect();
        for generation in Generation::ALL {
            for (at, made) in before.each_on(generation) {
                let wrong = made.ok().filter(|made| !made.is_right());
                let expected = wrong.and_then(|made| {
                    calls.get_mut(before.snapshot_index(&at))?.expect.get_mut(made.expected?)
                });
                if let Some(expected) = expected {
                    expected.on = expected.on.without(Generations::of(&[generation]));
                }
            }
        }
        for call in calls {
            call.expect.retain(|expected| !expected.on.is_empty());
        }
    }

    /// Expects the result of the first call for which `is_meant` on a generation, if the call has no
    /// expectation for that. Returns true if it has one now that it had not before.
    pub fn expect_result_of(
        &mut self,
        on: Generation,
        is_meant: impl Fn(&ExplainedSnapshot) -> bool,
    ) -> bool {
        let before = self.clone();
        let meant = before.explain_each_on(on).into_iter().find_map(|(at, made)| {
            Some((before.snapshot_index(&at), made.ok().filter(|made| is_meant(made))?))
        });
        let Some((index, made)) = meant else { return false };
        let call = self.calls_mut().nth(index).filter(|call| call.expected_on(on).is_none());
        call.is_some_and(|call| {
            call.expect.push(ExpectedSnapshot::of(Generations::of(&[on]), &made.report.found));
            true
        })
    }
}
